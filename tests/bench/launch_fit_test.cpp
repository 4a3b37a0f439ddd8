#include "bench/launch_fit.h"

#include <gtest/gtest.h>

namespace memwall {
namespace {

TEST(LaunchFit, RecoversTheModelItWasMadeFrom) {
  const LaunchFit truth{2.5e-6, 4.2e12};
  std::vector<LaunchSample> samples;
  for (double bytes = 1 << 16; bytes < 2e9; bytes *= 4) samples.push_back({bytes, truth.seconds(bytes)});
  const auto fit = fit_launch(samples);
  ASSERT_TRUE(fit);
  EXPECT_NEAR(fit->seconds_a_launch, truth.seconds_a_launch, 1e-12);
  EXPECT_NEAR(fit->bytes_per_s, truth.bytes_per_s, 1e3);
  EXPECT_NEAR(truth.half_bytes(), 10.5e6, 1);
}

TEST(LaunchFit, ANoisyLargeSizeDoesNotMoveTheLaunchesCost) {
  const LaunchFit truth{2e-6, 1e12};
  std::vector<LaunchSample> samples;
  for (double bytes = 1 << 14; bytes < 1.1e9; bytes *= 4) samples.push_back({bytes, truth.seconds(bytes)});
  samples.back().seconds *= 1.02;
  const auto fit = fit_launch(samples);
  ASSERT_TRUE(fit);
  EXPECT_NEAR(fit->seconds_a_launch, 2e-6, 0.05e-6);
}

TEST(LaunchFit, NothingComesFromTooLittle) {
  EXPECT_FALSE(fit_launch({}));
  EXPECT_FALSE(fit_launch({{1e6, 1e-6}}));
  EXPECT_FALSE(fit_launch({{1e6, 1e-6}, {1e6, 2e-6}}));
  EXPECT_FALSE(fit_launch({{1e6, 2e-6}, {2e6, 1e-6}}));  // more bytes in less time
  EXPECT_FALSE(fit_launch({{1e6, 0}, {2e6, 1e-6}}));
}

TEST(LaunchFit, ALaunchNeverCostsLessThanNothing) {
  const auto fit = fit_launch({{1e6, 1e-6}, {4e6, 5e-6}});
  ASSERT_TRUE(fit);
  EXPECT_EQ(fit->seconds_a_launch, 0);
}

}  // namespace
}  // namespace memwall
