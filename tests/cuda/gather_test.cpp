#include "kernels/cuda/gather.cuh"

#include <gtest/gtest.h>

#include "kernels/cpu/pack.h"
#include "tests/cuda/element_support.h"

namespace memwall::cuda {
namespace {

const std::vector<std::int32_t> kIds = {3, 0, 6, 6, 1};
constexpr std::int64_t kTableRows = 7;
constexpr std::int64_t kRows = 5;

TEST(CudaGather, PlainRowsAreCopied) {
  // Aligned, of an odd number of elements, and wider than a block's threads.
  for (const std::int64_t width : {8, 13, 64, 2056}) {
    const auto table = random_elements<Half>(kTableRows * width, 1);
    in_all_orders([&](Executor& executor) {
      GpuVector<Half> y = nan_elements<Half>(kRows * width);
      GatherParams params;
      params.table = table.data();
      params.ids = kIds.data();
      params.y = y.data();
      params.rows = kRows;
      params.width = width;
      params.row_bytes = width * 2;
      run_on(executor, gather_launch(GatherFormat::plain, params));
      for (std::int64_t i = 0; i < kRows * width; ++i) {
        const std::int64_t id = kIds[static_cast<std::size_t>(i / width)];
        ASSERT_EQ(y[static_cast<std::size_t>(i)].bits,
                  table[static_cast<std::size_t>(id * width + i % width)].bits)
            << width << ' ' << i;
      }
      EXPECT_EQ(executor.traffic().bytes_written, kRows * width * 2);
      if (width % 16 == 0) {
        EXPECT_EQ(executor.traffic().sectors_written * 32, kRows * width * 2);
      }
    });
  }
}

void quants_are_widened(FormatKind kind, std::int64_t width) {
  SCOPED_TRACE(width);
  const Format format{.kind = kind};
  const bool four = kind == FormatKind::q4_0;
  const std::int64_t blocks = (width + 31) / 32;
  const std::int64_t quants = four ? 16 : 32;
  // Rows packed as ggml does, then quants and scales put apart.
  std::vector<std::byte> table(static_cast<std::size_t>(kTableRows * blocks * quants));
  std::vector<std::uint16_t> scales;
  std::vector<float> expected(static_cast<std::size_t>(kTableRows * width));
  for (std::int64_t row = 0; row < kTableRows; ++row) {
    const std::vector<float> values =
        random_floats(static_cast<std::size_t>(width), static_cast<std::uint64_t>(row));
    std::vector<std::byte> packed(static_cast<std::size_t>(storage_bytes(format, 1, width)));
    cpu::pack_row(format, values.data(), width, packed.data());
    cpu::unpack_row(format, packed.data(), width, expected.data() + row * width);
    for (std::int64_t b = 0; b < blocks; ++b) {
      const std::byte* block = packed.data() + b * (quants + 2);
      scales.emplace_back();
      std::memcpy(&scales.back(), block, 2);
      std::memcpy(table.data() + (row * blocks + b) * quants, block + 2, static_cast<std::size_t>(quants));
    }
  }
  in_all_orders([&](Executor& executor) {
    GpuVector<Half> y = nan_elements<Half>(kRows * width);
    GatherParams params;
    params.table = table.data();
    params.scales = scales.data();
    params.ids = kIds.data();
    params.y = y.data();
    params.rows = kRows;
    params.width = width;
    params.row_bytes = blocks * quants;
    params.scale_pitch = blocks;
    run_on(executor, gather_launch(four ? GatherFormat::q4_0 : GatherFormat::q8_0, params));
    for (std::int64_t i = 0; i < kRows * width; ++i) {
      const std::int64_t id = kIds[static_cast<std::size_t>(i / width)];
      ASSERT_EQ(y[static_cast<std::size_t>(i)].bits,
                cpu::f32_to_f16(expected[static_cast<std::size_t>(id * width + i % width)]))
          << i;
    }
    EXPECT_EQ(executor.traffic().bytes_written, kRows * width * 2);
  });
}

TEST(CudaGather, QuantsAreWidened) {
  for (const std::int64_t width : {32, 40, 33, 7, 128, 2080}) {
    quants_are_widened(FormatKind::q8_0, width);
    quants_are_widened(FormatKind::q4_0, width);
  }
}

TEST(CudaGather, LaunchesStayWithinCudasLimits) {
  GatherParams params;
  params.rows = 1'000'000;
  params.width = std::int64_t{1} << 30;
  params.row_bytes = params.width * 2;
  const GatherLaunch launch = gather_launch(GatherFormat::plain, params);
  EXPECT_EQ(launch.geometry.grid_x, 1'000'000U);
  EXPECT_EQ(launch.geometry.grid_y, 65535U);
  params.width = 4096;
  params.row_bytes = 8192;
  EXPECT_EQ(gather_launch(GatherFormat::plain, params).geometry.grid_y, 4U);
  EXPECT_EQ(gather_launch(GatherFormat::q4_0, params).geometry.grid_y, 2U);
}

}  // namespace
}  // namespace memwall::cuda
