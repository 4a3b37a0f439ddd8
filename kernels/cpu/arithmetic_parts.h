// Operands of the multiply-add probes, and their loops; one file an architecture adds its own instructions.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/cpu/arithmetic.h"

#if defined(__clang__)
#define MEMWALL_UNROLL _Pragma("unroll")
#else
#define MEMWALL_UNROLL _Pragma("GCC unroll 24")
#endif

namespace memwall::cpu {

// Factors whose products are all 1 (floats, exact in 16 bits too) and all 126 (bytes; the weights are 1 to 3,
// so that pmaddubsw's 16-bit sums of two hold 64 of them). They repeat every 4 and every 8, so that any
// vector and any tile of a matrix instruction multiplies the pairs.
inline constexpr std::array<float, 4> kFactors = {0.5F, -1.0F, 2.0F, -0.25F};
inline constexpr std::array<float, 4> kInverses = {2.0F, -1.0F, 0.5F, -4.0F};
inline constexpr std::array<std::uint16_t, 4> kFactorsBf16 = {0x3f00, 0xbf80, 0x4000, 0xbe80};
inline constexpr std::array<std::uint16_t, 4> kInversesBf16 = {0x4000, 0xbf80, 0x3f00, 0xc080};
inline constexpr std::array<std::uint16_t, 4> kFactorsF16 = {0x3800, 0xbc00, 0x4000, 0xb400};
inline constexpr std::array<std::uint16_t, 4> kInversesF16 = {0x4000, 0xbc00, 0x3800, 0xc400};
inline constexpr std::array<std::int8_t, 8> kByteWeights = {1, 2, 3, 1, 3, 2, 2, 3};
inline constexpr std::array<std::int8_t, 8> kByteInputs = {126, 63, 42, 126, 42, 63, 63, 42};

// 64 bytes of a pattern.
template <class T, std::size_t N>
constexpr std::array<T, 64 / sizeof(T)> repeated(const std::array<T, N>& pattern) {
  std::array<T, 64 / sizeof(T)> all{};
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = pattern[i % N];
  return all;
}

// Rounds after which the accumulators are taken down and start at 0 again: below that every sum of f32 or of
// 32-bit integers is exact, and taking them down costs a fraction of a per cent.
inline constexpr std::int64_t kRoundsAtOnce = 4096;

// Adds what `run(rounds)` returns until all rounds are run.
template <class Run>
double in_parts(std::int64_t rounds, std::int64_t at_once, const Run& run) {
  double total = 0;
  for (std::int64_t done = 0; done < rounds; done += at_once) total += run(std::min(at_once, rounds - done));
  return total;
}

// The ways of this architecture beyond what Highway's targets have.
void add_own_ways(Multiply type, std::vector<MultiplyWay>& ways);

}  // namespace memwall::cpu
