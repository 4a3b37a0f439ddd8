#include "kernels/cpu/linear.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <thread>

#include "support.h"

namespace memwall::cpu {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// y = x W^T in f64, and the sum of |w x|, which scales the error that f32 may make.
struct Reference {
  Reference(const std::vector<float>& weights, const std::vector<float>& x, std::int64_t out, std::int64_t in,
            std::int64_t rows)
      : out_(out), y(static_cast<std::size_t>(rows * out)), magnitude(y.size()) {
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t o = 0; o < out; ++o) {
        double sum = 0.0;
        double absolute = 0.0;
        const float* w = weights.data() + o * in;
        const float* column = x.data() + r * in;
        for (std::int64_t i = 0; i < in; ++i) {
          const double product = static_cast<double>(w[i]) * static_cast<double>(column[i]);
          sum += product;
          absolute += std::fabs(product);
        }
        y[static_cast<std::size_t>(r * out + o)] = sum;
        magnitude[static_cast<std::size_t>(r * out + o)] = absolute;
      }
    }
  }

  // Rounding errors of 2^-24 that accumulate like a random walk, four deviations of it; a bias adds its own.
  double tolerance(std::size_t i, std::int64_t in) const {
    return 4.0 * std::sqrt(static_cast<double>(in)) * std::ldexp(magnitude[i], -24) + 1e-30;
  }

  void check(const std::vector<float>& got, std::int64_t rows, std::int64_t in,
             const std::string& what) const {
    for (std::size_t i = 0; i < static_cast<std::size_t>(rows * out_); ++i) {
      ASSERT_NEAR(static_cast<double>(got[i]), y[i], tolerance(i, in)) << what << " output " << i;
    }
  }

 private:
  std::int64_t out_;

 public:
  std::vector<double> y;
  std::vector<double> magnitude;
};

using Kernel = void (*)(const Linear&, std::int64_t, std::int64_t);

void through_blas(const Linear& op, std::int64_t first, std::int64_t last) {
  std::vector<float> panel(static_cast<std::size_t>(gemm_panel_floats(op.in)));
  linear_blas(op, first, last, panel.data());
}

struct Shape {
  std::int64_t out;
  std::int64_t in;
  std::vector<std::int64_t> rows;
};

const std::vector<Shape>& shapes() {
  static const std::vector<Shape> all = {
      {1, 1, {1, 2}},
      {3, 5, {1, 2, 3, 4, 5, 7, 16, 17}},
      {4, 32, {1, 3, 4}},
      {9, 31, {1, 4, 5}},
      {7, 33, {1, 2, 3, 4, 5, 7, 16, 17}},
      {6, 63, {1, 4}},
      {5, 64, {1, 4}},
      {11, 257, {1, 3, 17}},
      {2, 1000, {1, 2, 3, 4}},
      {4097, 129, {1, 3}},
      {10, 40000, {1}},  // more than one panel, at the fewest rows a panel has
  };
  return all;
}

void check_against_reference(Kernel kernel) {
  unsigned seed = 1;
  for (const Format format : linear_formats()) {
    for (const Shape& shape : shapes()) {
      const std::int64_t most = *std::max_element(shape.rows.begin(), shape.rows.end());
      const Packed w(format, random_floats(shape.out * shape.in, ++seed), shape.out, shape.in);
      const std::vector<float> x = random_floats(most * shape.in, ++seed);
      const Reference reference(w.values, x, shape.out, shape.in, most);
      for (const std::int64_t rows : shape.rows) {
        // An odd element's offset from the allocation's alignment, and no slack at the end.
        Exact<std::uint8_t> weights(w.bytes, format.kind == FormatKind::f32 ? 4 : 2);
        Exact<float> columns({x.begin(), x.begin() + rows * shape.in}, 1);
        std::vector<float> y(static_cast<std::size_t>(rows * shape.out), std::nanf(""));
        const Linear op{format, weights.data(), shape.out, shape.in, columns.data(), rows, nullptr, y.data()};
        kernel(op, 0, shape.out);
        ASSERT_NO_FATAL_FAILURE(reference.check(y, rows, shape.in,
                                                format_name(format) + " " + std::to_string(shape.out) + "x" +
                                                    std::to_string(shape.in) + " rows " +
                                                    std::to_string(rows)));
      }
    }
  }
}

class LinearOnEverySet : public OnEverySet {};
MEMWALL_ON_EVERY_SET(LinearOnEverySet);

TEST_P(LinearOnEverySet, HoldsToFloat64) { check_against_reference(linear); }
TEST_P(LinearOnEverySet, ThroughTheBlasHoldsToFloat64) { check_against_reference(through_blas); }

TEST_P(LinearOnEverySet, EveryLengthOfTail) {
  for (const Format format : linear_formats()) {
    for (std::int64_t in = 1; in <= 70; ++in) {
      const std::int64_t out = 5;
      const std::int64_t rows = 3;
      const Packed w(format, random_floats(out * in, static_cast<unsigned>(in)), out, in);
      const std::vector<float> x = random_floats(rows * in, 99);
      Exact<std::uint8_t> weights(w.bytes);
      Exact<float> columns(x);
      std::vector<float> y(static_cast<std::size_t>(rows * out));
      linear({format, weights.data(), out, in, columns.data(), rows, nullptr, y.data()}, 0, out);
      ASSERT_NO_FATAL_FAILURE(Reference(w.values, x, out, in, rows)
                                  .check(y, rows, in, format_name(format) + " in " + std::to_string(in)));
    }
  }
}

TEST_P(LinearOnEverySet, NamesTheInstructionSet) { EXPECT_EQ(instruction_set(), GetParam()); }

// The padding of a last block counts as zero even where it is not, and whatever follows x.
TEST_P(LinearOnEverySet, PaddingCountsAsZero) {
  for (const FormatKind kind : {FormatKind::q8_0, FormatKind::q4_0}) {
    const Format format{kind, 0, false};
    std::vector<float> source(64, 1.0F);
    const Packed w(format, source, 1, 64);
    std::vector<float> x(64, 1.0F);
    std::fill(x.begin() + 35, x.end(), kInfinity);
    float y = 0.0F;
    linear({format, w.bytes.data(), 1, 35, x.data(), 1, nullptr, &y}, 0, 1);
    double expected = 0.0;
    for (std::size_t i = 0; i < 35; ++i) expected += static_cast<double>(w.values[i]);
    EXPECT_NEAR(static_cast<double>(y), expected, 1e-5);
  }
}

TEST_P(LinearOnEverySet, SplitRangesGiveTheSameBits) {
  const std::int64_t out = 37;
  const std::int64_t in = 77;
  for (const Format format : linear_formats()) {
    const Packed w(format, random_floats(out * in, 5), out, in);
    for (const std::int64_t rows : {1, 2, 3, 4, 6}) {
      const std::vector<float> x = random_floats(rows * in, 6);
      const std::vector<float> bias = random_floats(out, 7);
      std::vector<float> whole(static_cast<std::size_t>(rows * out));
      std::vector<float> parts(whole.size(), std::nanf(""));
      Linear op{format, w.bytes.data(), out, in, x.data(), rows, bias.data(), whole.data()};
      linear(op, 0, out);
      op.y = parts.data();
      for (const auto& [first, last] : {std::pair{0, 1}, {1, 7}, {7, 7}, {7, 30}, {30, 37}})
        linear(op, first, last);
      EXPECT_EQ(whole, parts) << format_name(format) << " rows " << rows;
    }
  }
}

TEST_P(LinearOnEverySet, WritesOnlyItsRange) {
  const std::int64_t out = 20;
  for (const Kernel kernel : {Kernel{linear}, Kernel{through_blas}}) {
    for (const Format format : linear_formats()) {
      const Packed w(format, random_floats(out * 40, 5), out, 40);
      const std::vector<float> x = random_floats(2 * 40, 6);
      std::vector<float> y(2 * 20, 99.0F);
      kernel({format, w.bytes.data(), out, 40, x.data(), 2, nullptr, y.data()}, 3, 10);
      for (std::int64_t i = 0; i < 2 * out; ++i) {
        const bool inside = i % out >= 3 && i % out < 10;
        EXPECT_EQ(y[static_cast<std::size_t>(i)] != 99.0F, inside) << i;
      }
    }
  }
}

TEST_P(LinearOnEverySet, AddsTheBias) {
  const std::vector<float> w = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
  const std::vector<float> x = {1, 1, 2, 0};
  const std::vector<float> bias = {100, 200, 300, 400, 500};
  for (const Kernel kernel : {Kernel{linear}, Kernel{through_blas}}) {
    std::vector<float> y(10);
    kernel({{FormatKind::f32, 0, false}, w.data(), 5, 2, x.data(), 2, bias.data(), y.data()}, 0, 5);
    EXPECT_EQ(y, (std::vector<float>{103, 207, 311, 415, 519, 102, 206, 310, 414, 518}));
  }
}

// One odd weight a row, at a place that is first, within, or in the tail of the vectors.
TEST_P(LinearOnEverySet, InfinitiesNansAndSubnormals) {
  for (const FormatKind kind : {FormatKind::f32, FormatKind::f16, FormatKind::bf16}) {
    const Format format{kind, 0, false};
    const float tiny = kind == FormatKind::f16 ? 0x1p-24F : 0x1p-133F;  // the format's own subnormals
    for (const std::int64_t place : {0, 17, 40, 44}) {
      const std::int64_t in = 45;
      std::vector<float> source(static_cast<std::size_t>(5 * in), 0.0F);
      const float odd[] = {kInfinity, -kInfinity, std::nanf(""), 3.0F * tiny, -0.0F};
      for (std::int64_t row = 0; row < 5; ++row)
        source[static_cast<std::size_t>(row * in + place)] = odd[row];
      const Packed w(format, source, 5, in);
      const std::vector<float> x(static_cast<std::size_t>(in), 2.0F);
      std::vector<float> y(5);
      linear({format, w.bytes.data(), 5, in, x.data(), 1, nullptr, y.data()}, 0, 5);
      EXPECT_EQ(y[0], kInfinity);
      EXPECT_EQ(y[1], -kInfinity);
      EXPECT_TRUE(std::isnan(y[2]));
      EXPECT_EQ(y[3], 6.0F * tiny) << format_name(format);
      EXPECT_EQ(y[4], 0.0F);
    }
  }
}

TEST_P(LinearOnEverySet, EveryF16ScaleOfAQuantisedBlock) {
  for (int i = 0; i < 65536; i += 7) {
    const std::uint16_t scale = static_cast<std::uint16_t>(i);
    std::vector<std::uint8_t> q8(34, 0);
    std::memcpy(q8.data(), &scale, 2);
    q8[2 + 9] = 3;
    std::vector<std::uint8_t> q4(18, 0x88);
    std::memcpy(q4.data(), &scale, 2);
    q4[2 + 9] = 0xB8;  // weight 25 is +3
    std::vector<float> x(32, 0.0F);
    x[9] = 0.5F;
    x[25] = 0.5F;
    float y8 = 0.0F;
    float y4 = 0.0F;
    linear({{FormatKind::q8_0, 0, false}, q8.data(), 1, 32, x.data(), 1, nullptr, &y8}, 0, 1);
    linear({{FormatKind::q4_0, 0, false}, q4.data(), 1, 32, x.data(), 1, nullptr, &y4}, 0, 1);
    if (!std::isfinite(f16_to_f32(scale))) {
      // Times a quant of 0 this is NaN, times the block's sum it is infinite: the order is the kernel's.
      ASSERT_FALSE(std::isfinite(y8) || std::isfinite(y4)) << i;
      continue;
    }
    const float expected = f16_to_f32(scale) * 1.5F + 0.0F;
    ASSERT_TRUE(same_bits(y8, expected)) << i << " " << y8;
    ASSERT_TRUE(same_bits(y4, expected)) << i << " " << y4;
  }
}

// OpenBLAS under several threads of ours at once.
TEST(LinearBlas, IsRightFromManyThreadsAtOnce) {
  const std::int64_t out = 300;
  const std::int64_t in = 500;
  const std::int64_t rows = 20;
  const Format format{FormatKind::f16, 0, false};
  const Packed w(format, random_floats(out * in, 1), out, in);
  const std::vector<float> x = random_floats(rows * in, 2);
  const Reference reference(w.values, x, out, in, rows);
  for (int round = 0; round < 5; ++round) {
    std::vector<float> y(static_cast<std::size_t>(rows * out));
    const Linear op{format, w.bytes.data(), out, in, x.data(), rows, nullptr, y.data()};
    std::vector<std::thread> threads;
    for (std::int64_t t = 0; t < 8; ++t) {
      threads.emplace_back([&op, t] { through_blas(op, op.out * t / 8, op.out * (t + 1) / 8); });
    }
    for (std::thread& thread : threads) thread.join();
    ASSERT_NO_FATAL_FAILURE(reference.check(y, rows, in, "threads"));
  }
}

TEST(LinearBlas, PanelsAreAboutAMebibyteAndAtLeastEightRows) {
  EXPECT_EQ(gemm_panel_floats(1), 256);
  EXPECT_EQ(gemm_panel_floats(4096), 64 * 4096);
  EXPECT_EQ(gemm_panel_floats(100000), 8 * 100000);
}

TEST(Linear, RefusesWhatItCannotCompute) {
  float value = 0.0F;
  Linear op{{FormatKind::q6_k, 0, false}, &value, 1, 1, &value, 1, nullptr, &value};
  EXPECT_FALSE(has_linear(op.format));
  EXPECT_THROW(linear(op, 0, 1), std::invalid_argument);
  EXPECT_THROW(linear_blas(op, 0, 1, &value), std::invalid_argument);
  op.format.kind = FormatKind::f32;
  EXPECT_THROW(linear(op, 0, 2), std::invalid_argument);
  EXPECT_THROW(linear(op, -1, 1), std::invalid_argument);
  op.in = 0;
  EXPECT_THROW(linear(op, 0, 1), std::invalid_argument);
  for (const Format format : linear_formats()) EXPECT_TRUE(has_linear(format));
}

TEST(InstructionSets, AreListedAndRefusedByName) {
  EXPECT_FALSE(instruction_sets().empty());
  EXPECT_EQ(instruction_set(), instruction_sets().front());
  EXPECT_THROW(use_instruction_set("MMX"), std::invalid_argument);
}

}  // namespace
}  // namespace memwall::cpu
