// Multi-head latent attention on the CPU, absorbed, over a cache of latents (DeepSeek-V2, section 2.1).
//
// q is [seqs, heads, rank + rope] and y [seqs, heads, rank], f32; the cache [seqs] heads of `entries` rows of
// rank + rope elements (kv_cache.h). All heads read the same latent: a key is the whole of it, a value its
// first `rank` elements, so that each is read once. A query that reads no latent gets 0. Every function that
// takes a LatentAttention throws std::invalid_argument where a size is out of range.
#pragma once

#include <cstdint>

#include "format/format.h"

namespace memwall::cpu {

struct LatentAttention {
  KvFormat kv = KvFormat::bf16;
  const void* cache = nullptr;
  const float* q = nullptr;
  float* y = nullptr;
  std::int64_t seqs = 0;
  std::int64_t entries = 0;  // in the cache, all read
  std::int64_t heads = 0;
  std::int64_t rank = 0;
  std::int64_t rope = 0;
  float scale = 1;                       // of the scores
  const std::int32_t* chosen = nullptr;  // these alone are read, [seqs, top_k], each below entries
  std::int64_t top_k = 0;

  std::int64_t read_entries() const;
};

// Decode: one query row a sequence. A task is a part of one sequence's latents for all heads; computes tasks
// [first, last) of seqs * splits (attention_splits of attention.h tells how many). With one part it writes y;
// with more it writes `partials`, and latent_merge makes y of them. `scratch` holds latent_scratch_floats(op)
// floats, one a thread.
void latent_decode(const LatentAttention& op, std::int64_t splits, std::int64_t first, std::int64_t last,
                   float* scratch, float* partials);
std::int64_t latent_scratch_floats(const LatentAttention& op);

// Floats that `partials` holds; 0 for one part.
std::int64_t latent_partial_floats(const LatentAttention& op, std::int64_t splits);

// Merges the parts of heads [first, last) of seqs * heads by log-sum-exp, in their order.
void latent_merge(const LatentAttention& op, std::int64_t splits, std::int64_t first, std::int64_t last,
                  const float* partials);

}  // namespace memwall::cpu
