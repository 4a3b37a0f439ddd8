// Linears on values at the edges of their formats.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "linear_support.h"

namespace memwall::cpu {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

class LinearValues : public OnEverySet {};
MEMWALL_ON_EVERY_SET(LinearValues);

// One odd weight a row, at a place that is first, within, or in the tail of the vectors.
TEST_P(LinearValues, InfinitiesNansAndSubnormals) {
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
          run_linear(kernel, {w.format, w.bytes.data(), 5, in, x.data(), rows, nullptr, y.data(), nullptr}, 0,
                     1);
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
TEST_P(LinearValues, EveryCodeOfF8) {
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
      for (const LinearKernel kernel : linear_kernels(w.format)) {
        std::vector<float> y(static_cast<std::size_t>(256 * rows));
        run_linear(kernel, {w.format, w.bytes.data(), 256, in, x.data(), rows, nullptr, y.data(), nullptr}, 0,
                   16);
        for (std::size_t code = 0; code < 256; ++code) {
          const float expected = f8_e4m3_to_f32(static_cast<std::uint8_t>(code)) * 0.5F + 0.0F;
          ASSERT_TRUE(same_bits(y[code], expected)) << code << " " << y[code] << " " << name_of(kernel);
        }
      }
    }
  }
}

TEST_P(LinearValues, EveryF16ScaleOfAQuantisedBlock) {
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
      run_linear(LinearKernel::dot, {format, w.bytes.data(), 1, 32, x.data(), 1, nullptr, &y, nullptr}, 0, 1);
      if (!std::isfinite(f16_to_f32(scale))) {
        // Times a quant of 0 this is NaN, times the block's sum it is infinite: the order is the kernel's.
        ASSERT_FALSE(std::isfinite(y)) << i;
      } else {
        ASSERT_NEAR(y, w.values[9] * 127.0F, std::fabs(w.values[9]) * 1e-4F) << i << format_name(format);
      }
    }
  }
}

// Every E8M0 scale that leaves a sum finite, with every code. Scales of code 0 and 1 are subnormal, and times
// an activation's scale those below 9 are: the product loses up to 1500 * 2^-150, 1e-42.
TEST_P(LinearValues, EveryScaleAndCodeOfMxfp4) {
  const Format format{FormatKind::mxfp4};
  PanelMatrix w(format, std::vector<float>(16 * 32, 0.0F), 16, 32);
  for (int scale = 0; scale < 248; ++scale) {
    for (std::size_t r = 0; r < 16; ++r) {
      w.bytes[r] = static_cast<std::uint8_t>(scale);
      w.bytes[16 + (1 * 16 + r) * 4 + 2] = static_cast<std::uint8_t>(r | ((15 - r) << 4));  // k 6 and 22
    }
    w.read_back();
    std::vector<float> x(32, 0.0F);
    x[6] = 1.0F;
    x[22] = -0.5F * 128.0F / 127.0F;  // quant -64
    for (const LinearKernel kernel : linear_kernels(format)) {
      const std::vector<float> read = as_read(kernel, format, x, 32);
      std::vector<float> y(16);
      run_linear(kernel, {format, w.bytes.data(), 16, 32, x.data(), 1, nullptr, y.data(), nullptr}, 0, 1);
      for (std::size_t r = 0; r < 16; ++r) {
        const double expected =
            static_cast<double>(std::ldexp(static_cast<float>(kDoubledE2m1[r]), scale - 128)) *
                static_cast<double>(read[6]) +
            static_cast<double>(std::ldexp(static_cast<float>(kDoubledE2m1[15 - r]), scale - 128)) *
                static_cast<double>(read[22]);
        ASSERT_NEAR(static_cast<double>(y[r]), expected, std::ldexp(16.0, scale - 128 - 20) + 3e-42)
            << scale << " " << r << " " << name_of(kernel);
      }
    }
  }
}

// Weights of -128 meet activations of either sign at their largest: sums of pairs must not saturate.
TEST_P(LinearValues, ExtremeBytesDoNotOverflow) {
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
      run_linear(LinearKernel::dot, {format, w.bytes.data(), 16, in, x.data(), 1, nullptr, y.data(), nullptr},
                 0, 1);
      const float expected = (format.kind == FormatKind::q8_0 ? -128.0F : 7.0F) * 127.0F * 64.0F * sign;
      for (const float value : y) EXPECT_EQ(value, expected);
    }
  }
}

TEST_P(LinearValues, OddActivationsGiveOddOutputs) {
  const std::int64_t in = 40;
  for (const Format format : panel_formats()) {
    const PanelMatrix w(format, std::vector<float>(static_cast<std::size_t>(in), 0.75F), 1, in);
    for (const LinearKernel kernel : linear_kernels(format)) {
      for (const float odd : {kInfinity, -kInfinity, std::nanf("")}) {
        std::vector<float> x(static_cast<std::size_t>(in), 1.0F);
        x[33] = odd;
        float y = 0.0F;
        run_linear(kernel, {format, w.bytes.data(), 1, in, x.data(), 1, nullptr, &y, nullptr}, 0, 1);
        EXPECT_FALSE(std::isfinite(y)) << format_name(format) << " " << name_of(kernel);
      }
      // Zeros, and magnitudes that 8-bit quants give up: the output is as small.
      for (const float tiny : {0.0F, 0x1p-140F}) {
        const std::vector<float> x(static_cast<std::size_t>(in), tiny);
        float y = 1.0F;
        run_linear(kernel, {format, w.bytes.data(), 1, in, x.data(), 1, nullptr, &y, nullptr}, 0, 1);
        EXPECT_LE(std::fabs(y), 64 * tiny) << format_name(format) << " " << name_of(kernel);
      }
    }
  }
}

}  // namespace
}  // namespace memwall::cpu
