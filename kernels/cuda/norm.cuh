// The bodies of the norms (elementwise.h).
#pragma once

#include "kernels/cuda/elementwise.h"
#include "kernels/cuda/platform.cuh"
#include "kernels/cuda/vector16.cuh"

namespace memwall::cuda {

// `Group` threads take a row: a warp, or a whole block. Each keeps kNormHeld pieces of the row, and of the
// weights, in registers, all asked for before the first sum, since at small batches a norm is a chain of
// latencies; of wider rows the rest is read again, from the caches.
template <class T, bool Layer, unsigned Group>
struct NormKernel {
  using Params = NormParams;
  static constexpr unsigned kThreads = Group == kWarp ? kNormWarpThreads : Group;
  static MEMWALL_DEVICE void run(const Params& p, std::byte* shared) {
    const std::int64_t row = static_cast<std::int64_t>(block_x()) * (kThreads / Group) + thread_x() / Group;
    if (row >= p.rows) return;  // with the whole warp; blocks take a row each
    const T* x = static_cast<const T*>(p.x) + row * p.width;
    T* y = static_cast<T*>(p.y) + row * p.width;
    if (p.vectors) {
      norm<kInVector<T>>(p, x, y, reinterpret_cast<float*>(shared));
    } else {
      norm<1>(p, x, y, reinterpret_cast<float*>(shared));
    }
  }

 private:
  template <int V>
  static MEMWALL_DEVICE void norm(const Params& p, const T* x, T* y, float* shared) {
    const auto* weight = reinterpret_cast<const BFloat16*>(p.weight);
    const auto* bias = reinterpret_cast<const BFloat16*>(p.bias);
    const std::int64_t pieces = p.width / V;
    const std::int64_t first = thread_x() % Group;
    Piece<T, V> held[kNormHeld];
    Piece<BFloat16, V> weights[kNormHeld];
    Piece<BFloat16, V> biases[kNormHeld];
    MEMWALL_UNROLL
    for (int h = 0; h < kNormHeld; ++h) {
      if (first + h * Group < pieces) held[h].read(x, first + h * Group);
    }
    MEMWALL_UNROLL
    for (int h = 0; h < kNormHeld; ++h) {
      if (first + h * Group < pieces) {
        weights[h].read(weight, first + h * Group);
        if (Layer && bias != nullptr) biases[h].read(bias, first + h * Group);
      }
    }

    const auto width = static_cast<float>(p.width);
    float mean = 0.0F;
    if constexpr (Layer) {
      const float sum = row_sum<V>(x, pieces, held, [](float value) { return value; });
      mean = group_sum(sum, shared) / width;
    }
    const float squares = row_sum<V>(x, pieces, held, [mean](float value) {
      const float off = Layer ? value - mean : value;
      return off * off;
    });
    const float epsilon = Layer ? 1e-5F : 1e-6F;
    const float scale = reciprocal_root(group_sum(squares, shared + Group / kWarp) / width + epsilon);

    const auto write = [&](const Piece<T, V>& in, const Piece<BFloat16, V>& w, const Piece<BFloat16, V>& b,
                           std::int64_t piece) {
      float value[V];
      float factor[V];
      float offset[V];
      in.values(value);
      w.values(factor);
      b.values(offset);
      MEMWALL_UNROLL
      for (int e = 0; e < V; ++e) {
        value[e] = (Layer ? value[e] - mean : value[e]) * scale * factor[e];
        if (Layer) value[e] += offset[e];
      }
      Piece<T, V>::write(value, y, piece);
    };
    MEMWALL_UNROLL
    for (int h = 0; h < kNormHeld; ++h) {
      if (first + h * Group < pieces) write(held[h], weights[h], biases[h], first + h * Group);
    }
    for (std::int64_t piece = first + kNormHeld * Group; piece < pieces; piece += Group) {
      Piece<T, V> in;
      Piece<BFloat16, V> w;
      Piece<BFloat16, V> b;
      in.read(x, piece);
      w.read(weight, piece);
      if (Layer && bias != nullptr) b.read(bias, piece);
      write(in, w, b, piece);
    }
  }

  // This thread's part of the sum of f over the row.
  template <int V, class F>
  static MEMWALL_DEVICE float row_sum(const T* x, std::int64_t pieces, const Piece<T, V> (&held)[kNormHeld],
                                      F f) {
    const std::int64_t first = thread_x() % Group;
    float sum = 0.0F;
    const auto add = [&](const Piece<T, V>& piece) {
      float values[V];
      piece.values(values);
      MEMWALL_UNROLL
      for (int e = 0; e < V; ++e) sum += f(values[e]);
    };
    MEMWALL_UNROLL
    for (int h = 0; h < kNormHeld; ++h) {
      if (first + h * Group < pieces) add(held[h]);
    }
    for (std::int64_t piece = first + kNormHeld * Group; piece < pieces; piece += Group) {
      Piece<T, V> again;
      again.read(x, piece);
      add(again);
    }
    return sum;
  }

  // Over the threads of a row; `shared` is a word a warp that no other sum of the launch uses.
  static MEMWALL_DEVICE float group_sum(float value, float* shared) {
    value = warp_sum(value);
    if constexpr (Group != kWarp) {
      if (lane() == 0) shared[warp()] = value;
      sync_threads();
      value = warp_sum(lane() < Group / kWarp ? shared[lane()] : 0.0F);
    }
    return value;
  }
};

}  // namespace memwall::cuda
