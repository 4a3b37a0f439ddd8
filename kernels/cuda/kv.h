// What the attention kernels share: the elements of a KV cache, and how its tokens are cut into parts.
// C++17 and free of CUDA's headers.
#pragma once

#include <cstdint>

#include "kernels/cuda/geometry.h"

namespace memwall::cuda {

enum class KvElement : std::uint8_t { f32, f16, bf16, f8_e4m3 };

constexpr int kv_element_bytes(KvElement element) {
  return element == KvElement::f32 ? 4 : element == KvElement::f8_e4m3 ? 1 : 2;
}

// A row of that many elements, filled up to 16 bytes.
constexpr std::int64_t kv_pitch(KvElement element, std::int64_t width) {
  return (width * kv_element_bytes(element) + 15) / 16 * 16;
}

// Whether the card's tensor cores multiply such elements: all f16 (f8 is widened to it), bf16 from sm_80 on.
constexpr bool kv_on_tensor_cores(KvElement element, const ArchLimits& arch) {
  return element != KvElement::f32 && (element != KvElement::bf16 || arch.major >= 8);
}

// Tokens that a warp takes at once.
constexpr int kTileTokens = 16;

// How `tiles` tiles of tokens of one head are spread over blocks. Every part holds at least one tile; all but
// the last hold `tiles_each`.
struct TokenSplit {
  int parts = 1;
  int tiles_each = 0;
};

// Merging takes room in shared memory for a weight a part.
constexpr int kMostParts = 256;

// Of `heads` (sequences times KV heads) that each read `tiles` tiles, on a card that runs `resident` blocks
// at once: as few parts as fill the card, in two waves of blocks at most, each of `least` tiles or more, no
// more than `most`.
TokenSplit split_tokens(std::int64_t heads, std::int64_t tiles, std::int64_t resident, std::int64_t least,
                        std::int64_t most = kMostParts);

}  // namespace memwall::cuda
