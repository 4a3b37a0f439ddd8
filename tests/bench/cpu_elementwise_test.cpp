#include "bench/cpu_elementwise.h"

#include <gtest/gtest.h>

#include <mutex>
#include <set>
#include <thread>
#include <utility>
#include <vector>

namespace memwall {
namespace {

// The ranges that split_rows gave, and the threads that ran them.
struct Splits {
  std::set<std::pair<std::int64_t, std::int64_t>> ranges;
  std::set<std::thread::id> threads;
};

Splits splits_of(std::int64_t rows, std::int64_t width) {
  ThreadPool pool({0, 0, 0});
  Splits splits;
  std::mutex mutex;
  split_rows(pool, rows, width, [&](std::int64_t first, std::int64_t last) {
    const std::lock_guard lock(mutex);
    splits.ranges.insert({first, last});
    splits.threads.insert(std::this_thread::get_id());
  });
  return splits;
}

TEST(SplitRows, FewElementsStayOnTheCallingThread) {
  const Splits splits = splits_of(7, kLeastParallelElements / 7);
  EXPECT_EQ(splits.ranges, (std::set<std::pair<std::int64_t, std::int64_t>>{{0, 7}}));
  EXPECT_EQ(splits.threads, std::set<std::thread::id>{std::this_thread::get_id()});
}

TEST(SplitRows, ManyGoToAllWorkers) {
  const Splits splits = splits_of(7, kLeastParallelElements / 7 + 1);
  EXPECT_EQ(splits.ranges, (std::set<std::pair<std::int64_t, std::int64_t>>{{0, 3}, {3, 5}, {5, 7}}));
  EXPECT_EQ(splits.threads.size(), 3U);
}

TEST(SplitRows, WhatCannotBeSplitWakesNobody) {
  EXPECT_EQ(splits_of(1, 10 * kLeastParallelElements).threads,
            std::set<std::thread::id>{std::this_thread::get_id()});
}

}  // namespace
}  // namespace memwall
