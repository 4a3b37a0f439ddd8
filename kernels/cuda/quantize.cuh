// The bodies of the quantisations (quantize.h).
#pragma once

#include "kernels/cuda/linear_values.cuh"
#include "kernels/cuda/quantize.h"
#include "kernels/cuda/vector16.cuh"

namespace memwall::cuda {

// The largest number of a code.
template <class Code>
constexpr float kLargestCode = 127.0F;
template <>
constexpr float kLargestCode<F8E4M3> = 448.0F;

// What a thread does with pieces of x, V elements each: their largest magnitude, and their codes.
template <class T, class Code, int V>
struct QuantizePieces {
  const T* x;
  std::uint8_t* codes;

  static MEMWALL_DEVICE float largest(const Piece<T, V>& piece) {
    float values[V];
    piece.values(values);
    float most = 0.0F;
    MEMWALL_UNROLL
    for (int e = 0; e < V; ++e) most = fmaxf(most, fabsf(values[e]));
    return most;
  }

  MEMWALL_DEVICE void write(const Piece<T, V>& piece, std::int64_t at, float inverse) const {
    float values[V];
    piece.values(values);
    MEMWALL_UNROLL
    for (int e = 0; e < V; ++e) values[e] *= inverse;
    if constexpr (V == 1) {
      Code code{};
      narrow(values[0], &code);
      store(reinterpret_cast<Code*>(codes) + at, code);
    } else {
      static_assert(V == 8);
      Vec8 both;
      both.word[0] = narrow_x4<Code>(values[0], values[1], values[2], values[3]);
      both.word[1] = narrow_x4<Code>(values[4], values[5], values[6], values[7]);
      store(reinterpret_cast<Vec8*>(codes) + at, both);
    }
  }
};

// Over the block's threads; `shared` is a word a warp.
MEMWALL_DEVICE float largest_of_block(float value, float* shared) {
  value = warp_max(value);
  if (lane() == 0) shared[warp()] = value;
  sync_threads();
  return warp_max(lane() < kQuantizeThreads / kWarp ? shared[lane()] : 0.0F);
}

template <class Code>
MEMWALL_DEVICE float scale_of(float largest) {
  constexpr float kSmallestNormal = 1.17549435e-38F;  // 2^-126: its inverse is finite
  return fmaxf(largest / kLargestCode<Code>, kSmallestNormal);
}

// A block takes a row, and keeps the first kQuantizeHeld pieces of each thread in registers, all asked for at
// once; of wider rows the rest is read again, from the caches.
template <class T, class Code>
struct QuantizeRowsKernel {
  using Params = QuantizeParams;
  static constexpr unsigned kThreads = kQuantizeThreads;
  static MEMWALL_DEVICE void run(const Params& p, std::byte* shared) {
    if (p.vectors) {
      row<kInVector<T>>(p, reinterpret_cast<float*>(shared));
    } else {
      row<1>(p, reinterpret_cast<float*>(shared));
    }
  }

 private:
  template <int V>
  static MEMWALL_DEVICE void row(const Params& p, float* shared) {
    using Pieces = QuantizePieces<T, Code, V>;
    const std::int64_t begin = static_cast<std::int64_t>(block_x()) * p.width;
    const Pieces all{static_cast<const T*>(p.x) + begin, p.codes + begin};
    const std::int64_t pieces = p.width / V;
    const std::int64_t first = thread_x();
    constexpr std::int64_t kStep = kThreads;
    Piece<T, V> held[kQuantizeHeld];
    MEMWALL_UNROLL
    for (int h = 0; h < kQuantizeHeld; ++h) {
      if (first + h * kStep < pieces) held[h].read(all.x, first + h * kStep);
    }
    float most = 0.0F;
    MEMWALL_UNROLL
    for (int h = 0; h < kQuantizeHeld; ++h) {
      if (first + h * kStep < pieces) most = fmaxf(most, Pieces::largest(held[h]));
    }
    for (std::int64_t at = first + kQuantizeHeld * kStep; at < pieces; at += kStep) {
      Piece<T, V> piece;
      piece.read(all.x, at);
      most = fmaxf(most, Pieces::largest(piece));
    }
    const float scale = scale_of<Code>(largest_of_block(most, shared));
    if (thread_x() == 0) store(p.scales + block_x(), scale);
    const float inverse = 1.0F / scale;
    MEMWALL_UNROLL
    for (int h = 0; h < kQuantizeHeld; ++h) {
      if (first + h * kStep < pieces) all.write(held[h], first + h * kStep, inverse);
    }
    for (std::int64_t at = first + kQuantizeHeld * kStep; at < pieces; at += kStep) {
      Piece<T, V> piece;
      piece.read(all.x, at);
      all.write(piece, at, inverse);
    }
  }
};

// The largest magnitude of what a block takes of a tensor; no atomic, so that nothing needs to be zeroed.
template <class T>
struct LargestKernel {
  using Params = QuantizeParams;
  static constexpr unsigned kThreads = kQuantizeThreads;
  static MEMWALL_DEVICE void run(const Params& p, std::byte* shared) {
    const float most =
        largest_of_block(p.vectors ? part<kInVector<T>>(p) : part<1>(p), reinterpret_cast<float*>(shared));
    if (thread_x() == 0) store(p.partials + block_x(), most);
  }

 private:
  template <int V>
  static MEMWALL_DEVICE float part(const Params& p) {
    const std::int64_t pieces = p.width / V;
    const std::int64_t step = static_cast<std::int64_t>(grid_x()) * kThreads;
    float most = 0.0F;
    for (std::int64_t at = static_cast<std::int64_t>(block_x()) * kThreads + thread_x(); at < pieces;
         at += step) {
      Piece<T, V> piece;
      piece.read(static_cast<const T*>(p.x), at);
      most = fmaxf(most, QuantizePieces<T, F8E4M3, V>::largest(piece));
    }
    return most;
  }
};

// Every block finds the scale anew: the partials are few, and in the L2.
template <class T, class Code>
struct QuantizeTensorKernel {
  using Params = QuantizeParams;
  static constexpr unsigned kThreads = kQuantizeThreads;
  static MEMWALL_DEVICE void run(const Params& p, std::byte* shared) {
    if (p.vectors) {
      tensor<kInVector<T>>(p, reinterpret_cast<float*>(shared));
    } else {
      tensor<1>(p, reinterpret_cast<float*>(shared));
    }
  }

 private:
  template <int V>
  static MEMWALL_DEVICE void tensor(const Params& p, float* shared) {
    const QuantizePieces<T, Code, V> all{static_cast<const T*>(p.x), p.codes};
    const std::int64_t pieces = p.width / V;
    const std::int64_t step = static_cast<std::int64_t>(grid_x()) * kThreads;
    const std::int64_t first = static_cast<std::int64_t>(block_x()) * kThreads + thread_x();
    Piece<T, V> held;  // asked for before the scale is known
    if (first < pieces) held.read(all.x, first);
    float most = 0.0F;
    for (unsigned part = thread_x(); part < p.part_count; part += kThreads)
      most = fmaxf(most, load(p.partials + part));
    const float scale = scale_of<Code>(largest_of_block(most, shared));
    if (first == 0) store(p.scales, scale);
    const float inverse = 1.0F / scale;
    if (first < pieces) all.write(held, first, inverse);
    for (std::int64_t at = first + step; at < pieces; at += step) {
      Piece<T, V> piece;
      piece.read(all.x, at);
      all.write(piece, at, inverse);
    }
  }
};

// Blocks along x take outputs, along y rows.
template <class T>
struct ScaleSumsKernel {
  using Params = ScaleSumsParams;
  static constexpr unsigned kThreads = kScaleSumsThreads;
  static MEMWALL_DEVICE void run(const Params& p, std::byte*) {
    const std::int64_t piece = static_cast<std::int64_t>(block_x()) * kThreads + thread_x();
    for (std::int64_t row = block_y(); row < p.rows; row += grid_y()) {
      if (!p.vectors && piece < p.out) one(p, row, piece);
      if (p.vectors && 4 * piece < p.out) four(p, row, 4 * piece);
    }
  }

 private:
  static MEMWALL_DEVICE float value(const Params& p, std::int32_t sum, float row_scale, float column_scale,
                                    std::int64_t out) {
    const float scaled = static_cast<float>(sum) * (row_scale * column_scale);
    return p.bias == nullptr ? scaled : scaled + load_as(p.bias_type, p.bias, out);
  }
  static MEMWALL_DEVICE void one(const Params& p, std::int64_t row, std::int64_t out) {
    T rounded{};
    narrow(value(p, load(p.sums + row * p.out + out), load(p.row_scales + row), load(p.column_scales + out),
                 out),
           &rounded);
    store(static_cast<T*>(p.y) + row * p.out + out, rounded);
  }
  static MEMWALL_DEVICE void four(const Params& p, std::int64_t row, std::int64_t out) {
    const Vec16 sums = load(reinterpret_cast<const Vec16*>(p.sums + row * p.out + out));
    const Vec16 scales = load(reinterpret_cast<const Vec16*>(p.column_scales + out));
    const float row_scale = load(p.row_scales + row);
    float values[4];
    MEMWALL_UNROLL
    for (int e = 0; e < 4; ++e) {
      values[e] = value(p, static_cast<std::int32_t>(sums.word[e]), row_scale, bits_as_float(scales.word[e]),
                        out + e);
    }
    store(reinterpret_cast<Vec8*>(static_cast<T*>(p.y) + row * p.out + out),
          Vec8{{pack<T>(values[0], values[1]), pack<T>(values[2], values[3])}});
  }
};

namespace detail {

template <class T, class Run>
void dispatch_quantize(const QuantizeLaunch& launch, Run& run) {
  const Geometry& g = launch.geometry;
  if (launch.step == QuantizeStep::scale_sums)
    return run.template operator()<ScaleSumsKernel<T>>(g, std::get<ScaleSumsParams>(launch.params));
  const auto& params = std::get<QuantizeParams>(launch.params);
  if (launch.step == QuantizeStep::largest) return run.template operator()<LargestKernel<T>>(g, params);
  // One scale a tensor is f8's alone.
  if (launch.step == QuantizeStep::tensor)
    return run.template operator()<QuantizeTensorKernel<T, F8E4M3>>(g, params);
  if (launch.rule == QuantizeRule::f8_tensor)
    return run.template operator()<QuantizeRowsKernel<T, F8E4M3>>(g, params);
  run.template operator()<QuantizeRowsKernel<T, std::int8_t>>(g, params);
}

}  // namespace detail

template <class Run>
void dispatch(const QuantizeLaunch& launch, Run&& run) {
  if (launch.activations == ActivationType::bf16) {
    detail::dispatch_quantize<BFloat16>(launch, run);
  } else {
    detail::dispatch_quantize<Half>(launch, run);
  }
}

}  // namespace memwall::cuda
