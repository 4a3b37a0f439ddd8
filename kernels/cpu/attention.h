// Attention on the CPU over a KV cache.
//
// q and y are [rows, heads, d] f32, row-major. Query head h reads KV head h / (heads/kv_heads); scores are
// scaled by 1/sqrt(d_k). The caches are [seqs, kv_heads] heads, each of KvLayout::bytes(context)
// (kv_cache.h): decode reads key panels and value panels, but rows of both where tokens are chosen; prefill
// reads rows. In decode a query that reads no token, or only such whose score is -inf, gets 0. Every function
// that takes an Attention throws std::invalid_argument where the context is empty, where kv_heads does not
// divide heads or where another size is out of range.
#pragma once

#include <cstdint>

#include "format/format.h"
#include "kernels/cpu/kv_cache.h"

namespace memwall::cpu {

struct Attention {
  KvFormat kv = KvFormat::f16;
  const void* k = nullptr;
  const void* v = nullptr;
  const float* q = nullptr;
  float* y = nullptr;
  std::int64_t seqs = 0;
  std::int64_t context = 0;  // tokens in the cache
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t d_k = 0;
  std::int64_t d_v = 0;
  std::int64_t window = 0;               // the last `window` tokens are read; 0: all
  std::int64_t chunk = 0;                // those since the last multiple of `chunk`; 0: all
  const std::int32_t* chosen = nullptr;  // decode reads these alone, [seqs, top_k], each below context
  std::int64_t top_k = 0;

  // Cached tokens that a decode step's query reads.
  std::int64_t decode_tokens() const;
};

// Parts that the tokens of each of `heads` (sequences times KV heads) are cut into so that `threads` threads
// have nearly equal work: the fewest whose busiest thread has at most a tenth more than its share, or those
// that come nearest; never parts of fewer than 256 tokens. 1 or more.
std::int64_t attention_splits(std::int64_t heads, std::int64_t tokens, std::int64_t threads);

// Decode: one query row a sequence. A task is a part of one sequence's KV head: K and V are read once for the
// heads/kv_heads query heads that share them, softmax in one pass (flash-decoding). Computes tasks
// [first, last) of seqs * kv_heads * splits, a head's parts one after the other. With one part it writes y;
// with more it writes `partials`, and attention_merge makes y of them. `scratch` holds
// attention_scratch_floats(op) floats, one a thread.
void attention_decode(const Attention& op, std::int64_t splits, std::int64_t first, std::int64_t last,
                      float* scratch, float* partials);
std::int64_t attention_scratch_floats(const Attention& op);

// Floats that `partials` holds; 0 for one part.
std::int64_t attention_partial_floats(const Attention& op, std::int64_t splits);

// Merges the parts of heads [first, last) of seqs * kv_heads by log-sum-exp, in their order.
void attention_merge(const Attention& op, std::int64_t splits, std::int64_t first, std::int64_t last,
                     const float* partials);

// Prefill: q and y are [seqs, context, heads, d]; token t sees itself and what window and chunk leave of the
// tokens before it. A task is one sequence's query head; computes tasks [first, last) of seqs * heads, those
// that share a KV head from one layout of it. `scratch` holds prefill_scratch_floats(op) floats, one a
// thread.
void attention_prefill(const Attention& op, std::int64_t first, std::int64_t last, float* scratch);
std::int64_t prefill_scratch_floats(const Attention& op);

}  // namespace memwall::cpu
