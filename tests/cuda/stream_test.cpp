#include "kernels/cuda/stream.cuh"

#include <gtest/gtest.h>

#include <vector>

#include "kernels/cuda/fill.cuh"
#include "tests/cuda/element_support.h"
#include "tests/cuda/stream_support.h"

namespace memwall::cuda {
namespace {

constexpr int kMultiprocessors = 1;

struct Architecture {
  int major;
  int minor;
};
constexpr Architecture kArchitectures[] = {{7, 5}, {8, 0}, {8, 6}, {8, 9}, {9, 0}, {10, 0}, {12, 0}, {13, 0}};

ArchLimits limits(Architecture of) {
  ArchLimits limits{.major = of.major, .minor = of.minor};
  limits.threads_a_multiprocessor = threads_a_multiprocessor(of.major, of.minor);
  return limits;
}

struct RandomWord {
  std::uint32_t keep = ~std::uint32_t{0};
  std::uint32_t set = 0;
};

// Small whole numbers, so that f32's sums are exact.
void expect_sum(Executor& executor, StreamLaunch launch, StreamGrid grid, std::int64_t vectors) {
  GpuVector<float> a;
  double expected = 0;
  for (std::int64_t i = 0; i < 4 * vectors; ++i) {
    a.push_back(static_cast<float>(i % 7 - 2));
    expected += static_cast<double>(a.back());
  }
  launch.params.a = a.data();
  launch.params.vectors = vectors;
  launch = with_geometry(launch, grid, executor.settings().arch, kMultiprocessors);
  GpuVector<float> sums = nan_elements<float>(launch.geometry.grid_x);
  launch.params.sums = sums.data();
  executor.forget_traffic();
  executor.watch(a.data(), a.size() * sizeof(float));
  run_on(executor, launch);
  double sum = 0;
  for (const float part : sums) sum += static_cast<double>(part);
  EXPECT_EQ(sum, expected) << static_cast<int>(launch.path) << ", " << launch.unroll << " of " << vectors;
  EXPECT_EQ(executor.watched().least, 1U);
  EXPECT_EQ(executor.watched().most, 1U);
  EXPECT_EQ(executor.traffic().streamed_bytes, 16 * vectors);
  // Whole sectors; an odd number of vectors ends in half of one.
  EXPECT_EQ(executor.traffic().streamed_sectors, (vectors + 1) / 2);
}

TEST(CudaStream, ReadsSumEverythingOnce) {
  for (const StreamLaunch& launch : stream_reads()) {
    for (const StreamGrid grid : {StreamGrid::persistent, StreamGrid::one_pass}) {
      if (grid == StreamGrid::one_pass && launch.path != ReadPath::loads) continue;
      // Less than a warp, a block's batch or ring and a bit, more than twice that of the whole grid.
      const std::int64_t batch = launch.path == ReadPath::loads
                                     ? std::int64_t{launch.threads} * stream_unroll(launch)
                                     : kRingBytes / 16;
      const std::int64_t resident = resident_stream_blocks(launch, 9, 0);
      for (const std::int64_t vectors : {std::int64_t{31}, batch + 33, 2 * batch * resident + 1007}) {
        in_all_orders([&](Executor& executor) { expect_sum(executor, launch, grid, vectors); });
      }
    }
  }
}

// Where fewer blocks are resident, and others begin the ring's last round.
TEST(CudaStream, ReadsSumEverythingOnOtherArchitectures) {
  for (const Architecture& of : kArchitectures) {
    Executor executor({.arch = limits(of)});
    for (const StreamLaunch& launch : stream_reads()) {
      if (!stream_takes(launch, of.major, of.minor)) continue;
      for (const std::int64_t vectors : {511, 2048, 9001}) {
        expect_sum(executor, launch, StreamGrid::persistent, vectors);
      }
    }
  }
}

template <class T>
void writes(Executor& executor, StreamKind kind, StreamType type, bool streaming, StreamGrid grid,
            std::int64_t vectors, std::int64_t tail, bool full = false) {
  const std::int64_t count = vectors * kInVector<T> + tail;
  const GpuVector<T> a = random_elements<T>(count, 1);
  const GpuVector<T> b = random_elements<T>(count, 2);
  GpuVector<T> c = nan_elements<T>(count);
  StreamLaunch launch;
  launch.kind = kind;
  launch.type = type;
  launch.full = full;
  launch.streaming = streaming;
  launch.params.a = a.data();
  launch.params.b = b.data();
  launch.params.c = c.data();
  launch.params.vectors = vectors;
  launch.params.tail = tail;
  launch = with_geometry(launch, grid, executor.settings().arch, kMultiprocessors);
  executor.forget_traffic();
  executor.watch(a.data(), a.size() * sizeof(T));
  run_on(executor, launch);
  EXPECT_EQ(executor.watched().least, 1U);
  EXPECT_EQ(executor.watched().most, 1U);
  const bool two = kind == StreamKind::add || kind == StreamKind::triad;
  const auto bytes = static_cast<std::int64_t>(a.size() * sizeof(T));
  EXPECT_EQ(executor.traffic().bytes_written, bytes);
  EXPECT_EQ(executor.traffic().streamed_bytes, two ? 2 * bytes : bytes);
  if (tail == 0 && vectors % 2 == 0) {
    EXPECT_EQ(executor.traffic().sectors_written * 32, bytes);
    EXPECT_EQ(executor.traffic().streamed_sectors * 32, executor.traffic().streamed_bytes);
  }
  Comparison comparison;
  for (std::size_t i = 0; i < c.size(); ++i) {
    double expected = exact(a[i]);
    if (kind == StreamKind::scale) expected *= 0.4;
    if (kind == StreamKind::add) expected += exact(b[i]);
    if (kind == StreamKind::triad) expected += 0.4 * exact(b[i]);
    const double tolerance =
        kind == StreamKind::copy ? 1e-300 : element_tolerance<T>(expected, 0) + std::ldexp(1.0, -24);
    comparison.add(exact(c[i]), expected, tolerance);
  }
  EXPECT_LE(comparison.result().worst, 1);
}

TEST(CudaStream, PatternsWriteEveryElementOnce) {
  in_all_orders([](Executor& executor) {
    for (const StreamKind kind : {StreamKind::copy, StreamKind::scale, StreamKind::add, StreamKind::triad}) {
      for (const bool streaming : {false, true}) {
        writes<float>(executor, kind, StreamType::f32, streaming, StreamGrid::persistent, 3074, 0);
        writes<float>(executor, kind, StreamType::f32, streaming, StreamGrid::one_pass, 4099, 3);
        writes<float>(executor, kind, StreamType::f32, streaming, StreamGrid::persistent, 9003, 0, true);
        writes<float>(executor, kind, StreamType::f32, streaming, StreamGrid::one_pass, 6146, 1, true);
      }
    }
    for (const std::int64_t vectors : {0, 6, 1027}) {
      writes<Half>(executor, StreamKind::add, StreamType::f16, false, StreamGrid::one_pass, vectors, 7);
      writes<BFloat16>(executor, StreamKind::add, StreamType::bf16, true, StreamGrid::persistent, vectors, 1);
      writes<BFloat16>(executor, StreamKind::add, StreamType::bf16, false, StreamGrid::persistent, 64, 0);
      writes<Half>(executor, StreamKind::add, StreamType::f16, true, StreamGrid::persistent, vectors, 2);
    }
  });
}

void expect_grid(const StreamLaunch& kernel, const ArchLimits& arch, int multiprocessors) {
  const std::int64_t resident =
      std::int64_t{multiprocessors} * resident_stream_blocks(kernel, arch.major, arch.minor);
  // What a block takes before another block gets any.
  const std::int64_t once = kernel.path == ReadPath::bulk ? kRingBytes / 16 / kernel.unroll : kernel.threads;
  for (std::int64_t vectors = 1; vectors < std::int64_t{1} << 36; vectors = vectors * 5 + 3) {
    const auto blocks = [&](StreamGrid grid) -> std::int64_t {
      StreamLaunch launch = kernel;
      launch.params.vectors = vectors;
      return with_geometry(launch, grid, arch, multiprocessors).geometry.grid_x;
    };
    EXPECT_LE(blocks(StreamGrid::persistent), resident);
    // A card with room left leaves no block with two while another has none.
    if (vectors <= resident * once) {
      EXPECT_GE(blocks(StreamGrid::persistent) * once, vectors);
    } else {
      EXPECT_EQ(blocks(StreamGrid::persistent), resident);
    }
    EXPECT_LT(blocks(StreamGrid::one_pass), std::int64_t{1} << 31);
    if (kernel.path == ReadPath::loads) {
      EXPECT_GE(blocks(StreamGrid::one_pass) * kernel.threads * stream_unroll(kernel), vectors);
    } else {
      EXPECT_EQ(blocks(StreamGrid::one_pass), blocks(StreamGrid::persistent));
    }
  }
}

TEST(CudaStream, GridsFillTheCardAndCoverTheArray) {
  for (const StreamLaunch& kernel : stream_kernels()) {
    for (const Architecture& of : kArchitectures) {
      if (!stream_takes(kernel, of.major, of.minor)) continue;
      for (const int multiprocessors : {1, 30, 132, 188}) expect_grid(kernel, limits(of), multiprocessors);
    }
  }
}

// CUDA C++ programming guide, "Technical Specifications per Compute Capability": threads, blocks and bytes of
// shared memory a multiprocessor.
TEST(CudaStream, ResidentBlocksFitTheMultiprocessor) {
  struct Room {
    Architecture of;
    int threads;
    int blocks;
    int shared;
  };
  constexpr Room kRooms[] = {{{7, 5}, 1024, 16, 64 << 10},  {{8, 0}, 2048, 32, 164 << 10},
                             {{8, 6}, 1536, 16, 100 << 10}, {{8, 9}, 1536, 24, 100 << 10},
                             {{9, 0}, 2048, 32, 228 << 10}, {{10, 0}, 2048, 32, 228 << 10},
                             {{12, 0}, 1536, 24, 100 << 10}};
  for (const Room& room : kRooms) {
    for (StreamLaunch kernel : stream_kernels()) {
      if (!stream_takes(kernel, room.of.major, room.of.minor)) continue;
      const int blocks = resident_stream_blocks(kernel, room.of.major, room.of.minor);
      const int threads = blocks * static_cast<int>(kernel.threads);
      EXPECT_LE(threads, room.threads);
      EXPECT_LE(blocks, room.blocks);
      if (kernel.full) {
        EXPECT_EQ(threads, room.threads);
      }
      kernel.params.vectors = 1;
      const Geometry geometry = with_geometry(kernel, StreamGrid::persistent, limits(room.of), 1).geometry;
      // 1 KiB of each block is the system's (the same guide, "Shared Memory" of 8.x and later).
      EXPECT_LE(blocks * (static_cast<int>(geometry.shared_bytes) + 1024), room.shared);
      EXPECT_LE(geometry.shared_bytes, 48U << 10);
      EXPECT_GE(blocks, 1);
      // By Little's law, see resident_stream_blocks: what a multiprocessor has in flight of a read.
      if (kernel.kind != StreamKind::read) continue;
      const int loads = threads * stream_unroll(kernel) * 16;
      EXPECT_GE(kernel.path == ReadPath::loads ? loads : blocks * kRingBytes, 64 << 10);
    }
  }
}

TEST(CudaStream, ArchitecturesTakeWhatTheyHave) {
  const auto takes = [](const StreamLaunch& launch, Architecture of) {
    return stream_takes(launch, of.major, of.minor);
  };
  for (const Architecture& of : kArchitectures) {
    EXPECT_TRUE(takes({}, of));
    EXPECT_EQ(takes({.path = ReadPath::copies}, of), of.major >= 8);
    EXPECT_EQ(takes({.path = ReadPath::bulk}, of), of.major >= 9);
    EXPECT_EQ(takes({.full = true}, of), of.major >= 8);
  }
}

TEST(CudaFill, WordsDependOnSeedAndIndexAlone) {
  std::vector<std::uint32_t> whole(5000);
  Executor executor;
  const auto fill = [&](void* data, std::int64_t bytes, std::uint64_t seed, RandomWord word) {
    FillParams params;
    params.data = static_cast<std::uint32_t*>(data);
    params.bytes = bytes;
    params.seed = seed;
    params.keep = word.keep;
    params.set = word.set;
    run_on(executor, fill_launch(params));
  };
  fill(whole.data(), 20000, 3, {});
  // Of 18 bytes the last two are part of a word.
  std::vector<std::uint8_t> part(18);
  fill(part.data(), 18, 3, {});
  EXPECT_EQ(std::memcmp(part.data(), whole.data(), part.size()), 0);
  // Bits are even: 160000 of them, three standard deviations are 600.
  std::int64_t ones = 0;
  for (const std::uint32_t word : whole) ones += __builtin_popcount(word);
  EXPECT_NEAR(static_cast<double>(ones), 80000, 600);
  std::vector<std::uint32_t> other(5000);
  fill(other.data(), 20000, 4, {});
  EXPECT_NE(whole, other);
  fill(other.data(), 20000, 3, {0x81FFFFFFU, 0x3E000000U});
  for (std::size_t i = 0; i < other.size(); ++i) ASSERT_EQ(other[i], (whole[i] & 0x81FFFFFFU) | 0x3E000000U);
}

}  // namespace
}  // namespace memwall::cuda
