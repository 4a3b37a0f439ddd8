#include "predict/verdict.h"

#include <gtest/gtest.h>

namespace memwall {
namespace {

// 100 GB/s and 1 TFLOP/s.
constexpr Roofs kRoofs{.bytes_per_s = 100e9, .flops_per_s = 1e12};

TEST(Verdict, OverheadIsWhatNeitherRoofExplainsHalfOf) {
  // 1 us of memory, 0.5 us of arithmetic.
  const auto taking = [](double us) {
    return TimedLaunch{.seconds = us * 1e-6, .bytes = 100e3, .flops = 0.5e6};
  };
  EXPECT_EQ(bound_of(taking(1.1), kRoofs), Bound::memory);
  EXPECT_EQ(bound_of(taking(1.9), kRoofs), Bound::memory);
  EXPECT_EQ(bound_of(taking(2.1), kRoofs), Bound::overhead);
  EXPECT_EQ(bound_of(taking(19), kRoofs), Bound::overhead);
}

// The verdict that was wrong: its intensity lies above the ridge, and arithmetic is a tenth of its time.
TEST(Verdict, ASmallMatmulFarFromItsPeakIsNotBoundByArithmetic) {
  constexpr double kN = 64;
  TimedLaunch matmul{.seconds = 0, .bytes = 3 * kN * kN * 4, .flops = 2 * kN * kN * kN};
  ASSERT_GT(matmul.flops / matmul.bytes, kRoofs.flops_per_s / kRoofs.bytes_per_s);
  matmul.seconds = matmul.flops / (0.09 * kRoofs.flops_per_s);
  EXPECT_EQ(bound_of(matmul, kRoofs), Bound::overhead);
  matmul.seconds = matmul.flops / (0.9 * kRoofs.flops_per_s);
  EXPECT_EQ(bound_of(matmul, kRoofs), Bound::compute);
}

// A slow kernel is no launch: milliseconds are not what a launch costs.
TEST(Verdict, LongLaunchesAreBoundByARoof) {
  EXPECT_EQ(bound_of({.seconds = 1e-3, .bytes = 1e6, .flops = 0}, kRoofs), Bound::memory);
  EXPECT_EQ(bound_of({.seconds = 1e-3, .bytes = 0, .flops = 1e6}, kRoofs), Bound::compute);
  EXPECT_EQ(bound_of({.seconds = kShortLaunch_s, .bytes = 1e3, .flops = 0}, kRoofs), Bound::memory);
}

TEST(Verdict, ARoofThatIsNotKnownProvesNoOverhead) {
  const TimedLaunch launch{.seconds = 5e-6, .bytes = 1e3, .flops = 1e3};
  EXPECT_TRUE(is_overhead_bound(launch, kRoofs));
  EXPECT_FALSE(is_overhead_bound(launch, {.bytes_per_s = 0, .flops_per_s = 1e12}));
  EXPECT_FALSE(is_overhead_bound(launch, {.bytes_per_s = 100e9, .flops_per_s = 0}));
  EXPECT_TRUE(is_overhead_bound({.seconds = 5e-6, .bytes = 1e3, .flops = 0}, {.bytes_per_s = 100e9}));
}

}  // namespace
}  // namespace memwall
