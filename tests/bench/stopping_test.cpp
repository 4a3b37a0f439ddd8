#include "bench/stopping.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <stdexcept>

namespace memwall {
namespace {

struct Stopped {
  std::optional<StopReason> reason;
  std::size_t samples = 0;
};

// Feeds sample(0), sample(1), ... until the criterion stops.
Stopped feed(StoppingCriterion criterion, double cost_s, const std::function<double(int)>& sample) {
  for (int i = 0; i < 100000; ++i) {
    if (const auto reason = criterion.finished()) return {reason, criterion.samples().size()};
    criterion.add(sample(i), cost_s);
  }
  return {};
}

// Uniform in [0, 1), the same on every machine (the low-discrepancy sequence of the golden ratio would be
// too even: its quartiles settle at once).
double noise_at(int i) {
  std::uint64_t z = (static_cast<std::uint64_t>(i) + 1) * 0x9e3779b97f4a7c15U;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
  return static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

TEST(Stopping, QuietSamplesStopAtTheMinimumTime) {
  // 0.25 is exact in binary, so that the sum of the costs is too.
  const auto stopped = feed(StoppingCriterion({.min_time_s = 5, .max_time_s = 100}), 0.25,
                            [](int i) { return 1.0 + 0.001 * noise_at(i); });
  EXPECT_EQ(stopped.reason, StopReason::quiet);
  EXPECT_EQ(stopped.samples, 20U);
}

TEST(Stopping, QuietSamplesStopAtTheMinimumCount) {
  const auto stopped = feed(StoppingCriterion({}), 0.1, [](int) { return 1.0; });
  EXPECT_EQ(stopped.reason, StopReason::quiet);
  EXPECT_EQ(stopped.samples, 10U);
}

TEST(Stopping, NoisySamplesStopOnceTheNoiseIsStable) {
  const auto stopped = feed(StoppingCriterion({}), 0.0005, [](int i) { return 1.0 + 0.2 * noise_at(i); });
  EXPECT_EQ(stopped.reason, StopReason::noise_stable);
  EXPECT_GE(stopped.samples, 1000U);  // the minimum time
  EXPECT_LT(stopped.samples, 6000U);  // the time limit
}

TEST(Stopping, DriftEndsAtTheTimeLimit) {
  const auto stopped = feed(StoppingCriterion({.max_time_s = 4}), 0.0009765625,  // 1/1024
                            [](int i) { return 1.0 + 0.0002 * i; });
  EXPECT_EQ(stopped.reason, StopReason::time_limit);
  EXPECT_EQ(stopped.samples, 4096U);
}

TEST(Stopping, NoisyDriftEndsAtTheTimeLimit) {
  const auto stopped = feed(StoppingCriterion({.max_time_s = 4}), 0.0009765625,
                            [](int i) { return 1.0 + 0.0005 * i + 0.05 * noise_at(i); });
  EXPECT_EQ(stopped.reason, StopReason::time_limit);
}

TEST(Stopping, TheTimeLimitHoldsBeforeTheMinimumCount) {
  const auto stopped = feed(StoppingCriterion({}), 0.75, [](int i) { return 1.0 + i; });
  EXPECT_EQ(stopped.reason, StopReason::time_limit);
  EXPECT_EQ(stopped.samples, 4U);
}

TEST(Stopping, NothingStopsItBeforeTheFloor) {
  StoppingRule rule;
  rule.min_samples = 0;
  rule.max_samples = 1;
  for (const std::size_t floor : {1U, 3U, 7U}) {
    const auto stopped = feed(StoppingCriterion(rule, floor), 100, [](int) { return 1.0; });
    EXPECT_EQ(stopped.samples, floor);
  }
}

TEST(Stopping, SampleLimit) {
  StoppingRule rule;
  rule.max_samples = 40;
  const auto stopped = feed(StoppingCriterion(rule), 1e-9, [](int i) { return 1.0 + noise_at(i); });
  EXPECT_EQ(stopped.reason, StopReason::sample_limit);
  EXPECT_EQ(stopped.samples, 40U);
}

TEST(Stopping, QuietWinsOverALimitReachedAtTheSameTime) {
  StoppingRule rule;
  rule.max_samples = 10;
  const auto stopped = feed(StoppingCriterion(rule), 0.5, [](int) { return 1.0; });
  EXPECT_EQ(stopped.reason, StopReason::time_limit) << "3 s come at sample 6, before the minimum of 10";
  EXPECT_EQ(feed(StoppingCriterion(rule), 0.1, [](int) { return 1.0; }).reason, StopReason::quiet);
}

TEST(Stopping, KeepsSamplesInTheirOrder) {
  StoppingCriterion criterion({});
  for (const double sample : {3.0, 1.0, 2.0}) criterion.add(sample, 0);
  EXPECT_EQ(criterion.samples(), (std::vector<double>{3, 1, 2}));
  EXPECT_FALSE(criterion.finished().has_value());
}

TEST(Stopping, RefusesNotNumbers) {
  StoppingCriterion criterion({});
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THROW(criterion.add(nan, 0.1), std::invalid_argument);
  EXPECT_THROW(criterion.add(1, nan), std::invalid_argument);
  EXPECT_THROW(criterion.add(1, -0.1), std::invalid_argument);
  EXPECT_TRUE(criterion.samples().empty());
}

TEST(Stopping, Names) {
  EXPECT_EQ(stop_reason_name(StopReason::quiet), "quiet");
  EXPECT_EQ(stop_reason_name(StopReason::noise_stable), "noise stable");
  EXPECT_EQ(stop_reason_name(StopReason::time_limit), "time limit");
  EXPECT_EQ(stop_reason_name(StopReason::sample_limit), "sample limit");
  EXPECT_EQ(stop_reason_name(StopReason::interrupted), "interrupted");
}

}  // namespace
}  // namespace memwall
