// The executor finds each defect that is planted in a small kernel, and lets the same kernel pass without it.
#include "tests/cuda/executor.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <memory>
#include <vector>

#include "kernels/cuda/platform.cuh"
#include "tests/cuda/order.h"
#include "tests/cuda/sanitizers.h"

namespace memwall::cuda {
namespace {

struct Params {
  const float* in = nullptr;
  float* out = nullptr;
  int index = 0;
  bool defect = false;
};

constexpr unsigned kTestThreads = 64;

// Runs Kernel::run with and without its defect: the first must throw a KernelError with these words, the
// second must pass.
template <class Kernel>
void expect_found(Params params, unsigned shared_bytes, const std::string& words) {
  Executor executor;
  const Geometry geometry{.grid_x = 2, .threads = Kernel::kThreads, .shared_bytes = shared_bytes};
  for (const ExecutorOrder& order : kExecutorOrders) {
    set_order(executor, order);
    params.defect = false;
    EXPECT_NO_THROW(executor.run<Kernel>(geometry, params));
    params.defect = true;
    try {
      executor.run<Kernel>(geometry, params);
      FAIL() << "not found: " << words;
    } catch (const KernelError& error) {
      EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
    }
  }
}

template <class Kernel>
float result_of(Params params, bool defect, unsigned shared_bytes = 1024) {
  float out = 0;
  params.out = &out;
  params.defect = defect;
  Executor().run<Kernel>({.threads = Kernel::kThreads, .shared_bytes = shared_bytes}, params);
  return out;
}

// --- meetings ---

struct MissedBarrier {
  using Params = cuda::Params;
  static constexpr unsigned kThreads = kTestThreads;
  static void run(const Params& p, std::byte*) {
    if (!p.defect || thread_x() != 5) sync_threads();
    sync_threads();
  }
};
struct EarlyExit {
  using Params = cuda::Params;
  static constexpr unsigned kThreads = kTestThreads;
  static void run(const Params& p, std::byte*) {
    if (p.defect && warp() == 1) return;
    sync_threads();
  }
};
struct MissedShuffle {
  using Params = cuda::Params;
  static constexpr unsigned kThreads = kTestThreads;
  static void run(const Params& p, std::byte*) {
    if (!p.defect || lane() != 31) shuffle_xor(1, 1);
  }
};
struct MissedVote {
  using Params = cuda::Params;
  static constexpr unsigned kThreads = kTestThreads;
  static void run(const Params& p, std::byte*) {
    if (p.defect && lane() == 3) return;
    ballot(true);
  }
};
// A shuffle on one side of a branch, a barrier on the other.
struct CrossedMeetings {
  using Params = cuda::Params;
  static constexpr unsigned kThreads = kTestThreads;
  static void run(const Params& p, std::byte*) {
    if (p.defect && lane() < 16) {
      shuffle_xor(1, 1);
      sync_threads();
    } else {
      sync_threads();
      shuffle_xor(1, 1);
    }
  }
};
template <unsigned Threads>
struct PartialWarp {
  using Params = cuda::Params;
  static constexpr unsigned kThreads = Threads;
  static void run(const Params&, std::byte*) { warp_sum(1); }
};

TEST(CudaExecutor, FindsMeetingsThatNotAllReach) {
  expect_found<MissedBarrier>({}, 0, "a barrier that not all threads");
  expect_found<EarlyExit>({}, 0, "a barrier that not all threads");
  expect_found<MissedShuffle>({}, 0, "not all of its lanes reach");
  expect_found<MissedVote>({}, 0, "not all of its lanes reach");
  expect_found<CrossedMeetings>({}, 0, "not all of its lanes reach");
  Executor executor;
  EXPECT_THROW(executor.run<PartialWarp<48>>({.threads = 48}, {}), KernelError);
  EXPECT_NO_THROW(executor.run<PartialWarp<96>>({.threads = 96}, {}));
}

// Each lane shows two words, or lane 9 one, and reads those of the lane opposite.
struct ShownWords {
  using Params = cuda::Params;
  static constexpr unsigned kThreads = kTestThreads;
  static void run(const Params& p, std::byte*) {
    const std::uint64_t own[2] = {thread_x(), 100 + thread_x()};
    const std::uint64_t* all = HostThread::current()->show(own, p.defect && lane() == 9 ? 1 : 2);
    const unsigned other = 31 - lane();
    if (all[2 * other] != warp() * kWarp + other || all[2 * other + 1] != 100 + warp() * kWarp + other)
      throw std::runtime_error("shown otherwise");
  }
};

TEST(CudaExecutor, WarpsShowEachOtherWords) { expect_found<ShownWords>({}, 0, "fewer or more words"); }

// --- memory ---

struct MisalignedLoad {
  using Params = cuda::Params;
  static constexpr unsigned kThreads = kTestThreads;
  static void run(const Params& p, std::byte*) {
    load(reinterpret_cast<const Vec16*>(p.in + (p.defect ? 1 : 4)));
  }
};
struct MisalignedStore {
  using Params = cuda::Params;
  static constexpr unsigned kThreads = kTestThreads;
  static void run(const Params& p, std::byte*) {
    if (thread_x() == 0 && block_x() == 0) store(reinterpret_cast<Vec8*>(p.out + (p.defect ? 1 : 2)), Vec8{});
  }
};
struct MisalignedCopy {
  using Params = cuda::Params;
  static constexpr unsigned kThreads = kTestThreads;
  static void run(const Params& p, std::byte* shared) {
    copy_async_16(shared + 16 * thread_x() + (p.defect ? 8 : 0), p.in);
    commit_copies();
    wait_copies<0>();
  }
};
struct CopyBeyondShared {
  using Params = cuda::Params;
  static constexpr unsigned kThreads = kTestThreads;
  static void run(const Params& p, std::byte* shared) {
    copy_async_16(shared + 16 * (thread_x() + (p.defect ? 1 : 0)), p.in);
    commit_copies();
    wait_copies<0>();
  }
};
struct CopyWithoutWait {
  using Params = cuda::Params;
  static constexpr unsigned kThreads = kTestThreads;
  static void run(const Params& p, std::byte* shared) {
    copy_async_16(shared + 16 * thread_x(), p.in);
    if (!p.defect) commit_copies();
    wait_copies<0>();
  }
};

TEST(CudaExecutor, FindsMisalignedAndForgottenAccesses) {
  alignas(16) float memory[16] = {};
  expect_found<MisalignedLoad>({.in = memory}, 0, "reads 16 bytes at an address");
  expect_found<MisalignedStore>({.out = memory}, 0, "writes 8 bytes at an address");
  expect_found<MisalignedCopy>({.in = memory}, 16 * kTestThreads + 16, "misaligned");
  expect_found<CopyBeyondShared>({.in = memory}, 16 * kTestThreads, "beyond its block's shared memory");
  expect_found<CopyWithoutWait>({.in = memory}, 16 * kTestThreads, "nothing waits for");
}

#if defined(__SANITIZE_ADDRESS__)
// Shared memory is read without a function between: there the undefined-behaviour sanitizer, which the dev
// build has beside the address sanitizer, sees what a GPU would trap on.
struct MisalignedShared {
  using Params = cuda::Params;
  static constexpr unsigned kThreads = kTestThreads;
  static void run(const Params& p, std::byte* shared) {
    const Vec16 v = *reinterpret_cast<const Vec16*>(shared + (p.defect ? 4 : 16));
    if (v.word[0] == 1 && thread_x() == 0) store(p.out, 1.0F);
  }
};

TEST(CudaExecutor, FindsMisalignedReadsOfSharedMemory) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EQ(result_of<MisalignedShared>({}, false), 0);
  EXPECT_DEATH(result_of<MisalignedShared>({}, true), "misaligned address");
}
#endif

// Writes one byte behind, or before, a shared memory of no round size.
struct BeyondShared {
  using Params = cuda::Params;
  static constexpr unsigned kThreads = kTestThreads;
  static void run(const Params& p, std::byte* shared) {
    if (thread_x() == 7 && p.defect) *const_cast<volatile std::byte*>(shared + p.index) = std::byte{1};
  }
};

TEST(CudaExecutor, FindsWritesBeyondSharedMemory) {
  const auto run = [](int index) {
    Executor().run<BeyondShared>({.threads = kTestThreads, .shared_bytes = 1001},
                                 {.index = index, .defect = true});
  };
  EXPECT_NO_THROW(run(0));
  EXPECT_NO_THROW(run(1000));
#if defined(__SANITIZE_ADDRESS__)
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(run(1001), "use-after-poison");
  EXPECT_DEATH(run(-1), "use-after-poison");
#else
  EXPECT_THROW(run(1001), KernelError);
  EXPECT_THROW(run(-1), KernelError);
  EXPECT_THROW(run(1001 + 2000), KernelError);
#endif
}

// Sums 256 floats of shared memory, one of which nobody wrote.
struct UnwrittenShared {
  using Params = cuda::Params;
  static constexpr unsigned kThreads = kTestThreads;
  static void run(const Params& p, std::byte* shared) {
    auto* values = reinterpret_cast<float*>(shared);
    for (unsigned i = thread_x(); i < 256; i += kThreads) {
      if (!p.defect || i != 201) values[i] = 1;
    }
    sync_threads();
    float sum = 0;
    for (unsigned i = lane(); i < 256; i += kWarp) sum += values[i];
    sum = warp_sum(sum);
    if (thread_x() == 0) store(p.out, sum);
  }
};
// The same in registers: the tests fill uninitialised variables with a pattern (tests/CMakeLists.txt).
struct UnwrittenRegister {
  using Params = cuda::Params;
  static constexpr unsigned kThreads = kTestThreads;
  static __attribute__((noinline)) void set(float* values, int but) {
    for (int i = 0; i < 4; ++i) {
      if (i != but) values[i] = 1;
    }
  }
  static void run(const Params& p, std::byte*) {
    float values[4];
    set(values, p.defect ? 2 : -1);
    const float sum = warp_sum(values[0] + values[1] + values[2] + values[3]);
    if (thread_x() == 0) store(p.out, sum);
  }
};
// Reads a copy's target before the wait, or before the other threads' copies are known to be there.
struct CopyReadEarly {
  using Params = cuda::Params;
  static constexpr unsigned kThreads = kTestThreads;
  static void run(const Params& p, std::byte* shared) {
    auto* values = reinterpret_cast<float*>(shared);
    for (unsigned i = 0; i < 4; ++i) values[4 * thread_x() + i] = 5;
    copy_async_16(shared + 16 * thread_x(), p.in);
    commit_copies();
    if (!p.defect || p.index == 1) wait_copies<0>();
    if (!p.defect) sync_threads();
    if (thread_x() == 0) store(p.out, p.index == 1 ? values[4 * 63] : values[0]);
    wait_copies<0>();
  }
};
// Two groups in flight, of which a wait covers the first.
struct CopiesInGroups {
  using Params = cuda::Params;
  static constexpr unsigned kThreads = 32;
  static void run(const Params& p, std::byte* shared) {
    for (unsigned g = 0; g < 2; ++g) {
      copy_async_16(shared + 16 * (32 * g + thread_x()), p.in);
      commit_copies();
    }
    wait_copies<1>();
    if (thread_x() == 0) store(p.out, reinterpret_cast<float*>(shared)[p.defect ? 128 : 0]);
    wait_copies<0>();
  }
};

TEST(CudaExecutor, ShowsWhatWasNotWrittenAsNaN) {
  alignas(16) const float ones[4] = {1, 1, 1, 1};
  EXPECT_TRUE(std::isnan(result_of<UnwrittenShared>({}, true)));
  EXPECT_EQ(result_of<UnwrittenShared>({}, false), 256);
  EXPECT_TRUE(std::isnan(result_of<CopyReadEarly>({.in = ones}, true)));
  EXPECT_TRUE(std::isnan(result_of<CopyReadEarly>({.in = ones, .index = 1}, true)) ||
              result_of<CopyReadEarly>({.in = ones, .index = 1}, true) == 5);
  EXPECT_EQ(result_of<CopyReadEarly>({.in = ones}, false), 1);
  EXPECT_EQ(result_of<CopyReadEarly>({.in = ones, .index = 1}, false), 1);
  EXPECT_TRUE(std::isnan(result_of<CopiesInGroups>({.in = ones}, true)));
  EXPECT_EQ(result_of<CopiesInGroups>({.in = ones}, false), 1);
}

TEST(CudaExecutor, FillsRegistersThatWereNotWritten) {
  EXPECT_EQ(result_of<UnwrittenRegister>({}, false), 4 * 32);
#ifdef MEMWALL_FILLED_REGISTERS
  EXPECT_LT(result_of<UnwrittenRegister>({}, true), -1e30F);
#endif
}

// --- orders ---

// Each thread reads what its neighbour writes, with a barrier or without.
struct Neighbours {
  using Params = cuda::Params;
  static constexpr unsigned kThreads = kTestThreads;
  static void run(const Params& p, std::byte* shared) {
    auto* values = reinterpret_cast<float*>(shared);
    values[thread_x()] = static_cast<float>(thread_x());
    if (!p.defect) sync_threads();
    store(p.out + thread_x(), values[(thread_x() + 1) % kThreads]);
  }
};
// Blocks that write the same place.
struct LastBlockWins {
  using Params = cuda::Params;
  static constexpr unsigned kThreads = kTestThreads;
  static void run(const Params& p, std::byte*) {
    if (thread_x() == 0) store(p.out + (p.defect ? 0 : block_x()), static_cast<float>(block_x()));
  }
};

TEST(CudaExecutor, FindsWhatDependsOnTheOrder) {
  Executor executor;
  std::vector<float> out(kTestThreads, 0);
  const std::vector<MemoryRange> outputs = {{out.data(), out.size() * sizeof(float)}};
  for (const bool defect : {false, true}) {
    const Params params{.out = out.data(), .defect = defect};
    EXPECT_EQ(order_independent(executor, outputs,
                                [&] {
                                  executor.run<Neighbours>(
                                      {.threads = kTestThreads, .shared_bytes = 4 * kTestThreads}, params);
                                }),
              !defect);
    EXPECT_EQ(order_independent(
                  executor, outputs,
                  [&] { executor.run<LastBlockWins>({.grid_x = 3, .threads = kTestThreads}, params); }),
              !defect);
  }
}

// --- limits ---

struct Nothing {
  using Params = cuda::Params;
  static constexpr unsigned kThreads = 1024;
  static void run(const Params&, std::byte*) {}
};

TEST(CudaExecutor, HoldsLaunchesToTheArchitecturesLimits) {
  Executor executor;
  const Geometry fits{.threads = 1024, .shared_bytes = 48 << 10};
  EXPECT_NO_THROW(executor.run<Nothing>(fits, {}));
  const auto refused = [&](auto change) {
    Geometry geometry = fits;
    change(geometry);
    EXPECT_THROW(executor.run<Nothing>(geometry, {}), KernelError);
  };
  refused([](Geometry& g) { g.threads = 512; });
  refused([](Geometry& g) { g.shared_bytes += 1; });
  refused([](Geometry& g) { g.grid_x = 0; });
  refused([](Geometry& g) { g.grid_y = 65536; });
  refused([](Geometry& g) { g.grid_z = 65536; });
  refused([](Geometry& g) { g.grid_x = 2147483648U; });
  executor.settings().arch.threads_a_block = 512;
  EXPECT_THROW(executor.run<Nothing>(fits, {}), KernelError);
}

TEST(CudaExecutor, HoldsRegistersToWhatABlockGets) {
  Executor executor;
  const Geometry geometry{.threads = 1024};
  const std::string name = kernel_name(typeid(Nothing));
  EXPECT_NE(name.find("Nothing"), std::string::npos);
  executor.settings().registers[name] = 64;
  EXPECT_NO_THROW(executor.run<Nothing>(geometry, {}));
  executor.settings().registers[name] = 65;
  EXPECT_THROW(executor.run<Nothing>(geometry, {}), KernelError);
  EXPECT_TRUE(registers_fit({}, 256, 255));
  EXPECT_FALSE(registers_fit({}, 32, 256));
}

// --- traffic ---

// Lane l of each warp reads its float at l * stride, twice where `defect`, and warps 1 and up write it.
struct Strided {
  using Params = cuda::Params;
  static constexpr unsigned kThreads = kTestThreads;
  static void run(const Params& p, std::byte*) {
    const float value = load_streaming(p.in + thread_x() * static_cast<unsigned>(p.index));
    if (p.defect) load(p.in + thread_x() * static_cast<unsigned>(p.index));
    if (warp() > 0) store(p.out + thread_x(), value);
  }
};

TEST(CudaExecutor, CountsBytesSectorsAndReads) {
  alignas(32) float in[8 * kTestThreads] = {};
  alignas(32) float out[kTestThreads] = {};
  Executor executor;
  const auto traffic = [&](int stride, bool twice) {
    executor.forget_traffic();
    executor.run<Strided>({.threads = kTestThreads},
                          {.in = in, .out = out, .index = stride, .defect = twice});
    return executor.traffic();
  };
  EXPECT_EQ(traffic(1, false), (Traffic{256, 8, 256, 8, 128, 4}));
  EXPECT_EQ(traffic(2, false), (Traffic{256, 16, 256, 16, 128, 4}));
  EXPECT_EQ(traffic(8, false), (Traffic{256, 64, 256, 64, 128, 4}));
  executor.watch(in, 256);
  EXPECT_EQ(traffic(1, true), (Traffic{512, 16, 256, 8, 128, 4}));
  EXPECT_EQ(executor.watched().least, 2U);
  EXPECT_EQ(executor.watched().most, 2U);
  executor.watch(in, 512);
  traffic(1, false);
  EXPECT_EQ(executor.watched().least, 0U);
  EXPECT_EQ(executor.watched().most, 1U);
  executor.settings().count_traffic = false;
  EXPECT_EQ(traffic(1, false), Traffic{});
}

// --- kernels that fail ---

struct Throws {
  using Params = cuda::Params;
  static constexpr unsigned kThreads = kTestThreads;
  static void run(const Params& p, std::byte*) {
    const std::vector<int> held(100);  // which every thread must give back
    sync_threads();
    if (p.defect && thread_x() == 40) throw std::runtime_error("of a kernel");
    sync_threads();
  }
};

TEST(CudaExecutor, UnwindsAllThreadsWhenOneFails) {
  Executor executor;
  const Geometry geometry{.grid_x = 2, .threads = kTestThreads};
  for (int i = 0; i < 3; ++i) {
    EXPECT_THROW(executor.run<Throws>(geometry, {.defect = true}), std::runtime_error);
    EXPECT_NO_THROW(executor.run<Throws>(geometry, {.defect = false}));
  }
}

struct TenBarriers {
  using Params = cuda::Params;
  static constexpr unsigned kThreads = 256;
  static void run(const Params&, std::byte*) {
    for (int i = 0; i < 10; ++i) sync_threads();
  }
};

// A hundred blocks in far less than a second, or tests of kernels would take minutes.
TEST(CudaExecutor, IsFast) {
  const auto start = std::chrono::steady_clock::now();
  Executor().run<TenBarriers>({.grid_x = 100, .threads = 256}, {});
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  RecordProperty("seconds", std::to_string(seconds.count()));
  EXPECT_LT(seconds.count(), 5);
}

}  // namespace
}  // namespace memwall::cuda
