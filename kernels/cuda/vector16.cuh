// The elements of a 16-byte vector: 8 of 16 bits, or 4 floats.
#pragma once

#include <type_traits>

#include "kernels/cuda/values.cuh"

namespace memwall::cuda {

template <class T>
constexpr int kInVector = 16 / static_cast<int>(sizeof(T));

template <class T>
MEMWALL_DEVICE void widen_vector(const Vec16& vector, float (&values)[kInVector<T>]) {
  MEMWALL_UNROLL
  for (int w = 0; w < 4; ++w) {
    if constexpr (std::is_same_v<T, float>) {
      values[w] = bits_as_float(vector.word[w]);
    } else {
      Pair pair;
      if constexpr (std::is_same_v<T, Half>) {
        pair = widen_halves(vector.word[w]);
      } else {
        pair = widen_bfloats(vector.word[w]);
      }
      values[2 * w] = pair.lo;
      values[2 * w + 1] = pair.hi;
    }
  }
}

// Rounded to nearest even.
template <class T>
MEMWALL_DEVICE Vec16 narrow_vector(const float (&values)[kInVector<T>]) {
  Vec16 vector;
  MEMWALL_UNROLL
  for (int w = 0; w < 4; ++w) {
    if constexpr (std::is_same_v<T, float>) {
      vector.word[w] = float_as_bits(values[w]);
    } else if constexpr (std::is_same_v<T, Half>) {
      vector.word[w] = narrow_halves(values[2 * w], values[2 * w + 1]);
    } else {
      vector.word[w] = narrow_bfloats(values[2 * w], values[2 * w + 1]);
    }
  }
  return vector;
}

// What a thread takes of a row at once: Piece<T, kInVector<T>> a whole vector, Piece<T, 1> one element where
// rows are not aligned. A piece keeps its stored bits, so that holding it costs few registers.
template <class T, int Elements>
struct Piece {
  static_assert(Elements == kInVector<T>);
  Vec16 raw{};
  MEMWALL_DEVICE void read(const T* row, std::int64_t piece) {
    raw = load(reinterpret_cast<const Vec16*>(row) + piece);
  }
  MEMWALL_DEVICE void values(float (&to)[Elements]) const { widen_vector<T>(raw, to); }
  static MEMWALL_DEVICE void write(const float (&values)[Elements], T* row, std::int64_t piece) {
    store(reinterpret_cast<Vec16*>(row) + piece, narrow_vector<T>(values));
  }
};
template <class T>
struct Piece<T, 1> {
  T raw{};
  MEMWALL_DEVICE void read(const T* row, std::int64_t piece) { raw = load(row + piece); }
  MEMWALL_DEVICE void values(float (&to)[1]) const { to[0] = widen(raw); }
  static MEMWALL_DEVICE void write(const float (&values)[1], T* row, std::int64_t piece) {
    T rounded{};
    narrow(values[0], &rounded);
    store(row + piece, rounded);
  }
};

}  // namespace memwall::cuda
