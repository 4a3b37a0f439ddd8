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

const std::int64_t kWidths[] = {1, 3, 15, 16, 17, 64, 129, 4097};

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

}  // namespace
}  // namespace memwall::cpu
