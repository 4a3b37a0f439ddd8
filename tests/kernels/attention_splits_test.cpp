// Cutting attention into parts, and merging them.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "kernels/cpu/attention_shape.h"

namespace memwall::cpu {
namespace {

TEST(AttentionSplits, OnePartWhereHeadsOccupyTheThreads) {
  EXPECT_EQ(attention_splits(8, 8192, 1), 1);
  EXPECT_EQ(attention_splits(8, 8192, 2), 1);
  EXPECT_EQ(attention_splits(8, 8192, 8), 1);
  EXPECT_EQ(attention_splits(64, 8192, 7), 1);
}

TEST(AttentionSplits, FewHeadsAreCutUntilTheThreadsAreEven) {
  EXPECT_EQ(attention_splits(1, 8192, 2), 2);
  EXPECT_EQ(attention_splits(1, 8192, 7), 7);
  EXPECT_EQ(attention_splits(8, 8192, 16), 2);
  EXPECT_EQ(attention_splits(3, 8192, 2), 2);
  EXPECT_EQ(attention_splits(8, 8192, 3), 3);  // 24 tasks; of 8 one thread would do 3, another 2
}

TEST(AttentionSplits, ShortContextsAreNotCut) {
  EXPECT_EQ(attention_splits(1, 1, 8), 1);
  EXPECT_EQ(attention_splits(1, 511, 8), 1);
  EXPECT_EQ(attention_splits(1, 512, 8), 2);
  EXPECT_EQ(attention_splits(1, 0, 8), 1);
}

TEST(AttentionSplits, TheBusiestThreadHasLittleMoreThanItsShare) {
  for (std::int64_t heads = 1; heads <= 64; ++heads) {
    for (const std::int64_t threads : {1, 2, 3, 7, 16, 64}) {
      const std::int64_t splits = attention_splits(heads, 1 << 20, threads);
      ASSERT_GE(splits, 1);
      ASSERT_LE(splits, threads);
      const std::int64_t tasks = heads * splits;
      ASSERT_LE((tasks + threads - 1) / threads * threads * 10, tasks * 11) << heads << " " << threads;
    }
  }
}

TEST(AttentionSplits, PartsCoverTheTokensOnceAtPanelBounds) {
  for (const auto& [first, last] :
       {std::pair<std::int64_t, std::int64_t>{0, 1}, {0, 1000}, {37, 1000}, {5, 5}}) {
    for (const std::int64_t splits : {1, 2, 3, 7, 100}) {
      std::int64_t at = first;
      for (std::int64_t part = 0; part < splits; ++part) {
        const TokenRange range = part_of(first, last, splits, part);
        EXPECT_EQ(range.first, at);
        EXPECT_LE(range.first, range.last);
        const bool empty = range.first == range.last;
        EXPECT_TRUE(empty || range.last == last || range.last % kPanelTokens == 0);
        at = range.last;
      }
      EXPECT_EQ(at, last);
    }
  }
}

constexpr float kMinusInf = -std::numeric_limits<float>::infinity();

// One head of width 1: what each part of its tokens has come to.
struct Part {
  float maximum, sum, accumulator;
};
std::vector<float> merged(const std::vector<Part>& parts) {
  const Partials partials{1, 1};
  std::vector<float> all(static_cast<std::size_t>(partials.floats()) * parts.size(), std::nanf(""));
  for (std::size_t i = 0; i < parts.size(); ++i) {
    float* part = all.data() + static_cast<std::int64_t>(i) * partials.floats();
    partials.accumulators(part)[0] = parts[i].accumulator;
    partials.maxima(part)[0] = parts[i].maximum;
    partials.sums(part)[0] = parts[i].sum;
  }
  std::vector<float> y(1, std::nanf(""));
  partials.merge(all.data(), static_cast<std::int64_t>(parts.size()), 0, 1, y.data());
  return y;
}

TEST(AttentionPartials, MergeByLogSumExp) {
  EXPECT_FLOAT_EQ(merged({{0, 2, 6}})[0], 3);
  EXPECT_FLOAT_EQ(merged({{1, 1, 4}, {1, 3, 4}})[0], 2);
  EXPECT_FLOAT_EQ(merged({{0, 1, 1}, {std::log(3.0F), 1, 5}})[0], (1 + 3 * 5) / 4.0F);
  EXPECT_FLOAT_EQ(merged({{-1000, 1, 1}, {1000, 1, 5}})[0], 5);
}

TEST(AttentionPartials, EmptyPartsCountForNothing) {
  EXPECT_FLOAT_EQ(merged({{kMinusInf, 0, 0}, {2, 2, 6}, {kMinusInf, 0, 0}})[0], 3);
  EXPECT_EQ(merged({{kMinusInf, 0, 0}, {kMinusInf, 0, 0}})[0], 0);
}

TEST(AttentionPartials, NanStays) {
  EXPECT_TRUE(std::isnan(merged({{kMinusInf, std::nanf(""), 0}, {1, 1, 1}})[0]));
  EXPECT_TRUE(std::isnan(merged({{1, 1, std::nanf("")}, {1, 1, 1}})[0]));
}

}  // namespace
}  // namespace memwall::cpu
