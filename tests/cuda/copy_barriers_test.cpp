// Kernels that copy in bulk: the executor finds each defect that is planted in one, and lets it pass without.
#include "tests/cuda/copy_barriers.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "kernels/cuda/bulk_copy.cuh"
#include "tests/cuda/executor.h"
#include "tests/cuda/order.h"

namespace memwall::cuda {
namespace {

enum class Defect {
  none,
  not_made,
  made_twice,
  made_for_none,
  not_fenced,
  written_over,
  not_met,
  misaligned_barrier,
  expects_fewer,
  expects_more,
  expects_too_many,
  expects_nothing,
  odd_size,
  nothing,
  misaligned_global,
  misaligned_shared,
  beyond_shared,
  asked_again,
  no_wait,
  other_parity,
  not_all_wait,
  reused_early,
  left_over,
};

struct BulkParams {
  const float* in = nullptr;
  float* out = nullptr;
  Defect defect = Defect::none;
};

constexpr unsigned kRing = 2;
constexpr unsigned kRounds = 5;
constexpr unsigned kChunk = 256;  // bytes, a float a thread
constexpr unsigned kShared = kRing * kChunk + 8 * kRing + 16;

// Each thread sums the float that lies opposite its own in each of 5 chunks, through a ring of 2.
struct Ring {
  using Params = BulkParams;
  static constexpr unsigned kThreads = kChunk / 4;

  static void run(const Params& p, std::byte* shared) {
    auto* barriers = reinterpret_cast<CopyBarrier*>(shared + kRing * kChunk);
    if (thread_x() == 0) {
      make(p, barriers);
      for (unsigned round = 0; round < kRing; ++round) ask(p, round, shared, barriers);
    }
    if (p.defect != Defect::not_met) sync_threads();
    float sum = 0;
    for (unsigned round = 0; round < kRounds; ++round) {
      const unsigned stage = round % kRing;
      const unsigned parity = round / kRing % 2;
      const bool waits = p.defect != Defect::no_wait && (p.defect != Defect::not_all_wait || thread_x() < 32);
      if (waits) wait_for_bytes(barriers + stage, p.defect == Defect::other_parity ? 1 - parity : parity);
      sum += reinterpret_cast<const float*>(shared + stage * kChunk)[kThreads - 1 - thread_x()];
      if (p.defect != Defect::reused_early) sync_threads();
      const bool last = round + kRing >= kRounds + (p.defect == Defect::left_over ? 1 : 0);
      if (thread_x() == 0 && !last) ask(p, round + kRing, shared, barriers);
    }
    store(p.out + thread_x(), sum);
  }

 private:
  static void make(const Params& p, CopyBarrier* barriers) {
    const unsigned arrivals = p.defect == Defect::made_for_none ? 0 : 1;
    for (unsigned i = 0; i < kRing; ++i) {
      if (p.defect != Defect::not_made) make_barrier(barriers + i, arrivals);
    }
    if (p.defect == Defect::made_twice) make_barrier(barriers, 1);
    if (p.defect == Defect::misaligned_barrier)
      make_barrier(reinterpret_cast<CopyBarrier*>(reinterpret_cast<std::byte*>(barriers) + 4), 1);
    if (p.defect != Defect::not_fenced) fence_copies();
    if (p.defect == Defect::written_over) barriers[0].state = 0;
  }

  static void ask(const Params& p, unsigned round, std::byte* shared, CopyBarrier* barriers) {
    CopyBarrier* barrier = barriers + round % kRing;
    std::byte* to = shared + round % kRing * kChunk;
    const float* from = p.in + round * Ring::kThreads;
    unsigned bytes = kChunk;
    unsigned expected = kChunk;
    if (p.defect == Defect::expects_fewer) expected -= 16;
    if (p.defect == Defect::expects_more) expected += 16;
    if (p.defect == Defect::expects_too_many) expected = 1U << 20;
    if (p.defect == Defect::odd_size) bytes -= 8;
    if (p.defect == Defect::nothing) bytes = 0;
    if (p.defect == Defect::misaligned_global) from += 2;
    if (p.defect == Defect::misaligned_shared) to += 8;
    if (p.defect == Defect::beyond_shared) to += kShared - kChunk + 16;
    if (p.defect != Defect::expects_nothing) expect_bytes(barrier, expected);
    copy_bulk(to, from, bytes, barrier);
    if (p.defect == Defect::asked_again) {
      expect_bytes(barrier, expected);
      copy_bulk(to, from, bytes, barrier);
    }
  }
};

class CudaBulkCopies : public ::testing::Test {
 protected:
  void run(Executor& executor, Defect defect) {
    executor.run<Ring>({.threads = Ring::kThreads, .shared_bytes = kShared},
                       {.in = in.data(), .out = out.data(), .defect = defect});
  }
  bool right() const {
    for (unsigned t = 0; t < Ring::kThreads; ++t) {
      float sum = 0;
      for (unsigned r = 0; r < kRounds; ++r) sum += in[(r + 1) * Ring::kThreads - 1 - t];
      if (out[t] != sum) return false;
    }
    return true;
  }
  // In every order, or in one at the least, the executor throws with these words.
  void expect_found(Defect defect, const std::string& words, bool in_every_order = true) {
    int found = 0;
    for (const ExecutorOrder& order : kExecutorOrders) {
      Executor executor;
      set_order(executor, order);
      try {
        run(executor, defect);
      } catch (const KernelError& error) {
        EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
        ++found;
      }
    }
    const int orders = static_cast<int>(std::size(kExecutorOrders));
    EXPECT_GE(found, in_every_order ? orders : 1) << words;
  }
  // In one order at the least the results are not what they should be.
  void expect_seen(Defect defect) {
    int wrong = 0;
    for (const ExecutorOrder& order : kExecutorOrders) {
      Executor executor;
      set_order(executor, order);
      try {
        run(executor, defect);
        wrong += right() ? 0 : 1;
      } catch (const KernelError&) {
        ++wrong;
      }
    }
    EXPECT_GT(wrong, 0) << static_cast<int>(defect);
  }

  std::vector<float> in = [] {
    std::vector<float> values((kRounds + 1) * Ring::kThreads);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 97);
    return values;
  }();
  std::vector<float> out = std::vector<float>(Ring::kThreads);
};

TEST_F(CudaBulkCopies, ArriveInEveryOrder) {
  for (const ExecutorOrder& order : kExecutorOrders) {
    Executor executor;
    set_order(executor, order);
    out.assign(out.size(), 0);
    run(executor, Defect::none);
    EXPECT_TRUE(right());
    EXPECT_EQ(executor.traffic().streamed_bytes, kRounds * kChunk);
    EXPECT_EQ(executor.traffic().bytes_read, kRounds * kChunk);
  }
}

TEST_F(CudaBulkCopies, NeedABarrierThatIsMadeAndKnown) {
  expect_found(Defect::not_made, "a barrier of copies that was not made");
  expect_found(Defect::made_twice, "a second time");
  expect_found(Defect::made_for_none, "no such arrivals");
  expect_found(Defect::misaligned_barrier, "makes a barrier of copies at a misaligned address");
  expect_found(Defect::not_fenced, "before a fence");
  expect_found(Defect::written_over, "written over");
  expect_found(Defect::not_met, "not made", false);
}

TEST_F(CudaBulkCopies, BringExactlyTheBytesThatAreExpected) {
  expect_found(Defect::expects_fewer, "expects 16 bytes fewer than are copied");
  expect_found(Defect::expects_more, "for what nothing brings");
  expect_found(Defect::expects_too_many, "more bytes than a barrier of copies counts");
  expect_found(Defect::expects_nothing, "for what nothing brings");
  expect_found(Defect::asked_again, "again before it waits");
}

TEST_F(CudaBulkCopies, AreOfWholeAlignedVectors) {
  expect_found(Defect::odd_size, "no multiple of 16 bytes");
  expect_found(Defect::nothing, "no multiple of 16 bytes");
  expect_found(Defect::misaligned_global, "reads 256 bytes at an address that is not a multiple");
  expect_found(Defect::misaligned_shared, "copies in bulk to a misaligned address");
  expect_found(Defect::beyond_shared, "copies in bulk to an address beyond its block's shared memory");
}

TEST_F(CudaBulkCopies, MustBeWaitedForByWhoReadsThem) {
  expect_seen(Defect::no_wait);
  expect_seen(Defect::other_parity);
  expect_seen(Defect::not_all_wait);
  expect_found(Defect::left_over, "a bulk copy that nothing waits for");
}

TEST_F(CudaBulkCopies, MayNotTakeThePlaceOfWhatIsStillRead) { expect_seen(Defect::reused_early); }

}  // namespace
}  // namespace memwall::cuda
