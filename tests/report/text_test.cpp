#include "report/text.h"

#include <gtest/gtest.h>

#include <deque>
#include <sstream>
#include <string>
#include <vector>

#include "load/load_model.h"
#include "model/weight_assignment.h"
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

// It points at both: temporaries do where it is used in the same expression alone.
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

// A row of a sweep says what a single result says: its range, and that it is provisional.
TEST_F(Golden, ASweepHasTheRangesOfItsResults) {
  const Lowered q4(with_weights(tiny_.model, *find_format("q4_0"), std::nullopt));
  Card fitted = card_;
  fitted.achievable.provisional = false;
  const Estimate known = estimate(tiny_, fitted, 1, 8, 32);
  Estimate unknown = estimate(q4, fitted, 1, 8, 32);
  unknown.prefill->expected.unknown_factor = kGgmlRateFactor;
  unknown.prefill->expected.provisional = true;
  const std::string text = estimate_text({known, unknown}, false, kPlain);
  const ExpectedSpeed& expected = known.prediction.expected;
  EXPECT_NE(
      text.find(significant(expected.low_tokens_per_s, 3) + "–" + significant(expected.high_tokens_per_s, 3)),
      std::string::npos)
      << text;
  EXPECT_EQ(text.find("~" + significant(expected.tokens_per_s, 3)), std::string::npos) << text;
  EXPECT_NE(text.find("~" + human_time(unknown.prefill->expected.ms_per_step / 1e3)), std::string::npos)
      << text;
  EXPECT_NE(text.find("4 either way"), std::string::npos) << text;
  EXPECT_NE(text.find("~: provisional"), std::string::npos) << text;
  EXPECT_EQ(estimate_text({known, known}, false, kPlain).find("~"), std::string::npos);
  // The same in JSON, CSV and Markdown, which are made of these figures.
  const Json json = estimate_figures(unknown, false);
  EXPECT_EQ(json["prefill"]["unknown_factor"], kGgmlRateFactor);
  EXPECT_EQ(json["prefill"]["provisional"], true);
  EXPECT_TRUE(json["expected"]["unknown_factor"].is_null());
  EXPECT_EQ(json["expected"]["provisional"], false);
  const Json& prefill = json["prefill"];
  EXPECT_DOUBLE_EQ(prefill["low_ttft_ms"].get<double>(), 32e3 / prefill["high_tokens_per_s"].get<double>());
  EXPECT_DOUBLE_EQ(prefill["high_ttft_ms"].get<double>(), 32e3 / prefill["low_tokens_per_s"].get<double>());
  EXPECT_LE(prefill["low_ttft_ms"], prefill["ttft_ms"]);
  EXPECT_GE(prefill["high_ttft_ms"], prefill["ttft_ms"]);
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
  EXPECT_EQ(
      json["bytes"].dump(),
      R"({"weights":2000,"weights_least":2000,"kv":0,"kv_read":0,"kv_write":0,"state":0,"activations":220,"total":2220})");
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

bool holds(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(Text, TheCeilingNamesItsTerms) {
  const Lowered llama(find_model("llama-3.1-8b"));
  const std::string text = estimate_text({estimate(llama, find_card("h200"), 1, 1024)}, false, kPlain);
  EXPECT_TRUE(holds(text, "(no run is faster, for one token a step)")) << text;
  EXPECT_FALSE(holds(text, "even")) << text;
}

// Eight tokens of Mixtral may all choose the same two experts.
TEST(Text, TheBoundUnderEvenRoutingIsCalledAnAssumption) {
  const Lowered mixtral(find_model("mixtral-8x7b"));
  const Card card = find_card("h200");
  const Estimate eight = estimate(mixtral, card, 8, 1024);
  const std::string text = estimate_text({eight}, false, kPlain);
  EXPECT_TRUE(holds(text,
                    "\nexperts    7.20 of 8 a layer touched, in expectation under even, independent routing; "
                    "2 at least\n"))
      << text;
  EXPECT_TRUE(holds(text, "\nceiling    1445.1 tokens/s, 180.6 a user, 5.536 ms a step  (no run")) << text;
  EXPECT_TRUE(holds(
      text, "\neven       450.76 tokens/s, 56.35 a user, 17.75 ms a step  (under even routing: no bound)"))
      << text;
  EXPECT_TRUE(holds(text, "memory bounds it\n           under even routing\n")) << text;
  EXPECT_TRUE(holds(text, "under even routing a step moves")) << text;
  EXPECT_TRUE(holds(text, "\nthe least any routing moves")) << text;
  EXPECT_TRUE(holds(text, "26,572,496,896")) << text;
  const std::string grid = estimate_text({eight, estimate(mixtral, card, 1, 1024)}, false, kPlain);
  EXPECT_TRUE(holds(grid, "ceiling   even  expected")) << grid;
  EXPECT_TRUE(holds(grid, "\neven: the ceiling were routing even")) << grid;

  const Json json = estimate_figures(eight, false);
  EXPECT_EQ(json["bytes"]["weights_least"], 25'497'706'496);
  EXPECT_NEAR(json["bytes"]["weights"].get<double>(), 84'113'825'792, 1e6);
  EXPECT_NEAR(json["ceiling"]["tokens_per_s"].get<double>(), 1445.1, 0.05);
  const Json& even = json["ceiling_even_routing"];
  EXPECT_NEAR(even["tokens_per_s"].get<double>(), 450.76, 0.005);
  EXPECT_NEAR(even["tokens_per_s_per_user"].get<double>(), 56.345, 0.005);
  EXPECT_NEAR(even["ms_per_step"].get<double>(), 17.748, 0.0005);
  EXPECT_EQ(even["bound"], "memory");
  EXPECT_EQ(json["routing"], "even, independent");
  EXPECT_LE(json["expected"]["high_tokens_per_s"], json["ceiling"]["tokens_per_s"]);
  EXPECT_FALSE(estimate_figures(estimate(Lowered(find_model("llama-3.1-8b")), card, 8, 1024), false)
                   .contains("ceiling_even_routing"));
}

// The ceiling's own bound is told where it is another than that of the bytes of even routing.
TEST(Text, WhereTheLeastBytesAreBoundByArithmetic) {
  const Lowered mixtral(find_model("mixtral-8x7b"));
  Card card = find_card("h200");
  for (auto& [type, peak] : card.peaks) peak.tflops /= 10;  // a ridge of 21
  const std::string text = estimate_text({estimate(mixtral, card, 48, 1)}, false, kPlain);
  EXPECT_TRUE(holds(
      text, "(bf16): memory bounds it\n           under even routing; arithmetic bounds the ceiling, which"))
      << text;
}

TEST(Text, MemoryIsALowerBoundWithItsHeadroom) {
  const Lowered oss(find_model("gpt-oss-20b"));
  std::string text = estimate_text({estimate(oss, find_card("h200"), 32, 8192)}, false, kPlain);
  EXPECT_TRUE(holds(text, "\nmemory     at least 18.9 GiB of 141 GiB: fits, 122 GiB spare\n")) << text;
  EXPECT_TRUE(holds(text,
                    "the KV cache in it, 6.09 GiB, is of windows alone; llama.cpp holds 512 tokens more of\n"
                    "           each, 6.47 GiB; an engine that pages all layers alike holds 12.0 GiB\n"))
      << text;

  const Lowered llama(with_weights(find_model("llama-3.1-8b"), *find_format("q4_k"), std::nullopt));
  const Card card = find_card("rtx-4090");
  const Estimate full = estimate(llama, card, 1, 160'900);
  text = estimate_text({full}, false, kPlain);
  EXPECT_TRUE(holds(text, "at least 23.8 GiB of 24.0 GiB: fits on paper, 0.151 GiB spare\n")) << text;
  EXPECT_TRUE(holds(text, "vLLM plans with 0.90 to 0.92 of a card")) << text;
  const std::string grid = estimate_text({full, estimate(llama, card, 1, 1024)}, false, kPlain);
  EXPECT_TRUE(holds(grid, "  tight\n")) << grid;
  EXPECT_TRUE(holds(grid, "\ntight: fits on paper, but engines keep a tenth back")) << grid;
  const Json memory = estimate_figures(full, false)["memory"];
  EXPECT_EQ(memory["fits"], true);
  EXPECT_EQ(memory["tight"], true);
  EXPECT_NEAR(memory["headroom_GiB"].get<double>(), 0.151, 0.0005);
}

TEST(Text, ACapacityThatIsNotKnownIsNotZero) {
  const Lowered llama(find_model("llama-3.1-8b"));
  Card card = find_card("h200");
  card.capacity_GiB = 0;
  const Estimate e = estimate(llama, card, 1, 1024);
  const Json memory = estimate_figures(e, false)["memory"];
  for (const char* key : {"capacity_GiB", "fits", "headroom_GiB", "tight"})
    EXPECT_TRUE(memory[key].is_null()) << key;
  EXPECT_TRUE(card_figures(card)["capacity_GiB"].is_null());
  EXPECT_TRUE(
      holds(estimate_text({e}, false, kPlain), "at least 15.1 GiB; the card's capacity is not known\n"));
  EXPECT_TRUE(holds(estimate_text({e, e}, false, kPlain), "  ?\n"));
  EXPECT_FALSE(holds(cards_text({card}, kPlain), " 0 "));
}

TEST(Text, SpeedsOfWhatDoesNotFitAreMarked) {
  const Lowered llama(find_model("llama-3.1-70b"));
  const Card small = find_card("rtx-4090");
  const Card large = find_card("mi300x");
  const Estimate no = estimate(llama, small, 1, 1024, 64);
  const Estimate yes = estimate(llama, large, 1, 1024);
  const std::string one = estimate_text({no}, false, kPlain);
  EXPECT_TRUE(holds(one, "(no run's: does not fit)\n")) << one;
  EXPECT_FALSE(holds(one, "no run is faster")) << one;
  EXPECT_TRUE(holds(one, "so the speeds above are not those of a run on one card\n")) << one;
  const std::string grid = estimate_text({no, yes}, false, kPlain);
  EXPECT_TRUE(holds(grid, "7.234*")) << grid;
  EXPECT_TRUE(holds(grid, "6.38*")) << grid;
  EXPECT_TRUE(holds(grid, " ms*\n")) << grid;
  EXPECT_TRUE(holds(grid, "\n*: does not fit in the card's memory: no run there has these speeds\n")) << grid;
  EXPECT_FALSE(holds(estimate_text({yes, yes}, false, kPlain), "*"));
  EXPECT_EQ(estimate_figures(no, false)["speeds_note"],
            "does not fit in the card's memory: no run there has these speeds");
  EXPECT_TRUE(estimate_figures(yes, false)["speeds_note"].is_null());
}

TEST(Text, WhatWasAssumedOfACardIsSaid) {
  const Lowered llama(find_model("llama-3.1-8b"));
  Card card = find_card("h200");
  card.assumed = {"this and that"};
  const Estimate e = estimate(llama, card, 1, 1024);
  EXPECT_TRUE(holds(estimate_text({e}, false, kPlain), "\nassumed    this and that\n"));
  EXPECT_TRUE(holds(estimate_text({e, e}, false, kPlain), "\nh200, assumed: this and that\n"));
  EXPECT_EQ(card_figures(card)["assumed"][0], "this and that");
}

TEST(Text, PartsOfTheirOwnFormatAreTold) {
  const Model base = find_model("gpt-oss-20b");
  EXPECT_EQ(model_figures(base)["weights"], "mxfp4");
  const WeightAssignment parts{.rest = find_format("q8_0"), .items = {{"experts", *find_format("mxfp4")}}};
  const Lowered q8(with_weights(base, parts, std::nullopt));
  const Lowered as_published(base);
  const Card card = find_card("rtx-4090");
  const Estimate e = estimate(q8, card, 1, 512);
  EXPECT_EQ(estimate_figures(e, false)["weights"], "experts=mxfp4,rest=q8_0");
  EXPECT_EQ(estimate_figures(e, false)["head_weights"], "q8_0");
  // Measured with llama.cpp and the usual GGUF: 280 tokens/s (ai-benchmarks#43).
  EXPECT_GT(e.prediction.ceiling.tokens_per_s, 280);
  EXPECT_NEAR(e.prediction.ceiling.tokens_per_s, 390, 0.5);
  EXPECT_TRUE(holds(estimate_text({e}, false, kPlain), "weights experts=mxfp4,rest=q8_0 (lm_head q8_0)"));
  EXPECT_TRUE(holds(estimate_text({e, estimate(as_published, card, 1, 512)}, false, kPlain),
                    "experts=mxfp4,rest=q8_0"));
}

// The same figure has the same unit whether one model is shown or two.
TEST(Text, OneModelAndTwoAgreeOnUnits) {
  const Lowered a(find_model("llama-3.1-8b"));
  const Step step = cost_step(a.ops, {.phase = Phase::decode, .batch = 1, .context = 1024});
  const std::string one = inspect_text(a.model, a.ops, step, kPlain);
  const std::string two = inspect_pair_text(a.model, a.model, 1024, kPlain);
  for (const char* figure : {"14.96 GiB", "15.01 GB", "131.1 kB", "128.0 MiB"}) {
    EXPECT_TRUE(holds(one, figure)) << figure << one;
    EXPECT_TRUE(holds(two, figure)) << figure << two;
  }
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
