// Whole steps.
#include "bench/step.h"

#include <gmock/gmock.h>

#include <csignal>
#include <map>

#include "bench/interrupt.h"
#include "bench/measure.h"
#include "load/load_model.h"
#include "step_device.h"
#include "tests/model/support.h"

namespace memwall {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::int64_t kPlenty = std::int64_t{8} << 30;

// 40 layers of some MiB, so that a part of them is cold.
std::vector<Op> forty_layers() {
  return lower(
      read_model(with_layers("  - repeat: 40\n"
                             "    attention: {heads: 4, kv_heads: 2, head_dim: 16}\n"
                             "    mlp: {intermediate: 16384}\n")));
}

std::optional<WholeStep> run_alone(StepDevice& device, StepRunner& runner, const Workload& workload) {
  ReadCeiling ceiling(device);
  const std::vector<const Measurement*> alone(runner.plan().parts.size(), nullptr);
  device.launches.clear();
  return runner.run(workload, alone, ceiling);
}

TEST(StepRunner, RunsEveryLayersCopyOnceAStepInModelOrder) {
  StepDevice device;
  StepRunner runner(device, forty_layers(), kPlenty);
  const auto whole = run_alone(device, runner, {Phase::decode, 1, 64});
  ASSERT_TRUE(whole);
  EXPECT_EQ(whole->holding.layers_held, 40);
  EXPECT_FALSE(whole->partial);
  const StepPlan& plan = runner.plan();
  ASSERT_EQ(whole->launches(), static_cast<std::int64_t>(plan.launches.size()));
  ASSERT_EQ(device.launches.size() % plan.launches.size(), 0U) << "a step was left unfinished";
  ASSERT_GE(device.launches.size() / plan.launches.size(), 3U);
  for (std::size_t i = 0; i < device.launches.size(); ++i) {
    const StepLaunch& planned = plan.launches[i % plan.launches.size()];
    const StepPart& part = plan.parts[planned.part];
    ASSERT_EQ(device.launches[i].work, part.main().work) << i;
    if (part.kind() != OpKind::elementwise) {
      ASSERT_EQ(device.launches[i].turn, planned.copy) << part.name();
    }
  }
}

TEST(StepRunner, MovesTheBytesTheCostCounts) {
  StepDevice device;
  const std::vector<Op> ops = forty_layers();
  StepRunner runner(device, ops, kPlenty);
  for (const std::int64_t batch : {1, 3}) {
    const Workload workload{Phase::decode, batch, 64};
    const auto whole = run_alone(device, runner, workload);
    ASSERT_TRUE(whole);
    const Step step = cost_step(ops, workload);
    EXPECT_NEAR(whole->bytes, step.total.compulsory_bytes(), 1e-9 * whole->bytes);
    double by_kind = 0;
    for (const StepKind& kind : whole->kinds) by_kind += kind.bytes;
    EXPECT_NEAR(by_kind, whole->bytes, 1e-9 * whole->bytes);
  }
}

TEST(StepRunner, ReportsTimeSharesAndTheDifference) {
  StepDevice device;
  StepRunner runner(device, forty_layers(), kPlenty);
  const auto whole = run_alone(device, runner, {Phase::decode, 1, 64});
  ASSERT_TRUE(whole);
  EXPECT_TRUE(whole->cold);
  double launched = 0;
  for (const StepKind& kind : whole->kinds) {
    launched +=
        kind.reads_memory() ? kind.bytes / StepDevice::kRate : static_cast<double>(kind.launches) * 1e-6;
  }
  EXPECT_NEAR(whole->seconds.median, launched, 1e-9);
  EXPECT_NEAR(whole->launch_seconds(), launched, 1e-9);
  EXPECT_NEAR(whole->of_read_bandwidth->median, whole->bytes / launched / StepDevice::kRate, 1e-6);
  EXPECT_EQ(whole->barrier_seconds, 2e-6);
  EXPECT_EQ(whole->barriers(), 40 * 8);  // q, k, v, attention, o, gate, up, down
  // No part was measured alone here, so all of the step is difference.
  EXPECT_NEAR(whole->difference().total(), whole->seconds.median, 1e-9);
}

TEST(StepRunner, HoldsFewerLayersWhereMemoryIsShort) {
  StepDevice device;
  const std::vector<Op> ops = forty_layers();
  const Workload workload{Phase::decode, 1, 64};
  const std::int64_t probe = ReadCeiling::bytes(device.info());
  const std::int64_t all = StepRunner(device, ops, kPlenty).holding(workload).bytes;
  StepRunner runner(device, ops, probe + all - 1);
  const auto whole = run_alone(device, runner, workload);
  ASSERT_TRUE(whole);
  EXPECT_EQ(whole->holding.layers_held, 39);
  EXPECT_EQ(whole->layers, 40);
  EXPECT_LE(device.most_held, all - 1);
  EXPECT_EQ(device.most_held, whole->holding.bytes);
  EXPECT_NEAR(whole->bytes, cost_step(ops, workload).total.compulsory_bytes(), 1e-9 * whole->bytes);
}

TEST(StepRunner, RefusesWhatNoCacheMayServeAndDoesNotFit) {
  StepDevice device;
  const StepRunner runner(device, forty_layers(), (std::int64_t{256} << 20) + (32 << 20));
  const std::string message = error_of([&] { runner.holding({Phase::decode, 1, 64}); });
  EXPECT_THAT(message, HasSubstr("--step: a step of batch 1, 64 tokens needs 0.3"));
  EXPECT_THAT(message, HasSubstr("of 40 layers"));
  EXPECT_THAT(message, HasSubstr("and 0.28 GiB may be used"));
  EXPECT_EQ(device.placements, 0);
}

TEST(StepRunner, AnotherContextPlacesOnlyTheCacheAgain) {
  StepDevice device;
  StepRunner runner(device, forty_layers(), kPlenty);
  ASSERT_TRUE(run_alone(device, runner, {Phase::decode, 1, 64}));
  std::map<std::string, std::int64_t> before;
  for (const auto& launch : device.launches) before[std::to_string(launch.work.index())] = launch.placement;
  const std::int64_t placed = device.placements;
  ASSERT_TRUE(run_alone(device, runner, {Phase::decode, 1, 128}));
  EXPECT_EQ(device.placements, placed + 2);  // attention, and this test's own probe
  const std::size_t attention = Work(AttentionWork{}).index();
  for (const auto& launch : device.launches) {
    EXPECT_EQ(launch.placement > placed, launch.work.index() == attention);
  }
}

TEST(StepRunner, TakesTheVariantThatWasFastestAlone) {
  StepDevice device;
  StepRunner runner(device, forty_layers(), kPlenty);
  ReadCeiling ceiling(device);
  Measurement fast;
  fast.variant = "fast";
  fast.seconds.median = 1e-3;
  const std::vector<const Measurement*> alone(runner.plan().parts.size(), &fast);
  const auto whole = runner.run({Phase::decode, 1, 64}, alone, ceiling);
  ASSERT_TRUE(whole);
  for (const auto& launch : device.launches) ASSERT_EQ(launch.variant, 1U);
  EXPECT_NEAR(whole->alone_seconds(), 1e-3 * static_cast<double>(whole->launches()), 1e-12);
  EXPECT_NEAR(whole->difference().total(), whole->seconds.median - whole->alone_seconds(), 1e-12);
}

TEST(StepRunner, AStepWithoutAKernelForAnOpIsPartial) {
  StepDevice device;
  const std::vector<Op> ops =
      lower(read_model(with_layers("  - repeat: 2\n"
                                   "    mixer:\n"
                                   "      name: m\n"
                                   "      run:\n"
                                   "        - in_proj: [64, 64]\n"
                                   "        - recurrent: {elements: 64, flops: 64}\n"
                                   "        - out_proj: [64, 64]\n")));
  StepRunner runner(device, ops, kPlenty);
  const auto whole = run_alone(device, runner, {Phase::decode, 1, 64});
  ASSERT_TRUE(whole);
  EXPECT_TRUE(whole->partial);
  EXPECT_FALSE(whole->cold);
  for (const auto& launch : device.launches) EXPECT_FALSE(std::holds_alternative<RecurrentWork>(launch.work));
}

TEST(StepRunner, ExpertsCountAsTheyWereDrawn) {
  StepDevice device;
  const std::vector<Op> ops = lower(
      read_model(with_layers("  - repeat: 3\n    moe: {experts: 8, per_token: 2, intermediate: 32}\n")));
  StepRunner runner(device, ops, kPlenty);
  const auto whole = run_alone(device, runner, {Phase::decode, 1, 64});
  ASSERT_TRUE(whole);
  EXPECT_TRUE(whole->holding.all_experts);
  EXPECT_NEAR(whole->bytes, cost_step(ops, {Phase::decode, 1, 64}).total.compulsory_bytes(), 1e-6);
}

TEST(StepRunner, AWrongResultEndsTheRun) {
  StepDevice device;
  StepRunner runner(device, forty_layers(), kPlenty);
  ReadCeiling ceiling(device);
  device.wrong = true;
  const std::vector<const Measurement*> alone(runner.plan().parts.size(), nullptr);
  EXPECT_THROW(runner.run({Phase::decode, 1, 64}, alone, ceiling), RunError);
}

TEST(StepRunner, AnInterruptLeavesNoHalfStepBehind) {
  for (const std::size_t at : {1U, 1000U, 20'000U}) {
    SCOPED_TRACE(at);
    StepDevice device;
    const InterruptGuard guard;
    StepRunner runner(device, forty_layers(), kPlenty);
    device.on_launch = [&] {
      if (device.launches.size() == at) std::raise(SIGINT);
    };
    const auto whole = run_alone(device, runner, {Phase::decode, 1, 64});
    if (device.launches.size() < at) {
      EXPECT_TRUE(whole);  // it had finished
    } else {
      EXPECT_EQ(device.launches.size(), at) << "launches after the interrupt";
      if (whole) {
        EXPECT_EQ(whole->stop, StopReason::interrupted);
      }
    }
  }
}

TEST(Session, RunsWholeStepsForEveryWorkload) {
  StepDevice device;
  const std::vector<Op> ops = forty_layers();
  Session session(device, kPlenty, nullptr);
  session.probe();
  MeasureSettings settings;
  settings.batches = {1, 2};
  settings.contexts = {64};
  settings.whole_steps = true;
  session.require_memory(ops, settings);
  session.run_model({.ops = ops}, settings);
  ASSERT_EQ(session.decode().size(), 2U);
  for (const MeasuredStep& step : session.decode()) {
    ASSERT_TRUE(step.whole);
    EXPECT_NEAR(step.whole->alone_seconds(), step.measured_seconds(), 1e-9);
    EXPECT_NEAR(step.whole->seconds.median, step.measured_seconds(), 1e-9);
    EXPECT_NEAR(step.whole->difference().total(), 0, 1e-9);
  }
}

TEST(Session, RefusesAWholeStepThatDoesNotFitBeforeAnythingRuns) {
  StepDevice device;
  const std::vector<Op> ops = lower(find_model("llama-3.1-8b"));
  MeasureSettings settings;
  settings.batches = {1};
  settings.contexts = {64};
  settings.memory_bytes = std::int64_t{1400} << 20;  // the lm_head, but not with the embedding's layers
  const Session session(device, settings.memory_bytes, nullptr);
  EXPECT_NO_THROW(session.require_memory(ops, settings));
  settings.whole_steps = true;
  EXPECT_THAT(error_of([&] { session.require_memory(ops, settings); }), HasSubstr("--step"));
  EXPECT_EQ(device.placements, 0);
}

}  // namespace
}  // namespace memwall
