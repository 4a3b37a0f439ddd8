// 16 bytes of weights as floats, and rows of x.
#pragma once

#include "kernels/cuda/linear_layout.h"
#include "kernels/cuda/platform.cuh"

namespace memwall::cuda {

// kPiece weights are widened at a time, as many as 16 bytes of activations are: piece `piece` of a vector.
template <WeightCode Code>
struct WeightValues {
  using Activation = Half;
  static constexpr int kVector = weights_a_vector(Code);
  static constexpr int kPiece = 8;
  static MEMWALL_DEVICE void widen(const Vec16& v, int piece, std::uint32_t zero, float (&to)[kPiece]) {
    if constexpr (Code == WeightCode::u4) {
      widen_u4x8(v.word[piece], zero, to);
    } else if constexpr (Code == WeightCode::f16) {
      MEMWALL_UNROLL
      for (int i = 0; i < 4; ++i) {
        const Pair pair = widen_halves(v.word[i]);
        to[2 * i] = pair.lo;
        to[2 * i + 1] = pair.hi;
      }
    } else {
      MEMWALL_UNROLL
      for (int i = 0; i < 2; ++i) {
        float four[4];
        if constexpr (Code == WeightCode::f8) {
          widen_f8x4(v.word[2 * piece + i], four);
        } else {
          widen_i8x4(v.word[2 * piece + i], four);
        }
        MEMWALL_UNROLL
        for (int k = 0; k < 4; ++k) to[4 * i + k] = four[k];
      }
    }
  }
};

template <>
struct WeightValues<WeightCode::f32> {
  using Activation = float;
  static constexpr int kVector = 4;
  static constexpr int kPiece = 4;
  static MEMWALL_DEVICE void widen(const Vec16& v, int, std::uint32_t, float (&to)[kPiece]) {
    MEMWALL_UNROLL
    for (int i = 0; i < 4; ++i) to[i] = bits_as_float(v.word[i]);
  }
};

template <>
struct WeightValues<WeightCode::bf16> {
  using Activation = BFloat16;
  static constexpr int kVector = 8;
  static constexpr int kPiece = 8;
  static MEMWALL_DEVICE void widen(const Vec16& v, int, std::uint32_t, float (&to)[kPiece]) {
    MEMWALL_UNROLL
    for (int i = 0; i < 4; ++i) {
      const Pair pair = widen_bfloats(v.word[i]);
      to[2 * i] = pair.lo;
      to[2 * i + 1] = pair.hi;
    }
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
  WeightValues<WeightCode::f32>::widen(v, 0, 0, to);
}
MEMWALL_DEVICE void widen_activations(const Vec16& v, Half, float (&to)[8]) {
  WeightValues<WeightCode::f16>::widen(v, 0, 0, to);
}
MEMWALL_DEVICE void widen_activations(const Vec16& v, BFloat16, float (&to)[8]) {
  WeightValues<WeightCode::bf16>::widen(v, 0, 0, to);
}

// kPiece elements from k on, a multiple of it, of a vector whose type only the launch knows.
MEMWALL_DEVICE void load_piece(ActivationType type, const void* from, std::int64_t k, float (&to)[4]) {
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
MEMWALL_DEVICE void load_piece(ActivationType type, const void* from, std::int64_t k, float (&to)[8]) {
  MEMWALL_UNROLL
  for (int half = 0; half < 2; ++half) {
    float four[4];
    load_piece(type, from, k + 4 * half, four);
    MEMWALL_UNROLL
    for (int i = 0; i < 4; ++i) to[4 * half + i] = four[i];
  }
}

}  // namespace memwall::cuda
