#include "kernels/cuda/elementwise.cuh"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "load/load_model.h"
#include "tests/cuda/element_support.h"
#include "tests/support.h"

namespace memwall::cuda {
namespace {

template <class T>
constexpr ElementwiseType kType = std::is_same_v<T, float>  ? ElementwiseType::f32
                                  : std::is_same_v<T, Half> ? ElementwiseType::f16
                                                            : ElementwiseType::bf16;

const std::uint16_t* bits(const GpuVector<BFloat16>& v) {
  return v.empty() ? nullptr : reinterpret_cast<const std::uint16_t*>(v.data());
}

template <class T>
void norms_match(Executor& executor, std::int64_t rows, std::int64_t width, bool layer, bool biased) {
  SCOPED_TRACE(std::to_string(rows) + " rows of " + std::to_string(width) + (layer ? ", layer" : ", rms"));
  GpuVector<T> x = random_elements<T>(rows * width, 1);
  for (T& value : x) value = rounded<T>(widen(value) + 0.5F);
  const auto weight = random_elements<BFloat16>(width, 2);
  const auto bias = random_elements<BFloat16>(biased ? width : 0, 3);
  GpuVector<T> y = nan_elements<T>(rows * width);
  run_on(executor, elementwise_launch(kType<T>, NormParams{.x = x.data(),
                                                           .weight = bits(weight),
                                                           .bias = bits(bias),
                                                           .y = y.data(),
                                                           .rows = rows,
                                                           .width = width,
                                                           .layer = layer}));
  Comparison comparison;
  for (std::int64_t row = 0; row < rows; ++row) {
    const T* in = x.data() + row * width;
    double mean = 0;
    for (std::int64_t c = 0; layer && c < width; ++c) mean += exact(in[c]) / static_cast<double>(width);
    double variance = 0;
    for (std::int64_t c = 0; c < width; ++c)
      variance += (exact(in[c]) - mean) * (exact(in[c]) - mean) / static_cast<double>(width);
    for (std::int64_t c = 0; c < width; ++c) {
      const double b = biased ? exact(bias[static_cast<std::size_t>(c)]) : 0;
      const double scaled = (exact(in[c]) - mean) / std::sqrt(variance + (layer ? 1e-5 : 1e-6)) *
                            exact(weight[static_cast<std::size_t>(c)]);
      comparison.add(exact(y[static_cast<std::size_t>(row * width + c)]), scaled + b,
                     element_tolerance<T>(scaled + b, std::abs(scaled) + std::abs(b) + 1));
    }
  }
  EXPECT_LE(comparison.result().worst, 1);
}

TEST(CudaElementwise, NormsMatchFloat64) {
  // A warp's and a block's rows, held whole and not, aligned and not.
  in_all_orders([](Executor& executor) {
    for (const std::int64_t width : {1, 7, 130, 1024}) {
      norms_match<Half>(executor, 5, width, false, false);
      norms_match<BFloat16>(executor, 5, width, true, true);
    }
    norms_match<BFloat16>(executor, 2, 1088, false, false);
    norms_match<Half>(executor, 2, 1090, true, true);
  });
  Executor executor;
  norms_match<BFloat16>(executor, 3, 72, false, false);
  norms_match<Half>(executor, 3, 72, true, false);
  norms_match<Half>(executor, 1, 1025, false, false);
  norms_match<BFloat16>(executor, 1, 2055, true, true);
  norms_match<Half>(executor, 1, 16440, false, false);
  norms_match<BFloat16>(executor, 1, 16440, true, true);
}

template <class T>
void rotary_matches(Executor& executor, std::int64_t rows, std::int64_t width) {
  SCOPED_TRACE(width);
  const GpuVector<T> before = random_elements<T>(rows * width, 4);
  GpuVector<T> x = before;
  const auto c = random_elements<float>(width / 2, 5);
  const auto s = random_elements<float>(width / 2, 6);
  run_on(
      executor,
      elementwise_launch(
          kType<T>,
          RotaryParams{.x = x.data(), .cosines = c.data(), .sines = s.data(), .rows = rows, .width = width}));
  Comparison comparison;
  const std::int64_t half = width / 2;
  for (std::int64_t i = 0; i < rows * width; ++i) {
    const std::int64_t at = i % width;
    const double old = exact(before[static_cast<std::size_t>(i)]);
    double expected = old;
    if (at < 2 * half) {
      const auto angle = static_cast<std::size_t>(at % half);
      const double other = exact(before[static_cast<std::size_t>(at < half ? i + half : i - half)]);
      expected = old * exact(c[angle]) + (at < half ? -other : other) * exact(s[angle]);
    }
    comparison.add(exact(x[static_cast<std::size_t>(i)]), expected, element_tolerance<T>(expected, 2));
  }
  EXPECT_LE(comparison.result().worst, 1);
}

TEST(CudaElementwise, RotaryTurnsPairsInPlace) {
  in_all_orders([](Executor& executor) {
    for (const std::int64_t width : {2, 7, 16, 24, 64, 128, 257}) {
      rotary_matches<Half>(executor, 3, width);
      rotary_matches<BFloat16>(executor, 5, width);
    }
  });
}

double activated_exactly(ElementwiseActivation activation, double x) {
  switch (activation) {
    case ElementwiseActivation::silu:
      return x / (1 + std::exp(-x));
    case ElementwiseActivation::gelu:
      return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
    case ElementwiseActivation::relu:
      break;
  }
  return std::max(x, 0.0);
}

// `shift` elements into their arrays, so that nothing is aligned where it is odd.
template <class T>
void activation_matches(Executor& executor, ElementwiseActivation activation, bool gated, std::int64_t count,
                        std::size_t shift) {
  GpuVector<T> gate = random_elements<T>(count + static_cast<std::int64_t>(shift), 7);
  for (std::size_t i = 0; i < gate.size(); ++i)
    gate[i] = rounded<T>(widen(gate[i]) * (i % 5 == 0 ? 30000.0F : 4.0F));
  const GpuVector<T> up = random_elements<T>(count + static_cast<std::int64_t>(shift), 8);
  GpuVector<T> y = nan_elements<T>(count + static_cast<std::int64_t>(shift));
  run_on(executor, elementwise_launch(kType<T>, ActivateParams{.gate = gate.data() + shift,
                                                               .up = gated ? up.data() + shift : nullptr,
                                                               .y = y.data() + shift,
                                                               .elements = count,
                                                               .activation = activation}));
  Comparison comparison;
  for (std::size_t i = shift; i < y.size(); ++i) {
    const double expected = activated_exactly(activation, exact(gate[i])) * (gated ? exact(up[i]) : 1);
    comparison.add(exact(y[i]), expected, element_tolerance<T>(expected, expected));
  }
  EXPECT_LE(comparison.result().worst, 1) << count << ' ' << shift;
}

TEST(CudaElementwise, ActivationsMatchFloat64) {
  in_all_orders([](Executor& executor) {
    for (const auto activation :
         {ElementwiseActivation::silu, ElementwiseActivation::gelu, ElementwiseActivation::relu}) {
      for (const bool gated : {false, true}) {
        activation_matches<BFloat16>(executor, activation, gated, 2051, 0);
        activation_matches<Half>(executor, activation, gated, 133, 1);
        activation_matches<Half>(executor, activation, gated, 5, 0);
      }
    }
  });
}

template <class T>
void adds(Executor& executor, std::int64_t count) {
  const GpuVector<T> a = random_elements<T>(count, 9);
  const GpuVector<T> b = random_elements<T>(count, 10);
  GpuVector<T> y = nan_elements<T>(count);
  run_on(executor, elementwise_launch(
                       kType<T>, AddParams{.a = a.data(), .b = b.data(), .y = y.data(), .elements = count}));
  for (std::size_t i = 0; i < y.size(); ++i)
    ASSERT_EQ(widen(y[i]), widen(rounded<T>(widen(a[i]) + widen(b[i])))) << count << ' ' << i;
}

TEST(CudaElementwise, AddsEveryType) {
  in_all_orders([](Executor& executor) {
    for (const std::int64_t count : {1, 8, 1027}) {
      adds<float>(executor, count);
      adds<Half>(executor, count);
      adds<BFloat16>(executor, count);
    }
  });
}

template <class T>
void combines(Executor& executor, std::int64_t rows, std::int64_t inputs, std::int64_t width,
              bool own_shares) {
  const GpuVector<T> x = random_elements<T>(rows * inputs * width, 11);
  const auto shares = random_elements<float>(own_shares ? rows * inputs : inputs, 12);
  GpuVector<T> y = nan_elements<T>(rows * width);
  run_on(executor, elementwise_launch(kType<T>, CombineParams{.x = x.data(),
                                                              .shares = shares.data(),
                                                              .y = y.data(),
                                                              .rows = rows,
                                                              .inputs = inputs,
                                                              .width = width,
                                                              .share_pitch = own_shares ? inputs : 0}));
  Comparison comparison;
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t c = 0; c < width; ++c) {
      double sum = 0;
      for (std::int64_t i = 0; i < inputs; ++i) {
        sum += exact(shares[static_cast<std::size_t>(own_shares ? row * inputs + i : i)]) *
               exact(x[static_cast<std::size_t>((row * inputs + i) * width + c)]);
      }
      comparison.add(exact(y[static_cast<std::size_t>(row * width + c)]), sum,
                     element_tolerance<T>(sum, static_cast<double>(inputs)));
    }
  }
  EXPECT_LE(comparison.result().worst, 1) << inputs << " of " << width;
}

TEST(CudaElementwise, CombinesOwnAndSharedWeights) {
  in_all_orders([](Executor& executor) {
    for (const std::int64_t inputs : {1, 2, 4, 6, 9}) {
      combines<BFloat16>(executor, 3, inputs, 264, true);
      combines<Half>(executor, 2, inputs, 37, false);
    }
  });
}

TEST(CudaElementwise, AlignedRowsAreReadOnceInWholeSectors) {
  for (const std::int64_t width : {256, 2048}) {
    Executor executor;
    const auto x = random_elements<BFloat16>(4 * width, 1);
    const auto weight = random_elements<BFloat16>(width, 2);
    GpuVector<BFloat16> y = nan_elements<BFloat16>(4 * width);
    const auto check = [&](const ElementwiseLaunch& launch) {
      executor.forget_traffic();
      executor.watch(x.data(), x.size() * 2);
      run_on(executor, launch);
      EXPECT_EQ(executor.watched().least, 1U);
      EXPECT_EQ(executor.watched().most, 1U);
      EXPECT_EQ(executor.traffic().sectors_written * 32, executor.traffic().bytes_written);
      EXPECT_LE(executor.traffic().sectors_read * 32, executor.traffic().bytes_read + 64);
    };
    check(elementwise_launch(
        ElementwiseType::bf16,
        NormParams{.x = x.data(), .weight = bits(weight), .y = y.data(), .rows = 4, .width = width}));
    check(elementwise_launch(
        ElementwiseType::bf16,
        ActivateParams{.gate = x.data(), .up = x.data() + 2 * width, .y = y.data(), .elements = 2 * width}));
    check(elementwise_launch(
        ElementwiseType::bf16,
        AddParams{.a = x.data(), .b = x.data() + 2 * width, .y = y.data(), .elements = 2 * width}));
  }
}

// Every op of the zoo is read in vectors, and its launch is one that CUDA takes.
TEST(CudaElementwise, LaunchesForTheWholeZoo) {
  const DataVariable data;
  alignas(16) std::uint16_t memory[8] = {};
  alignas(16) float floats[4] = {};
  std::int64_t ops = 0;
  for (const Model& model : zoo()) {
    for (const Op& op : lower(model)) {
      const auto* work = std::get_if<ElementwiseWork>(&op.work);
      if (work == nullptr) continue;
      ++ops;
      for (const std::int64_t tokens : {1, 64, 65536}) {
        const std::int64_t rows = tokens * work->rows_per_token;
        Geometry geometry;
        std::int64_t items = 0;
        if (work->function == ElementwiseFunction::rms_norm ||
            work->function == ElementwiseFunction::layer_norm) {
          const auto launch = elementwise_launch(
              ElementwiseType::bf16,
              NormParams{.x = memory, .weight = memory, .y = memory, .rows = rows, .width = work->width});
          EXPECT_TRUE(std::get<NormParams>(launch.params).vectors) << model.name << ' ' << op.name;
          geometry = launch.geometry;
          items = rows * (norm_by_warp(work->width) ? kWarp : kNormBlockThreads);
        } else if (work->function == ElementwiseFunction::rotary) {
          const auto launch = elementwise_launch(
              ElementwiseType::bf16,
              RotaryParams{
                  .x = memory, .cosines = floats, .sines = floats, .rows = rows, .width = work->width});
          const bool vectors = std::get<RotaryParams>(launch.params).vectors;
          geometry = launch.geometry;
          items = rows * (work->width / 2) / (vectors ? 8 : 1);
        } else {
          const auto launch = elementwise_launch(
              ElementwiseType::bf16,
              AddParams{.a = memory, .b = memory, .y = memory, .elements = rows * work->width});
          EXPECT_EQ(std::get<AddParams>(launch.params).vectors * 8, rows * work->width);
          geometry = launch.geometry;
          items = rows * work->width / 8;
        }
        EXPECT_GE(std::int64_t{geometry.grid_x} * geometry.threads, items);
        EXPECT_LT(std::int64_t{geometry.grid_x - 1} * geometry.threads, items);
        EXPECT_LT(geometry.grid_x, std::uint32_t{1} << 31);
      }
    }
  }
  EXPECT_GT(ops, 500);
}

}  // namespace
}  // namespace memwall::cuda
