#include "bench/thread_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <limits>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "bench/topology.h"

namespace memwall {
namespace {

// `count` workers on the CPUs there are, in turn: with more workers than CPUs some CPU comes twice.
std::vector<int> cpus_for(int count) {
  const std::vector<int> allowed = allowed_cpus();
  std::vector<int> cpus;
  for (int i = 0; i < count; ++i) cpus.push_back(allowed[static_cast<std::size_t>(i) % allowed.size()]);
  return cpus;
}

// The fewest threads seen over 20 ms: a joined thread leaves /proc a moment after join returns.
std::ptrdiff_t settled_thread_count() {
  std::ptrdiff_t fewest = std::numeric_limits<std::ptrdiff_t>::max();
  for (int i = 0; i < 20; ++i) {
    fewest = std::min(fewest, std::distance(std::filesystem::directory_iterator("/proc/self/task"), {}));
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return fewest;
}

class ThreadPoolOf : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Workers, ThreadPoolOf, testing::Values(1, 2, 3, 7));

TEST_P(ThreadPoolOf, EveryWorkerRunsOnceARun) {
  ThreadPool pool(cpus_for(GetParam()));
  ASSERT_EQ(pool.size(), GetParam());
  // Plain integers: the pool alone must order these, which ThreadSanitizer checks.
  std::vector<int> calls(static_cast<std::size_t>(GetParam()), 0);
  // On a busy machine every meeting of more workers than CPUs costs milliseconds.
  const int runs = GetParam() > 2 ? 300 : 3000;
  for (int i = 0; i < runs; ++i) {
    pool.run([&](int worker) { ++calls[static_cast<std::size_t>(worker)]; });
    for (const int count : calls) ASSERT_EQ(count, i + 1);
  }
}

TEST_P(ThreadPoolOf, WorkersSeeWhatTheCallerWroteAndTheOthersWroteBefore) {
  ThreadPool pool(cpus_for(GetParam()));
  const auto n = static_cast<std::size_t>(GetParam());
  std::vector<int> values(n, 0);
  std::vector<int> next(n, 0);
  for (int i = 0; i < 1000; ++i) {
    values[0] += 1;
    pool.run([&](int worker) {
      const auto w = static_cast<std::size_t>(worker);
      next[(w + 1) % n] = values[w];
    });
    values.swap(next);
  }
  int sum = 0;
  for (const int value : values) sum += value;
  EXPECT_EQ(sum, 1000);
}

TEST_P(ThreadPoolOf, SleepingWorkersWake) {
  ThreadPool pool(cpus_for(GetParam()));
  std::atomic<int> calls{0};
  for (int i = 0; i < 20; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));  // longer than workers spin
    pool.run([&](int worker) {
      // And the caller, as worker 0, has to sleep until the last is done.
      if (worker != 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      ++calls;
    });
  }
  EXPECT_EQ(calls.load(), 20 * GetParam());
}

TEST_P(ThreadPoolOf, AnExceptionOfAnyWorkerReachesTheCaller) {
  ThreadPool pool(cpus_for(GetParam()));
  for (int thrower = 0; thrower < pool.size(); ++thrower) {
    std::atomic<int> calls{0};
    try {
      pool.run([&](int worker) {
        ++calls;
        if (worker == thrower) throw std::runtime_error("worker " + std::to_string(worker));
      });
      ADD_FAILURE() << "nothing thrown";
    } catch (const std::runtime_error& error) {
      EXPECT_EQ(error.what(), "worker " + std::to_string(thrower));
    }
    EXPECT_EQ(calls.load(), pool.size()) << "all others still ran to their end";
  }
  EXPECT_THROW(pool.run([](int) { throw std::logic_error("all at once"); }), std::logic_error);
  EXPECT_NO_THROW(pool.run([](int) {})) << "an exception is thrown once";
}

TEST_P(ThreadPoolOf, SplitCoversEveryItemOnce) {
  ThreadPool pool(cpus_for(GetParam()));
  for (const std::int64_t items : {0, 1, 5, 64, 1000}) {
    std::vector<int> visits(static_cast<std::size_t>(items), 0);
    pool.split(items, 8, [&](int worker, std::int64_t first, std::int64_t last) {
      EXPECT_GE(worker, 0);
      EXPECT_LT(first, last) << "an empty range is no call";
      for (std::int64_t i = first; i < last; ++i) ++visits[static_cast<std::size_t>(i)];
    });
    for (const int count : visits) ASSERT_EQ(count, 1);
  }
}

TEST_P(ThreadPoolOf, ABarrierOrdersThePhasesOfOneRun) {
  ThreadPool pool(cpus_for(GetParam()));
  const auto n = static_cast<std::size_t>(GetParam());
  // Plain integers, passed round the workers: ThreadSanitizer sees a phase that overlaps the next.
  std::vector<int> values(n);
  std::vector<int> next(n);
  for (int run = 0; run < (GetParam() > 2 ? 2 : 20); ++run) {
    std::fill(values.begin(), values.end(), 0);
    constexpr int rounds = 300;
    pool.run([&](int worker) {
      const auto w = static_cast<std::size_t>(worker);
      for (int i = 0; i < rounds; ++i) {
        next[(w + 1) % n] = values[w] + 1;
        pool.barrier(worker);
        values[w] = next[w];
        pool.barrier(worker);
      }
    });
    EXPECT_EQ(values, std::vector<int>(n, rounds));
  }
}

TEST_P(ThreadPoolOf, ABarrierWakesThoseWhoSleepAtIt) {
  ThreadPool pool(cpus_for(GetParam()));
  for (int late = 0; late < pool.size(); ++late) {
    std::atomic<int> before{0};
    std::atomic<int> wrong{0};
    pool.run([&](int worker) {
      if (worker == late) std::this_thread::sleep_for(std::chrono::milliseconds(2));
      ++before;
      pool.barrier(worker);
      if (before.load() != pool.size()) ++wrong;
    });
    EXPECT_EQ(wrong.load(), 0);
  }
}

// Whoever throws, wherever the others are: none waits for ever, nobody passes the barrier that one did not
// come to, and the pool works on.
TEST_P(ThreadPoolOf, AThrowFreesThoseAtABarrier) {
  ThreadPool pool(cpus_for(GetParam()));
  for (int thrower = 0; thrower < pool.size(); ++thrower) {
    for (int phase = 0; phase < 4; ++phase) {
      for (const bool late : {false, true}) {
        std::atomic<int> passed{0};
        try {
          pool.run([&](int worker) {
            for (int i = 0; i < 4; ++i) {
              if (worker == thrower && i == phase) {
                if (late) std::this_thread::sleep_for(std::chrono::milliseconds(1));
                throw std::runtime_error("worker " + std::to_string(worker));
              }
              pool.barrier(worker);
              ++passed;
            }
          });
          ADD_FAILURE() << "nothing thrown";
        } catch (const std::runtime_error& error) {
          EXPECT_EQ(error.what(), "worker " + std::to_string(thrower));
        }
        EXPECT_LE(passed.load(), phase * pool.size());
        std::vector<int> ran(static_cast<std::size_t>(pool.size()), 0);
        pool.run([&](int worker) {
          pool.barrier(worker);
          ran[static_cast<std::size_t>(worker)] = 1;
        });
        EXPECT_EQ(ran, std::vector<int>(ran.size(), 1));
      }
    }
  }
}

TEST_P(ThreadPoolOf, WhenAllThrowOneIsTold) {
  ThreadPool pool(cpus_for(GetParam()));
  for (int i = 0; i < 200; ++i) {
    EXPECT_THROW(pool.run([&](int worker) {
      if (worker % 2 == 0) pool.barrier(worker);
      throw std::logic_error("all");
    }),
                 std::logic_error);
  }
}

TEST_P(ThreadPoolOf, LeavesNoThreadAndTheCallersAffinity) {
  const std::vector<int> before = allowed_cpus();
  { ThreadPool warm_up(cpus_for(2)); }  // a sanitizer may start a thread of its own with the first
  const auto threads = settled_thread_count();
  for (int i = 0; i < 20; ++i) {
    ThreadPool pool(cpus_for(GetParam()));
    if (i % 2 == 0) pool.run([](int) {});
  }
  EXPECT_EQ(settled_thread_count(), threads);
  EXPECT_EQ(allowed_cpus(), before);
}

TEST(ThreadPool, PinsEachWorkerToItsOwnCpu) {
  const std::vector<int> cpus = allowed_cpus();
  ThreadPool pool(cpus);
  EXPECT_TRUE(pool.pinned());
  std::vector<std::vector<int>> seen(cpus.size());
  pool.run([&](int worker) { seen[static_cast<std::size_t>(worker)] = allowed_cpus(); });
  for (std::size_t i = 0; i < cpus.size(); ++i) EXPECT_EQ(seen[i], std::vector<int>{cpus[i]});
}

TEST(ThreadPool, TheSameCpuTwiceIsNotPinned) {
  const int cpu = allowed_cpus().front();
  ThreadPool pool({cpu, cpu});
  EXPECT_EQ(pool.size(), 2);
  EXPECT_FALSE(pool.pinned());
}

TEST(ThreadPool, ACpuThatIsNotThereIsNotPinnedButRuns) {
  for (const int missing : {-1, 65000, std::numeric_limits<int>::max()}) {
    for (const auto& cpus : {std::vector<int>{allowed_cpus().front(), missing}, std::vector<int>{missing}}) {
      ThreadPool pool(cpus);
      EXPECT_FALSE(pool.pinned());
      std::atomic<int> calls{0};
      for (int i = 0; i < 100; ++i) pool.run([&](int) { ++calls; });
      EXPECT_EQ(calls.load(), 100 * pool.size());
    }
  }
}

TEST(ThreadPool, AWorkerThatCannotBePinnedRoams) {
  const std::vector<int> allowed = allowed_cpus();
  ThreadPool pool({allowed.front(), -1});
  std::vector<int> seen;
  pool.run([&](int worker) {
    if (worker == 1) seen = allowed_cpus();
  });
  EXPECT_EQ(seen, allowed);
}

TEST(ThreadPool, RefusesNoCpus) { EXPECT_THROW(ThreadPool({}), std::invalid_argument); }

TEST(ThreadPoolRange, CoversAllInOrderOnMultiplesOfTheGrain) {
  for (const std::int64_t items : {0, 1, 7, 8, 9, 100, 4096}) {
    for (const std::int64_t grain : {1, 8, 64}) {
      for (const int workers : {1, 2, 3, 7, 300}) {
        std::int64_t expected = 0;
        std::int64_t longest = 0;
        for (int worker = 0; worker < workers; ++worker) {
          const auto range = ThreadPool::range_of(items, grain, workers, worker);
          ASSERT_EQ(range.first, expected);
          ASSERT_LE(range.first, range.last);
          ASSERT_TRUE(range.last % grain == 0 || range.last == items);
          longest = std::max(longest, range.last - range.first);
          expected = range.last;
        }
        ASSERT_EQ(expected, items);
        const std::int64_t grains = (items + grain - 1) / grain;
        ASSERT_LE(longest, (grains + workers - 1) / workers * grain) << "no worker has more than its share";
      }
    }
  }
}

TEST(ThreadPoolRange, WorkedExample) {
  // 100 items in grains of 16 are 7 grains: 3, 2 and 2 for three workers.
  const auto range = [](int worker) { return ThreadPool::range_of(100, 16, 3, worker); };
  EXPECT_EQ(range(0).first, 0);
  EXPECT_EQ(range(0).last, 48);
  EXPECT_EQ(range(1).last, 80);
  EXPECT_EQ(range(2).last, 100);
}

TEST(ThreadPoolRange, DoesNotWrapNearTheLargestInteger) {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(ThreadPool::range_of(most, most - 1, 3, 0).last, most - 1);
  EXPECT_EQ(ThreadPool::range_of(most, most - 1, 3, 2).last, most);
  EXPECT_EQ(ThreadPool::range_of(most, 1, 7, 6).last, most);
}

TEST(ThreadPoolRange, RefusesWhatMakesNoSense) {
  EXPECT_THROW(ThreadPool::range_of(-1, 1, 1, 0), std::invalid_argument);
  EXPECT_THROW(ThreadPool::range_of(1, 0, 1, 0), std::invalid_argument);
  EXPECT_THROW(ThreadPool::range_of(1, 1, 0, 0), std::invalid_argument);
  EXPECT_THROW(ThreadPool::range_of(1, 1, 2, 2), std::invalid_argument);
  EXPECT_THROW(ThreadPool::range_of(1, 1, 2, -1), std::invalid_argument);
}

}  // namespace
}  // namespace memwall
