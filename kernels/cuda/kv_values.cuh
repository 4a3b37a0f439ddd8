// Values of a KV cache as the tensor cores take them (multiply_tile of platform.cuh), and the merge of
// attention's parts.
#pragma once

#include <type_traits>

#include "kernels/cuda/kv.h"
#include "kernels/cuda/tiles.cuh"

// Before loops at a kernel's edges: unrolled they would be most of its code.
#ifdef __CUDACC__
#define MEMWALL_KEEP_LOOP _Pragma("unroll 1")
#define MEMWALL_SOME_UNROLL _Pragma("unroll 4")
#else
#define MEMWALL_KEEP_LOOP
#define MEMWALL_SOME_UNROLL
#endif

namespace memwall::cuda {

// 16 bytes of a token's row. Sums over a row may run in any order, as long as queries and keys keep the same:
// a lane's 16 bytes hold kSteps / 2 times two steps of 16 columns of the tile.
template <KvElement E>
struct Kv;

template <class T>
struct KvOf16Bits {
  using Tile = T;        // what is multiplied
  using Activation = T;  // of queries, new rows and outputs
  using Element = T;     // as stored
  static constexpr int kElements = 8;
  static constexpr int kSteps = 2;
  static constexpr float kFactor = 1;  // a value over its tile's

  // The two words of one step that a lane's 16 bytes of a key give.
  static MEMWALL_DEVICE std::uint32_t key_low(const Vec16& raw, int step) { return raw.word[2 * step]; }
  static MEMWALL_DEVICE std::uint32_t key_high(const Vec16& raw, int step) { return raw.word[2 * step + 1]; }
  // Where a query's element lies in its row, in half words.
  static MEMWALL_DEVICE int query_place(int element) { return element; }
  // Element i of two tokens as one word.
  static MEMWALL_DEVICE std::uint32_t value_pair(const Vec16& a, const Vec16& b, int i) {
    return byte_perm(a.word[i / 2], b.word[i / 2], i % 2 == 0 ? 0x5410U : 0x7632U);
  }
};
template <>
struct Kv<KvElement::f16> : KvOf16Bits<Half> {};
template <>
struct Kv<KvElement::bf16> : KvOf16Bits<BFloat16> {};

template <>
struct Kv<KvElement::f8_e4m3> {
  using Tile = Half;
  using Activation = Half;
  using Element = F8E4M3;
  static constexpr int kElements = 16;
  static constexpr int kSteps = 4;
  static constexpr float kFactor = 256;  // halves_of_f8

  static MEMWALL_DEVICE std::uint32_t key_low(const Vec16& raw, int step) {
    return halves_of_f8(raw.word[step] << 8);  // bytes 0 and 2
  }
  static MEMWALL_DEVICE std::uint32_t key_high(const Vec16& raw, int step) {
    return halves_of_f8(raw.word[step]);  // bytes 1 and 3
  }
  // A lane reads its 16 elements in two pieces of 16 bytes, 64 bytes apart; the lanes' pieces adjoin.
  static MEMWALL_DEVICE int query_place(int element) {
    const int lane = element / 16 % 4;
    const int step = element / 4 % 4;
    const int byte = element % 4;
    const int word = step % 2 * 2 + byte % 2;
    return element / 64 * 64 + step / 2 * 32 + lane * 8 + word * 2 + byte / 2;
  }
  static MEMWALL_DEVICE std::uint32_t value_pair(const Vec16& a, const Vec16& b, int i) {
    const auto byte = static_cast<std::uint32_t>(i % 4);
    return halves_of_f8(byte_perm(a.word[i / 4], b.word[i / 4], (4 + byte) << 12 | byte << 4));
  }
};

// A maximum that no score is below, and that no exponential overflows by.
constexpr float kNoScore = -1e30F;

// --- merging parts ----------------------------------------------------------------------------------------
// A part leaves for each of its rows (query heads) `width` sums weighted by exp(score - maximum), and
// {maximum, sum of weights}.

// One warp turns the statistics of a row's parts, `pitch` floats apart, into the weights of the parts' sums.
MEMWALL_DEVICE void merge_weights(const float* statistics, std::int64_t pitch, int parts, float* weights) {
  float highest = kNoScore;
  MEMWALL_KEEP_LOOP
  for (int part = static_cast<int>(lane()); part < parts; part += kWarp)
    highest = fmaxf(highest, load(statistics + part * pitch));
  highest = warp_max(highest);
  float total = 0;
  MEMWALL_KEEP_LOOP
  for (int part = static_cast<int>(lane()); part < parts; part += kWarp) {
    const float weight = exponential(load(statistics + part * pitch) - highest);
    weights[part] = weight;
    total += weight * load(statistics + part * pitch + 1);
  }
  total = warp_sum(total);
  const float share = total > 0 ? 1 / total : 0.0F;
  MEMWALL_KEEP_LOOP
  for (int part = static_cast<int>(lane()); part < parts; part += kWarp) weights[part] *= share;
}

// Four columns (or one) of the parts' sums, `pitch` floats apart. V: Vec16 or float.
template <class V>
MEMWALL_DEVICE void merge_sums(const float* sums, std::int64_t pitch, int parts, const float* weights,
                               float (&merged)[sizeof(V) / 4]) {
  constexpr int kFlight = 8;
  constexpr int kColumns = sizeof(V) / 4;
  MEMWALL_UNROLL
  for (int c = 0; c < kColumns; ++c) merged[c] = 0;
  MEMWALL_KEEP_LOOP
  for (int first = 0; first < parts; first += kFlight) {
    V loaded[kFlight];
    MEMWALL_UNROLL
    for (int i = 0; i < kFlight; ++i)
      loaded[i] = first + i < parts ? load(reinterpret_cast<const V*>(sums + (first + i) * pitch)) : V{};
    MEMWALL_UNROLL
    for (int i = 0; i < kFlight; ++i) {
      float value[kColumns];
      std::memcpy(value, &loaded[i], sizeof(V));
      const float weight = first + i < parts ? weights[first + i] : 0.0F;
      MEMWALL_UNROLL
      for (int c = 0; c < kColumns; ++c) merged[c] += value[c] * weight;
    }
  }
}

}  // namespace memwall::cuda
