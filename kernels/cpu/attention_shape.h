// What the attention kernels ask of their argument, and how they cut up their work.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kernels/cpu/attention.h"

namespace memwall::cpu {

// Rows of floats in scratch are padded to this, the most lanes a target uses.
inline constexpr std::int64_t kPad = 16;
// Decode runs softmax over blocks of tokens: as many as leave a block of K, of V and of scores in the L1
// cache.
inline constexpr std::int64_t kDecodeTokens = 64;

inline std::int64_t round_up(std::int64_t size, std::int64_t multiple) {
  return (size + multiple - 1) / multiple * multiple;
}

// Where scratch begins: at a cache line, so that no vector of it crosses two. Takes up to kPad floats more.
inline float* line_aligned(float* scratch) {
  constexpr std::uintptr_t kLineBytes = 64;
  const std::uintptr_t past = reinterpret_cast<std::uintptr_t>(scratch) % kLineBytes;
  return past == 0 ? scratch : scratch + (kLineBytes - past) / sizeof(float);
}

// Throws std::invalid_argument unless every size is usable.
void check_attention(const Attention& op);

// The first token that a query at `token` reads, itself being the last; where nothing is chosen.
inline std::int64_t first_seen(const Attention& op, std::int64_t token) {
  if (op.chunk > 0) return token / op.chunk * op.chunk;
  return op.window > 0 ? std::max<std::int64_t>(0, token + 1 - op.window) : 0;
}

// One part of tokens [0, tokens), cut at multiples of a panel after `first`, the place of token 0 in its
// panel.
struct TokenRange {
  std::int64_t first = 0;
  std::int64_t last = 0;
};
TokenRange part_of(std::int64_t first, std::int64_t last, std::int64_t splits, std::int64_t part);

// What a part of the tokens has come to for `group` query heads: accumulators [group][width rounded up to
// kPad], maxima [group], sums [group].
struct Partials {
  std::int64_t group = 0;
  std::int64_t width = 0;

  std::int64_t padded() const { return round_up(width, kPad); }
  std::int64_t floats() const { return group * (padded() + 2); }
  float* accumulators(float* part) const { return part; }
  float* maxima(float* part) const { return part + group * padded(); }
  float* sums(float* part) const { return maxima(part) + group; }
  // Heads [first, last) of `splits` parts that lie one after the other, into y [last - first, width].
  void merge(const float* parts, std::int64_t splits, std::int64_t first, std::int64_t last, float* y) const;
};

}  // namespace memwall::cpu
