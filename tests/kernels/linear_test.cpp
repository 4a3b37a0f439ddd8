#include "kernels/cpu/linear.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <thread>

#include "kernels/cpu/quantised.h"
#include "linear_support.h"

namespace memwall::cpu {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct LinearShape {
  std::int64_t out;
  std::int64_t in;
  std::vector<std::int64_t> rows;
};

void check_against_reference(LinearKernel kernel, const std::vector<LinearShape>& shapes) {
  unsigned seed = 1;
  for (const Format format : panel_formats()) {
    if (!takes_format(kernel, format)) continue;
    for (const LinearShape& shape : shapes) {
      const std::int64_t most = *std::max_element(shape.rows.begin(), shape.rows.end());
      const PanelMatrix w(format, random_floats(shape.out * shape.in, ++seed), shape.out, shape.in);
      const std::vector<float> x = random_floats(most * shape.in, ++seed);
      const LinearReference reference(w.values, as_read(kernel, format, x, shape.in), shape.out, shape.in,
                                      most);
      for (const std::int64_t rows : shape.rows) {
        // An odd element's offset from the allocation's alignment, and no slack at the end.
        Exact<std::uint8_t> weights(w.bytes, format.kind == FormatKind::f32 ? 4 : 2);
        Exact<float> columns({x.begin(), x.begin() + rows * shape.in}, 1);
        std::vector<float> y(static_cast<std::size_t>(rows * shape.out), std::nanf(""));
        run_linear(
            kernel,
            {format, weights.data(), shape.out, shape.in, columns.data(), rows, nullptr, y.data(), nullptr},
            0, panels_of(shape.out));
        ASSERT_NO_FATAL_FAILURE(
            reference.check(y, rows, shape.in,
                            name_of(kernel) + " " + format_name(format) + " " + std::to_string(shape.out) +
                                "x" + std::to_string(shape.in) + " rows " + std::to_string(rows)));
      }
    }
  }
}

class LinearOnEverySet : public OnEverySet {};
MEMWALL_ON_EVERY_SET(LinearOnEverySet);

TEST_P(LinearOnEverySet, DotHoldsToFloat64) {
  check_against_reference(LinearKernel::dot, {{1, 1, {1, 2}},
                                              {3, 5, {1, 2, 3, 5, 16}},
                                              {16, 32, {1, 3, 4}},
                                              {9, 31, {1, 4, 5}},
                                              {33, 33, {1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 13, 16}},
                                              {6, 64, {1, 4}},
                                              {50, 257, {1, 3, 16}},
                                              {2, 1000, {1, 2, 9}},
                                              {300, 129, {1, 3}},
                                              {20, 1100, {10}}});
}

TEST_P(LinearOnEverySet, GemmHoldsToFloat64) {
  check_against_reference(
      LinearKernel::gemm,
      {{1, 1, {1, 2}}, {33, 33, {1, 5, 12, 13, 25}}, {49, 130, {7, 31}}, {16, 1100, {9}}, {17, 40, {400}}});
}

TEST_P(LinearOnEverySet, Int8GemmHoldsToFloat64) {
  check_against_reference(LinearKernel::gemm_int8, {{1, 1, {1, 2}},
                                                    {33, 33, {1, 3, 4, 5, 12}},
                                                    {49, 130, {7, 31}},
                                                    {100, 65, {6}},
                                                    {16, 1100, {9}},
                                                    {17, 40, {400, 513}},
                                                    {35, 1030, {517}}});
}

TEST_P(LinearOnEverySet, BlasHoldsToFloat64) {
  check_against_reference(LinearKernel::blas, {{1, 1, {1, 2}}, {33, 33, {1, 13}}, {600, 130, {7}}});
}

TEST_P(LinearOnEverySet, EveryLengthOfTail) {
  std::vector<LinearShape> shapes;
  for (std::int64_t in = 1; in <= 70; ++in) shapes.push_back({5, in, {3}});
  check_against_reference(LinearKernel::dot, shapes);
}

// The integer kernels' own error: 8 bits of activations are within half a step of largest / 127.
TEST_P(LinearOnEverySet, QuantisedActivationsStayWithinTheirStep) {
  const std::int64_t out = 16;
  const std::int64_t in = 256;
  for (const Format format : panel_formats()) {
    if (!is_integer(format)) continue;
    const PanelMatrix w(format, random_floats(out * in, 3), out, in);
    const std::vector<float> x = random_floats(in, 4);
    const LinearReference reference(w.values, x, out, in, 1);
    std::vector<float> y(static_cast<std::size_t>(out));
    run_linear(LinearKernel::dot, {format, w.bytes.data(), out, in, x.data(), 1, nullptr, y.data(), nullptr},
               0, 1);
    for (std::int64_t row = 0; row < out; ++row) {
      double weights = 0;
      for (std::int64_t k = 0; k < in; ++k) {
        weights += std::fabs(static_cast<double>(w.values[static_cast<std::size_t>(row * in + k)]));
      }
      EXPECT_NEAR(static_cast<double>(y[static_cast<std::size_t>(row)]),
                  reference.y[static_cast<std::size_t>(row)], weights * 1.001 / 254);
    }
  }
}

// Whatever follows x in memory, and whatever quants the padding of a last block or group holds.
TEST_P(LinearOnEverySet, PaddingCountsAsZero) {
  for (const Format format : panel_formats()) {
    if (!is_integer(format)) continue;
    PanelMatrix w(format, std::vector<float>(35, 1.0F), 1, 35);
    const PanelLayout layout = panel_layout(format, 35);
    const PanelMatrix longer(format, std::vector<float>(static_cast<std::size_t>(layout.blocks) * 32, 1.0F),
                             1, layout.blocks * 32);
    w.bytes = longer.bytes;
    w.read_back();
    std::vector<float> x(static_cast<std::size_t>(layout.blocks) * 32, kInfinity);
    std::fill_n(x.begin(), 35, 1.0F);
    double expected = 0.0;
    for (const float value : w.values) expected += static_cast<double>(value);
    for (const LinearKernel kernel : linear_kernels(format)) {
      float y = 0.0F;
      run_linear(kernel, {format, w.bytes.data(), 1, 35, x.data(), 1, nullptr, &y, nullptr}, 0, 1);
      EXPECT_NEAR(static_cast<double>(y), expected, 1e-4) << format_name(format) << " " << name_of(kernel);
    }
  }
}

TEST_P(LinearOnEverySet, SplitRangesGiveTheSameBits) {
  const std::int64_t out = 70;
  const std::int64_t in = 77;
  for (const Format format : panel_formats()) {
    const PanelMatrix w(format, random_floats(out * in, 5), out, in);
    for (const std::int64_t rows : {1, 2, 3, 4, 6, 16}) {
      const std::vector<float> x = random_floats(rows * in, 6);
      const std::vector<float> bias = random_floats(out, 7);
      for (const LinearKernel kernel : linear_kernels(format)) {
        if (kernel == LinearKernel::blas) continue;  // its sums depend on how many columns it gets
        std::vector<float> whole(static_cast<std::size_t>(rows * out));
        std::vector<float> parts(whole.size(), std::nanf(""));
        Linear op{format, w.bytes.data(), out, in, x.data(), rows, bias.data(), whole.data(), nullptr};
        run_linear(kernel, op, 0, 5);
        op.y = parts.data();
        for (const auto& [first, last] : {std::pair{0, 1}, {1, 1}, {1, 4}, {4, 5}}) {
          run_linear(kernel, op, first, last, 3);
        }
        EXPECT_EQ(whole, parts) << format_name(format) << " rows " << rows << " " << name_of(kernel);
      }
    }
  }
}

TEST_P(LinearOnEverySet, WritesOnlyItsRange) {
  const std::int64_t out = 60;
  for (const Format format : panel_formats()) {
    for (const LinearKernel kernel : linear_kernels(format)) {
      const PanelMatrix w(format, random_floats(out * 40, 5), out, 40);
      const std::vector<float> x = random_floats(2 * 40, 6);
      std::vector<float> y(2 * 60, 99.0F);
      run_linear(kernel, {format, w.bytes.data(), out, 40, x.data(), 2, nullptr, y.data(), nullptr}, 1, 3);
      for (std::int64_t i = 0; i < 2 * out; ++i) {
        const bool inside = i % out >= 16 && i % out < 48;
        EXPECT_EQ(y[static_cast<std::size_t>(i)] != 99.0F, inside) << i;
      }
    }
  }
}

TEST_P(LinearOnEverySet, AddsTheBias) {
  const std::vector<float> w = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
  const std::vector<float> x = {1, 1, 2, 0};
  const std::vector<float> bias = {100, 200, 300, 400, 500};
  const PanelMatrix matrix({FormatKind::f32}, w, 5, 2);
  for (const LinearKernel kernel : linear_kernels(matrix.format)) {
    std::vector<float> y(10);
    run_linear(kernel,
               {matrix.format, matrix.bytes.data(), 5, 2, x.data(), 2, bias.data(), y.data(), nullptr}, 0, 1);
    EXPECT_EQ(y, (std::vector<float>{103, 207, 311, 415, 519, 102, 206, 310, 414, 518}));
  }
}

// Each of several threads its own panels, as the pool does it, OpenBLAS under several threads of ours at
// once.
TEST(LinearThreads, AreRightInAnyNumber) {
  const std::int64_t out = 300;
  const std::int64_t in = 500;
  const std::int64_t rows = 13;
  for (const Format format : {Format{FormatKind::f16}, Format{FormatKind::q4_0}}) {
    const PanelMatrix w(format, random_floats(out * in, 1), out, in);
    const std::vector<float> x = random_floats(rows * in, 2);
    for (const LinearKernel kernel : linear_kernels(format)) {
      const LinearReference reference(w.values, as_read(kernel, format, x, in), out, in, rows);
      for (const std::int64_t count : {1, 2, 3, 7}) {
        std::vector<float> y(static_cast<std::size_t>(rows * out));
        std::vector<float> again(y.size());
        for (std::vector<float>* to : {&y, &again}) {
          const Linear op{format, w.bytes.data(), out, in, x.data(), rows, nullptr, to->data(), nullptr};
          std::vector<std::thread> threads;
          for (std::int64_t t = 0; t < count; ++t) {
            const std::int64_t panels = panels_of(out);
            threads.emplace_back(
                [=] { run_linear(kernel, op, panels * t / count, panels * (t + 1) / count); });
          }
          for (std::thread& thread : threads) thread.join();
        }
        ASSERT_NO_FATAL_FAILURE(reference.check(y, rows, in, name_of(kernel)));
        EXPECT_EQ(y, again) << name_of(kernel);  // the same from run to run
      }
    }
  }
}

TEST(Linear, RefusesWhatItCannotCompute) {
  float value = 0.0F;
  Linear op{{FormatKind::q6_k}, &value, 1, 1, &value, 1, nullptr, &value, &value};
  EXPECT_FALSE(has_linear(op.format));
  for (const LinearKernel kernel : linear_kernels({FormatKind::q4_0})) {
    op.format.kind = FormatKind::q6_k;
    EXPECT_THROW(linear(kernel, op, 0, 1, &value), std::invalid_argument);
    op.format.kind = kernel == LinearKernel::gemm_int8 ? FormatKind::q8_0 : FormatKind::f32;
    EXPECT_THROW(linear(kernel, op, 0, 2, &value), std::invalid_argument);
    EXPECT_THROW(linear(kernel, op, -1, 1, &value), std::invalid_argument);
    Linear empty = op;
    empty.in = 0;
    EXPECT_THROW(linear(kernel, empty, 0, 1, &value), std::invalid_argument);
  }
  op.rows = kMostDotRows + 1;
  EXPECT_THROW(linear(LinearKernel::dot, op, 0, 1, nullptr), std::invalid_argument);
  op.prepared = nullptr;
  op.format.kind = FormatKind::f32;
  EXPECT_THROW(linear(LinearKernel::gemm, op, 0, 1, nullptr), std::invalid_argument);
  EXPECT_THROW(linear(LinearKernel::gemm_int8, op, 0, 1, &value), std::invalid_argument);
  EXPECT_FALSE(has_linear({FormatKind::int4_group, 16}));
  for (const Format format : panel_formats()) EXPECT_TRUE(has_linear(format));
}

TEST(InstructionSets, AreListedAndRefusedByName) {
  EXPECT_FALSE(instruction_sets().empty());
  EXPECT_EQ(instruction_set(), instruction_sets().front());
  EXPECT_THROW(use_instruction_set("MMX"), std::invalid_argument);
  for (const std::string& name : instruction_sets()) {
    use_instruction_set(name);
    EXPECT_EQ(instruction_set(), name);
  }
  use_instruction_set("");
}

}  // namespace
}  // namespace memwall::cpu
