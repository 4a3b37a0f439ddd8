// Attention on the CPU over a KV cache.
//
// Layouts, all row-major: q and y are [rows, heads, d] f32; the caches are K [seqs, kv_heads, context, d_k]
// and V [seqs, kv_heads, context, d_v] in f32, f16 or bf16. Query head h reads KV head h / (heads/kv_heads).
// Scores are scaled by 1/sqrt(d_k). Every function but has_attention throws std::invalid_argument where that
// refuses the cache's format, where the context is empty or where kv_heads does not divide heads.
#pragma once

#include <cstdint>

#include "format/format.h"

namespace memwall::cpu {

struct Attention {
  KvFormat kv = KvFormat::f16;
  const void* k = nullptr;
  const void* v = nullptr;
  const float* q = nullptr;
  float* y = nullptr;
  std::int64_t seqs = 0;
  std::int64_t context = 0;  // tokens in the cache
  std::int64_t window = 0;   // the last `window` tokens are read; 0: all
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t d_k = 0;
  std::int64_t d_v = 0;
};

// True for f32, f16 and bf16.
bool has_attention(KvFormat format);

// Decode: one query row a sequence. A task is one sequence's KV head: K and V are read once for the
// heads/kv_heads query heads that share them, softmax in one pass. Computes tasks [first, last) of
// seqs * kv_heads. `scratch` holds attention_scratch_floats(op) floats, one a thread.
void attention_decode(const Attention& op, std::int64_t first, std::int64_t last, float* scratch);
std::int64_t attention_scratch_floats(const Attention& op);

// Prefill: q and y are [seqs, context, heads, d]; token t sees tokens (t - window, t]. A task is one
// sequence's query head; computes tasks [first, last) of seqs * heads by blocks of query rows through the
// BLAS, single-threaded (std::length_error past its 32-bit sizes). `scratch` holds prefill_scratch_floats(op)
// floats, one a thread.
void attention_prefill(const Attention& op, std::int64_t first, std::int64_t last, float* scratch);
std::int64_t prefill_scratch_floats(const Attention& op);

}  // namespace memwall::cpu
