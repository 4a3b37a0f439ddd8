#include "bench/statistics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <vector>

namespace memwall {
namespace {

// 1, 2, ... n: every order statistic is its own rank.
std::vector<double> ranks_up_to(std::size_t n) {
  std::vector<double> samples(n);
  std::iota(samples.begin(), samples.end(), 1.0);
  return samples;
}

TEST(Statistics, MedianAndQuartilesOfOddAndEvenCounts) {
  const std::vector<double> odd{9, 1, 7, 3, 5};
  const Summary of_odd = summarize(odd);
  EXPECT_EQ(of_odd.n, 5U);
  EXPECT_DOUBLE_EQ(of_odd.median, 5);
  EXPECT_DOUBLE_EQ(of_odd.q1, 3);
  EXPECT_DOUBLE_EQ(of_odd.q3, 7);

  // Type 7: positions 0.75, 1.5 and 2.25 of 1, 2, 4, 8.
  const std::vector<double> even{8, 4, 2, 1};
  const Summary of_even = summarize(even);
  EXPECT_DOUBLE_EQ(of_even.q1, 1.75);
  EXPECT_DOUBLE_EQ(of_even.median, 3);
  EXPECT_DOUBLE_EQ(of_even.q3, 5);
}

TEST(Statistics, OneSampleIsItsOwnSummary) {
  const std::vector<double> one{3.5};
  const Summary summary = summarize(one);
  EXPECT_EQ(summary.n, 1U);
  EXPECT_DOUBLE_EQ(summary.median, 3.5);
  EXPECT_DOUBLE_EQ(summary.q1, 3.5);
  EXPECT_DOUBLE_EQ(summary.q3, 3.5);
  EXPECT_FALSE(summary.ci95.has_value());
}

// Ranks from the usual tables of the sign test (for instance Conover, table A3).
TEST(Statistics, IntervalRanksAgreeWithTables) {
  struct Row {
    std::size_t n;
    double low;
    double high;
  };
  for (const Row& row :
       {Row{5, 1, 5}, Row{6, 1, 6}, Row{7, 1, 7}, Row{8, 1, 8}, Row{9, 2, 8}, Row{10, 2, 9}, Row{15, 4, 12},
        Row{17, 5, 13}, Row{20, 6, 15}, Row{25, 8, 18}, Row{30, 10, 21}, Row{50, 18, 33}, Row{100, 40, 61}}) {
    const Summary summary = summarize(ranks_up_to(row.n));
    ASSERT_TRUE(summary.ci95.has_value()) << row.n;
    EXPECT_DOUBLE_EQ(summary.ci95->low, row.low) << row.n;
    EXPECT_DOUBLE_EQ(summary.ci95->high, row.high) << row.n;
  }
}

TEST(Statistics, NoIntervalUnderFiveSamples) {
  EXPECT_FALSE(summarize(ranks_up_to(4)).ci95.has_value());
  EXPECT_TRUE(summarize(ranks_up_to(5)).ci95.has_value());
}

// 2^-n underflows here; the normal approximation n/2 +- 1.96 sqrt(n)/2 is good to a rank.
TEST(Statistics, IntervalOfManySamples) {
  for (const std::size_t n : {10000U, 10001U, 1000000U}) {
    const Summary summary = summarize(ranks_up_to(n));
    const double half_width = 1.959964 * std::sqrt(static_cast<double>(n)) / 2;
    const double middle = static_cast<double>(n + 1) / 2;
    EXPECT_NEAR(summary.ci95->low, middle - half_width, 1.0) << n;
    EXPECT_NEAR(summary.ci95->high, middle + half_width, 1.0) << n;
  }
}

TEST(Statistics, OrderDoesNotMatter) {
  std::vector<double> samples = ranks_up_to(20);
  std::reverse(samples.begin(), samples.end());
  std::swap(samples[3], samples[11]);
  const Summary summary = summarize(samples);
  EXPECT_DOUBLE_EQ(summary.median, 10.5);
  EXPECT_DOUBLE_EQ(summary.ci95->low, 6);
  EXPECT_DOUBLE_EQ(summary.ci95->high, 15);
}

TEST(Statistics, RefusesNothingAndNotNumbers) {
  const std::vector<double> with_nan{1, std::numeric_limits<double>::quiet_NaN()};
  const std::vector<double> with_infinity{1, std::numeric_limits<double>::infinity()};
  EXPECT_THROW(summarize({}), std::invalid_argument);
  EXPECT_THROW(summarize(with_nan), std::invalid_argument);
  EXPECT_THROW(summarize(with_infinity), std::invalid_argument);
  EXPECT_THROW(relative_noise(with_nan), std::invalid_argument);
}

// Both sides drift alike, so the ratio is 2 throughout though neither side's median is twice the other's.
TEST(Statistics, RatiosArePaired) {
  const std::vector<double> a{2, 20, 6, 8, 10};
  const std::vector<double> b{1, 10, 3, 4, 5};
  const Summary summary = summarize_ratios(a, b);
  EXPECT_EQ(summary.n, 5U);
  EXPECT_DOUBLE_EQ(summary.median, 2);
  EXPECT_DOUBLE_EQ(summary.ci95->low, 2);
  EXPECT_DOUBLE_EQ(summary.ci95->high, 2);

  // 1/4, 4/1, 3/3: the median of the ratios is 1, where that of a over that of b would be 3/3 of others.
  const std::vector<double> c{1, 4, 3};
  const std::vector<double> d{4, 1, 3};
  EXPECT_DOUBLE_EQ(summarize_ratios(c, d).median, 1);
}

TEST(Statistics, RatiosRefuseUnequalLengthsAndZeros) {
  const std::vector<double> two{1, 2};
  const std::vector<double> three{1, 2, 3};
  const std::vector<double> zero{0, 1};
  EXPECT_THROW(summarize_ratios(two, three), std::invalid_argument);
  EXPECT_THROW(summarize_ratios({}, {}), std::invalid_argument);
  EXPECT_THROW(summarize_ratios(two, zero), std::invalid_argument);
}

TEST(Statistics, RelativeNoiseIsTheInterquartileRangeOverTheMedian) {
  const std::vector<double> samples{9, 1, 7, 3, 5};
  ASSERT_TRUE(relative_noise(samples).has_value());
  EXPECT_DOUBLE_EQ(*relative_noise(samples), 4.0 / 5.0);
  const std::vector<double> constant(5, 2.0);
  EXPECT_DOUBLE_EQ(*relative_noise(constant), 0);
}

TEST(Statistics, NoRelativeNoiseWhereItMeansNothing) {
  EXPECT_FALSE(relative_noise(ranks_up_to(4)).has_value());
  const std::vector<double> zeros(10, 0.0);
  EXPECT_FALSE(relative_noise(zeros).has_value());
}

}  // namespace
}  // namespace memwall
