// The order of a whole step's launches, and how much of a model is held for them.
#include "bench/step_plan.h"

#include <gmock/gmock.h>

#include "load/load_model.h"
#include "tests/model/support.h"

namespace memwall {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> launch_names(const StepPlan& plan) {
  std::vector<std::string> names;
  for (const StepLaunch& launch : plan.launches) names.push_back(plan.parts[launch.part].name());
  return names;
}

// Every copy of every part once, each part's copies in ascending order.
void expect_each_copy_once(const StepPlan& plan) {
  std::vector<std::int64_t> seen(plan.parts.size(), 0);
  for (const StepLaunch& launch : plan.launches) EXPECT_EQ(launch.copy, seen[launch.part]++);
  for (std::size_t i = 0; i < plan.parts.size(); ++i)
    EXPECT_EQ(seen[i], plan.parts[i].count) << plan.parts[i].name();
}

constexpr std::int64_t kMiB64 = std::int64_t{64} << 20;

// A footprint of one MiB a matrix for whatever is no elementwise op.
StepFootprints mebibytes(const StepPlan& plan) {
  StepFootprints footprints;
  for (const StepPart& part : plan.parts) {
    const bool cold = part.kind() != OpKind::elementwise && part.kind() != OpKind::embedding;
    const auto* experts = std::get_if<ExpertWork>(&part.main().work);
    footprints.push_back(Footprint{.copy_bytes = cold ? 1 << 20 : 0,
                                   .fixed_bytes = 1024,
                                   .least_copies = experts != nullptr ? experts->per_token : 1,
                                   .cold = cold});
  }
  return footprints;
}

StepPlan plan_of(const std::string& layers) { return plan_step(lower(read_model(with_layers(layers)))); }

StepPlan plan_of_zoo(const char* name) { return plan_step(lower(find_model(name))); }

TEST(StepPlan, LayersRunOneAfterTheOther) {
  const StepPlan plan = plan_of("  - repeat: 2\n    a_proj: [64, 64]\n    b_proj: [32, 64]\n");
  EXPECT_THAT(launch_names(plan), ElementsAre("a_proj", "b_proj", "a_proj", "b_proj"));
  EXPECT_EQ(plan.parts.size(), 2U);
  EXPECT_EQ(plan.layers, 2);
  expect_each_copy_once(plan);
}

TEST(StepPlan, TheEmbeddingComesFirstAndTheHeadLast) {
  const StepPlan plan = plan_of_zoo("llama-3.2-1b");
  const std::vector<std::string> names = launch_names(plan);
  EXPECT_EQ(names.front(), "embed_tokens");
  EXPECT_EQ(names[names.size() - 2], "final_norm");
  EXPECT_EQ(names.back(), "lm_head");
  EXPECT_EQ(plan.layers, 16);
  expect_each_copy_once(plan);
}

TEST(StepPlan, LayersThatDifferKeepTheirPlaces) {
  for (const char* name : {"gemma-2-2b", "jamba-1.5-mini", "deepseek-v2-lite", "gemma-2-9b", "deepseek-v3"}) {
    SCOPED_TRACE(name);
    const StepPlan plan = plan_of_zoo(name);
    expect_each_copy_once(plan);
    // Each layer mixes tokens before its MLP or experts, and has one of each.
    int mixed = 0;
    int fed = 0;
    for (const std::string& op : launch_names(plan)) {
      if (op == "attn_residual") ++mixed;
      if (op == "mlp_residual") ++fed;
      EXPECT_TRUE(fed == mixed || fed + 1 == mixed) << op;
    }
    EXPECT_EQ(mixed, plan.layers);
    EXPECT_EQ(fed, plan.layers);
  }
}

TEST(StepPlan, GemmasWindowsAlternate) {
  const StepPlan plan = plan_of_zoo("gemma-2-2b");
  std::vector<std::int64_t> windows;
  for (const StepLaunch& launch : plan.launches) {
    if (const auto* attention = std::get_if<AttentionWork>(&plan.parts[launch.part].main().work))
      windows.push_back(attention->window);
  }
  ASSERT_EQ(windows.size(), 26U);
  for (std::size_t i = 0; i < windows.size(); ++i) EXPECT_EQ(windows[i], i % 2 == 0 ? 4096 : 0) << i;
}

TEST(StepPlan, DeepSeeksFirstLayerIsDense) {
  const StepPlan plan = plan_of_zoo("deepseek-v2-lite");
  const std::vector<std::string> names = launch_names(plan);
  const auto dense = std::find(names.begin(), names.end(), "gate_proj");
  const auto experts = std::find(names.begin(), names.end(), "experts.gate_proj");
  EXPECT_LT(dense, experts);
  EXPECT_EQ(std::count(names.begin(), names.end(), "gate_proj"), 1);
  EXPECT_EQ(std::count(names.begin(), names.end(), "experts.gate_proj"), 26);
}

TEST(FullestHolding, AllLayersWhereTheyFit) {
  const StepPlan plan = plan_of("  - repeat: 100\n    a_proj: [64, 64]\n");
  const auto holding = fullest_holding(plan, mebibytes(plan), (100 << 20) + 1024, kMiB64);
  ASSERT_TRUE(holding);
  EXPECT_EQ(holding->layers_held, 100);
  EXPECT_EQ(holding->bytes, (100 << 20) + 1024);
  EXPECT_THAT(holding->copies, ElementsAre(100));
}

TEST(FullestHolding, ElseAsManyAsFitWhileTheyPassTheCaches) {
  const StepPlan plan = plan_of("  - repeat: 100\n    a_proj: [64, 64]\n");
  const auto holding = fullest_holding(plan, mebibytes(plan), (100 << 20) + 1023, kMiB64);
  ASSERT_TRUE(holding);
  EXPECT_EQ(holding->layers_held, 99);
  EXPECT_TRUE(fullest_holding(plan, mebibytes(plan), (64 << 20) + 1024, kMiB64));
  EXPECT_FALSE(fullest_holding(plan, mebibytes(plan), (64 << 20) + 1023, kMiB64));
  EXPECT_EQ(least_holding(plan, mebibytes(plan), kMiB64).layers_held, 64);
}

TEST(FullestHolding, ASmallModelIsHeldWhole) {
  const StepPlan plan = plan_of("  - repeat: 3\n    a_proj: [64, 64]\n");
  EXPECT_EQ(least_holding(plan, mebibytes(plan), kMiB64).layers_held, 3);
  EXPECT_EQ(fullest_holding(plan, mebibytes(plan), kMiB64, kMiB64)->layers_held, 3);
  EXPECT_FALSE(fullest_holding(plan, mebibytes(plan), 3 << 20, kMiB64));  // its activations want room, too
}

TEST(FullestHolding, PartsOfSomeLayersAreHeldInProportion) {
  const StepPlan plan = plan_of(
      "  - repeat: 20\n    pattern:\n      - a_proj: [64, 64]\n      - a_proj: [64, 64]\n"
      "      - {a_proj: [64, 64], b_proj: [32, 64]}\n");
  ASSERT_EQ(plan.layers, 60);
  const StepHolding holding = holding_of(plan, mebibytes(plan), 30, true);
  EXPECT_THAT(holding.copies, ElementsAre(30, 10));
  EXPECT_THAT(holding_of(plan, mebibytes(plan), 1, true).copies, ElementsAre(1, 1));
}

TEST(FullestHolding, PartsWithoutAKernelTakeNothing) {
  const StepPlan plan = plan_of("  - repeat: 2\n    a_proj: [64, 64]\n    b_proj: [32, 64]\n");
  StepFootprints footprints = mebibytes(plan);
  footprints[1] = std::nullopt;
  const StepHolding holding = holding_of(plan, footprints, 2, true);
  EXPECT_THAT(holding.copies, ElementsAre(2, 0));
  EXPECT_EQ(holding.bytes, (2 << 20) + 1024);
}

const char* const kTwoLayersOfExperts =
    "  - repeat: 2\n    moe: {experts: 8, per_token: 3, intermediate: 32}\n";

TEST(FullestHolding, AllExpertsOfEachLayerElseThoseThatALaunchTouches) {
  const StepPlan plan = plan_of(kTwoLayersOfExperts);
  const StepFootprints footprints = mebibytes(plan);
  const StepHolding all = holding_of(plan, footprints, 2, true);
  const StepHolding touched = holding_of(plan, footprints, 2, false);
  EXPECT_EQ(all.bytes - touched.bytes, 3 * 2 * (8 - 3) * (1 << 20));  // gate, up and down of two layers
  EXPECT_TRUE(fullest_holding(plan, footprints, all.bytes, kMiB64)->all_experts);
  EXPECT_FALSE(fullest_holding(plan, footprints, all.bytes - 1, kMiB64)->all_experts);
  EXPECT_FALSE(fullest_holding(plan, footprints, touched.bytes - 1, kMiB64));
}

TEST(TurnOf, EveryStepIsARoundOfTheCopies) {
  const StepPlan plan = plan_of(kTwoLayersOfExperts);
  for (const bool all : {true, false}) {
    const StepHolding holding = holding_of(plan, mebibytes(plan), 2, all);
    for (std::size_t part = 0; part < plan.parts.size(); ++part) {
      if (plan.parts[part].kind() != OpKind::expert) continue;
      EXPECT_EQ(holding.copies[part], 2);
      EXPECT_EQ(holding.matrices_a_copy[part], all ? 8 : 3);
      EXPECT_EQ(turn_of(holding, {part, 0}, 0), 0);
      EXPECT_EQ(turn_of(holding, {part, 1}, 0), 1);
      EXPECT_EQ(turn_of(holding, {part, 0}, 5), 10);
      EXPECT_EQ(turn_of(holding, {part, 1}, 5), 11);
    }
  }
}

TEST(TurnOf, LayersTakeTurnsAndSmallOpsGoOn) {
  const StepPlan plan = plan_of_zoo("llama-3.2-1b");
  const StepHolding holding = holding_of(plan, mebibytes(plan), 5, true);
  for (std::size_t part = 0; part < plan.parts.size(); ++part) {
    const std::string name = plan.parts[part].name();
    if (name == "q_proj") {
      EXPECT_EQ(turn_of(holding, {part, 4}, 9), 5 * 9 + 4);
      EXPECT_EQ(turn_of(holding, {part, 5}, 9), 5 * 9);
    }
    if (name == "embed_tokens") {
      EXPECT_EQ(turn_of(holding, {part, 0}, 9), 9);
    }
  }
}

}  // namespace
}  // namespace memwall
