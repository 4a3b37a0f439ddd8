// The indexer of sparse attention (DeepSeek-V3.2's lightning indexer): every query head of one token a
// sequence against every cached key, and the choice of the best tokens, in two launches.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/kv.h"

namespace memwall::cuda {

// scores[key] = sum over heads of weights[head] * max(0, q[head] . key). The cache is [seqs, keys] rows of
// `pitch` bytes (kv_pitch), what fills a row up finite; q is [seqs, heads, width], new_key [seqs, width]
// (written as the last key before; null: nothing is), activations of 16 bits; weights [seqs, heads], scores
// [seqs, keys] and chosen [seqs, count], the indices of the `count` highest scores, ascending, of equal ones
// the first, NaN being the highest.
struct IndexerParams {
  std::byte* cache = nullptr;
  std::int64_t pitch = 0;
  const void* q = nullptr;
  const void* new_key = nullptr;
  const float* weights = nullptr;
  float* scores = nullptr;
  std::int32_t* chosen = nullptr;
  int keys = 0;
  int heads = 0;
  int width = 0;
  int count = 0;
  int tiles_each = 0;  // of kTileTokens, a part's
  int parts = 1;
};

struct IndexerLaunch {
  KvElement element = KvElement::f16;
  bool choose = false;  // the second launch
  IndexerParams params;
  Geometry geometry;
};

constexpr unsigned kIndexerThreads = 128;
constexpr unsigned kChooseThreads = 1024;
constexpr std::int64_t kIndexerWidest = 128;
constexpr std::int64_t kIndexerMostHeads = 128;
// Digits by which the choice narrows a score down, 11, 11 and 10 bits.
constexpr unsigned kChooseBins = 2048;

struct IndexerShape {
  KvElement element = KvElement::f16;
  std::int64_t seqs = 0;
  std::int64_t heads = 0;
  std::int64_t width = 0;
  std::int64_t keys = 0;
  std::int64_t count = 0;
};

// Whether there is a kernel: on tensor cores, up to those widths.
bool indexer_takes(const IndexerShape& shape, const ArchLimits& arch);

// The launches, their params but for the pointers.
IndexerLaunch indexer_launch(const IndexerShape& shape, int multiprocessors);
IndexerLaunch choose_launch(const IndexerLaunch& launch);

}  // namespace memwall::cuda
