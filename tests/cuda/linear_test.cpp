// The linear's kernels, run on the host and held to float64.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

constexpr std::int64_t kOut = 21;

// Runs matrix x Vector and compares all outputs.
void compare_plain(FakeGpu& gpu, const Matrix& matrix, int columns, int multiprocessors,
                   const std::string& what) {
  const LinearLayout& layout = matrix.layout;
  const Vector x(layout.activations, columns * layout.in, 5);
  const Vector y(layout.activations, columns * layout.out, 6);
  std::memset(y.data(), 0xFF, static_cast<std::size_t>(columns * layout.out * activation_bytes(y.type)));
  LinearLaunch launch = linear_launch(layout, &layout.out, 1, columns, false, ArchLimits{}, multiprocessors);
  SplitRoom room(launch);
  launch.params.x = x.data();
  launch.params.segments[0] = matrix.segment(y.data());
  gpu.launch(launch);
  const std::vector<float> outputs = y.read(columns * layout.out);
  Comparison comparison;
  for (std::int64_t c = 0; c < columns; ++c) {
    for (std::int64_t row = 0; row < layout.out; ++row) {
      const ReferenceDot reference = dot(matrix, row, x.values.data() + c * layout.in);
      comparison.add(static_cast<double>(outputs[static_cast<std::size_t>(c * layout.out + row)]),
                     reference.value, reference.tolerance + rounding(layout.activations, reference.value));
    }
  }
  expect_close(comparison, what);
}

// Every kernel, on a width that fills no tile, and whose rows of x are not aligned.
TEST(CudaLinear, EveryFormatAndColumnsAgreesWithFloat64) {
  FakeGpu gpu;
  int i = 0;
  for (const Format format : formats()) {
    const Matrix matrix(format, kOut, i % 2 == 0 ? 339 : 400, 3);
    for (const int columns : {1, 2, 3, 7, 16}) {
      set_order(gpu, i++);
      compare_plain(gpu, matrix, columns, 1, format_name(format) + " x " + std::to_string(columns));
    }
  }
}

}  // namespace
}  // namespace memwall::cuda
