// What the tests of kernels over plain elements share.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "bench/cpu_data.h"
#include "kernels/cuda/platform.cuh"
#include "tests/cuda/executor.h"
#include "tests/cuda/gpu_vector.h"

namespace memwall::cuda {

// Runs the kernel that a launch names.
template <class AnyLaunch>
void run_on(Executor& executor, const AnyLaunch& launch) {
  dispatch(launch, [&]<class Kernel>(const Geometry& geometry, const typename Kernel::Params& params) {
    executor.run<Kernel>(geometry, params);
  });
}

// Calls test(executor) with blocks and threads in order, backward and shuffled.
template <class Test>
void in_all_orders(Test test) {
  for (const Order order : {Order::forward, Order::backward, Order::shuffled}) {
    Executor executor({.blocks = order, .threads = order, .seed = 7, .arch = {}});
    test(executor);
  }
}

template <class T>
double exact(T value) {
  return static_cast<double>(widen(value));
}
template <class T>
T rounded(float value) {
  T to{};
  narrow(value, &to);
  return to;
}

// Uniform in [-1, 1), rounded.
template <class T>
GpuVector<T> random_elements(std::int64_t count, std::uint64_t seed) {
  GpuVector<T> values;
  for (const float value : random_floats(static_cast<std::size_t>(count), seed))
    values.push_back(rounded<T>(value));
  return values;
}
template <class T>
GpuVector<T> nan_elements(std::int64_t count) {
  return GpuVector<T>(static_cast<std::size_t>(count), rounded<T>(std::nanf("")));
}

// An output's rounding to T, and an f32 computation's own error over terms of that magnitude.
template <class T>
double element_tolerance(double reference, double magnitude) {
  const int significand = sizeof(T) == 4 ? 24 : std::is_same_v<T, Half> ? 11 : 8;
  return std::ldexp(std::abs(reference), -significand) + 1e-5 * (std::abs(magnitude) + 1e-2);
}

}  // namespace memwall::cuda
