// A whole step's figures and table, from samples made by hand.
#include <gmock/gmock.h>

#include "report/measured.h"

namespace memwall {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Summary exactly(double value) {
  return {.n = 10, .median = value, .q1 = value, .q3 = value, .ci95 = Interval{value, value}};
}

// 100 ms: linears 90 ms, alone 85 ms; small ops 6 ms, alone 5 ms.
WholeStep hundred_ms() {
  WholeStep whole;
  whole.seconds = exactly(0.1);
  whole.fastest = 0.1;
  whole.bytes = 2e9;
  whole.of_read_bandwidth = exactly(0.93);
  whole.layers = 16;
  whole.holding.layers_held = 16;
  whole.holding.bytes = std::int64_t{3} << 30;
  whole.barrier_seconds = 2e-6;
  whole.read_rate = 21e9;
  whole.parts_read_rate = 22e9;
  whole.kinds = {{OpKind::linear, 113, 2e9, 90e-3, 85e-3}, {OpKind::elementwise, 97, 0, 6e-3, 5e-3}};
  return whole;
}

constexpr Workload kTwoUsers{Phase::decode, 2, 64};
const Style kPlain;

TEST(WholeStep, TheTermsOfTheDifferenceAddUp) {
  const WholeStep::Difference difference = hundred_ms().difference();
  EXPECT_NEAR(difference.memory_ops, 5e-3, 1e-12);
  EXPECT_NEAR(difference.small_ops, 1e-3, 1e-12);
  EXPECT_NEAR(difference.rest, 4e-3, 1e-12);
  EXPECT_NEAR(difference.total(), 100e-3 - 90e-3, 1e-12);
}

TEST(WholeStepFigures, SpeedAndShares) {
  const Json json = whole_step_figures(hundred_ms(), kTwoUsers);
  EXPECT_NEAR(json["ms_per_step"].get<double>(), 100, 1e-9);
  EXPECT_NEAR(json["tokens_per_s"].get<double>(), 20, 1e-9);
  EXPECT_NEAR(json["tokens_per_s_per_user"].get<double>(), 10, 1e-9);
  EXPECT_NEAR(json["GBps"].get<double>(), 20, 1e-9);
  EXPECT_EQ(json["launches"], 210);
  EXPECT_EQ(json["barriers"], 113);
  EXPECT_NEAR(json["barrier_us"].get<double>(), 2, 1e-9);
  EXPECT_NEAR(json["difference_ms"]["total"].get<double>(), 10, 1e-9);
  EXPECT_FALSE(json.contains("partial"));
}

TEST(WholeStepText, StepPartsAndDifference) {
  const std::string text = whole_step_text(hundred_ms(), kTwoUsers, kPlain);
  EXPECT_THAT(text, HasSubstr("whole step, 16 of 16 layers held in 3.00 GiB\n"));
  EXPECT_THAT(text, HasSubstr("difference  +10.00 ms: "));
  EXPECT_THAT(text, HasSubstr("read at 22.0 GB/s beside the parts, at 21.0 GB/s beside the steps"));
  EXPECT_THAT(text, HasSubstr("barriers    113 × 2.000 us = 226.0 us"));
  EXPECT_THAT(text, HasSubstr("step        100.0 ms, 20.00 tokens/s, 20.0 GB/s, 93 % (93–93) of the read"));
  EXPECT_THAT(text, Not(HasSubstr("take turns")));
  EXPECT_THAT(text, Not(HasSubstr("caches serve")));
}

TEST(WholeStepText, SaysWhatWasNotHeldNotColdNotRun) {
  WholeStep whole = hundred_ms();
  whole.holding.layers_held = 5;
  whole.holding.all_experts = false;
  whole.cold = false;
  whole.partial = true;
  const std::string text = whole_step_text(whole, kTwoUsers, kPlain);
  EXPECT_THAT(text, HasSubstr("5 of 16 layers held"));
  EXPECT_THAT(text, HasSubstr("take turns"));
  EXPECT_THAT(text, HasSubstr("experts"));
  EXPECT_THAT(text, HasSubstr("caches serve a part of it"));
  EXPECT_THAT(text, HasSubstr("step        partial: "));
  EXPECT_THAT(text, Not(HasSubstr("tokens/s")));
}

TEST(ImpossibleFigures, AWholeStepBeyondTheReadBandwidth) {
  MeasuredStep step;
  step.workload = kTwoUsers;
  step.whole = hundred_ms();
  EXPECT_TRUE(impossible_figures({}, {step}).empty());
  step.whole->of_read_bandwidth = exactly(1.2);
  ASSERT_EQ(impossible_figures({}, {step}).size(), 1U);
  EXPECT_THAT(impossible_figures({}, {step}).front(), HasSubstr("the whole step at batch 2"));
  step.whole->cold = false;  // told already: caches serve a part
  EXPECT_TRUE(impossible_figures({}, {step}).empty());
}

// What is doubtful in a whole step stands where its tokens/s stand.
TEST(SummaryText, HasTheFlagsOfTheWholeStep) {
  MeasuredStep step;
  step.workload = kTwoUsers;
  step.weights = "f16";
  step.kv = "f16";
  step.whole = hundred_ms();
  step.whole->stop = StopReason::quiet;
  const auto summary = [&] { return summary_text({step, step}, {}, {}, kPlain); };
  EXPECT_THAT(summary(), HasSubstr("20.00"));  // tokens/s
  EXPECT_THAT(summary(), HasSubstr("93 %"));
  EXPECT_THAT(summary(), Not(HasSubstr("not cold")));
  step.whole->cold = false;
  EXPECT_THAT(summary(), HasSubstr("not cold"));
  step.whole->stop = StopReason::time_limit;
  step.whole->seconds.ci95 = Interval{0.05, 0.2};
  EXPECT_THAT(summary(), Not(HasSubstr("93 %"))) << "unstable: no share";
  EXPECT_THAT(summary(), HasSubstr("unstable"));
}

}  // namespace
}  // namespace memwall
