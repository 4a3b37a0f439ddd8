#include "kernels/cpu/elementwise.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <stdexcept>

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
class TopK : public OnEverySet {};
MEMWALL_ON_EVERY_SET(TopK);

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

class Elementwise : public OnEverySet {};
MEMWALL_ON_EVERY_SET(Elementwise);

double activated(Activation activation, double x) {
  switch (activation) {
    case Activation::silu:
      return x / (1.0 + std::exp(-x));
    case Activation::gelu:
      return 0.5 * x * (1.0 + std::tanh(std::sqrt(2.0 / std::acos(-1.0)) * (x + 0.044715 * x * x * x)));
    case Activation::relu:
      return std::max(x, 0.0);
  }
  return 0.0;
}

TEST_P(Elementwise, ActivationsHoldToFloat64) {
  for (const Activation activation : {Activation::silu, Activation::gelu, Activation::relu}) {
    for (const std::int64_t width : kWidths) {
      for (const bool gated : {false, true}) {
        Exact<float> gate(random_floats(2 * width, 1, -12.0F, 12.0F), 1);
        Exact<float> up(random_floats(2 * width, 2), 1);
        std::vector<float> y(static_cast<std::size_t>(2 * width), 99.0F);
        activate(activation, gate.data(), gated ? up.data() : nullptr, width, y.data(), 1, 2);
        for (std::int64_t i = 0; i < 2 * width; ++i) {
          const double factor = gated ? wide(up.data()[i]) : 1.0;
          const double expected = i < width ? 99.0 : activated(activation, wide(gate.data()[i])) * factor;
          // tanh in the reference cancels near -1, where the result is small: hence the absolute part. The
          // exponent, up to 90 here, magnifies an argument's relative error of 2^-24.
          ASSERT_NEAR(wide(y[i]), expected, 1e-5 * std::fabs(expected) + 1e-14) << width << " " << i;
        }
      }
    }
  }
}

// Down to where e^x leaves the normal numbers, a silu is its x times e^x: a few units in the last place.
TEST_P(Elementwise, SiluKeepsItsPrecisionFarOut) {
  std::vector<float> x;
  for (int i = 0; i < 8700; ++i) x.push_back(-0.01F * static_cast<float>(i));
  std::vector<float> y(x.size());
  activate(Activation::silu, x.data(), nullptr, static_cast<std::int64_t>(x.size()), y.data(), 0, 1);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double expected = activated(Activation::silu, wide(x[i]));
    ASSERT_NEAR(wide(y[i]), expected, 6e-7 * std::fabs(expected)) << x[i];
  }
}

TEST_P(Elementwise, ActivationsAtTheEdges) {
  const std::vector<float> x = {0.0F,      -0.0F,         1e-40F,     100.0F, -100.0F,
                                kInfinity, std::nanf(""), -kInfinity, 3e38F};
  std::vector<float> y(x.size());
  const std::int64_t width = static_cast<std::int64_t>(x.size());
  for (const Activation activation : {Activation::silu, Activation::gelu, Activation::relu}) {
    activate(activation, x.data(), nullptr, width, y.data(), 0, 1);
    EXPECT_EQ(y[0], 0.0F);
    EXPECT_EQ(y[1], 0.0F);
    EXPECT_EQ(y[3], 100.0F);
    EXPECT_EQ(y[4], 0.0F);
    EXPECT_EQ(y[5], kInfinity);
    EXPECT_TRUE(std::isnan(y[6]));
    EXPECT_EQ(y[8], 3e38F);
  }
  EXPECT_EQ(y[7], 0.0F);  // relu of -inf; the others are -inf times 0
}

TEST_P(Elementwise, AddF32IsExactAndKeepsToItsRange) {
  for (const std::int64_t count : {1, 7, 16, 33, 1000}) {
    Exact<float> a(random_floats(count, 1), 1);
    Exact<float> b(random_floats(count, 2), 2);
    std::vector<float> y(static_cast<std::size_t>(count), 99.0F);
    const std::int64_t first = count / 3;
    const std::int64_t last = count - count / 4;
    add_f32(a.data(), b.data(), y.data(), first, last);
    for (std::int64_t i = 0; i < count; ++i) {
      EXPECT_EQ(y[i], i >= first && i < last ? a.data()[i] + b.data()[i] : 99.0F);
    }
  }
}

// Every f16 value, infinities, NaNs and subnormals included, against a shuffled partner.
TEST_P(Elementwise, AddF16RoundsToNearestEven) {
  std::vector<std::uint16_t> a(65536);
  std::iota(a.begin(), a.end(), std::uint16_t{0});
  for (const unsigned multiplier : {40503U, 1U, 2049U}) {
    std::vector<std::uint16_t> b(a.size());
    for (std::size_t i = 0; i < b.size(); ++i) b[i] = static_cast<std::uint16_t>(i * multiplier + 777U);
    std::vector<std::uint16_t> y(a.size());
    add_f16(a.data(), b.data(), y.data(), 0, 65536);
    for (std::size_t i = 0; i < a.size(); ++i) {
      const std::uint16_t expected = f32_to_f16(f16_to_f32(a[i]) + f16_to_f32(b[i]));
      if (std::isnan(f16_to_f32(expected))) {
        ASSERT_TRUE(std::isnan(f16_to_f32(y[i]))) << i;
      } else {
        ASSERT_EQ(y[i], expected) << i;
      }
    }
  }
}

TEST_P(Elementwise, AddF16KeepsToItsRange) {
  const std::uint16_t one = f32_to_f16(1.0F);
  for (const std::int64_t count : {1, 5, 16, 39}) {
    Exact<std::uint16_t> a(std::vector<std::uint16_t>(static_cast<std::size_t>(count), one), 1);
    std::vector<std::uint16_t> y(static_cast<std::size_t>(count), 7);
    const std::int64_t first = count / 3;
    const std::int64_t last = count - count / 4;
    add_f16(a.data(), a.data(), y.data(), first, last);
    for (std::int64_t i = 0; i < count; ++i) {
      EXPECT_EQ(y[i], i >= first && i < last ? f32_to_f16(2.0F) : 7);
    }
  }
}

TEST_P(Elementwise, GathersRowsOfEveryFormat) {
  const std::vector<std::int32_t> ids = {4, 0, 4, 2};
  for (const Format format : linear_formats()) {
    for (const std::int64_t width : {1, 33, 64}) {
      const Packed table(format, random_floats(5 * width, 1), 5, width);
      std::vector<float> y(static_cast<std::size_t>(4 * width), 99.0F);
      gather_rows(format, table.bytes.data(), ids.data(), width, y.data(), 1, 4);
      for (std::int64_t i = 0; i < 4 * width; ++i) {
        const std::int64_t source = ids[static_cast<std::size_t>(i / width)] * width + i % width;
        EXPECT_EQ(y[i], i < width ? 99.0F : table.values[source]) << format_name(format);
      }
    }
  }
}

TEST(Gather, RefusesAFormatWithoutCode) {
  float y = 0.0F;
  const std::int32_t id = 0;
  EXPECT_THROW(gather_rows({FormatKind::nvfp4, 0, false}, &y, &id, 1, &y, 0, 1), std::invalid_argument);
}

struct Choice {
  std::vector<std::int32_t> indices;
  std::vector<float> weights;
};

Choice choose(Exact<float> logits, std::int64_t rows, std::int64_t experts, std::int64_t k) {
  Choice choice{std::vector<std::int32_t>(static_cast<std::size_t>(rows * k), -1),
                std::vector<float>(static_cast<std::size_t>(rows * k))};
  top_k_softmax(logits.data(), experts, k, choice.indices.data(), choice.weights.data(), 0, rows);
  return choice;
}

Choice choose(const std::vector<float>& logits, std::int64_t k) {
  return choose(Exact<float>(logits), 1, static_cast<std::int64_t>(logits.size()), k);
}

using Indices = std::vector<std::int32_t>;

TEST_P(TopK, TiesGoToTheLowerIndex) {
  EXPECT_EQ(choose({1, 3, 3, 2, 3}, 2).indices, (Indices{1, 2}));
  EXPECT_EQ(choose({1, 3, 3, 2, 3}, 4).indices, (Indices{1, 2, 4, 3}));
  EXPECT_EQ(choose({0, 0, 0}, 3).indices, (Indices{0, 1, 2}));
  EXPECT_EQ(choose({0.0F, -0.0F, 0.0F}, 2).indices, (Indices{0, 1}));
}

TEST_P(TopK, WeightsAreTheSoftmaxOfTheChosen) {
  const Choice choice = choose({1000.0F, 998.0F, -5.0F, 999.0F}, 3);
  EXPECT_EQ(choice.indices, (Indices{0, 3, 1}));
  const double sum = 1.0 + std::exp(-1.0) + std::exp(-2.0);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_NEAR(wide(choice.weights[i]), std::exp(-static_cast<double>(i)) / sum, 1e-6);
  }
}

TEST_P(TopK, AgreesWithAStableSort) {
  struct Shape {
    std::int64_t experts, k;
  };
  for (const auto& [experts, k] : {Shape{64, 1}, Shape{64, 2}, Shape{64, 8}, Shape{64, 64}, Shape{7, 3},
                                   Shape{257, 8}, Shape{511, 33}}) {
    std::vector<float> logits = random_floats(20 * experts, 1);
    for (float& logit : logits) logit = std::round(logit * 10.0F);  // many ties
    for (std::size_t i = 0; i < logits.size(); i += 13) logits[i] = -kInfinity;
    const Choice choice = choose(Exact<float>(logits, 1), 20, experts, k);
    for (std::int64_t row = 0; row < 20; ++row) {
      Indices order(static_cast<std::size_t>(experts));
      std::iota(order.begin(), order.end(), 0);
      const float* scores = logits.data() + row * experts;
      std::stable_sort(order.begin(), order.end(),
                       [&](std::int32_t a, std::int32_t b) { return scores[a] > scores[b]; });
      order.resize(static_cast<std::size_t>(k));
      EXPECT_EQ(Indices(choice.indices.begin() + row * k, choice.indices.begin() + (row + 1) * k), order);
      double sum = 0.0;
      for (std::int64_t i = 0; i < k; ++i) sum += wide(choice.weights[row * k + i]);
      EXPECT_NEAR(sum, 1.0, 1e-6);
    }
  }
}

TEST_P(TopK, NanRanksLastAndBadKIsRefused) {
  const float nan = std::nanf("");
  EXPECT_EQ(choose({nan, 1.0F, nan, 2.0F}, 2).indices, (Indices{3, 1}));
  EXPECT_EQ(choose({nan, 1.0F, nan, 2.0F}, 3).indices, (Indices{3, 1, 0}));
  // Among the first k, and then far behind them.
  std::vector<float> logits = random_floats(100, 1);
  std::fill(logits.begin(), logits.begin() + 30, nan);
  logits[97] = nan;
  logits[98] = 2.0F;
  EXPECT_EQ(choose(logits, 2).indices.front(), 98);
  EXPECT_EQ(choose(logits, 69).indices[68] >= 30, true);
  EXPECT_EQ(choose(logits, 70).indices[69], 0);
  EXPECT_THROW(choose({1.0F}, 2), std::invalid_argument);
  EXPECT_THROW(choose({1.0F}, 0), std::invalid_argument);
}

}  // namespace
}  // namespace memwall::cpu
