// The bodies of the elementwise kernels (elementwise.h).
#pragma once

#include "kernels/cuda/elementwise.h"
#include "kernels/cuda/norm.cuh"
#include "kernels/cuda/values.cuh"
#include "kernels/cuda/vector16.cuh"

namespace memwall::cuda {

MEMWALL_DEVICE std::int64_t flat_thread() {
  return static_cast<std::int64_t>(block_x()) * kFlatThreads + thread_x();
}

template <class T>
struct RotaryKernel {
  using Params = RotaryParams;
  static constexpr unsigned kThreads = kFlatThreads;
  static MEMWALL_DEVICE void run(const Params& p, std::byte*) {
    if (p.vectors) {
      turn<kInVector<T>>(p);
    } else {
      turn<1>(p);
    }
  }

 private:
  // A thread turns one piece of a row's lower half and its partners in the upper one.
  template <int V>
  static MEMWALL_DEVICE void turn(const Params& p) {
    const std::int64_t half = p.width / 2;
    const std::int64_t pieces = half / V;
    const std::int64_t item = flat_thread();
    if (item >= p.rows * pieces) return;
    T* lower = static_cast<T*>(p.x) + item / pieces * p.width;
    T* upper = lower + half;
    const std::int64_t at = item % pieces;
    Piece<T, V> low;
    Piece<T, V> high;
    low.read(lower, at);
    high.read(upper, at);
    float c[V];
    float s[V];
    angles<V>(p.cosines, at, c);
    angles<V>(p.sines, at, s);
    float a[V];
    float b[V];
    low.values(a);
    high.values(b);
    float turned_low[V];
    float turned_high[V];
    MEMWALL_UNROLL
    for (int e = 0; e < V; ++e) {
      turned_low[e] = a[e] * c[e] - b[e] * s[e];
      turned_high[e] = b[e] * c[e] + a[e] * s[e];
    }
    Piece<T, V>::write(turned_low, lower, at);
    Piece<T, V>::write(turned_high, upper, at);
  }

  template <int V>
  static MEMWALL_DEVICE void angles(const float* table, std::int64_t piece, float (&values)[V]) {
    if constexpr (V == 1) {
      values[0] = load(table + piece);
    } else {
      const Vec16 low = load(reinterpret_cast<const Vec16*>(table) + 2 * piece);
      const Vec16 high = load(reinterpret_cast<const Vec16*>(table) + 2 * piece + 1);
      MEMWALL_UNROLL
      for (int e = 0; e < 4; ++e) {
        values[e] = bits_as_float(low.word[e]);
        values[e + 4] = bits_as_float(high.word[e]);
      }
    }
  }
};

// The functions' values; both sigmoids come out of one exponential: (1 + tanh u) / 2 = sigmoid(2u).
MEMWALL_DEVICE float activated(ElementwiseActivation activation, float x) {
  constexpr float kTwiceRootTwoOverPi = 1.5957691216F;
  switch (activation) {
    case ElementwiseActivation::silu:
      return quick_quotient(x, 1.0F + exponential(-x));
    case ElementwiseActivation::gelu:
      return quick_quotient(x, 1.0F + exponential(-kTwiceRootTwoOverPi * (x + 0.044715F * x * x * x)));
    case ElementwiseActivation::relu:
      break;
  }
  return x > 0.0F || x != x ? x : 0.0F;
}

template <class T>
struct ActivateKernel {
  using Params = ActivateParams;
  static constexpr unsigned kThreads = kFlatThreads;
  static MEMWALL_DEVICE void run(const Params& p, std::byte*) {
    const std::int64_t item = flat_thread();
    if (item < p.vectors) return piece<kInVector<T>>(p, item);
    const std::int64_t element = p.vectors * kInVector<T> + (item - p.vectors);
    if (element < p.elements) piece<1>(p, element);
  }

 private:
  template <int V>
  static MEMWALL_DEVICE void piece(const Params& p, std::int64_t at) {
    Piece<T, V> gate;
    Piece<T, V> up;
    gate.read(static_cast<const T*>(p.gate), at);
    if (p.up != nullptr) up.read(static_cast<const T*>(p.up), at);
    float y[V];
    gate.values(y);
    MEMWALL_UNROLL
    for (int e = 0; e < V; ++e) y[e] = activated(p.activation, y[e]);
    if (p.up != nullptr) {
      float factor[V];
      up.values(factor);
      MEMWALL_UNROLL
      for (int e = 0; e < V; ++e) y[e] *= factor[e];
    }
    Piece<T, V>::write(y, static_cast<T*>(p.y), at);
  }
};

template <class T>
struct AddKernel {
  using Params = AddParams;
  static constexpr unsigned kThreads = kFlatThreads;
  static MEMWALL_DEVICE void run(const Params& p, std::byte*) {
    const std::int64_t item = flat_thread();
    if (item < p.vectors) return piece<kInVector<T>>(p, item);
    const std::int64_t element = p.vectors * kInVector<T> + (item - p.vectors);
    if (element < p.elements) piece<1>(p, element);
  }

 private:
  template <int V>
  static MEMWALL_DEVICE void piece(const Params& p, std::int64_t at) {
    Piece<T, V> a;
    Piece<T, V> b;
    a.read(static_cast<const T*>(p.a), at);
    b.read(static_cast<const T*>(p.b), at);
    float y[V];
    float other[V];
    a.values(y);
    b.values(other);
    MEMWALL_UNROLL
    for (int e = 0; e < V; ++e) y[e] += other[e];
    Piece<T, V>::write(y, static_cast<T*>(p.y), at);
  }
};

template <class T>
struct CombineKernel {
  using Params = CombineParams;
  static constexpr unsigned kThreads = kFlatThreads;
  static MEMWALL_DEVICE void run(const Params& p, std::byte*) {
    if (p.vectors) {
      columns<kInVector<T>>(p);
    } else {
      columns<1>(p);
    }
  }

 private:
  // A thread sums one piece of a row over the inputs, four of them in flight.
  template <int V>
  static MEMWALL_DEVICE void columns(const Params& p) {
    const std::int64_t pieces = p.width / V;
    const std::int64_t item = flat_thread();
    if (item >= p.rows * pieces) return;
    const std::int64_t row = item / pieces;
    const std::int64_t at = item % pieces;
    const T* x = static_cast<const T*>(p.x) + row * p.inputs * p.width;
    const float* shares = p.shares + row * p.share_pitch;
    float sums[V] = {};
    for (std::int64_t first = 0; first < p.inputs; first += kInFlight) {
      Piece<T, V> pieces_read[kInFlight];
      float share[kInFlight];
      MEMWALL_UNROLL
      for (int i = 0; i < kInFlight; ++i) {
        share[i] = 0.0F;
        if (first + i < p.inputs) {
          pieces_read[i].read(x + (first + i) * p.width, at);
          share[i] = load(shares + first + i);
        }
      }
      MEMWALL_UNROLL
      for (int i = 0; i < kInFlight; ++i) {
        float values[V];
        pieces_read[i].values(values);
        MEMWALL_UNROLL
        for (int e = 0; e < V; ++e) sums[e] += share[i] * values[e];
      }
    }
    Piece<T, V>::write(sums, static_cast<T*>(p.y) + row * p.width, at);
  }

  static constexpr int kInFlight = 4;
};

namespace detail {

template <class T, class Run>
void dispatch_elementwise(const ElementwiseLaunch& launch, Run& run) {
  const Geometry& g = launch.geometry;
  if (const auto* norm = std::get_if<NormParams>(&launch.params)) {
    const bool by_warp = g.threads == kNormWarpThreads;
    if (by_warp && norm->layer) return run.template operator()<NormKernel<T, true, kWarp>>(g, *norm);
    if (by_warp) return run.template operator()<NormKernel<T, false, kWarp>>(g, *norm);
    if (norm->layer) return run.template operator()<NormKernel<T, true, kNormBlockThreads>>(g, *norm);
    return run.template operator()<NormKernel<T, false, kNormBlockThreads>>(g, *norm);
  }
  if (const auto* rotary = std::get_if<RotaryParams>(&launch.params))
    return run.template operator()<RotaryKernel<T>>(g, *rotary);
  if (const auto* activate = std::get_if<ActivateParams>(&launch.params))
    return run.template operator()<ActivateKernel<T>>(g, *activate);
  if (const auto* combine = std::get_if<CombineParams>(&launch.params))
    return run.template operator()<CombineKernel<T>>(g, *combine);
  run.template operator()<AddKernel<T>>(g, std::get<AddParams>(launch.params));
}

}  // namespace detail

// Calls run.template operator()<Kernel>(geometry, params) with the kernel that the launch names.
template <class Run>
void dispatch(const ElementwiseLaunch& launch, Run&& run) {
  if (launch.type == ElementwiseType::f32) {
    run.template operator()<AddKernel<float>>(launch.geometry, std::get<AddParams>(launch.params));
  } else if (launch.type == ElementwiseType::f16) {
    detail::dispatch_elementwise<Half>(launch, run);
  } else {
    detail::dispatch_elementwise<BFloat16>(launch, run);
  }
}

}  // namespace memwall::cuda
