// Attention of one query token a sequence over its KV cache: the token's K and V written into the cache, then
// softmax(q K^T scale) V, in one launch. KV is cut into parts over blocks; the block that finishes a head
// last merges them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/kv.h"

namespace memwall::cuda {

// Caches are [seqs, kv_heads, held] rows of k_pitch and v_pitch bytes (kv_pitch), what fills a row up finite.
// A launch reads the last `read` rows or, with `chosen` ([seqs, read], ascending), those. q is [seqs, heads,
// d_k], y [seqs, heads, d_v], new_k [seqs, kv_heads, d_k] and new_v likewise, activations of 16 bits (f32
// where the cache is). Query head h reads KV head h / (heads / kv_heads).
struct AttentionParams {
  std::byte* k = nullptr;
  std::byte* v = nullptr;
  int k_pitch = 0;
  int v_pitch = 0;
  const void* q = nullptr;
  const void* new_k = nullptr;  // null: nothing is written
  const void* new_v = nullptr;
  const float* cosines = nullptr;  // [d_k / 2]: q and new_k are turned, pairs (i, i + d_k / 2); null: not
  const float* sines = nullptr;
  void* y = nullptr;
  const std::int32_t* chosen = nullptr;
  float* partials = nullptr;    // attention_partial_floats; unused by a single part
  unsigned* arrived = nullptr;  // attention_counters zeros, which a launch leaves zero
  std::int64_t held = 0;
  std::int64_t read = 0;
  int tiles_each = 0;  // of kTileTokens, a part's
  int parts = 1;
  int heads = 0;
  int kv_heads = 0;
  int group = 1;  // heads / kv_heads
  int d_k = 0;
  int d_v = 0;
  float scale = 1;
};

// A kernel for rows up to so many elements of K and V.
enum class AttentionWidth : std::uint8_t { w64, w128, w256 };

struct AttentionLaunch {
  KvElement element = KvElement::f16;
  AttentionWidth width = AttentionWidth::w128;
  int head_tiles = 1;  // of 8 query heads a KV head: 1 or, but for w256, 2
  bool plain = false;  // without tensor cores; width and head_tiles do not count
  AttentionParams params;
  Geometry geometry;
};

constexpr unsigned kAttentionThreads = 128;

// What decides how attention runs.
struct AttentionShape {
  KvElement element = KvElement::f16;
  std::int64_t seqs = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t d_k = 0;
  std::int64_t d_v = 0;
  std::int64_t held = 0;
  std::int64_t read = 0;

  std::int64_t group() const { return heads / kv_heads; }
};

// Who computes a shape: a warp's registers hold keys and values for up to 16 query heads (8 of wide rows);
// more share what a block stages in shared memory (latent.h); what neither takes (f32; bf16 before sm_80;
// rows too wide) is computed without tensor cores, up to the widths below.
enum class AttentionWay : std::uint8_t { registers, staged, plain, none };
bool held_in_registers(const AttentionShape& shape);  // where tensor cores multiply its elements
AttentionWay attention_way(const AttentionShape& shape, const ArchLimits& arch);

// Without tensor cores: the query heads of a KV head that a block takes, and the widest rows.
constexpr std::int64_t kPlainHeads = 4;
constexpr std::int64_t kPlainKeys = 576;
constexpr std::int64_t kPlainValues = 512;

// The launch, its params but for the pointers; for AttentionWay::registers and ::plain.
AttentionLaunch attention_launch(const AttentionShape& shape, const ArchLimits& arch, int multiprocessors);

// Without tensor cores, for a shape that `plain_takes`.
bool plain_takes(const AttentionShape& shape);
AttentionLaunch plain_attention_launch(const AttentionShape& shape, int multiprocessors);

// Floats of AttentionParams::partials; 0 where one part reads all.
std::int64_t attention_partial_floats(const AttentionParams& params, std::int64_t seqs);

// Words of AttentionParams::arrived.
std::int64_t attention_counters(const AttentionShape& shape);

// How often the plain kernel reads each byte of K and V: blocks share out a KV head's query heads. The other
// one reads each once.
std::int64_t plain_reads(const AttentionShape& shape);

}  // namespace memwall::cuda
