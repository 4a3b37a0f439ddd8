// The indexer of sparse attention on the CPU (DeepSeek-V3.2's lightning indexer): every query head against
// every cached key, then the choice of the best tokens.
#pragma once

#include <cstdint>

#include "format/format.h"

namespace memwall::cpu {

// scores[key] = sum over heads of weights[head] * max(0, q[head] . key); q is [seqs, heads, width], weights
// [seqs, heads], scores [seqs, keys], f32; the cache [seqs] heads of key panels (kv_cache.h). All heads share
// a key.
struct Indexer {
  KvFormat kv = KvFormat::bf16;
  const void* cache = nullptr;
  const float* q = nullptr;
  const float* weights = nullptr;
  float* scores = nullptr;
  std::int64_t seqs = 0;
  std::int64_t keys = 0;
  std::int64_t heads = 0;
  std::int64_t width = 0;
};

// A task is a part of one sequence's keys; computes tasks [first, last) of seqs * splits (attention_splits of
// attention.h tells how many). A key's score is the same to the bit whatever the parts. `scratch` holds
// indexer_scratch_floats(op) floats, one a thread. Both throw std::invalid_argument where a size is below 1.
void indexer_scores(const Indexer& op, std::int64_t splits, std::int64_t first, std::int64_t last,
                    float* scratch);
std::int64_t indexer_scratch_floats(const Indexer& op);

// The indices of the min(k, count) highest scores, ascending; of equal ones the first. NaN counts as the
// highest. `keys` is room for 2 * count words.
void choose_top(const float* scores, std::int64_t count, std::int64_t k, std::uint32_t* keys,
                std::int32_t* chosen);

}  // namespace memwall::cpu
