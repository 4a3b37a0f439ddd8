// How a KV cache lies in memory on the CPU, and plain access to it. Whatever the order, the bytes are those
// of the format (kv_vector_bytes a token and head); padding is the last panel's alone.
//
// Key panels: 16 tokens together, [width][16], so that a vector holds one element of 16 tokens and scores
// need no sum across lanes. Value panels: [16][width], for every format but int8 the same as rows. int8
// panels end with their 16 tokens' f16 scales. Rows: [token][width], an int8 row followed by its scale; for
// what gathers single tokens, or reads a token as key and value both.
#pragma once

#include <cstdint>

#include "format/format.h"

namespace memwall::cpu {

inline constexpr std::int64_t kPanelTokens = 16;

enum class KvOrder : std::uint8_t { key_panels, value_panels, rows };

// True for the formats that this layout and the kernels know; the others are counted, not run.
bool has_kv(KvFormat format);

// One head's cache of one sequence.
struct KvLayout {
  KvFormat format = KvFormat::f16;
  KvOrder order = KvOrder::rows;
  std::int64_t width = 0;

  // Of that many tokens, the last panel's padding included.
  std::int64_t bytes(std::int64_t tokens) const;
};

// A token's exact values.
void read_kv(const KvLayout& layout, const void* head, std::int64_t token, float* values);

// Stores a token given as a row.
void write_kv(const KvLayout& layout, void* head, std::int64_t token, const void* row);

}  // namespace memwall::cpu
