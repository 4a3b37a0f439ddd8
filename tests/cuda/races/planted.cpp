// What the search for races must find.
#include <cstdio>
#include <vector>

#include "kernels/cuda/bulk_copy.cuh"
#include "tests/cuda/executor.h"
#include "tests/cuda/races/races.h"

namespace memwall::cuda {
namespace {

struct Params {
  float* out = nullptr;
  unsigned* counter = nullptr;
};

constexpr unsigned kThreadsABlock = 64;

// Each thread reads what another one of its block wrote.
template <bool Defect>
struct WithoutBarrier {
  using Params = cuda::Params;
  static constexpr unsigned kThreads = kThreadsABlock;
  static void run(const Params& p, std::byte* shared) {
    auto* values = reinterpret_cast<float*>(shared);
    values[thread_x()] = 1;
    if (!Defect) sync_threads();
    store(p.out + block_x() * kThreads + thread_x(), values[(thread_x() + 33) % kThreads]);
  }
};

// Writes again before all have read: a barrier is missing at the end of the loop.
template <bool Defect>
struct WithoutSecondBarrier {
  using Params = cuda::Params;
  static constexpr unsigned kThreads = kThreadsABlock;
  static void run(const Params& p, std::byte* shared) {
    auto* values = reinterpret_cast<float*>(shared);
    float sum = 0;
    for (int i = 0; i < 3; ++i) {
      values[thread_x()] = static_cast<float>(i);
      sync_threads();
      sum += values[(thread_x() + 33) % kThreads];
      if (!Defect) sync_threads();
    }
    store(p.out + block_x() * kThreads + thread_x(), sum);
  }
};

// Within a warp, where a shuffle is no barrier for memory.
template <bool Defect>
struct WithoutWarpBarrier {
  using Params = cuda::Params;
  static constexpr unsigned kThreads = kThreadsABlock;
  static void run(const Params& p, std::byte* shared) {
    auto* values = reinterpret_cast<float*>(shared) + warp() * kWarp;
    values[lane()] = 1;
    if (Defect) {
      shuffle_xor(1, 1);
    } else {
      sync_warp();
    }
    store(p.out + block_x() * kThreads + thread_x(), values[lane() ^ 1]);
  }
};

// A warp's barrier orders its own lanes alone.
template <bool Defect>
struct WarpBarrierForABlock {
  using Params = cuda::Params;
  static constexpr unsigned kThreads = kThreadsABlock;
  static void run(const Params& p, std::byte* shared) {
    auto* values = reinterpret_cast<float*>(shared);
    values[thread_x()] = 1;
    sync_warp();
    store(p.out + block_x() * kThreads + thread_x(), values[thread_x() ^ (Defect ? 32U : 1U)]);
  }
};

// Copies that their own thread has waited for, read by another.
template <bool Defect>
struct CopyWithoutBarrier {
  using Params = cuda::Params;
  static constexpr unsigned kThreads = kThreadsABlock;
  static void run(const Params& p, std::byte* shared) {
    copy_async_16(shared + 16 * thread_x(), p.out);
    commit_copies();
    wait_copies<0>();
    if (!Defect) sync_threads();
    const float value = reinterpret_cast<const float*>(shared)[4 * ((thread_x() + 33) % kThreads)];
    if (value == 12345) store(p.out + 4 + thread_x(), value);
  }
};

// Two chunks in one place, the second asked for before all have read the first.
template <bool Defect>
struct BulkCopyOverWhatIsRead {
  using Params = cuda::Params;
  static constexpr unsigned kThreads = kThreadsABlock;
  static void run(const Params& p, std::byte* shared) {
    auto* barriers = reinterpret_cast<CopyBarrier*>(shared + 4 * kThreads);
    const auto ask = [&](unsigned round) {
      fence_copies();
      expect_bytes(barriers + round, 4 * kThreads);
      copy_bulk(shared, p.out, 4 * kThreads, barriers + round);
    };
    if (thread_x() == 0) {
      for (unsigned round = 0; round < 2; ++round) make_barrier(barriers + round, 1);
      ask(0);
    }
    sync_threads();
    float sum = 0;
    for (unsigned round = 0; round < 2; ++round) {
      wait_for_bytes(barriers + round, 0);
      sum += reinterpret_cast<const float*>(shared)[thread_x()];
      if (!Defect) sync_threads();
      if (thread_x() == 0 && round == 0) ask(1);
    }
    if (sum == 12345) store(p.out + 4 + thread_x(), sum);
  }
};

// Half the threads wait for the chunk, all read it.
template <bool Defect>
struct BulkCopyWithoutWait {
  using Params = cuda::Params;
  static constexpr unsigned kThreads = kThreadsABlock;
  static void run(const Params& p, std::byte* shared) {
    auto* barrier = reinterpret_cast<CopyBarrier*>(shared + 4 * kThreads);
    if (thread_x() == 0) make_barrier(barrier, 1);
    sync_threads();
    if (thread_x() == 0) {
      fence_copies();
      expect_bytes(barrier, 4 * kThreads);
      copy_bulk(shared, p.out, 4 * kThreads, barrier);
    }
    if (!Defect || warp() == 0) wait_for_bytes(barrier, 0);
    const float value = reinterpret_cast<const float*>(shared)[thread_x()];
    if (value == 12345) store(p.out + 4 + thread_x(), value);
  }
};

// The last block adds up what all have left: the others' writes are ordered before it by the counter.
template <bool Defect>
struct LastBlockAddsUp {
  using Params = cuda::Params;
  static constexpr unsigned kThreads = kThreadsABlock;
  static void run(const Params& p, std::byte* shared) {
    auto* last = reinterpret_cast<unsigned*>(shared);
    store(p.out + block_x() * kThreads + thread_x(), 1.0F);
    sync_threads();
    if (thread_x() == 0) *last = Defect ? block_x() : fetch_add(p.counter, 1U);
    sync_threads();
    if (*last != grid_x() - 1) return;
    float sum = 0;
    for (unsigned b = 0; b < grid_x(); ++b) sum += load(p.out + b * kThreads + (thread_x() + 1) % kThreads);
    sync_threads();
    store(p.out + thread_x(), sum);
  }
};

// Two blocks write the same place.
template <bool Defect>
struct BlocksThatOverlap {
  using Params = cuda::Params;
  static constexpr unsigned kThreads = kThreadsABlock;
  static void run(const Params& p, std::byte*) {
    store(p.out + block_x() * (kThreads - (Defect ? 1 : 0)) + thread_x(), 1.0F);
  }
};

template <template <bool> class Kernel>
bool found(const char* name) {
  constexpr Geometry kGeometry{.grid_x = 2, .threads = kThreadsABlock, .shared_bytes = 16 * kThreadsABlock};
  const auto reports = [&]<bool Defect>() {
    const int before = races_reported();
    std::vector<float> out(4 * kThreadsABlock);
    unsigned counter = 0;
    Executor().run<Kernel<Defect>>(kGeometry, {.out = out.data(), .counter = &counter});
    return races_reported() - before;
  };
  const int without = reports.template operator()<false>();
  const int with = reports.template operator()<true>();
  if (without == 0 && with > 0) return true;
  std::printf("%s: %d races found with the defect, %d without\n", name, with, without);
  return false;
}

}  // namespace

bool planted_races_are_found() {
  bool all = found<WithoutBarrier>("a missing barrier");
  all = found<WithoutSecondBarrier>("a missing second barrier") && all;
  all = found<WithoutWarpBarrier>("a missing warp barrier") && all;
  all = found<WarpBarrierForABlock>("a warp barrier instead of a block's") && all;
  all = found<CopyWithoutBarrier>("a copy read by another thread") && all;
  all = found<BulkCopyOverWhatIsRead>("a bulk copy over what is read") && all;
  all = found<BulkCopyWithoutWait>("a bulk copy that not all wait for") && all;
  all = found<LastBlockAddsUp>("a last block that nothing orders") && all;
  all = found<BlocksThatOverlap>("blocks that overlap") && all;
  return all;
}

}  // namespace memwall::cuda
