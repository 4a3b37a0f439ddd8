// Norms, rotary and combining: ops that need a whole row.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/cpu/elementwise.h"
#include "support.h"

namespace memwall::cpu {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

double wide(float value) { return static_cast<double>(value); }

std::vector<std::uint16_t> bf16s(const std::vector<float>& values) {
  std::vector<std::uint16_t> all(values.size());
  std::transform(values.begin(), values.end(), all.begin(), f32_to_bf16);
  return all;
}

const std::int64_t kWidths[] = {1, 3, 15, 16, 17, 64, 129, 4097};

class Norms : public OnEverySet {};
MEMWALL_ON_EVERY_SET(Norms);
class RowOps : public OnEverySet {};
MEMWALL_ON_EVERY_SET(RowOps);
TEST_P(Norms, RmsHoldsToFloat64) {
  for (const std::int64_t width : kWidths) {
    const std::vector<float> x = random_floats(3 * width, 1, -2.0F, 3.0F);
    const std::vector<std::uint16_t> weight = bf16s(random_floats(width, 2));
    Exact<float> exact_x(x, 1);
    Exact<std::uint16_t> exact_weight(weight, 1);
    std::vector<float> y(x.size(), 99.0F);
    rms_norm(exact_x.data(), exact_weight.data(), width, y.data(), 1, 3);
    for (std::int64_t row = 0; row < 3; ++row) {
      double squares = 0.0;
      for (std::int64_t i = 0; i < width; ++i) squares += wide(x[row * width + i]) * wide(x[row * width + i]);
      const double rms = std::sqrt(squares / static_cast<double>(width) + 1e-6);
      for (std::int64_t i = 0; i < width; ++i) {
        const double expected =
            row == 0 ? 99.0 : wide(x[row * width + i]) / rms * wide(bf16_to_f32(weight[i]));
        ASSERT_NEAR(wide(y[row * width + i]), expected, 1e-6 * std::fabs(expected) + 1e-12) << width;
      }
    }
  }
}

TEST_P(Norms, RmsOfZerosIsZeros) {
  const std::vector<float> x(8, 0.0F);
  const std::vector<std::uint16_t> weight(8, f32_to_bf16(1.0F));
  std::vector<float> y(8, 99.0F);
  rms_norm(x.data(), weight.data(), 8, y.data(), 0, 1);
  EXPECT_EQ(y, x);
}

TEST_P(Norms, LayerHoldsToFloat64) {
  for (const std::int64_t width : kWidths) {
    for (const bool biased : {false, true}) {
      const std::vector<float> x = random_floats(2 * width, 1, 9.0F, 11.0F);  // a mean that would cancel
      const std::vector<std::uint16_t> weight = bf16s(random_floats(width, 2));
      const std::vector<std::uint16_t> bias = bf16s(random_floats(width, 3));
      Exact<float> exact_x(x, 1);
      Exact<std::uint16_t> exact_weight(weight, 1);
      Exact<std::uint16_t> exact_bias(bias, 1);
      Exact<float> y(std::vector<float>(x.size()), 1);
      layer_norm(exact_x.data(), exact_weight.data(), biased ? exact_bias.data() : nullptr, width, y.data(),
                 0, 2);
      for (std::int64_t row = 0; row < 2; ++row) {
        const float* in = x.data() + row * width;
        double mean = 0.0;
        for (std::int64_t i = 0; i < width; ++i) mean += wide(in[i]) / static_cast<double>(width);
        double variance = 0.0;
        for (std::int64_t i = 0; i < width; ++i) {
          variance += (wide(in[i]) - mean) * (wide(in[i]) - mean) / static_cast<double>(width);
        }
        for (std::int64_t i = 0; i < width; ++i) {
          const double expected =
              (wide(in[i]) - mean) / std::sqrt(variance + 1e-5) * wide(bf16_to_f32(weight[i])) +
              (biased ? wide(bf16_to_f32(bias[i])) : 0.0);
          // The mean's own rounding, 2^-24 of about 10, over a deviation of about 0.6.
          ASSERT_NEAR(wide(y.data()[row * width + i]), expected, width == 1 ? 1e-3 : 2e-5) << width;
        }
      }
    }
  }
}

TEST_P(Norms, ANanIsTheRowsAndAnInfinityItsOwn) {
  for (const std::int64_t width : {5, 16, 70}) {
    const std::vector<std::uint16_t> weight(static_cast<std::size_t>(width), f32_to_bf16(1.0F));
    for (const float bad : {std::nanf(""), kInfinity}) {
      std::vector<float> x = random_floats(2 * width, 1, 1.0F, 2.0F);
      x[width - 1] = bad;
      std::vector<float> y(x.size());
      rms_norm(x.data(), weight.data(), width, y.data(), 0, 2);
      EXPECT_TRUE(std::isnan(y[width - 1]));
      // The scale is 1 / inf: the finite values are nothing beside an infinite one.
      if (std::isinf(bad)) {
        EXPECT_EQ(y[0], 0.0F);
      } else {
        EXPECT_TRUE(std::isnan(y[0]));
      }
      layer_norm(x.data(), weight.data(), nullptr, width, y.data(), 0, 2);
      for (std::int64_t i = 0; i < 2 * width; ++i) EXPECT_EQ(std::isnan(y[i]), i < width) << width;
    }
  }
}

TEST_P(RowOps, RotaryTurnsHalvesAndKeepsTheRest) {
  const std::int64_t rows = 3;
  const std::int64_t heads = 2;
  for (const std::int64_t dim : {1, 2, 10, 33, 64, 131}) {
    const std::int64_t half = dim / 2;
    const std::vector<float> before = random_floats(rows * heads * dim, 1);
    std::vector<float> angles = random_floats(half, 2, 0.0F, 6.0F);
    std::vector<float> sines(angles);
    for (float& angle : angles) angle = std::cos(angle);
    for (float& angle : sines) angle = std::sin(angle);
    Exact<float> x(before, 1);
    Exact<float> exact_cosines(angles, 1);
    Exact<float> exact_sines(sines, 1);
    rotary(x.data(), exact_cosines.data(), exact_sines.data(), heads, dim, 1, 3);
    for (std::int64_t head = 0; head < rows * heads; ++head) {
      const bool turned = head >= heads;
      for (std::int64_t i = 0; i < half; ++i) {
        const double a = wide(before[head * dim + i]);
        const double b = wide(before[head * dim + i + half]);
        const double c = turned ? wide(angles[i]) : 1.0;
        const double s = turned ? wide(sines[i]) : 0.0;
        ASSERT_NEAR(wide(x.data()[head * dim + i]), a * c - b * s, 1e-6) << dim;
        ASSERT_NEAR(wide(x.data()[head * dim + i + half]), b * c + a * s, 1e-6) << dim;
      }
      for (std::int64_t i = 2 * half; i < dim; ++i)
        ASSERT_EQ(x.data()[head * dim + i], before[head * dim + i]);
    }
  }
}

TEST_P(RowOps, CombineHoldsToFloat64) {
  for (const std::int64_t width : kWidths) {
    for (const std::int64_t inputs : {1, 2, 8}) {
      Exact<float> x(random_floats(3 * inputs * width, 1), 1);
      Exact<float> shares(random_floats(inputs, 2), 1);
      Exact<float> y(std::vector<float>(static_cast<std::size_t>(3 * width), 99.0F), 1);
      combine(x.data(), shares.data(), inputs, width, y.data(), 1, 3);
      for (std::int64_t i = 0; i < 3 * width; ++i) {
        double sum = 0.0;
        for (std::int64_t k = 0; k < inputs; ++k)
          sum += wide(shares.data()[k]) * wide(x.data()[(i / width * inputs + k) * width + i % width]);
        ASSERT_NEAR(wide(y.data()[i]), i < width ? 99.0 : sum, 2e-6) << width << " by " << inputs;
      }
    }
  }
}

TEST_P(RowOps, CombinePassesNanAndInfinityOn) {
  const std::int64_t width = 37;
  std::vector<float> x(2 * width, 1.0F);
  x[3] = std::nanf("");
  x[width + 36] = kInfinity;
  const std::vector<float> shares = {0.25F, 0.75F};
  std::vector<float> y(width);
  combine(x.data(), shares.data(), 2, width, y.data(), 0, 1);
  for (std::int64_t i = 0; i < width; ++i) {
    EXPECT_EQ(std::isnan(y[i]), i == 3);
    EXPECT_EQ(std::isinf(y[i]), i == 36);
  }
}

}  // namespace
}  // namespace memwall::cpu
