#include "predict/predict.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "input/yaml.h"
#include "load/load_model.h"
#include "model/weight_assignment.h"
#include "model/yaml_model.h"
#include "paths.h"

namespace memwall {
namespace {

const std::string kFixtures = MEMWALL_TEST_DATA "/fixtures/";

Workload decode(std::int64_t batch, std::int64_t context) {
  return {.phase = Phase::decode, .batch = batch, .context = context};
}

// A model's ops, and the step that points at them.
struct Predicted {
  Predicted(const Model& m, const Workload& workload, const std::string& card_name)
      : model(m),
        ops(lower(m)),
        step(cost_step(ops, workload)),
        card(find_card(card_name)),
        p(predict(step, card)) {}
  Predicted(const std::string& m, const Workload& workload, const std::string& card_name)
      : Predicted(find_model(m), workload, card_name) {}
  Predicted(const Predicted&) = delete;
  Predicted& operator=(const Predicted&) = delete;

  Model model;
  std::vector<Op> ops;
  Step step;
  Card card;
  Prediction p;
};

struct PeakCase {
  const char* card;
  const char* format;
  ComputeType type;
  double tflops;
};

void PrintTo(const PeakCase& c, std::ostream* out) { *out << c.card << " " << c.format; }

class WeightPeak : public ::testing::TestWithParam<PeakCase> {};

TEST_P(WeightPeak, IsTheFastestTheFormatCanUse) {
  const PeakCase& c = GetParam();
  const Peak peak = peak_for(find_card(c.card), *find_format(c.format));
  EXPECT_EQ(compute_type_name(peak.type), compute_type_name(c.type));
  EXPECT_DOUBLE_EQ(peak.flops_per_s, c.tflops * 1e12);
}

using enum ComputeType;

// No bf16, no f8.
INSTANTIATE_TEST_SUITE_P(
    T4, WeightPeak,
    ::testing::Values(PeakCase{"t4", "f32", f32, 8.1}, PeakCase{"t4", "f16", f16, 65},
                      PeakCase{"t4", "bf16", f16, 65}, PeakCase{"t4", "f8_e4m3", f16, 65},
                      PeakCase{"t4", "f8_e4m3-b128", f16, 65}, PeakCase{"t4", "q8_0", int8, 130},
                      PeakCase{"t4", "q4_0", int8, 130}, PeakCase{"t4", "q6_k", int8, 130},
                      PeakCase{"t4", "int4-g128", f16, 65}, PeakCase{"t4", "mxfp4", f16, 65},
                      PeakCase{"t4", "nvfp4", f16, 65}));
// bf16 and int8; tf32 is never taken for f32.
INSTANTIATE_TEST_SUITE_P(
    A100, WeightPeak,
    ::testing::Values(PeakCase{"a100", "f32", f32, 19.5}, PeakCase{"a100", "f16", f16, 312},
                      PeakCase{"a100", "bf16", bf16, 312}, PeakCase{"a100", "f8_e4m3", bf16, 312},
                      PeakCase{"a100", "q8_0", int8, 624}, PeakCase{"a100", "iq2_xs", int8, 624},
                      PeakCase{"a100", "int4-g32-zp", bf16, 312}, PeakCase{"a100", "mxfp4", bf16, 312}));
INSTANTIATE_TEST_SUITE_P(
    H200, WeightPeak,
    ::testing::Values(PeakCase{"h200", "f32", f32, 66.9}, PeakCase{"h200", "f16", f16, 989.4},
                      PeakCase{"h200", "bf16", bf16, 989.4}, PeakCase{"h200", "f8_e4m3", f8, 1978.9},
                      PeakCase{"h200", "f8_e4m3-b128", f8, 1978.9}, PeakCase{"h200", "q4_0", int8, 1978.9},
                      PeakCase{"h200", "int4-g64", bf16, 989.4}, PeakCase{"h200", "mxfp4", f8, 1978.9},
                      PeakCase{"h200", "nvfp4", f8, 1978.9}));
// f32 and f16 only.
INSTANTIATE_TEST_SUITE_P(M2Ultra, WeightPeak,
                         ::testing::Values(PeakCase{"m2-ultra", "f32", f32, 27.2},
                                           PeakCase{"m2-ultra", "bf16", f16, 27.2},
                                           PeakCase{"m2-ultra", "f8_e4m3", f16, 27.2},
                                           PeakCase{"m2-ultra", "q4_0", f16, 27.2},
                                           PeakCase{"m2-ultra", "int4-g128", f16, 27.2},
                                           PeakCase{"m2-ultra", "mxfp4", f16, 27.2}));

class CachePeak : public ::testing::TestWithParam<PeakCase> {};

TEST_P(CachePeak, GoesByTheCacheFormat) {
  const PeakCase& c = GetParam();
  const Peak peak = peak_for(find_card(c.card), *find_kv_format(c.format));
  EXPECT_EQ(compute_type_name(peak.type), compute_type_name(c.type));
  EXPECT_DOUBLE_EQ(peak.flops_per_s, c.tflops * 1e12);
}

INSTANTIATE_TEST_SUITE_P(
    Cards, CachePeak,
    ::testing::Values(PeakCase{"t4", "f32", f32, 8.1}, PeakCase{"t4", "bf16", f16, 65},
                      PeakCase{"t4", "f8_e4m3", f16, 65}, PeakCase{"t4", "int8", f16, 65},
                      PeakCase{"a100", "f16", f16, 312}, PeakCase{"a100", "bf16", bf16, 312},
                      PeakCase{"a100", "f8_e4m3", bf16, 312}, PeakCase{"a100", "int8", bf16, 312},
                      PeakCase{"h200", "f8_e4m3", f8, 1978.9}, PeakCase{"h200", "int8", bf16, 989.4},
                      PeakCase{"h200", "f8_e5m2", f8, 1978.9}, PeakCase{"h200", "q8_0", int8, 1978.9},
                      PeakCase{"h200", "q4_0", int8, 1978.9}, PeakCase{"h200", "nvfp4", f8, 1978.9},
                      PeakCase{"m2-ultra", "q8_0", f16, 27.2}, PeakCase{"a100", "nvfp4", bf16, 312},
                      PeakCase{"h200", "f32", f32, 66.9}, PeakCase{"m2-ultra", "bf16", f16, 27.2},
                      PeakCase{"m2-ultra", "int8", f16, 27.2}));

TEST(Peak, AnF4UnitServesTheFp4Formats) {
  Card card = find_card("h200");
  card.peaks[f4] = {.tflops = 9000, .accumulate = "f32", .source = "made up"};
  EXPECT_EQ(peak_for(card, *find_format("mxfp4")).type, f4);
  EXPECT_EQ(peak_for(card, *find_format("nvfp4")).type, f4);
  EXPECT_EQ(peak_for(card, *find_format("q4_0")).type, int8);
  EXPECT_EQ(peak_for(card, *find_format("int4-g128")).type, bf16);
}

TEST(Peak, OfAnOpIsItsWeightsOrItsCaches) {
  const Card card = find_card("h200");
  LinearWork linear;
  linear.format = *find_format("q8_0");
  EXPECT_EQ(peak_for(card, Work{linear}).type, int8);
  EXPECT_EQ(peak_for(card, Work{ExpertWork{linear, 4, 2}}).type, int8);
  EXPECT_EQ(peak_for(card, Work{RouterWork{linear, 2}}).type, int8);
  AttentionWork attention;
  attention.kv = KvFormat::f8_e4m3;
  EXPECT_EQ(peak_for(card, Work{attention}).type, f8);
  EXPECT_EQ(peak_for(card, Work{ElementwiseWork{}}).type, bf16);
  EXPECT_EQ(peak_for(card, Work{EmbeddingWork{}}).type, bf16);
}

TEST(Bound, HasTheDesignsNames) {
  EXPECT_EQ(bound_name(Bound::memory), "memory");
  EXPECT_EQ(bound_name(Bound::compute), "compute");
  EXPECT_EQ(bound_name(Bound::overhead), "overhead");
}

TEST(SpeedOf, DividesTokensByTheTime) {
  const Speed speed = speed_of(0.5, 8, 4, Bound::compute);
  EXPECT_EQ(speed.ms_per_step, 500);
  EXPECT_EQ(speed.tokens_per_s, 16);
  EXPECT_EQ(speed.tokens_per_s_per_user, 4);
  EXPECT_EQ(speed.bound, Bound::compute);
}

TEST(Ceiling, Llama318BOnThreeCards) {
  struct Case {
    const char* card;
    double tokens_per_s;
  };
  // 15,144,198,144 compulsory bytes over 4800, 2039 and 1008 GB/s.
  for (const Case& c : {Case{"h200", 316.9531}, Case{"a100-80gb", 134.6390}, Case{"rtx-4090", 66.5601}}) {
    const Predicted got("llama-3.1-8b", decode(1, 1024), c.card);
    EXPECT_NEAR(got.p.ceiling.tokens_per_s, c.tokens_per_s, 1e-3) << c.card;
    EXPECT_EQ(got.p.ceiling.bound, Bound::memory) << c.card;
    EXPECT_EQ(got.p.ceiling.tokens_per_s_per_user, got.p.ceiling.tokens_per_s) << c.card;
  }
}

TEST(Prediction, Llama318BOnH200AsTheFormulasWorkIt) {
  const Predicted got("llama-3.1-8b", decode(1, 1024), "h200");
  EXPECT_NEAR(got.p.ceiling.ms_per_step, 3.155, 5e-4);
  EXPECT_NEAR(got.p.intensity, 1.027, 5e-4);
  EXPECT_DOUBLE_EQ(got.p.ridge, 206.125);
  EXPECT_EQ(got.p.peak.type, bf16);
  // 15,150,361,088 bytes at 4.176·10¹² bytes/s and 161 kernels of 13 µs.
  EXPECT_NEAR(got.p.expected.ms_per_step, 15150361088 / 4.176e9 + 161 * 0.013, 1e-6);
  EXPECT_NEAR(got.p.expected.tokens_per_s, 174.8, 0.05);
  EXPECT_EQ(got.p.expected.bound, Bound::memory);
  EXPECT_NEAR(got.p.expected.low_tokens_per_s, 0.7 * got.p.expected.tokens_per_s, 1e-9);
  EXPECT_NEAR(got.p.expected.high_tokens_per_s, 1.3 * got.p.expected.tokens_per_s, 1e-9);
  EXPECT_FALSE(got.p.weights_fit_cache);
}

TEST(Prediction, Llama318BInABatch) {
  const Predicted got("llama-3.1-8b", decode(256, 1024), "h200");
  EXPECT_NEAR(got.p.ceiling.ms_per_step, 10.292, 5e-4);
  EXPECT_NEAR(got.p.ceiling.tokens_per_s, 24873, 0.5);
  EXPECT_NEAR(got.p.ceiling.tokens_per_s_per_user, 24873.0 / 256, 0.01);
  EXPECT_NEAR(got.p.intensity, 80.6, 0.05);
  EXPECT_EQ(got.p.ceiling.bound, Bound::memory);
}

TEST(Prediction, MixtralOnH200) {
  const Predicted one("mixtral-8x7b", decode(1, 1024), "h200");
  EXPECT_NEAR(one.p.ceiling.ms_per_step, 5.340, 5e-4);
  EXPECT_NEAR(one.p.ceiling.tokens_per_s, 187.27, 5e-3);
  EXPECT_EQ(one.p.ceiling_even_routing.ms_per_step, one.p.ceiling.ms_per_step);
  // Two experts a layer are the least that eight tokens can touch; 7.199 is what even routing makes of them.
  const Predicted eight("mixtral-8x7b", decode(8, 1024), "h200");
  EXPECT_NEAR(eight.p.ceiling.ms_per_step, 26'572'496'896 / 4.8e9, 1e-6);
  EXPECT_NEAR(eight.p.ceiling.tokens_per_s, 1445.10, 5e-3);
  EXPECT_NEAR(eight.p.ceiling_even_routing.ms_per_step, 17.748, 5e-4);
  EXPECT_NEAR(eight.p.ceiling_even_routing.tokens_per_s, 450.76, 5e-3);
  // Under even routing, too, nothing is faster than its bytes allow: the range's upper end stops there.
  const Predicted sixteen("mixtral-8x7b", decode(16, 8192), "h200");
  EXPECT_EQ(sixteen.p.expected.high_tokens_per_s, sixteen.p.ceiling_even_routing.tokens_per_s);
  EXPECT_LT(eight.p.expected.tokens_per_s, eight.p.ceiling_even_routing.tokens_per_s);
}

// llama.cpp on a GB10, gpt-oss-120b with its attention in q8_0 (llama.cpp, benches/dgx-spark): a ceiling that
// rests on even routing is passed there.
TEST(Ceiling, IsAboveWhatMixturesWereMeasuredAt) {
  const Model base = find_model("gpt-oss-120b");
  const Model model = with_weights(
      base, WeightAssignment{.rest = find_format("q8_0"), .items = {{"experts", *find_format("mxfp4")}}},
      std::nullopt);
  struct Case {
    std::int64_t batch;
    double measured, even;
  };
  for (const Case& c : {Case{8, 147, 140.6}, Case{16, 220, 165.8}, Case{32, 313, 211.3}}) {
    const Predicted got(model, decode(c.batch, 528), kFixtures + "gb10.yaml");
    EXPECT_GT(got.p.ceiling.tokens_per_s, c.measured) << c.batch;
    EXPECT_NEAR(got.p.ceiling_even_routing.tokens_per_s, c.even, 0.05) << c.batch;
    EXPECT_LT(got.p.ceiling_even_routing.tokens_per_s, c.measured) << c.batch;
  }
}

TEST(Ceiling, OfAPromptCountsTheFewestExpertsToo) {
  const Predicted got("mixtral-8x7b", {.phase = Phase::prefill, .batch = 1, .context = 16}, "h200");
  EXPECT_EQ(got.p.ceiling.bound, Bound::memory);
  EXPECT_NEAR(got.p.ceiling.ms_per_step, got.step.total.least_compulsory_bytes() / 4.8e9, 1e-9);
  EXPECT_NEAR(got.step.total.weight_bytes_least, 25'497'706'496, 1);
  EXPECT_NEAR(got.p.ceiling_even_routing.ms_per_step, got.step.total.compulsory_bytes() / 4.8e9, 1e-9);
  EXPECT_GT(got.p.ceiling_even_routing.ms_per_step, 3 * got.p.ceiling.ms_per_step);
}

TEST(Ceiling, OfAnExpertOpCountsTheFewestExperts) {
  const Predicted got("mixtral-8x7b", decode(8, 1024), "h200");
  int seen = 0;
  for (std::size_t i = 0; i < got.ops.size(); ++i) {
    const OpPrediction& p = got.p.ops[i];
    if (got.ops[i].kind() != OpKind::expert) {
      EXPECT_EQ(p.ceiling_s, p.ceiling_even_routing_s) << got.ops[i].name;
      continue;
    }
    ++seen;
    const double each = 14336.0 * 4096 * 2 * static_cast<double>(got.ops[i].count());
    EXPECT_EQ(got.step.costs[i].weight_bytes_least, 2 * each);
    EXPECT_DOUBLE_EQ(p.ceiling_s, (2 * each + got.step.costs[i].activation_bytes) / 4.8e12);
    EXPECT_NEAR(p.ceiling_even_routing_s, (7.199 * each + got.step.costs[i].activation_bytes) / 4.8e12, 1e-7);
  }
  EXPECT_GT(seen, 0);
}

TEST(Prediction, APromptIsComputeBound) {
  const Predicted got("llama-3.1-8b", {.phase = Phase::prefill, .batch = 1, .context = 1024}, "h200");
  EXPECT_EQ(got.p.ceiling.bound, Bound::compute);
  EXPECT_NEAR(got.p.ceiling.ms_per_step, 14.730, 5e-4);
  EXPECT_NEAR(got.p.ceiling.tokens_per_s, 69517, 0.5);  // prompt tokens
  EXPECT_GT(got.p.intensity, got.p.ridge);
}

TEST(Prediction, ALargeBatchAtAShortContextIsComputeBound) {
  const Predicted got("llama-3.1-8b", decode(4096, 1), "h200");
  EXPECT_EQ(got.p.ceiling.bound, Bound::compute);
  // All in bf16: the step's time is its FLOPs over that peak.
  EXPECT_NEAR(got.p.ceiling.ms_per_step, got.step.total.flops / 989.4e9, 1e-9);
  EXPECT_EQ(got.p.expected.bound, Bound::compute);
}

TEST(Prediction, TheRidgeIsThatOfTheFormatWithMostFlops) {
  const Model llama = find_model("llama-3.1-8b");
  const Predicted q4(with_weights(llama, *find_format("q4_0"), std::nullopt), decode(1, 1024), "h200");
  EXPECT_EQ(q4.p.peak.type, int8);
  EXPECT_NEAR(q4.p.ridge, 1978.9 / 4.8, 1e-9);
  // At a long enough context attention, in bf16, has more of them.
  const Predicted far(with_weights(llama, *find_format("q4_0"), std::nullopt), decode(1, 100'000), "h200");
  EXPECT_EQ(far.p.peak.type, bf16);
}

TEST(Prediction, AnOpsCeilingIsTheLargerOfItsTwoTimes) {
  const Predicted got("llama-3.1-8b", decode(1, 1024), "h200");
  ASSERT_EQ(got.p.ops.size(), got.ops.size());
  for (std::size_t i = 0; i < got.ops.size(); ++i) {
    const Cost& cost = got.step.costs[i];
    const OpPrediction& p = got.p.ops[i];
    const double memory = cost.bytes() / 4.8e12;
    const double compute = cost.flops / 989.4e12;
    EXPECT_DOUBLE_EQ(p.ceiling_s, std::max(memory, compute)) << got.ops[i].name;
    EXPECT_EQ(p.bound, memory >= compute ? Bound::memory : Bound::compute) << got.ops[i].name;
  }
  const Card card = find_card("h200");
  LinearWork square;
  square.out = square.in = 4096;
  square.format = *find_format("bf16");
  const Op op{.name = "square", .work = square, .layers = {0, 1}};
  const Cost cost = cost_of(square, decode(4096, 1)).times(2);
  const OpPrediction p = predict_op(op, cost, card);
  EXPECT_EQ(p.bound, Bound::compute);
  EXPECT_DOUBLE_EQ(p.ceiling_s, cost.flops / 989.4e12);
  EXPECT_DOUBLE_EQ(p.expected_s, cost.flops / (989.4e12 * 0.8) + 2 * 13e-6);
}

TEST(Prediction, AFusedOpCostsItsWeightsOnlyAndAJoinedOneNoLaunch) {
  const Card card = find_card("h200");
  ElementwiseWork norm;
  norm.width = norm.weights = 4096;
  norm.weight_format = *find_format("bf16");
  Op op{.name = "norm", .work = norm, .layers = {}, .fusible = true};
  EXPECT_DOUBLE_EQ(predict_op(op, cost_of(norm, decode(1, 1)), card).expected_s, 8192 / 4.176e12);
  op.fusible = false;
  EXPECT_DOUBLE_EQ(predict_op(op, cost_of(norm, decode(1, 1)), card).expected_s,
                   (8192 + 16384) / 4.176e12 + 13e-6);
  op.joins_previous = true;
  EXPECT_DOUBLE_EQ(predict_op(op, cost_of(norm, decode(1, 1)), card).expected_s, (8192 + 16384) / 4.176e12);
}

TEST(Prediction, ExpectedIsNeverAboveTheCeiling) {
  const std::vector<Card> cards = all_cards();
  std::vector<Workload> workloads = {{.phase = Phase::prefill, .batch = 1, .context = 1},
                                     {.phase = Phase::prefill, .batch = 4, .context = 4096}};
  for (const std::int64_t batch : {1, 16, 4096}) {
    for (const std::int64_t context : {1, 1024, 131'072}) workloads.push_back(decode(batch, context));
  }
  for (const Model& base : zoo()) {
    for (const char* format : {"bf16", "f8_e4m3", "q4_0", "int4-g128"}) {
      const Model model = with_weights(base, *find_format(format), std::nullopt);
      const std::vector<Op> ops = lower(model);
      for (const Workload& workload : workloads) {
        const Step step = cost_step(ops, workload);
        for (const Card& card : cards) {
          const Prediction p = predict(step, card);
          ASSERT_GT(p.expected.tokens_per_s, 0);
          ASSERT_LE(p.expected.tokens_per_s, p.ceiling.tokens_per_s)
              << model.name << " " << format << " " << card.name;
          ASSERT_LE(p.expected.high_tokens_per_s, p.ceiling.tokens_per_s);
          ASSERT_LE(p.expected.low_tokens_per_s, p.expected.tokens_per_s);
          ASSERT_GE(p.expected.high_tokens_per_s, p.expected.tokens_per_s);
          const double ms = step.total.least_compulsory_bytes() / card.bytes_per_s() * 1e3;
          ASSERT_GE(p.ceiling.ms_per_step, ms * (1 - 1e-12));
          ASSERT_LE(p.expected.tokens_per_s, p.ceiling_even_routing.tokens_per_s);
          ASSERT_LE(p.ceiling_even_routing.tokens_per_s, p.ceiling.tokens_per_s);
        }
      }
    }
  }
}

TEST(Prediction, PerfectKernelsOnlyReachTheCeiling) {
  Predicted got("llama-3.1-8b", decode(1, 1024), "h200");
  got.card.achievable = {};
  const Prediction p = predict(got.step, got.card);
  EXPECT_LE(p.expected.tokens_per_s, p.ceiling.tokens_per_s);
  EXPECT_GT(p.expected.tokens_per_s, 0.99 * p.ceiling.tokens_per_s);
}

TEST(Prediction, FusedArithmeticStillCountsInTheCeiling) {
  // Every kernel compute-bound and perfect: their sum, without the fused ops' FLOPs, would pass the ceiling.
  const Model mlp = model_from_yaml(yaml::parse(R"(
name: mlp
hidden_size: 4096
layers:
  - mlp: {intermediate: 4096}
)",
                                                "mlp.yaml"));
  Predicted got(mlp, decode(100'000, 1), "h200");
  got.card.achievable = {};
  const Prediction p = predict(got.step, got.card);
  EXPECT_EQ(p.ceiling.bound, Bound::compute);
  EXPECT_EQ(p.expected.tokens_per_s, p.ceiling.tokens_per_s);
}

TEST(Prediction, ATinyModelIsOverheadBound) {
  const Predicted got(load_model_yaml(kFixtures + "tiny.yaml"), decode(1, 8), kFixtures + "round-card.yaml");
  EXPECT_EQ(got.p.ceiling.bound, Bound::memory);
  EXPECT_EQ(got.p.expected.bound, Bound::overhead);
  // Two layers of q-k-v, attention, o, gate-up, down; two more with a router; the lm_head: 23 launches of 10
  // µs.
  EXPECT_GT(got.p.expected.ms_per_step, 0.23);
  EXPECT_LT(got.p.expected.ms_per_step, 0.2301);
}

TEST(Prediction, WeightsThatFitTheLastCacheAreFlagged) {
  Predicted got(load_model_yaml(kFixtures + "tiny.yaml"), decode(1, 8), kFixtures + "round-card.yaml");
  EXPECT_FALSE(got.p.weights_fit_cache);  // the card's cache is unknown
  got.card.l2_MiB = 1;
  EXPECT_TRUE(predict(got.step, got.card).weights_fit_cache);
  got.card.l2_MiB = got.step.total.weight_bytes / (1024 * 1024);
  EXPECT_TRUE(predict(got.step, got.card).weights_fit_cache);
  got.card.l2_MiB = (got.step.total.weight_bytes - 1) / (1024 * 1024);
  EXPECT_FALSE(predict(got.step, got.card).weights_fit_cache);
}

TEST(MemoryFit, WeightsCacheAndTheLargestActivations) {
  const Predicted got("llama-3.1-8b", decode(1, 1024), "h200");
  const MemoryFit fit = memory_fit(got.model, got.step, got.card);
  EXPECT_EQ(fit.required_bytes, 16'060'522'496.0 + 134'217'728 + 264'704);
  EXPECT_EQ(fit.capacity_bytes, 141.0 * 1024 * 1024 * 1024);
  EXPECT_EQ(fit.fits(), true);
  EXPECT_EQ(fit.headroom_bytes(), *fit.capacity_bytes - fit.required_bytes);
  EXPECT_FALSE(fit.tight());

  // 256 sequences of 131072 tokens of 131072 bytes are 4 TiB.
  const Predicted large("llama-3.1-8b", decode(256, 131'072), "h200");
  EXPECT_EQ(memory_fit(large.model, large.step, large.card).fits(), false);
  EXPECT_GT(memory_fit(large.model, large.step, large.card).required_bytes, 4.0 * (std::int64_t{1} << 40));
}

TEST(MemoryFit, AWindowedLayerKeepsItsWindow) {
  const Predicted got("gemma-2-9b", decode(2, 32768), "h200");
  const double activations = 2.0 * (3584 + 256000) * 2;  // the lm_head's
  EXPECT_EQ(memory_fit(got.model, got.step, got.card).required_bytes,
            static_cast<double>(stored_bytes(got.model)) + 2 * 6'341'787'648.0 + activations);
}

TEST(MemoryFit, ExactlyFullFits) {
  MemoryFit fit;
  fit.required_bytes = 5;
  fit.capacity_bytes = 5;
  EXPECT_EQ(fit.fits(), true);
  EXPECT_EQ(fit.headroom_bytes(), 0);
  EXPECT_TRUE(fit.tight());
  fit.required_bytes = 6;
  EXPECT_EQ(fit.fits(), false);
  EXPECT_FALSE(fit.tight());
  fit.capacity_bytes.reset();
  EXPECT_EQ(fit.fits(), std::nullopt);
  EXPECT_EQ(fit.headroom_bytes(), std::nullopt);
  EXPECT_FALSE(fit.tight());
}

TEST(MemoryFit, IsTightWhereEnginesKeepATenthBack) {
  MemoryFit fit;
  fit.capacity_bytes = 100;
  fit.required_bytes = 90;
  EXPECT_FALSE(fit.tight());
  fit.required_bytes = 90.5;
  EXPECT_TRUE(fit.tight());
  // 5 of the 50 are cache; with all layers paged alike it would be 60, and 105 in all.
  fit.required_bytes = 50;
  fit.kv_bytes = 5;
  fit.kv_full_bytes = 60;
  EXPECT_TRUE(fit.tight());
  fit.kv_full_bytes = 55;
  EXPECT_FALSE(fit.tight());
}

// gpt-oss-20b holds 12 layers of 128 tokens and 12 of all: 2048 bytes a token and layer.
TEST(MemoryFit, SaysWhatEnginesHoldOfSlidingLayers) {
  const Predicted got("gpt-oss-20b", decode(32, 8192), "h200");
  const MemoryFit fit = memory_fit(got.model, got.step, got.card);
  EXPECT_EQ(fit.kv_bytes, 32.0 * 2048 * 12 * (128 + 8192));  // 6.09 GiB
  EXPECT_EQ(fit.kv_micro_batch_bytes, 32.0 * 2048 * 12 * (640 + 8192));
  EXPECT_EQ(fit.kv_full_bytes, 32.0 * 2048 * 24 * 8192);  // 12.0 GiB
  const Predicted dense("llama-3.1-8b", decode(1, 8192), "h200");
  const MemoryFit all = memory_fit(dense.model, dense.step, dense.card);
  EXPECT_EQ(all.kv_full_bytes, all.kv_bytes);
  EXPECT_EQ(all.kv_micro_batch_bytes, all.kv_bytes);
}

TEST(MemoryFit, IsUnknownWhereTheCapacityIs) {
  Predicted got("llama-3.1-8b", decode(1, 1024), "h200");
  got.card.capacity_GiB = 0;
  EXPECT_EQ(memory_fit(got.model, got.step, got.card).fits(), std::nullopt);
}

// Prompts in ggml formats: nobody knows the rate, so it is not the int8 peak, and the factor is said.
TEST(GgmlPrompts, AreExpectedAtTheRateOf16BitsWithinAStatedFactor) {
  const Workload prompt{.phase = Phase::prefill, .batch = 1, .context = 2048};
  const auto model = [](const char* format) {
    return with_weights(find_model("llama-3.1-8b"), *find_format(format), std::nullopt);
  };
  for (const char* card : {"rtx-3090", "rtx-4090", "h100-sxm"}) {
    const Predicted f16(model("f16"), prompt, card);
    EXPECT_EQ(f16.p.expected.unknown_factor, 1) << card;
    for (const char* format : {"q4_0", "q8_0", "q4_k", "q6_k", "iq4_xs"}) {
      SCOPED_TRACE(std::string(card) + " " + format);
      const Predicted got(model(format), prompt, card);
      const ExpectedSpeed& expected = got.p.expected;
      EXPECT_NEAR(expected.ms_per_step / f16.p.expected.ms_per_step, 1, 0.1);
      EXPECT_GT(got.p.ceiling.tokens_per_s, 1.9 * f16.p.ceiling.tokens_per_s)
          << "the int8 peak bounds it still";
      EXPECT_EQ(expected.unknown_factor, kGgmlRateFactor);
      EXPECT_TRUE(expected.provisional);
      EXPECT_NEAR(expected.low_tokens_per_s,
                  expected.tokens_per_s / kGgmlRateFactor * (1 - got.card.achievable.spread),
                  0.1 * expected.low_tokens_per_s);
      EXPECT_LE(expected.high_tokens_per_s, got.p.ceiling.tokens_per_s);
      EXPECT_GT(expected.high_tokens_per_s, 1.2 * expected.tokens_per_s);
    }
  }
}

// The two published runs that the factor is made of lie within the range.
TEST(GgmlPrompts, PublishedOnesLieWithinTheRange) {
  const Workload batch{.phase = Phase::prefill, .batch = 1, .context = 512};
  const auto within = [&](const char* format, const char* card, double tokens_per_s) {
    const Predicted got(with_weights(find_model("llama-3.1-8b"), *find_format(format), std::nullopt), batch,
                        card);
    EXPECT_LT(got.p.expected.low_tokens_per_s, tokens_per_s) << card;
    EXPECT_GT(got.p.expected.high_tokens_per_s, tokens_per_s) << card;
    // And nearer to the expectation than a factor of two, which the int8 peak is not.
    EXPECT_LT(got.p.expected.tokens_per_s, 2 * tokens_per_s) << card;
    EXPECT_GT(got.p.ceiling.tokens_per_s, 3 * tokens_per_s) << card;
  };
  within("q6_k", "rtx-3090", 3491);  // ggml-org/llama.cpp#7860
  within("q5_0", "rtx-4090", 5470);  // #7716
}

// A decode step that memory bounds at any such rate has the range that other formats have.
TEST(GgmlPrompts, WhatMemoryBoundsIsKnown) {
  const Predicted got("llama-3.1-8b", decode(1, 1024), "rtx-4090");
  const Predicted q4(with_weights(find_model("llama-3.1-8b"), *find_format("q4_0"), std::nullopt),
                     decode(1, 1024), "rtx-4090");
  EXPECT_EQ(q4.p.expected.unknown_factor, 1);
  EXPECT_DOUBLE_EQ(q4.p.expected.low_tokens_per_s / q4.p.expected.tokens_per_s,
                   got.p.expected.low_tokens_per_s / got.p.expected.tokens_per_s);
  const Predicted many(q4.model, decode(64, 1024), "rtx-4090");
  EXPECT_EQ(many.p.expected.unknown_factor, kGgmlRateFactor);
}

TEST(GgmlPrompts, BlocksAreThoseOfWeightsAndCaches) {
  const auto linear = [](const char* format) {
    return multiplies_ggml_blocks(LinearWork{.out = 1, .in = 1, .format = *find_format(format)});
  };
  for (const char* format : {"q4_0", "q4_1", "q8_0", "q2_k", "iq1_s", "tq2_0"})
    EXPECT_TRUE(linear(format)) << format;
  for (const char* format : {"f16", "f8_e4m3", "int4-g128", "nf4", "mxfp4", "nvfp4", "int8-c"})
    EXPECT_FALSE(linear(format)) << format;
  AttentionWork attention;
  attention.kv = KvFormat::q8_0;
  EXPECT_TRUE(multiplies_ggml_blocks(attention));
  for (const KvFormat kv : {KvFormat::int8, KvFormat::f16, KvFormat::nvfp4}) {
    attention.kv = kv;
    EXPECT_FALSE(multiplies_ggml_blocks(attention));
  }
}

}  // namespace
}  // namespace memwall
