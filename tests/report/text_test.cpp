#include "report/text.h"

#include <gtest/gtest.h>

#include <deque>
#include <sstream>
#include <string>
#include <vector>

#include "load/load_model.h"
#include "model/yaml_model.h"
#include "paths.h"
#include "tests/report/golden.h"

namespace memwall {
namespace {

const std::string kFixtures = MEMWALL_TEST_DATA "/fixtures/";
const Style kPlain{.colour = false};
const Circumstances kFixed{"0.0.0", "memwall estimate tiny --card round-card", "2030-01-02T03:04:05Z"};

// A model with its grouped ops, which estimates point at.
struct Lowered {
  explicit Lowered(Model m) : model(std::move(m)), ops(group_equal(lower(model))) {}
  Model model;
  std::vector<Op> ops;
};

Estimate estimate(const Lowered& lowered, const Card& card, std::int64_t batch, std::int64_t context,
                  std::int64_t prompt = 0) {
  Estimate e;
  e.model = &lowered.model;
  e.card = &card;
  e.step = cost_step(lowered.ops, {.phase = Phase::decode, .batch = batch, .context = context});
  e.prediction = predict(e.step, card);
  e.memory = memory_fit(lowered.model, e.step, card);
  if (prompt > 0) {
    e.prefill_step = cost_step(lowered.ops, {.phase = Phase::prefill, .batch = batch, .context = prompt});
    e.prefill = predict(*e.prefill_step, card);
  }
  return e;
}

class Golden : public ::testing::Test {
 protected:
  Lowered tiny_{load_model_yaml(kFixtures + "tiny.yaml")};
  Card card_ = load_card_yaml(kFixtures + "round-card.yaml");
};

TEST_F(Golden, Inspect) {
  const Step step = cost_step(tiny_.ops, {.phase = Phase::decode, .batch = 1, .context = 64});
  expect_golden("inspect.txt", inspect_text(tiny_.model, tiny_.ops, step, kPlain));
}

TEST_F(Golden, EstimateOfOne) {
  expect_golden("estimate-one.txt", estimate_text({estimate(tiny_, card_, 2, 64, 32)}, false, kPlain));
}

TEST_F(Golden, EstimateOfAGrid) {
  Lowered q4(with_weights(tiny_.model, *find_format("q4_0"), std::nullopt));
  expect_golden("estimate-grid.txt",
                estimate_text({estimate(tiny_, card_, 1, 8), estimate(tiny_, card_, 4096, 64),
                               estimate(q4, card_, 1, 8), estimate(q4, card_, 1, 64, 32)},
                              false, kPlain));
}

TEST_F(Golden, EstimateJson) {
  Json json = document("estimate", kFixed);
  json["model"] = model_figures(tiny_.model);
  json["model"].erase("file");
  json["cards"] = Json::array({card_figures(card_)});
  json["results"] = Json::array({estimate_figures(estimate(tiny_, card_, 2, 64, 32), true)});
  expect_golden("estimate.json", json.dump(2) + "\n");
}

TEST_F(Golden, Cards) {
  Card other = card_;
  other.name = "other-card-of-a-long-name";
  other.l2_MiB = 50;
  other.peaks[ComputeType::f8] = {.tflops = 1978.9, .accumulate = "f32", .source = "thought"};
  other.peaks.erase(ComputeType::bf16);
  expect_golden("cards.txt", cards_text({card_, other}, kPlain));
}

TEST_F(Golden, Models) { expect_golden("models.txt", models_text({tiny_.model}, kPlain)); }

TEST(EstimateFigures, ByHand) {
  // One linear of 100 x 10 in bf16: 2000 bytes, 2000 FLOPs, on 1000 GB/s and 100 TFLOP/s.
  const Lowered one(model_from_yaml(yaml::parse("name: one\nlayers:\n  - proj: [100, 10]\n", "one.yaml")));
  const Card card = load_card_yaml(kFixtures + "round-card.yaml");
  const Json json = estimate_figures(estimate(one, card, 1, 1024), true);
  EXPECT_EQ(json["bytes"].dump(),
            R"({"weights":2000,"kv":0,"kv_read":0,"kv_write":0,"state":0,"activations":220,"total":2220})");
  EXPECT_EQ(json["flops"], 2000);
  EXPECT_EQ(json["intensity"], 1);
  EXPECT_EQ(json["ridge"], 100);
  EXPECT_DOUBLE_EQ(json["ceiling"]["ms_per_step"], 2e-6);
  EXPECT_DOUBLE_EQ(json["ceiling"]["tokens_per_s"], 5e8);
  EXPECT_EQ(json["ceiling"]["bound"], "memory");
  // 2220 bytes at half the bandwidth and a launch of 10 µs.
  EXPECT_DOUBLE_EQ(json["expected"]["ms_per_step"], 0.01 + 2220 / 0.5e12 * 1e3);
  EXPECT_EQ(json["expected"]["bound"], "overhead");
  EXPECT_EQ(json["expected"]["provisional"], true);
  EXPECT_EQ(json["memory"]["capacity_GiB"], 10);
  EXPECT_EQ(json["memory"]["fits"], true);
  const Json& op = json["ops"][0];
  EXPECT_EQ(op["name"], "proj");
  EXPECT_EQ(op["kind"], "linear");
  EXPECT_EQ(op["layers"].dump(), "[0]");
  EXPECT_EQ(op["count"], 1);
  EXPECT_EQ(op["out"], 100);
  EXPECT_EQ(op["in"], 10);
  EXPECT_EQ(op["format"], "bf16");
  EXPECT_EQ(op["bytes"], 2220);
  EXPECT_EQ(op["weight_bytes"], 2000);
  EXPECT_EQ(op["activation_bytes"], 220);
  EXPECT_DOUBLE_EQ(op["ceiling_us"], 2220e-6);
}

// What an op of a kind says of its shape.
TEST(OpFigures, ShapesOfEveryKind) {
  const Lowered mixtral(find_model("mixtral-8x7b"));
  const Step step = cost_step(mixtral.ops, {.phase = Phase::decode, .batch = 1, .context = 1024});
  int seen = 0;
  for (const Json& op : ops_figures(step, nullptr)) {
    EXPECT_FALSE(op.contains("ceiling_us"));
    if (op["name"] == "attention") {
      EXPECT_EQ(op["out"], 4096);
      EXPECT_EQ(op["kv_heads"], 8);
      EXPECT_FALSE(op.contains("window"));
      EXPECT_EQ(op["kv_bytes"], 134'348'800);
      ++seen;
    } else if (op["name"] == "experts.down_proj") {
      EXPECT_EQ(op["kind"], "expert");
      EXPECT_EQ(op["experts"].dump(), R"({"total":8,"per_token":2,"touched":2})");
      EXPECT_EQ(op["count"], 32);
      EXPECT_EQ(op["weight_bytes"], 32 * 2 * 14336.0 * 4096 * 2);
      ++seen;
    } else if (op["name"] == "embed_tokens") {
      EXPECT_EQ(op["kind"], "embedding");
      EXPECT_EQ(op["weight_bytes"], 0);
      EXPECT_EQ(op["out"], 32000);
      ++seen;
    } else if (op["name"] == "rotary") {
      EXPECT_TRUE(op["format"].is_null());
      EXPECT_EQ(op["fusible"], true);
      ++seen;
    }
  }
  EXPECT_EQ(seen, 4);
}

TEST(ShapeText, OfEveryKind) {
  const LinearWork linear{.out = 64,
                          .in = 32,
                          .format = *find_format("q4_0"),
                          .bias = false,
                          .bias_format = {},
                          .last_token_only = false};
  const auto op = [](Work work) { return Op{.name = "x", .work = std::move(work), .layers = {}}; };
  EXPECT_EQ(shape_text(op(linear)), "64×32");
  EXPECT_EQ(format_text(op(linear)), "q4_0");
  EXPECT_EQ(shape_text(op(ExpertWork{linear, 8, 2})), "64×32 ×8");
  EXPECT_EQ(shape_text(op(RouterWork{linear, 2})), "64×32");
  const AttentionWork attention{.heads = 32, .kv_heads = 8, .d_k = 128, .d_v = 128, .window = 4096};
  EXPECT_EQ(shape_text(op(attention)), "32/8h×128 w4096");
  EXPECT_EQ(format_text(op(attention)), "bf16");
  ElementwiseWork norm;
  norm.width = 128;
  EXPECT_EQ(shape_text(op(norm)), "128");
  EXPECT_EQ(format_text(op(norm)), "");
  norm.rows_per_token = 32;
  EXPECT_EQ(shape_text(op(norm)), "32×128");
  EXPECT_EQ(shape_text(op(EmbeddingWork{100, 8, {}})), "100×8");
}

// Every line of a text, plain and at most 100 columns wide.
void expect_narrow_and_plain(const std::string& text, const std::string& what) {
  EXPECT_EQ(text.find('\x1b'), std::string::npos) << what;
  ASSERT_FALSE(text.empty());
  EXPECT_EQ(text.back(), '\n') << what;
  std::string widest;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (display_width(line) > display_width(widest)) widest = line;
    EXPECT_TRUE(line.empty() || line.back() != ' ') << what << ": '" << line << "'";
  }
  EXPECT_LE(display_width(widest), 100U) << what << ":\n" << widest;
}

TEST(Text, EveryZooModelOnEveryCardIsAtMost100ColumnsWide) {
  const std::vector<Card> cards = all_cards();
  for (const Model& model : zoo()) {
    const Lowered base(model);
    std::deque<Lowered> formats;
    for (const char* format : {"f32", "q8_0", "f8_e4m3-b128", "int4-g128-zp"}) {
      formats.emplace_back(with_weights(model, *find_format(format), std::nullopt));
      formats.back().model.kv = KvFormat::f8_e4m3;
      formats.back().ops = group_equal(lower(formats.back().model));
    }
    for (const std::int64_t context : {1, 1024, 131'072}) {
      const Step step = cost_step(base.ops, {.phase = Phase::decode, .batch = 1, .context = context});
      expect_narrow_and_plain(inspect_text(model, base.ops, step, kPlain), "inspect " + model.name);
    }
    for (const Card& card : cards) {
      const std::string what = model.name + " on " + card.name;
      expect_narrow_and_plain(estimate_text({estimate(base, card, 1, 1024)}, true, kPlain), what);
      expect_narrow_and_plain(estimate_text({estimate(base, card, 256, 131'072, 131'072)}, true, kPlain),
                              what);
      std::vector<Estimate> grid = {estimate(base, card, 1, 1024), estimate(base, card, 256, 131'072)};
      for (const Lowered& lowered : formats) {
        grid.push_back(estimate(lowered, card, 1, 1024));
        grid.push_back(estimate(lowered, card, 256, 131'072));
      }
      expect_narrow_and_plain(estimate_text(grid, false, kPlain), "grid " + what);
    }
  }
}

TEST(Text, AGridWithPromptsIsAtMost100ColumnsWide) {
  const std::vector<Card> cards = all_cards();
  for (const Model& model : zoo()) {
    const Lowered base(model);
    std::vector<Estimate> grid;
    for (const Card& card : cards) {
      grid.push_back(estimate(base, card, 1, 1024, 512));
      grid.push_back(estimate(base, card, 256, 131'072, 131'072));
    }
    expect_narrow_and_plain(estimate_text(grid, false, kPlain), "grid " + model.name);
  }
}

TEST(Text, TheListsAreAtMost100ColumnsWide) {
  expect_narrow_and_plain(models_text(zoo(), kPlain), "models");
  expect_narrow_and_plain(cards_text(all_cards(), kPlain), "cards");
}

TEST(Text, AGridWithOpsAddsEveryResult) {
  const Lowered tiny(load_model_yaml(kFixtures + "tiny.yaml"));
  const Card card = load_card_yaml(kFixtures + "round-card.yaml");
  const std::vector<Estimate> two = {estimate(tiny, card, 1, 8), estimate(tiny, card, 2, 8)};
  const std::string text = estimate_text(two, true, kPlain);
  EXPECT_NE(text.find(estimate_text(two, false, kPlain)), std::string::npos);
  EXPECT_NE(text.find(estimate_text({two[0]}, false, kPlain)), std::string::npos);
  EXPECT_NE(text.find(estimate_text({two[1]}, false, kPlain)), std::string::npos);
}

TEST(Text, SaysOnWhichSideOfTheRidgeTheStepLies) {
  const Card card = find_card("h200");
  const auto why = [&](KvFormat kv, std::int64_t batch, std::int64_t context) {
    Model model = find_model("llama-3.1-8b");
    model.kv = kv;
    const Lowered llama(std::move(model));
    const std::string text = estimate_text({estimate(llama, card, batch, context)}, false, kPlain);
    const std::size_t at = text.find("intensity");
    return text.substr(at, text.find('\n', at) - at);
  };
  EXPECT_EQ(why(KvFormat::bf16, 1, 1024),
            "intensity  1.027 FLOP/byte, below the ridge of 206.1 (bf16): memory bounds it");
  EXPECT_NE(why(KvFormat::bf16, 4096, 1).find("at or above the ridge of 206.1 (bf16): arithmetic bounds it"),
            std::string::npos);
  // Attention over an f32 cache computes at a fifteenth of that peak: its arithmetic bounds the step before
  // the ridge of the linears.
  const std::string mixed = why(KvFormat::f32, 4096, 300);
  EXPECT_NE(mixed.find("below the ridge of 206.1 (bf16), but ops of other types"), std::string::npos)
      << mixed;
  EXPECT_NE(mixed.find("arithmetic bounds it"), std::string::npos) << mixed;
}

TEST(Text, SaysWhenItDoesNotFit) {
  const Lowered llama(find_model("llama-3.1-70b"));
  const Card card = find_card("rtx-4090");
  EXPECT_NE(estimate_text({estimate(llama, card, 1, 1024)}, false, kPlain).find("does not fit"),
            std::string::npos);
  EXPECT_NE(estimate_text({estimate(llama, card, 1, 1024)}, false, {.colour = true}).find('\x1b'),
            std::string::npos);
}

}  // namespace
}  // namespace memwall
