// Quantised activations against the host's own conversions, bit by bit, and float64.
#include "kernels/cuda/quantize.cuh"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "kernels/cpu/pack.h"
#include "tests/cuda/element_support.h"

namespace memwall::cuda {
namespace {

template <class T>
constexpr ActivationType kActivation = std::is_same_v<T, Half> ? ActivationType::f16 : ActivationType::bf16;

struct Quantized {
  GpuVector<std::uint8_t> codes;
  GpuVector<float> scales;
  std::size_t launches = 0;
};

// Codes and scales hold what no kernel writes; partials are NaN.
template <class T>
Quantized quantize(Executor& executor, QuantizeRule rule, const T* x, std::int64_t rows, std::int64_t width,
                   unsigned most_blocks = kMostPartials) {
  Quantized to;
  to.codes.assign(static_cast<std::size_t>(rows * width), 0x80);
  to.scales.assign(static_cast<std::size_t>(rule == QuantizeRule::i8_rows ? rows : 1), std::nanf(""));
  GpuVector<float> partials(kMostPartials, std::nanf(""));
  QuantizeParams params;
  params.x = x;
  params.codes = to.codes.data();
  params.scales = to.scales.data();
  params.partials = partials.data();
  params.rows = rows;
  params.width = width;
  for (QuantizeLaunch launch : quantize_launches(rule, kActivation<T>, params)) {
    if (launch.step != QuantizeStep::rows) {
      launch.geometry.grid_x = std::min(launch.geometry.grid_x, most_blocks);
      std::get<QuantizeParams>(launch.params).part_count = launch.geometry.grid_x;
    }
    run_on(executor, launch);
    ++to.launches;
  }
  return to;
}

template <class T>
float largest_of(const T* x, std::int64_t count) {
  float most = 0;
  for (std::int64_t i = 0; i < count; ++i) most = std::max(most, std::fabs(widen(x[i])));
  return most;
}

double number_of(QuantizeRule rule, std::uint8_t code) {
  if (rule == QuantizeRule::i8_rows) return static_cast<std::int8_t>(code);
  return static_cast<double>(cpu::f8_e4m3_to_f32(code));
}

// The scale, every code as the host converts, and every value within half a step of x.
template <class T>
void hold(QuantizeRule rule, const T* x, std::int64_t count, const std::uint8_t* codes, float scale) {
  const bool i8 = rule == QuantizeRule::i8_rows;
  const float most = i8 ? 127.0F : 448.0F;
  ASSERT_EQ(scale, std::max(largest_of(x, count) / most, 0x1p-126F));
  const float inverse = 1.0F / scale;
  for (std::int64_t i = 0; i < count; ++i) {
    const float scaled = widen(x[i]) * inverse;
    const std::uint8_t expected =
        i8 ? static_cast<std::uint8_t>(static_cast<std::int8_t>(std::nearbyint(scaled)))
           : cpu::f32_to_f8_e4m3(scaled);
    ASSERT_EQ(codes[i], expected) << i << " of " << count << ": " << scaled;
    const double number = number_of(rule, codes[i]);
    // E4M3 has 3 bits behind its first, and no steps finer than 2^-9.
    const double step = i8 ? 1 : std::ldexp(1, std::max(-9, number == 0 ? -9 : std::ilogb(number) - 3));
    const double value = exact(x[i]);
    ASSERT_LE(std::abs(number * static_cast<double>(scale) - value),
              0.5 * step * static_cast<double>(scale) + 1e-6 * std::abs(value))
        << i << " of " << count;
  }
}

// Rows wider than a block's registers hold, of odd widths, and of one element; a row of zeros; rows so small
// that the scale is the smallest, and so large that they are near the type's end.
template <class T>
void rows_hold() {
  for (const std::int64_t width : {1, 7, 8, 300, 4104, 16384 + 24, 2049 + 16384}) {
    SCOPED_TRACE(width);
    constexpr std::int64_t kRows = 5;
    GpuVector<T> x = random_elements<T>(kRows * width, 3);
    const auto element = [&](std::int64_t row, std::int64_t i) -> T& {
      return x[static_cast<std::size_t>(row * width + i)];
    };
    const float large = std::is_same_v<T, Half> ? 6e4F : 1e38F;
    const float small = std::is_same_v<T, Half> ? 1e-7F : 1e-40F;
    for (std::int64_t i = 0; i < width; ++i) {
      element(1, i) = rounded<T>(i % 2 == 0 ? 0.0F : -0.0F);
      element(2, i) = rounded<T>(widen(element(2, i)) * large);
      element(3, i) = rounded<T>(widen(element(3, i)) * small);
    }
    in_all_orders([&](Executor& executor) {
      executor.watch(x.data(), x.size() * sizeof(T));
      const Quantized to = quantize(executor, QuantizeRule::i8_rows, x.data(), kRows, width);
      EXPECT_EQ(to.launches, 1U);
      for (std::int64_t row = 0; row < kRows; ++row) {
        SCOPED_TRACE(row);
        hold(QuantizeRule::i8_rows, x.data() + row * width, width, to.codes.data() + row * width,
             to.scales[static_cast<std::size_t>(row)]);
      }
      EXPECT_EQ(executor.traffic().bytes_written, kRows * (width + 4));
      EXPECT_EQ(executor.watched().least, 1U);
      // What registers hold is read once.
      EXPECT_EQ(executor.watched().most, width < kOneBlockElements ? 1U : 2U);
    });
  }
}

TEST(CudaQuantize, RowsToIntegers) {
  rows_hold<Half>();
  rows_hold<BFloat16>();
}

// One launch up to what a block holds, two beyond; grids of fewer blocks than the tensor has parts go round.
template <class T>
void tensors_hold() {
  struct Case {
    std::int64_t rows, width;
    std::size_t launches;
    unsigned most_blocks = kMostPartials;
  };
  for (const Case& c : {Case{1, 1, 1}, Case{3, 7, 1}, Case{2, 136, 1}, Case{4, 4096, 1}, Case{5, 3277, 2},
                        Case{5, 4096, 2}, Case{5, 4096, 2, 1}, Case{5, 4096, 2, 3}, Case{5, 3277, 2, 2}}) {
    SCOPED_TRACE(testing::Message() << c.rows << " x " << c.width << " by " << c.most_blocks);
    GpuVector<T> x = random_elements<T>(c.rows * c.width, 4);
    in_all_orders([&](Executor& executor) {
      // Wherever the largest lies, and where all are zeros.
      for (const std::int64_t at : {std::int64_t{0}, c.rows * c.width / 2, c.rows * c.width - 1}) {
        const T kept = x[static_cast<std::size_t>(at)];
        x[static_cast<std::size_t>(at)] = rounded<T>(-3.7F);
        const Quantized to =
            quantize(executor, QuantizeRule::f8_tensor, x.data(), c.rows, c.width, c.most_blocks);
        EXPECT_EQ(to.launches, c.launches);
        hold(QuantizeRule::f8_tensor, x.data(), c.rows * c.width, to.codes.data(), to.scales[0]);
        x[static_cast<std::size_t>(at)] = kept;
      }
      const GpuVector<T> zeros(x.size());
      const Quantized to =
          quantize(executor, QuantizeRule::f8_tensor, zeros.data(), c.rows, c.width, c.most_blocks);
      EXPECT_EQ(to.scales[0], 0x1p-126F);
      EXPECT_EQ(std::count(to.codes.begin(), to.codes.end(), 0), std::ssize(to.codes));
    });
  }
}

TEST(CudaQuantize, TensorsToEightBitFloats) {
  tensors_hold<Half>();
  tensors_hold<BFloat16>();
}

// Under a scale of 1 every half is the number converted: ties and subnormals too.
TEST(CudaQuantize, HalvesAreRoundedToNearestEven) {
  for (const QuantizeRule rule : {QuantizeRule::f8_tensor, QuantizeRule::i8_rows}) {
    const float most = rule == QuantizeRule::i8_rows ? 127.0F : 448.0F;
    GpuVector<Half> x;
    for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
      const Half half{static_cast<std::uint16_t>(bits)};
      if (std::fabs(widen(half)) <= most) x.push_back(half);
    }
    EXPECT_GT(x.size(), 40'000U);
    Executor executor;
    const Quantized to = quantize(executor, rule, x.data(), 1, std::ssize(x));
    EXPECT_EQ(to.scales[0], 1.0F);
    hold(rule, x.data(), std::ssize(x), to.codes.data(), to.scales[0]);
  }
}

TEST(CudaQuantize, ConversionsSaturate) {
  std::int8_t integer = 0;
  for (const auto& [value, expected] :
       {std::pair{1000.0F, 127}, {-1e30F, -127}, {127.6F, 127}, {2.5F, 2}, {-3.5F, -4}, {0.49F, 0}}) {
    narrow(value, &integer);
    EXPECT_EQ(integer, expected) << value;
  }
  EXPECT_EQ(narrow_x4<std::int8_t>(1.0F, -1.0F, 127.0F, -127.0F), 0x817FFF01U);
  EXPECT_EQ(narrow_x4<F8E4M3>(448.0F, -1e9F, 1.0F, -0.0F), 0x8038FE7EU);
}

template <class T>
void sums_hold() {
  struct Bias {
    ActivationType type;
    bool any;
  };
  for (const std::int64_t out : {1, 3, 4, 130, 516, 521}) {
    for (const Bias bias : {Bias{ActivationType::f16, false}, Bias{ActivationType::f16, true},
                            Bias{ActivationType::bf16, true}, Bias{ActivationType::f32, true}}) {
      SCOPED_TRACE(testing::Message() << out << ", bias " << bias.any << static_cast<int>(bias.type));
      constexpr std::int64_t kRows = 5;
      const auto random = random_elements<float>(kRows * out, 1);
      GpuVector<std::int32_t> sums;
      for (const float value : random) sums.push_back(static_cast<std::int32_t>(value * 3e8F));
      GpuVector<float> row_scales = random_elements<float>(kRows, 2);
      for (float& scale : row_scales) scale *= 1e-5F;  // within f16
      const auto column_scales = random_elements<float>(out, 3);
      const auto halves = random_elements<Half>(out, 4);
      const auto brains = random_elements<BFloat16>(out, 5);
      const auto floats = random_elements<float>(out, 6);
      ScaleSumsParams params;
      params.sums = sums.data();
      params.row_scales = row_scales.data();
      params.column_scales = column_scales.data();
      params.bias_type = bias.type;
      const auto bias_of = [&](std::size_t o) {
        if (!bias.any) return 0.0;
        if (bias.type == ActivationType::f32) return static_cast<double>(floats[o]);
        return bias.type == ActivationType::f16 ? exact(halves[o]) : exact(brains[o]);
      };
      if (bias.any && bias.type == ActivationType::f32) params.bias = floats.data();
      if (bias.any && bias.type == ActivationType::f16) params.bias = halves.data();
      if (bias.any && bias.type == ActivationType::bf16) params.bias = brains.data();
      params.rows = kRows;
      params.out = out;
      for (const unsigned blocks : {5U, 2U}) {
        in_all_orders([&](Executor& executor) {
          GpuVector<T> y = nan_elements<T>(kRows * out);
          params.y = y.data();
          QuantizeLaunch launch = scale_sums_launch(kActivation<T>, params);
          EXPECT_EQ(launch.geometry.grid_y, kRows);
          launch.geometry.grid_y = blocks;  // fewer: other rows go round
          run_on(executor, launch);
          for (std::size_t i = 0; i < y.size(); ++i) {
            const std::size_t o = i % static_cast<std::size_t>(out);
            const double expected = static_cast<double>(sums[i]) *
                                        static_cast<double>(row_scales[i / static_cast<std::size_t>(out)]) *
                                        static_cast<double>(column_scales[o]) +
                                    bias_of(o);
            ASSERT_NEAR(exact(y[i]), expected, element_tolerance<T>(expected, expected)) << i;
          }
          EXPECT_EQ(executor.traffic().bytes_written, kRows * out * 2);
        });
      }
    }
  }
}

TEST(CudaQuantize, SumsGetTheirScalesAndTheBias) {
  sums_hold<Half>();
  sums_hold<BFloat16>();
}

TEST(CudaQuantize, LaunchesFitTheirShapes) {
  GpuVector<std::uint16_t> x(64);
  GpuVector<std::uint8_t> codes(64);
  QuantizeParams params;
  params.x = x.data();
  params.codes = codes.data();
  params.rows = 2;
  params.width = 16;
  const auto vectors = [](const QuantizeLaunch& launch) {
    return std::get<QuantizeParams>(launch.params).vectors;
  };
  EXPECT_TRUE(vectors(quantize_launches(QuantizeRule::i8_rows, ActivationType::f16, params)[0]));
  // Rows of a tensor without gaps are one row.
  params.width = 12;
  EXPECT_FALSE(vectors(quantize_launches(QuantizeRule::i8_rows, ActivationType::f16, params)[0]));
  EXPECT_TRUE(vectors(quantize_launches(QuantizeRule::f8_tensor, ActivationType::f16, params)[0]));
  params.x = x.data() + 1;
  EXPECT_FALSE(vectors(quantize_launches(QuantizeRule::f8_tensor, ActivationType::f16, params)[0]));
  params.rows = 1 << 15;
  params.width = 1 << 15;
  const auto large = quantize_launches(QuantizeRule::f8_tensor, ActivationType::bf16, params);
  ASSERT_EQ(large.size(), 2U);
  EXPECT_EQ(large[0].geometry.grid_x, kMostPartials);
  EXPECT_EQ(std::get<QuantizeParams>(large[1].params).part_count, kMostPartials);
  EXPECT_EQ(scale_sums_launch(ActivationType::f16, {.rows = 1 << 20, .out = 8}).geometry.grid_y, 65535U);
  EXPECT_THROW(quantize_launches(QuantizeRule::i8_rows, ActivationType::f32, params), std::invalid_argument);
  EXPECT_THROW(scale_sums_launch(ActivationType::f32, {}), std::invalid_argument);
}

}  // namespace
}  // namespace memwall::cuda
