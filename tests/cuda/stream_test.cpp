#include "kernels/cuda/stream.cuh"

#include <gtest/gtest.h>

#include <tuple>

#include "kernels/cuda/fill.cuh"
#include "tests/cuda/element_support.h"

namespace memwall::cuda {
namespace {

constexpr int kMultiprocessors = 1;

struct RandomWord {
  std::uint32_t keep = ~std::uint32_t{0};
  std::uint32_t set = 0;
};

TEST(CudaStream, ReadsSumEverythingOnce) {
  for (const int unroll : {4, 8, 16}) {
    for (const StreamGrid grid : {StreamGrid::persistent, StreamGrid::one_pass}) {
      // Less than a warp, a block's batch and a bit, more than a batch of the whole grid.
      for (const std::int64_t vectors : {31, 256 * unroll + 33, 1024 * unroll + 7}) {
        in_all_orders([&](Executor& executor) {
          // Small whole numbers, so that f32's sums are exact.
          GpuVector<float> a;
          double expected = 0;
          for (std::int64_t i = 0; i < 4 * vectors; ++i) {
            a.push_back(static_cast<float>(i % 7 - 2));
            expected += static_cast<double>(a.back());
          }
          StreamLaunch launch;
          launch.unroll = unroll;
          launch.params.a = a.data();
          launch.params.vectors = vectors;
          launch = with_geometry(launch, grid, kMultiprocessors);
          GpuVector<float> sums = nan_elements<float>(launch.geometry.grid_x);
          launch.params.sums = sums.data();
          executor.watch(a.data(), a.size() * sizeof(float));
          run_on(executor, launch);
          double sum = 0;
          for (const float part : sums) sum += static_cast<double>(part);
          EXPECT_EQ(sum, expected) << unroll << " loads of " << vectors;
          EXPECT_EQ(executor.watched().least, 1U);
          EXPECT_EQ(executor.watched().most, 1U);
          EXPECT_EQ(executor.traffic().streamed_bytes, 16 * vectors);
          // Whole sectors; an odd number of vectors ends in half of one.
          EXPECT_EQ(executor.traffic().streamed_sectors, (vectors + 1) / 2);
        });
      }
    }
  }
}

template <class T>
void writes(Executor& executor, StreamKind kind, StreamType type, bool streaming, StreamGrid grid,
            std::int64_t vectors, std::int64_t tail) {
  const std::int64_t count = vectors * kInVector<T> + tail;
  const GpuVector<T> a = random_elements<T>(count, 1);
  const GpuVector<T> b = random_elements<T>(count, 2);
  GpuVector<T> c = nan_elements<T>(count);
  StreamLaunch launch;
  launch.kind = kind;
  launch.type = type;
  launch.streaming = streaming;
  launch.params.a = a.data();
  launch.params.b = b.data();
  launch.params.c = c.data();
  launch.params.vectors = vectors;
  launch.params.tail = tail;
  launch = with_geometry(launch, grid, kMultiprocessors);
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

TEST(CudaStream, GridsFillTheCardAndCoverTheArray) {
  for (const auto& [kind, unroll] :
       {std::tuple{StreamKind::read, 4}, std::tuple{StreamKind::read, 8}, std::tuple{StreamKind::read, 16},
        std::tuple{StreamKind::triad, kWriteUnroll}}) {
    for (const int multiprocessors : {1, 30, 132, 188}) {
      const std::int64_t resident = std::int64_t{multiprocessors} * resident_stream_blocks(kind, unroll);
      // On every architecture: 1024 threads a multiprocessor at the least.
      EXPECT_LE(resident_stream_blocks(kind, unroll) * kStreamThreads, 1024U);
      for (std::int64_t vectors = 1; vectors < std::int64_t{1} << 36; vectors = vectors * 5 + 3) {
        const auto blocks = [&](StreamGrid grid) -> std::int64_t {
          return stream_blocks(kind, unroll, vectors, grid, multiprocessors);
        };
        EXPECT_LE(blocks(StreamGrid::persistent), resident);
        const std::int64_t threads = blocks(StreamGrid::one_pass) * kStreamThreads;
        EXPECT_GE(threads * unroll, vectors);
        // A card with room left leaves no thread with two loads while another has none.
        if (vectors <= resident * kStreamThreads) {
          EXPECT_GE(blocks(StreamGrid::persistent) * kStreamThreads, vectors);
        } else {
          EXPECT_EQ(blocks(StreamGrid::persistent), resident);
        }
        EXPECT_LT(blocks(StreamGrid::one_pass), std::int64_t{1} << 31);
      }
    }
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
