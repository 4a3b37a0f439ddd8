#include "cost/cost.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "load/load_model.h"
#include "model/blocks.h"

namespace memwall {
namespace {

constexpr Format kBf16{FormatKind::bf16, 0, false};
constexpr Format kQ4{FormatKind::q4_0, 0, false};
constexpr Format kQ8{FormatKind::q8_0, 0, false};

Workload decode(std::int64_t batch, std::int64_t context) {
  return {.phase = Phase::decode, .batch = batch, .context = context};
}

Workload prefill(std::int64_t batch, std::int64_t prompt) {
  return {.phase = Phase::prefill, .batch = batch, .context = prompt};
}

LinearWork linear(std::int64_t out, std::int64_t in, Format format = kBf16) {
  LinearWork work;
  work.out = out;
  work.in = in;
  work.format = format;
  return work;
}

// Four query heads over two KV heads, K of 8 and V of 6: a token's K and V are 2 (8 + 6) = 28 elements.
AttentionWork attention(std::int64_t window = 0, KvFormat kv = KvFormat::bf16) {
  return {.heads = 4, .kv_heads = 2, .d_k = 8, .d_v = 6, .window = window, .kv = kv};
}

void expect_equal(const Cost& a, const Cost& b) {
  EXPECT_EQ(a.weight_bytes, b.weight_bytes);
  EXPECT_EQ(a.kv_read_bytes, b.kv_read_bytes);
  EXPECT_EQ(a.kv_write_bytes, b.kv_write_bytes);
  EXPECT_EQ(a.state_bytes, b.state_bytes);
  EXPECT_EQ(a.activation_bytes, b.activation_bytes);
  EXPECT_EQ(a.flops, b.flops);
  EXPECT_EQ(a.weight_bytes_least, b.weight_bytes_least);
  EXPECT_EQ(a.experts_touched, b.experts_touched);
}

TEST(Workload, RowsAreSequencesInDecodeAndTokensInPrefill) {
  EXPECT_EQ(decode(3, 1000).rows(), 3);
  EXPECT_EQ(prefill(3, 1000).rows(), 3000);
}

TEST(LinearCost, AtOneRow) {
  const Cost cost = cost_of(linear(3, 5), decode(1, 100));
  EXPECT_EQ(cost.weight_bytes, 30);      // 3·5·2
  EXPECT_EQ(cost.activation_bytes, 16);  // (5 + 3)·2
  EXPECT_EQ(cost.flops, 30);             // 2·3·5
  EXPECT_EQ(cost.weight_bytes_least, 30);
  EXPECT_EQ(cost.kv_bytes(), 0);
  EXPECT_EQ(cost.state_bytes, 0);
  EXPECT_EQ(cost.experts_touched, 0);
  EXPECT_EQ(cost.bytes(), 46);
  EXPECT_EQ(cost.compulsory_bytes(), 30);
  EXPECT_DOUBLE_EQ(cost.intensity(), 30.0 / 46);
}

TEST(LinearCost, ABatchReadsTheWeightsOnce) {
  const Cost cost = cost_of(linear(3, 5), decode(4, 100));
  EXPECT_EQ(cost.weight_bytes, 30);
  EXPECT_EQ(cost.activation_bytes, 64);  // 4·(5 + 3)·2
  EXPECT_EQ(cost.flops, 120);            // 2·4·3·5
}

TEST(LinearCost, DoesNotDependOnTheContext) {
  expect_equal(cost_of(linear(3, 5), decode(4, 1)), cost_of(linear(3, 5), decode(4, 1'000'000)));
}

TEST(LinearCost, ABiasIsReadOnceAndAddedToEveryRow) {
  LinearWork work = linear(3, 5, kQ8);
  work.bias = true;
  work.bias_format = kBf16;
  const Cost cost = cost_of(work, decode(4, 100));
  EXPECT_EQ(cost.weight_bytes, 3 * 34 + 6);  // a block of 32 a row, and 3 biases
  EXPECT_EQ(cost.flops, 4 * (30 + 3));
  EXPECT_EQ(cost.activation_bytes, 64);  // a bias is no activation
}

TEST(LinearCost, BlocksAreRoundedUp) {
  EXPECT_EQ(cost_of(linear(2, 33, kQ4), decode(1, 1)).weight_bytes, 2 * 2 * 18);
}

TEST(LinearCost, PrefillRunsEveryTokenOfEveryPrompt) {
  const Cost cost = cost_of(linear(3, 5), prefill(2, 7));
  EXPECT_EQ(cost.weight_bytes, 30);
  EXPECT_EQ(cost.flops, 14 * 30);
  EXPECT_EQ(cost.activation_bytes, 14 * 16);
}

TEST(LinearCost, TheLmHeadRunsTheLastTokenOfAPromptOnly) {
  LinearWork head = linear(3, 5);
  head.last_token_only = true;
  expect_equal(cost_of(head, prefill(2, 7)), cost_of(linear(3, 5), decode(2, 1)));
}

TEST(EmbeddingCost, GathersRowsAndNeverReadsTheTable) {
  const EmbeddingWork table{.rows = 1000, .width = 33, .format = kQ8};
  const Cost cost = cost_of(table, decode(3, 100));
  EXPECT_EQ(cost.weight_bytes, 0);
  EXPECT_EQ(cost.compulsory_bytes(), 0);
  EXPECT_EQ(cost.activation_bytes, 3 * (2 * 34 + 33 * 2));  // a stored row in, a 16-bit row out
  EXPECT_EQ(cost.flops, 0);
  EXPECT_EQ(cost_of(table, prefill(3, 4)).activation_bytes, 12 * (2 * 34 + 33 * 2));
}

TEST(AttentionCost, ReadsTheCacheOnceAKvHead) {
  const Cost cost = cost_of(attention(), decode(3, 10));
  EXPECT_EQ(cost.kv_read_bytes, 3 * 10 * 56);  // 28 elements of 2 bytes a token
  EXPECT_EQ(cost.kv_write_bytes, 3 * 56);
  EXPECT_EQ(cost.weight_bytes, 0);
  EXPECT_EQ(cost.activation_bytes, 2 * 3 * (4 * 14 + 2 * 14));  // Q and Y, the new K and V
  EXPECT_EQ(cost.flops, 2 * 3 * 4 * 14 * 10);
}

TEST(AttentionCost, MoreQueryHeadsReadNoMore) {
  AttentionWork multi_query = attention();
  multi_query.heads = 8;
  const Cost cost = cost_of(multi_query, decode(3, 10));
  EXPECT_EQ(cost.kv_read_bytes, 3 * 10 * 56);
  EXPECT_EQ(cost.flops, 2 * 3 * 8 * 14 * 10);
}

TEST(AttentionCost, IntensityOverA16BitCacheIsTheGroupSize) {
  for (const std::int64_t batch : {1, 64}) {
    for (const std::int64_t context : {1, 1000}) {
      const Cost cost = cost_of(attention(), decode(batch, context));
      EXPECT_DOUBLE_EQ(cost.flops / cost.kv_read_bytes, 2.0) << batch << " " << context;
    }
  }
}

TEST(AttentionCost, AWindowCapsWhatIsRead) {
  const Cost cost = cost_of(attention(4), decode(3, 10));
  EXPECT_EQ(cost.kv_read_bytes, 3 * 4 * 56);
  EXPECT_EQ(cost.kv_write_bytes, 3 * 56);
  EXPECT_EQ(cost.flops, 2 * 3 * 4 * 14 * 4);
  EXPECT_EQ(effective_context(attention(4), 3), 3);
  EXPECT_EQ(effective_context(attention(4), 4), 4);
  EXPECT_EQ(effective_context(attention(4), 5), 4);
  EXPECT_EQ(effective_context(attention(0), 5), 5);
}

TEST(AttentionCost, AWindowBeyondTheContextChangesNothing) {
  expect_equal(cost_of(attention(11), decode(3, 10)), cost_of(attention(), decode(3, 10)));
  expect_equal(cost_of(attention(10), prefill(3, 10)), cost_of(attention(), prefill(3, 10)));
}

TEST(AttentionCost, EveryCacheFormat) {
  const auto read = [](KvFormat kv) { return cost_of(attention(0, kv), decode(1, 1)).kv_read_bytes; };
  EXPECT_EQ(read(KvFormat::f32), 2 * (8 + 6) * 4);
  EXPECT_EQ(read(KvFormat::f16), 2 * (8 + 6) * 2);
  EXPECT_EQ(read(KvFormat::bf16), 2 * (8 + 6) * 2);
  EXPECT_EQ(read(KvFormat::f8_e4m3), 2 * (8 + 6));
  EXPECT_EQ(read(KvFormat::int8), 2 * (8 + 2 + 6 + 2));  // an f16 scale a vector
}

TEST(AttentionCost, PrefillIsTheTriangle) {
  const Cost cost = cost_of(attention(), prefill(3, 10));
  EXPECT_EQ(cost.kv_read_bytes, 0);
  EXPECT_EQ(cost.kv_write_bytes, 3 * 10 * 56);
  EXPECT_EQ(cost.flops, 2 * 3 * 4 * 14 * 55);
  EXPECT_EQ(cost.activation_bytes, 2 * 30 * (6 * 14) + 30 * 56);  // as in decode, and K and V read back
}

TEST(AttentionCost, PrefillUnderAWindow) {
  const Cost cost = cost_of(attention(4), prefill(3, 10));
  EXPECT_EQ(cost.flops, 2 * 3 * 4 * 14 * (1 + 2 + 3 + 7 * 4));
  EXPECT_EQ(cost.kv_write_bytes, 3 * 4 * 56);  // what a later step can reach
  EXPECT_EQ(cost.activation_bytes, 2 * 30 * (6 * 14) + 30 * 56);
}

TEST(CausalPairs, AgreeWithCountingThem) {
  for (std::int64_t tokens = 1; tokens <= 12; ++tokens) {
    for (std::int64_t window = 0; window <= 14; ++window) {
      double pairs = 0;
      for (std::int64_t query = 0; query < tokens; ++query) {
        for (std::int64_t key = 0; key <= query; ++key) {
          if (window == 0 || query - key < window) ++pairs;
        }
      }
      EXPECT_EQ(causal_pairs(tokens, window), pairs) << tokens << " tokens, window " << window;
    }
  }
}

TEST(CausalPairs, OfLongPrompts) {
  EXPECT_EQ(causal_pairs(1024, 0), 524'800);
  EXPECT_EQ(causal_pairs(32768, 0), 536'887'296);
  EXPECT_EQ(causal_pairs(32768, 4096), 125'831'168);
}

TEST(ExpertsTouched, OneTokenTouchesExactlyItsOwn) {
  for (std::int64_t experts = 1; experts <= 512; ++experts) {
    for (std::int64_t per_token = 1; per_token <= std::min<std::int64_t>(experts, 16); ++per_token) {
      ASSERT_EQ(experts_touched(experts, per_token, 1), static_cast<double>(per_token))
          << per_token << " of " << experts;
    }
  }
}

TEST(ExpertsTouched, ByHand) {
  EXPECT_DOUBLE_EQ(experts_touched(8, 2, 2), 3.5);            // 8·(1 − 9/16)
  EXPECT_NEAR(experts_touched(8, 2, 8), 7.1990966796875, 0);  // 8·(1 − 3^8/4^8), exact in binary
  EXPECT_NEAR(experts_touched(8, 2, 32), 7.9992, 5e-5);
  EXPECT_DOUBLE_EQ(experts_touched(4, 1, 3), 4 * (1 - 27.0 / 64));
}

TEST(ExpertsTouched, NeverPassesTheExpertsNorFalls) {
  for (const auto& [experts, per_token] : {std::pair{8, 2}, {64, 6}, {128, 8}, {256, 8}, {3, 1}, {4, 4}}) {
    double before = 0;
    for (double tokens = 1; tokens <= 1e9; tokens *= 3) {
      const double touched = experts_touched(experts, per_token, tokens);
      EXPECT_LE(touched, experts);
      EXPECT_GE(touched, before);
      EXPECT_LE(touched, tokens * per_token);
      before = touched;
    }
    EXPECT_NEAR(before, experts, 1e-9);
  }
}

TEST(ExpertCost, ReadsTheTouchedAndComputesTheChosen) {
  const ExpertWork work{.each = linear(16, 8), .total = 8, .per_token = 2};  // 256 bytes each
  const Cost one = cost_of(work, decode(1, 10));
  EXPECT_EQ(one.weight_bytes, 2 * 256);
  EXPECT_EQ(one.flops, 2 * 2 * 128);
  EXPECT_EQ(one.activation_bytes, 2 * 24 * 2);
  EXPECT_EQ(one.experts_touched, 2);
  EXPECT_EQ(one.weight_bytes_least, 2 * 256);

  const Cost eight = cost_of(work, decode(8, 10));
  EXPECT_DOUBLE_EQ(eight.weight_bytes, 7.1990966796875 * 256);
  EXPECT_EQ(eight.flops, 16 * 2 * 128);
  EXPECT_EQ(eight.activation_bytes, 16 * 24 * 2);
  EXPECT_DOUBLE_EQ(eight.experts_touched, 7.1990966796875);
  // All eight may choose the same two.
  EXPECT_EQ(eight.weight_bytes_least, 2 * 256);
  EXPECT_EQ(eight.least_compulsory_bytes(), 2 * 256);
  EXPECT_EQ(eight.least_bytes(), 2 * 256 + 16 * 24 * 2);

  // A prompt's tokens choose as a batch's do.
  expect_equal(cost_of(work, prefill(2, 4)), eight);
}

TEST(ExpertCost, ChoicesThatRunNoExpertLowerTheLeast) {
  ExpertWork work{.each = linear(16, 8), .total = 8, .per_token = 2, .idle = 1};
  EXPECT_EQ(least_experts(work), 1);
  EXPECT_EQ(cost_of(work, decode(8, 10)).weight_bytes_least, 256);
  work.idle = 4;
  EXPECT_EQ(least_experts(work), 0);
  EXPECT_EQ(cost_of(work, decode(8, 10)).weight_bytes_least, 0);
  work = {.each = linear(16, 8), .total = 2, .per_token = 4};
  EXPECT_EQ(least_experts(work), 2);
}

TEST(Step, UnderEvenRoutingTheLeastIsTheExpected) {
  const std::vector<Op> ops = {{.name = "experts",
                                .work = ExpertWork{.each = linear(16, 8), .total = 8, .per_token = 2},
                                .layers = {0, 1}},
                               {.name = "linear", .work = linear(3, 5), .layers = {}}};
  const Step step = cost_step(ops, decode(8, 10));
  EXPECT_EQ(step.total.weight_bytes_least, 2 * 2 * 256 + 30);
  const Step even = under_even_routing(step);
  EXPECT_DOUBLE_EQ(even.total.weight_bytes_least, 2 * 7.1990966796875 * 256 + 30);
  EXPECT_EQ(even.costs[0].weight_bytes_least, even.costs[0].weight_bytes);
  EXPECT_EQ(even.total.weight_bytes, step.total.weight_bytes);
}

TEST(ExpertCost, ABiasBelongsToTheExpert) {
  ExpertWork work{.each = linear(16, 8), .total = 8, .per_token = 2};
  work.each.bias = true;
  work.each.bias_format = kBf16;
  const Cost cost = cost_of(work, decode(1, 10));
  EXPECT_EQ(cost.weight_bytes, 2 * (256 + 32));
  EXPECT_EQ(cost.flops, 2 * (256 + 16));
}

TEST(RouterCost, IsThatOfItsLinear) {
  const RouterWork router{.linear = linear(8, 16), .per_token = 2};
  expect_equal(cost_of(router, decode(5, 10)), cost_of(linear(8, 16), decode(5, 10)));
  expect_equal(cost_of(router, prefill(5, 10)), cost_of(linear(8, 16), prefill(5, 10)));
}

TEST(ElementwiseCost, ReadsItsInputsWritesOneOutput) {
  ElementwiseWork work;
  work.width = 10;
  work.rows_per_token = 3;
  work.inputs = 2;
  work.weights = 10;
  work.weight_format = kBf16;
  work.flops_per_element = 5;
  const Cost cost = cost_of(work, decode(2, 100));
  EXPECT_EQ(cost.activation_bytes, 2 * 3 * 10 * 3 * 2);
  EXPECT_EQ(cost.weight_bytes, 20);
  EXPECT_EQ(cost.flops, 2 * 3 * 10 * 5);
  EXPECT_EQ(cost_of(work, prefill(2, 7)).flops, 14 * 3 * 10 * 5);
  work.last_token_only = true;
  expect_equal(cost_of(work, prefill(2, 7)), cost);
  work.weights = 0;
  EXPECT_EQ(cost_of(work, decode(2, 100)).weight_bytes, 0);
}

TEST(Cost, AddsAndMultiplies) {
  const Cost one{.weight_bytes = 1,
                 .weight_bytes_least = 0.5,
                 .kv_read_bytes = 2,
                 .kv_write_bytes = 4,
                 .state_bytes = 8,
                 .activation_bytes = 16,
                 .flops = 62,
                 .experts_touched = 3};
  EXPECT_EQ(one.kv_bytes(), 6);
  EXPECT_EQ(one.compulsory_bytes(), 15);
  EXPECT_EQ(one.bytes(), 31);
  EXPECT_EQ(one.intensity(), 2);
  const Cost three = one.times(3);
  EXPECT_EQ(three.bytes(), 93);
  EXPECT_EQ(three.weight_bytes_least, 1.5);
  EXPECT_EQ(three.least_bytes(), 91.5);
  EXPECT_EQ(three.flops, 186);
  EXPECT_EQ(three.experts_touched, 3);  // of one layer
  Cost sum = one;
  sum += three;
  EXPECT_EQ(sum.weight_bytes, 4);
  EXPECT_EQ(sum.kv_read_bytes, 8);
  EXPECT_EQ(sum.kv_write_bytes, 16);
  EXPECT_EQ(sum.state_bytes, 32);
  EXPECT_EQ(sum.activation_bytes, 64);
  EXPECT_EQ(sum.flops, 248);
  EXPECT_EQ(Cost{}.intensity(), 0);
}

TEST(StepCost, TotalsAreTheSumsOfTheOpsInEveryZooModel) {
  for (const Model& model : zoo()) {
    for (const Workload& workload : {decode(1, 1024), decode(7, 40'000), prefill(2, 5000)}) {
      const std::vector<Op> ops = lower(model);
      const Step step = cost_step(ops, workload);
      ASSERT_EQ(step.costs.size(), ops.size());
      Cost sum;
      for (std::size_t i = 0; i < ops.size(); ++i) {
        const Cost one = cost_of(ops[i].work, workload);
        EXPECT_DOUBLE_EQ(step.costs[i].bytes(), one.bytes() * static_cast<double>(ops[i].count()));
        sum += step.costs[i];
      }
      expect_equal(step.total, sum);
      EXPECT_GT(step.total.weight_bytes, 0) << model.name;

      const std::vector<Op> grouped = group_equal(ops);
      const Cost total = cost_step(grouped, workload).total;
      EXPECT_NEAR(total.bytes(), sum.bytes(), 1e-12 * sum.bytes()) << model.name;
      EXPECT_NEAR(total.flops, sum.flops, 1e-12 * sum.flops) << model.name;
    }
  }
}

TEST(StepCost, ABatchOneStepReadsWhatTheModelSaysInEveryZooModel) {
  for (const Model& model : zoo()) {
    const std::vector<Op> ops = lower(model);
    const Step step = cost_step(ops, decode(1, 1024));
    EXPECT_EQ(step.total.weight_bytes, static_cast<double>(read_bytes(model))) << model.name;
    EXPECT_EQ(step.total.kv_write_bytes, static_cast<double>(kv_bytes_per_token(model))) << model.name;
    EXPECT_EQ(step.total.kv_read_bytes, static_cast<double>(kv_cache_bytes(model, 1024))) << model.name;
  }
}

TEST(StepCost, Llama318B) {
  const std::vector<Op> ops = lower(find_model("llama-3.1-8b"));
  const Cost decoded = cost_step(ops, decode(1, 1024)).total;
  EXPECT_EQ(decoded.weight_bytes, 15'009'849'344);
  EXPECT_EQ(decoded.kv_read_bytes, 134'217'728);
  EXPECT_EQ(decoded.kv_write_bytes, 131'072);
  EXPECT_EQ(decoded.state_bytes, 0);
  EXPECT_EQ(decoded.flops, 15'550'300'160);

  const Cost batch = cost_step(ops, decode(256, 1024)).total;
  EXPECT_EQ(batch.weight_bytes, 15'009'849'344);
  EXPECT_EQ(batch.compulsory_bytes(), 49'403'142'144);

  const Cost prompt = cost_step(ops, prefill(1, 1024)).total;
  EXPECT_EQ(prompt.weight_bytes, 15'009'849'344);
  EXPECT_EQ(prompt.flops, 14'574'042'497'024);
  EXPECT_EQ(prompt.kv_write_bytes, 134'217'728);
}

TEST(StepCost, Llama318BInOtherFormats) {
  const Model model = find_model("llama-3.1-8b");
  const auto weights = [&](const char* format) {
    const std::vector<Op> ops = lower(with_weights(model, *find_format(format), std::nullopt));
    return cost_step(ops, decode(1, 1024)).total.weight_bytes;
  };
  EXPECT_EQ(weights("q4_0"), 4'221'902'848);
  EXPECT_EQ(weights("int4-g128"), 4'649'918'464);
}

TEST(StepCost, Gemma2ReadsItsWindowInHalfTheLayers) {
  const std::vector<Op> ops = lower(find_model("gemma-2-9b"));
  EXPECT_EQ(cost_step(ops, decode(1, 32768)).total.kv_read_bytes, 6'341'787'648);
  EXPECT_EQ(cost_step(ops, decode(2, 32768)).total.kv_read_bytes, 2 * 6'341'787'648);
  EXPECT_EQ(cost_step(ops, decode(1, 4096)).total.kv_read_bytes, 42.0 * 8192 * 4096);
}

TEST(StepCost, Mixtral) {
  const std::vector<Op> ops = lower(find_model("mixtral-8x7b"));
  EXPECT_EQ(cost_step(ops, decode(1, 1024)).total.weight_bytes, 25'497'706'496);
  EXPECT_NEAR(cost_step(ops, decode(8, 1024)).total.weight_bytes, 84'113'825'792, 0.5);
}

TEST(StepCost, ATiedTableIsReadByTheLmHeadAlone) {
  const Common common{
      .hidden_size = 8, .norm = NormKind::none, .weights = kBf16, .head = kBf16, .small = kBf16};
  Model model;
  model.hidden_size = 8;
  model.blocks = {embedding_block(common, 32, 16),
                  head_block(common, {.vocab_size = 32, .tied = true, .bias = false, .final_norm = false})};
  const std::vector<Op> ops = lower(model);
  ASSERT_EQ(ops.size(), 3U);
  const Step step = cost_step(ops, decode(1, 4));
  EXPECT_EQ(step.costs[0].weight_bytes, 0);
  EXPECT_EQ(step.costs[1].weight_bytes, 0);  // learned positions are gathered too
  EXPECT_EQ(step.costs[1].activation_bytes, 8 * 2 + 8 * 2);
  EXPECT_EQ(step.costs[2].weight_bytes, 32 * 8 * 2);
  EXPECT_EQ(step.total.weight_bytes, 512);
}

TEST(StepCost, ASharedExpertIsReadWholeWhateverTheTokensChoose) {
  const Common common{
      .hidden_size = 8, .norm = NormKind::none, .weights = kBf16, .head = kBf16, .small = kBf16};
  MoeSpec spec{.experts = 4, .per_token = 1, .expert = {.intermediate = 16}, .shared_intermediate = 32};
  spec.shared_gate = true;
  Model model;
  model.hidden_size = 8;
  model.blocks = {moe_block(common, spec)};
  model.blocks.front().layers = {0};
  const std::vector<Op> ops = lower(model);
  for (const std::int64_t batch : {1, 5}) {
    const Step step = cost_step(ops, decode(batch, 4));
    int seen = 0;
    for (std::size_t i = 0; i < ops.size(); ++i) {
      if (ops[i].name == "shared_expert.gate_proj" || ops[i].name == "shared_expert.up_proj" ||
          ops[i].name == "shared_expert.down_proj") {
        EXPECT_EQ(ops[i].kind(), OpKind::linear);
        EXPECT_EQ(step.costs[i].weight_bytes, 32 * 8 * 2);
        EXPECT_EQ(step.costs[i].flops, static_cast<double>(batch) * 2 * 32 * 8);
        ++seen;
      } else if (ops[i].name == "shared_expert.gate") {
        EXPECT_EQ(step.costs[i].weight_bytes, 8 * 2);
        ++seen;
      }
    }
    EXPECT_EQ(seen, 4);
  }
}

TEST(StepCost, LargestSizesDoNotOverflow) {
  constexpr std::int64_t kHuge = std::int64_t{1} << 31;
  constexpr double kTwo31 = 2147483648.0;
  const Workload most = decode(kMostBatch, kMostContext);
  const Workload prompt = prefill(kMostBatch, kMostContext);

  const Cost wide = cost_of(linear(kHuge, kHuge, Format{FormatKind::f8_e4m3, 0, false}), most);
  EXPECT_DOUBLE_EQ(wide.weight_bytes, kTwo31 * kTwo31);
  EXPECT_DOUBLE_EQ(wide.flops, 2e6 * kTwo31 * kTwo31);
  EXPECT_DOUBLE_EQ(wide.activation_bytes, 1e6 * 2 * kTwo31 * 2);
  EXPECT_DOUBLE_EQ(cost_of(linear(kHuge, 1), prompt).flops, 2e15 * kTwo31);

  const AttentionWork heads{
      .heads = kHuge, .kv_heads = kHuge, .d_k = kHuge, .d_v = kHuge, .kv = KvFormat::f32};
  const Cost attended = cost_of(heads, most);
  EXPECT_DOUBLE_EQ(attended.kv_write_bytes, 1e6 * kTwo31 * 8 * kTwo31);
  EXPECT_DOUBLE_EQ(attended.kv_read_bytes, 1e15 * kTwo31 * 8 * kTwo31);
  EXPECT_DOUBLE_EQ(attended.flops, 2e6 * kTwo31 * 2 * kTwo31 * 1e9);
  EXPECT_DOUBLE_EQ(cost_of(heads, prompt).flops, 2e6 * kTwo31 * 2 * kTwo31 * (1e9 * (1e9 + 1) / 2));

  ElementwiseWork elements;
  elements.width = kHuge;
  elements.rows_per_token = 2 * kHuge;
  EXPECT_DOUBLE_EQ(cost_of(elements, prompt).flops, 1e15 * 2 * kTwo31 * kTwo31);

  const EmbeddingWork table{.rows = kHuge, .width = kHuge, .format = kBf16};
  EXPECT_DOUBLE_EQ(cost_of(table, prompt).activation_bytes, 1e15 * 4 * kTwo31);
  EXPECT_EQ(experts_touched(1 << 20, 1, 1e15), 1 << 20);
}

}  // namespace
}  // namespace memwall
