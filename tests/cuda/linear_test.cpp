// The linear's kernels, run on the host and held to float64.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "tests/cuda/linear_support.h"

namespace memwall::cuda {
namespace {

using namespace linear_test;

void expect_close(Comparison& comparison, const std::string& what) {
  const Check check = comparison.result();
  EXPECT_GT(check.outputs, 0) << what;
  EXPECT_LE(check.worst, 1) << what;
  EXPECT_TRUE(check.passed()) << what;
}

// Everything that a launch of matrices over one x needs, and their reference.
class Case {
 public:
  Case(Format format, const std::vector<std::int64_t>& outs, std::int64_t in, int columns, bool gated,
       int multiprocessors)
      : columns_(columns), x(linear_layout(format, 1, in).activations, columns * in, 5) {
    std::uint64_t seed = 3;
    for (const std::int64_t out : outs) matrices.emplace_back(format, out, in, seed++);
    launch = linear_launch(matrices[0].layout, outs.data(), static_cast<int>(outs.size()), columns, gated,
                           ArchLimits{}, multiprocessors);
    prepare();
  }

  // Again, for a launch that was changed.
  void prepare() {
    room.emplace(launch);
    ys.clear();
    launch.params.x = x.data();
    for (std::size_t i = 0; i < matrices.size(); ++i) {
      ys.emplace_back(x.type, columns_ * matrices[i].layout.out, 6);
      std::memset(ys[i].data(), 0xFF,
                  static_cast<std::size_t>(columns_ * matrices[i].layout.out * activation_bytes(x.type)));
      const unsigned first_block = launch.params.segments[i].first_block;
      launch.params.segments[i] = matrices[i].segment(ys[i].data());
      launch.params.segments[i].first_block = first_block;
    }
  }

  // All outputs, y = W x.
  void expect_products(const std::string& what) const {
    Comparison comparison;
    for (std::size_t i = 0; i < matrices.size(); ++i) {
      const LinearLayout& layout = matrices[i].layout;
      const std::vector<float> outputs = ys[i].read(columns_ * layout.out);
      for (std::int64_t c = 0; c < columns_; ++c) {
        for (std::int64_t row = 0; row < layout.out; ++row) {
          const ReferenceDot reference = dot(matrices[i], row, x.values.data() + c * layout.in);
          comparison.add(static_cast<double>(outputs[static_cast<std::size_t>(c * layout.out + row)]),
                         reference.value, reference.tolerance + rounding(x.type, reference.value));
        }
      }
    }
    expect_close(comparison, what);
  }

 private:
  std::int64_t columns_;

 public:
  std::vector<Matrix> matrices;
  Vector x;
  std::vector<Vector> ys;
  LinearLaunch launch;
  std::optional<SplitRoom> room;
};

// Every kernel, on rows of x that are not aligned, and fill no tile.
TEST(CudaLinear, EveryFormatAndColumnsAgreesWithFloat64) {
  FakeGpu gpu;
  int i = 0;
  for (const Format format : formats()) {
    // int4's groups share their kernels.
    const bool few = format.kind == FormatKind::int4_group && !(format.zero_points && format.group == 64);
    for (const int columns : few ? std::vector<int>{2} : std::vector<int>{1, 2, 3, 7, 16}) {
      Case c(format, {11}, i % 2 == 0 ? 339 : 400, columns, false, 2);
      set_order(gpu, i++);
      gpu.launch(c.launch);
      c.expect_products(format_name(format) + " x " + std::to_string(columns));
    }
  }
}

// Several warps a row, several chunks of x, several blocks a row: whatever the order of blocks, and again
// with the counters as the first launch left them.
TEST(CudaLinear, RowsAreSharedByWarpsChunksAndBlocks) {
  FakeGpu gpu;
  int i = 0;
  for (const char* format : {"bf16", "f8_e4m3-b128", "int4-g64-zp"}) {
    for (const int columns : {1, 16}) {
      const Format f = *find_format(format);
      const std::int64_t in = 11 * weights_a_vector(linear_layout(f, 1, 1).code) * kLinearLanes + 24;
      Case c(f, {9, 1}, in, columns, false, 1);
      LinearParams& p = c.launch.params;
      p.warps_shift = 2;
      while ((linear_unroll(c.launch.code, c.launch.columns) << p.warps_shift) *
                 linear_tile_room(c.launch.code, c.launch.columns) >
             47 << 10)
        --p.warps_shift;
      const int step = linear_unroll(c.launch.code, c.launch.columns) << p.warps_shift;
      p.chunk_steps = 1;
      p.steps_a_split = columns == 1 ? 1 : 2;
      p.splits = static_cast<int>((12 + step * p.steps_a_split - 1) / (step * p.steps_a_split));
      p.segments[1].first_block = 1;
      c.launch.geometry.grid_x = 2;
      c.launch.geometry.grid_z = static_cast<unsigned>(p.splits);
      c.launch.geometry.shared_bytes = 48 << 10;
      c.prepare();
      for (int again = 0; again < 2; ++again) {
        set_order(gpu, i++);
        gpu.launch(c.launch);
        c.expect_products(std::string(format) + " split, x " + std::to_string(columns));
      }
    }
  }
}

// 1 to 4 matrices of different heights, none a whole number of blocks.
TEST(CudaLinear, SegmentsShareOneX) {
  FakeGpu gpu;
  const std::vector<std::int64_t> outs = {70, 1, 9, 65};
  for (std::size_t count = 1; count <= outs.size(); ++count) {
    set_order(gpu, static_cast<int>(count));
    Case c({FormatKind::f16}, {outs.begin(), outs.begin() + static_cast<std::ptrdiff_t>(count)}, 64, 2, false,
           1);
    gpu.launch(c.launch);
    c.expect_products(std::to_string(count) + " segments");
  }
}

// Each byte of the quants is read once, and in whole sectors; scales are shared by neighbours alone.
TEST(CudaLinear, ReadsEachWeightOnceAndCoalesced) {
  for (const char* format :
       {"f32", "f16", "bf16", "f8_e4m3", "f8_e4m3-b128", "q8_0", "q4_0", "int4-g128-zp"}) {
    for (const int columns : {1, 16}) {
      FakeGpu gpu;
      const Format f = *find_format(format);
      const std::int64_t tile = weights_a_vector(linear_layout(f, 1, 1).code) * kLinearLanes;
      Case c(f, {24}, 4 * tile, columns, false, 1);
      const LinearLayout& layout = c.matrices[0].layout;
      const std::int64_t bytes = layout.out * layout.pitch;
      gpu.executor().watch(c.matrices[0].memory.data(), static_cast<std::size_t>(bytes));
      gpu.launch(c.launch);
      EXPECT_EQ(gpu.executor().watched().least, 1U) << format;
      EXPECT_EQ(gpu.executor().watched().most, 1U) << format;
      EXPECT_EQ(gpu.executor().traffic().streamed_bytes, bytes) << format;
      EXPECT_EQ(gpu.executor().traffic().streamed_sectors, bytes / 32) << format;
      if (layout.rule != ScaleRule::group) continue;
      FakeGpu again;
      Case d(f, {24}, 4 * tile, columns, false, 1);
      again.executor().watch(d.matrices[0].memory.data() + layout.scales_at,
                             static_cast<std::size_t>(layout.scale_bytes));
      again.launch(d.launch);
      EXPECT_EQ(again.executor().watched().least, again.executor().watched().most) << format;
      EXPECT_EQ(again.executor().watched().most, 32U / weights_a_vector(layout.code)) << format;
    }
  }
}

}  // namespace
}  // namespace memwall::cuda
