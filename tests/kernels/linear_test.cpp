#include "kernels/cpu/linear.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <thread>

#include "kernels/cpu/panel_layout.h"
#include "kernels/cpu/quantised.h"
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

constexpr LinearKernel kKernels[] = {LinearKernel::dot, LinearKernel::gemm, LinearKernel::blas};

std::string name_of(LinearKernel kernel) {
  return kernel == LinearKernel::dot ? "dot" : kernel == LinearKernel::gemm ? "gemm" : "blas";
}

const std::vector<Format>& panel_formats() {
  static const std::vector<Format> all = {
      {FormatKind::f32},
      {FormatKind::f16},
      {FormatKind::bf16},
      {FormatKind::f8_e4m3},
      {FormatKind::f8_e4m3_channel},
      {FormatKind::f8_e4m3_b128},
      {FormatKind::q8_0},
      {FormatKind::q4_0},
      {FormatKind::int4_group, 32},
      {FormatKind::int4_group, 64},
      {FormatKind::int4_group, 128},
      {FormatKind::int4_group, 128, true},
      {FormatKind::int4_group, 32, true},
      {FormatKind::int4_group, 64, true, true},
      {FormatKind::int4_group, 0},
      {FormatKind::int4_group, 0, true},
  };
  return all;
}

// A matrix in panels, and the values that its bytes stand for.
struct PanelMatrix {
  PanelMatrix(Format f, const std::vector<float>& source, std::int64_t o, std::int64_t i)
      : format(f), out(o), in(i), bytes(static_cast<std::size_t>(panel_matrix_bytes(f, o, i))) {
    pack_panels(f, source.data(), out, in, bytes.data());
    read_back();
  }
  void read_back() {
    values.resize(static_cast<std::size_t>(out * in));
    for (std::int64_t row = 0; row < out; ++row) {
      unpack_panel_row(format, bytes.data(), out, in, row, values.data() + row * in);
    }
  }
  Format format;
  std::int64_t out;
  std::int64_t in;
  std::vector<std::uint8_t> bytes;
  std::vector<float> values;
};

// Prepares and runs panels [first, last) in rooms of exactly the sizes asked for; prepares in `parts` parts.
void run(LinearKernel kernel, Linear op, std::int64_t first, std::int64_t last, std::int64_t parts = 1) {
  Exact<std::uint8_t> prepared(std::vector<std::uint8_t>(
      static_cast<std::size_t>(prepared_bytes(kernel, op.format, op.rows, op.in)), 0xFF));
  Exact<float> scratch(std::vector<float>(
      static_cast<std::size_t>(linear_scratch_floats(kernel, op.format, op.in)), std::nanf("")));
  if (prepared_bytes(kernel, op.format, op.rows, op.in) > 0) op.prepared = prepared.data();
  const std::int64_t units = prepare_units(kernel, op.format, op.rows, op.in);
  for (std::int64_t part = 0; part < parts; ++part) {
    prepare(kernel, op, units * part / parts, units * (part + 1) / parts);
  }
  linear(kernel, op, first, last, scratch.data());
}

// x as the kernel reads it: the integer dot products see it in 8 bits.
std::vector<float> as_read(LinearKernel kernel, Format format, const std::vector<float>& x, std::int64_t in) {
  if (kernel != LinearKernel::dot || !is_integer(format)) return x;
  std::vector<float> read(x.size());
  for (std::size_t row = 0; row < x.size(); row += static_cast<std::size_t>(in)) {
    for (std::int64_t block = 0; block < in; block += 32) {
      const std::int64_t count = std::min<std::int64_t>(32, in - block);
      const float* from = x.data() + row + block;
      float largest = 0.0F;
      for (std::int64_t i = 0; i < count; ++i) largest = std::max(largest, std::fabs(from[i]));
      for (std::int64_t i = 0; i < count; ++i) {
        // As the kernel rounds: the product with 127 / largest to nearest even.
        const float quant = largest > 0 ? std::nearbyintf(from[i] * (127.0F / largest)) : 0.0F;
        read[row + static_cast<std::size_t>(block + i)] = quant * (largest / 127.0F);
      }
    }
  }
  return read;
}

struct Shape {
  std::int64_t out;
  std::int64_t in;
  std::vector<std::int64_t> rows;
};

void check_against_reference(LinearKernel kernel, const std::vector<Shape>& shapes) {
  unsigned seed = 1;
  for (const Format format : panel_formats()) {
    for (const Shape& shape : shapes) {
      const std::int64_t most = *std::max_element(shape.rows.begin(), shape.rows.end());
      const PanelMatrix w(format, random_floats(shape.out * shape.in, ++seed), shape.out, shape.in);
      const std::vector<float> x = random_floats(most * shape.in, ++seed);
      const Reference reference(w.values, as_read(kernel, format, x, shape.in), shape.out, shape.in, most);
      for (const std::int64_t rows : shape.rows) {
        // An odd element's offset from the allocation's alignment, and no slack at the end.
        Exact<std::uint8_t> weights(w.bytes, format.kind == FormatKind::f32 ? 4 : 2);
        Exact<float> columns({x.begin(), x.begin() + rows * shape.in}, 1);
        std::vector<float> y(static_cast<std::size_t>(rows * shape.out), std::nanf(""));
        run(kernel,
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

TEST_P(LinearOnEverySet, BlasHoldsToFloat64) {
  check_against_reference(LinearKernel::blas, {{1, 1, {1, 2}}, {33, 33, {1, 13}}, {600, 130, {7}}});
}

TEST_P(LinearOnEverySet, EveryLengthOfTail) {
  std::vector<Shape> shapes;
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
    const Reference reference(w.values, x, out, in, 1);
    std::vector<float> y(static_cast<std::size_t>(out));
    run(LinearKernel::dot, {format, w.bytes.data(), out, in, x.data(), 1, nullptr, y.data(), nullptr}, 0, 1);
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
    for (const LinearKernel kernel : kKernels) {
      float y = 0.0F;
      run(kernel, {format, w.bytes.data(), 1, 35, x.data(), 1, nullptr, &y, nullptr}, 0, 1);
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
      for (const LinearKernel kernel : {LinearKernel::dot, LinearKernel::gemm}) {
        std::vector<float> whole(static_cast<std::size_t>(rows * out));
        std::vector<float> parts(whole.size(), std::nanf(""));
        Linear op{format, w.bytes.data(), out, in, x.data(), rows, bias.data(), whole.data(), nullptr};
        run(kernel, op, 0, 5);
        op.y = parts.data();
        for (const auto& [first, last] : {std::pair{0, 1}, {1, 1}, {1, 4}, {4, 5}}) {
          run(kernel, op, first, last, 3);
        }
        EXPECT_EQ(whole, parts) << format_name(format) << " rows " << rows << " " << name_of(kernel);
      }
    }
  }
}

TEST_P(LinearOnEverySet, WritesOnlyItsRange) {
  const std::int64_t out = 60;
  for (const LinearKernel kernel : kKernels) {
    for (const Format format : panel_formats()) {
      const PanelMatrix w(format, random_floats(out * 40, 5), out, 40);
      const std::vector<float> x = random_floats(2 * 40, 6);
      std::vector<float> y(2 * 60, 99.0F);
      run(kernel, {format, w.bytes.data(), out, 40, x.data(), 2, nullptr, y.data(), nullptr}, 1, 3);
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
  for (const LinearKernel kernel : kKernels) {
    std::vector<float> y(10);
    run(kernel, {matrix.format, matrix.bytes.data(), 5, 2, x.data(), 2, bias.data(), y.data(), nullptr}, 0,
        1);
    EXPECT_EQ(y, (std::vector<float>{103, 207, 311, 415, 519, 102, 206, 310, 414, 518}));
  }
}

// One odd weight a row, at a place that is first, within, or in the tail of the vectors.
TEST_P(LinearOnEverySet, InfinitiesNansAndSubnormals) {
  for (const FormatKind kind : {FormatKind::f32, FormatKind::f16, FormatKind::bf16}) {
    const float tiny = kind == FormatKind::f16 ? 0x1p-24F : 0x1p-133F;  // the format's own subnormals
    for (const std::int64_t place : {0, 17, 40, 44}) {
      const std::int64_t in = 45;
      std::vector<float> source(static_cast<std::size_t>(5 * in), 0.0F);
      const float odd[] = {kInfinity, -kInfinity, std::nanf(""), 3.0F * tiny, -0.0F};
      for (std::int64_t row = 0; row < 5; ++row)
        source[static_cast<std::size_t>(row * in + place)] = odd[row];
      const PanelMatrix w({kind}, source, 5, in);
      const std::vector<float> x(static_cast<std::size_t>(in) * 9, 2.0F);
      for (const std::int64_t rows : {1, 9}) {
        for (const LinearKernel kernel : {LinearKernel::dot, LinearKernel::gemm}) {
          std::vector<float> y(static_cast<std::size_t>(5 * rows));
          run(kernel, {w.format, w.bytes.data(), 5, in, x.data(), rows, nullptr, y.data(), nullptr}, 0, 1);
          EXPECT_EQ(y[0], kInfinity);
          EXPECT_EQ(y[1], -kInfinity);
          EXPECT_TRUE(std::isnan(y[2]));
          EXPECT_EQ(y[3], 6.0F * tiny) << format_name(w.format);
          EXPECT_EQ(y[4], 0.0F);
        }
      }
    }
  }
}

// Every code of E4M3, its two NaN among them, alone in a row of 256, at every place of a step.
TEST_P(LinearOnEverySet, EveryCodeOfF8) {
  const std::int64_t in = 37;
  for (const std::int64_t place : {0, 1, 6, 31, 36}) {
    PanelMatrix w({FormatKind::f8_e4m3}, std::vector<float>(static_cast<std::size_t>(256 * in), 0.0F), 256,
                  in);
    for (std::int64_t code = 0; code < 256; ++code) {
      w.bytes[static_cast<std::size_t>(((code / 16) * in + place) * 16 + code % 16)] =
          static_cast<std::uint8_t>(code);
    }
    const std::vector<float> x(static_cast<std::size_t>(in) * 2, 0.5F);
    for (const std::int64_t rows : {1, 2}) {
      for (const LinearKernel kernel : kKernels) {
        std::vector<float> y(static_cast<std::size_t>(256 * rows));
        run(kernel, {w.format, w.bytes.data(), 256, in, x.data(), rows, nullptr, y.data(), nullptr}, 0, 16);
        for (std::size_t code = 0; code < 256; ++code) {
          const float expected = f8_e4m3_to_f32(static_cast<std::uint8_t>(code)) * 0.5F + 0.0F;
          ASSERT_TRUE(same_bits(y[code], expected)) << code << " " << y[code] << " " << name_of(kernel);
        }
      }
    }
  }
}

TEST_P(LinearOnEverySet, EveryF16ScaleOfAQuantisedBlock) {
  for (int i = 0; i < 65536; i += 7) {
    const std::uint16_t scale = static_cast<std::uint16_t>(i);
    std::vector<float> source(32, 0.0F);
    source[9] = 3.0F;
    source[25] = 8.0F;
    for (const Format format : {Format{FormatKind::q8_0}, Format{FormatKind::q4_0},
                                Format{FormatKind::int4_group, 32, true, true}}) {
      PanelMatrix w(format, source, 1, 32);
      std::memcpy(w.bytes.data(), &scale, 2);
      w.read_back();
      std::vector<float> x(32, 0.0F);
      x[9] = 127.0F;  // its own quant, exactly
      float y = 0.0F;
      run(LinearKernel::dot, {format, w.bytes.data(), 1, 32, x.data(), 1, nullptr, &y, nullptr}, 0, 1);
      if (!std::isfinite(f16_to_f32(scale))) {
        // Times a quant of 0 this is NaN, times the block's sum it is infinite: the order is the kernel's.
        ASSERT_FALSE(std::isfinite(y)) << i;
      } else {
        ASSERT_NEAR(y, w.values[9] * 127.0F, std::fabs(w.values[9]) * 1e-4F) << i << format_name(format);
      }
    }
  }
}

// Weights of -128 meet activations of either sign at their largest: sums of pairs must not saturate.
TEST_P(LinearOnEverySet, ExtremeBytesDoNotOverflow) {
  const std::int64_t in = 64;
  for (const Format format : {Format{FormatKind::q8_0}, Format{FormatKind::q4_0}}) {
    PanelMatrix w(format, random_floats(16 * in, 1), 16, in);
    const PanelLayout layout = panel_layout(format, in);
    for (std::int64_t group = 0; group < layout.groups; ++group) {
      const std::uint16_t one = f32_to_f16(1.0F);
      for (std::int64_t r = 0; r < 16; ++r)
        std::memcpy(w.bytes.data() + group * layout.group_bytes + r * 2, &one, 2);
      std::uint8_t* quants = w.bytes.data() + group * layout.group_bytes + layout.quants_at;
      std::memset(quants, format.kind == FormatKind::q8_0 ? 0x80 : 0xFF,
                  static_cast<std::size_t>(layout.block_bytes));
    }
    w.read_back();
    for (const float sign : {1.0F, -1.0F}) {
      const std::vector<float> x(static_cast<std::size_t>(in), sign * 127.0F);
      std::vector<float> y(16);
      run(LinearKernel::dot, {format, w.bytes.data(), 16, in, x.data(), 1, nullptr, y.data(), nullptr}, 0, 1);
      const float expected = (format.kind == FormatKind::q8_0 ? -128.0F : 7.0F) * 127.0F * 64.0F * sign;
      for (const float value : y) EXPECT_EQ(value, expected);
    }
  }
}

TEST_P(LinearOnEverySet, OddActivationsGiveOddOutputs) {
  const std::int64_t in = 40;
  for (const Format format : panel_formats()) {
    const PanelMatrix w(format, std::vector<float>(static_cast<std::size_t>(in), 0.75F), 1, in);
    for (const LinearKernel kernel : kKernels) {
      for (const float odd : {kInfinity, -kInfinity, std::nanf("")}) {
        std::vector<float> x(static_cast<std::size_t>(in), 1.0F);
        x[33] = odd;
        float y = 0.0F;
        run(kernel, {format, w.bytes.data(), 1, in, x.data(), 1, nullptr, &y, nullptr}, 0, 1);
        EXPECT_FALSE(std::isfinite(y)) << format_name(format) << " " << name_of(kernel);
      }
      // Zeros, and magnitudes that 8-bit quants give up: the output is as small.
      for (const float tiny : {0.0F, 0x1p-140F}) {
        const std::vector<float> x(static_cast<std::size_t>(in), tiny);
        float y = 1.0F;
        run(kernel, {format, w.bytes.data(), 1, in, x.data(), 1, nullptr, &y, nullptr}, 0, 1);
        EXPECT_LE(std::fabs(y), 64 * tiny) << format_name(format) << " " << name_of(kernel);
      }
    }
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
    for (const LinearKernel kernel : kKernels) {
      const Reference reference(w.values, as_read(kernel, format, x, in), out, in, rows);
      for (const std::int64_t count : {1, 2, 3, 7}) {
        std::vector<float> y(static_cast<std::size_t>(rows * out));
        std::vector<float> again(y.size());
        for (std::vector<float>* to : {&y, &again}) {
          const Linear op{format, w.bytes.data(), out, in, x.data(), rows, nullptr, to->data(), nullptr};
          std::vector<std::thread> threads;
          for (std::int64_t t = 0; t < count; ++t) {
            const std::int64_t panels = panels_of(out);
            threads.emplace_back([=] { run(kernel, op, panels * t / count, panels * (t + 1) / count); });
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
  for (const LinearKernel kernel : kKernels) {
    op.format.kind = FormatKind::q6_k;
    EXPECT_THROW(linear(kernel, op, 0, 1, &value), std::invalid_argument);
    op.format.kind = FormatKind::f32;
    EXPECT_THROW(linear(kernel, op, 0, 2, &value), std::invalid_argument);
    EXPECT_THROW(linear(kernel, op, -1, 1, &value), std::invalid_argument);
    Linear empty = op;
    empty.in = 0;
    EXPECT_THROW(linear(kernel, empty, 0, 1, &value), std::invalid_argument);
  }
  op.rows = kMostDotRows + 1;
  EXPECT_THROW(linear(LinearKernel::dot, op, 0, 1, nullptr), std::invalid_argument);
  op.prepared = nullptr;
  EXPECT_THROW(linear(LinearKernel::gemm, op, 0, 1, nullptr), std::invalid_argument);
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
