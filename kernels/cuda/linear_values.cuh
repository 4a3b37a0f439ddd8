// 16 bytes of weights as floats, and rows of x.
#pragma once

#include <type_traits>

#include "kernels/cuda/linear_layout.h"
#include "kernels/cuda/values.cuh"

namespace memwall::cuda {

// Weights are widened by pieces of 4: piece `piece` of a vector.
template <WeightCode Code>
struct WeightValues {
  using Activation = Half;
  static constexpr int kVector = weights_a_vector(Code);
  static MEMWALL_DEVICE void widen(const Vec16& v, int piece, std::uint32_t zero, float (&to)[4]) {
    if constexpr (Code == WeightCode::f16) {
      const Pair low = widen_halves(v.word[2 * piece]);
      const Pair high = widen_halves(v.word[2 * piece + 1]);
      to[0] = low.lo;
      to[1] = low.hi;
      to[2] = high.lo;
      to[3] = high.hi;
    } else if constexpr (Code == WeightCode::f8) {
      widen_f8x4(v.word[piece], to);
    } else if constexpr (Code == WeightCode::i8) {
      widen_i8x4(v.word[piece], to);
    } else {
      widen_u4x4(v.word[piece / 2] >> (piece % 2 * 8), zero, to);
    }
  }
};

template <>
struct WeightValues<WeightCode::f32> {
  using Activation = float;
  static constexpr int kVector = 4;
  static MEMWALL_DEVICE void widen(const Vec16& v, int, std::uint32_t, float (&to)[4]) {
    MEMWALL_UNROLL
    for (int i = 0; i < 4; ++i) to[i] = bits_as_float(v.word[i]);
  }
};

template <>
struct WeightValues<WeightCode::bf16> {
  using Activation = BFloat16;
  static constexpr int kVector = 8;
  static MEMWALL_DEVICE void widen(const Vec16& v, int piece, std::uint32_t, float (&to)[4]) {
    const Pair low = widen_bfloats(v.word[2 * piece]);
    const Pair high = widen_bfloats(v.word[2 * piece + 1]);
    to[0] = low.lo;
    to[1] = low.hi;
    to[2] = high.lo;
    to[3] = high.hi;
  }
};

// An element of an activation type that only the launch knows: biases.
MEMWALL_DEVICE float load_as(ActivationType type, const void* from, std::int64_t index) {
  if (type == ActivationType::f32) return load(static_cast<const float*>(from) + index);
  if (type == ActivationType::bf16) return widen(load(static_cast<const BFloat16*>(from) + index));
  return widen(load(static_cast<const Half*>(from) + index));
}

// 16 bytes of activations.
MEMWALL_DEVICE void widen_activations(const Vec16& v, float, float (&to)[4]) {
  MEMWALL_UNROLL
  for (int i = 0; i < 4; ++i) to[i] = bits_as_float(v.word[i]);
}
template <class X>
MEMWALL_DEVICE void widen_activations(const Vec16& v, X, float (&to)[8]) {
  MEMWALL_UNROLL
  for (int i = 0; i < 4; ++i) {
    const Pair pair = std::is_same_v<X, BFloat16> ? widen_bfloats(v.word[i]) : widen_halves(v.word[i]);
    to[2 * i] = pair.lo;
    to[2 * i + 1] = pair.hi;
  }
}

// Four elements from k on, a multiple of 4, of a vector whose type only the launch knows.
MEMWALL_DEVICE void load_four(ActivationType type, const void* from, std::int64_t k, float (&to)[4]) {
  if (type == ActivationType::f32) {
    widen_activations(load(reinterpret_cast<const Vec16*>(static_cast<const float*>(from) + k)), 0.0F, to);
    return;
  }
  const Vec8 v = load(reinterpret_cast<const Vec8*>(static_cast<const Half*>(from) + k));
  MEMWALL_UNROLL
  for (int i = 0; i < 2; ++i) {
    const Pair pair = type == ActivationType::bf16 ? widen_bfloats(v.word[i]) : widen_halves(v.word[i]);
    to[2 * i] = pair.lo;
    to[2 * i + 1] = pair.hi;
  }
}

}  // namespace memwall::cuda
