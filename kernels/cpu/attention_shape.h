// What both attention kernels ask of their argument.
#pragma once

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "format/format.h"
#include "kernels/cpu/attention.h"

namespace memwall::cpu {

// Rows of floats in scratch are padded to this, the most lanes a target uses.
inline constexpr std::int64_t kPad = 16;
// Decode runs softmax over blocks of tokens: as many as leave a block of K, of V and of scores in the L1
// cache.
inline constexpr std::int64_t kDecodeTokens = 64;

// Throws std::invalid_argument unless the caches can be read and every size is usable.
inline void check_attention(const Attention& op) {
  if (!has_attention(op.kv)) {
    throw std::invalid_argument("the CPU has no attention kernel for " + std::string(kv_format_name(op.kv)));
  }
  if (op.context < 1 || op.window < 0 || op.kv_heads < 1 || op.heads < 1 || op.heads % op.kv_heads != 0 ||
      op.d_k < 1 || op.d_v < 1) {
    throw std::invalid_argument("attention needs a context, and heads that kv_heads divides");
  }
}

// The tokens a query reads back, itself included.
inline std::int64_t attention_reach(const Attention& op) {
  return op.window > 0 ? std::min(op.window, op.context) : op.context;
}

inline std::int64_t round_up(std::int64_t size, std::int64_t multiple) {
  return (size + multiple - 1) / multiple * multiple;
}

}  // namespace memwall::cpu
