// Attention of a group of query heads over a block of tokens, the part that every attention kernel shares:
// scores and softmax; attention_values-inl.h has the sums. Highway's per-target header.
#if defined(MEMWALL_KERNELS_CPU_ATTENTION_BLOCK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MEMWALL_KERNELS_CPU_ATTENTION_BLOCK_INL_H_
#undef MEMWALL_KERNELS_CPU_ATTENTION_BLOCK_INL_H_
#else
#define MEMWALL_KERNELS_CPU_ATTENTION_BLOCK_INL_H_
#endif

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "hwy/highway.h"
#include "kernels/cpu/attention_shape.h"
#include "kernels/cpu/kv-inl.h"
#include "kernels/cpu/softmax-inl.h"

HWY_BEFORE_NAMESPACE();
namespace memwall::cpu::HWY_NAMESPACE {

constexpr std::size_t kTokens = kDecodeTokens;
constexpr std::size_t kPanel = kPanelTokens;
constexpr std::size_t kPanelVectors = kPanel / kLanes;
constexpr std::size_t kTileHeads = 4;
constexpr std::size_t kLine = 64;

// To the second-level cache; past the end of an allocation it does nothing.
//
// Shares of the read bandwidth on Zen 4 (two threads, f16, 32 query heads over 8 KV heads, d 128, context
// 8192; one interleaved run each, medians; AVX-512, AVX2): without 57 and 42 %, to the first level 68 and 78
// %, to the second 89 and 87 %. Keys 4, 8 and 16 KiB ahead: 89.7, 88.6 and 89.6 %; with AVX2 83, 86 and 87 %;
// with as many KV heads as query heads 83.0, 82.9 and 83.3 %. Blocks of 32, 64 and 128 tokens: 89.0, 89.6
// and 88.9 %.
HWY_INLINE void prefetch_line(const std::uint8_t* p) {
#if HWY_COMPILER_GCC || HWY_COMPILER_CLANG
  __builtin_prefetch(p, 0, 2);
#endif
}

// Bytes of keys between what is computed with and what is asked for, at least; of values it is a block.
constexpr std::size_t kKeysAhead = 16384;

// `group` query heads that read the same keys and values, and what they have come to so far.
struct QueryGroup {
  std::size_t group = 0;
  std::size_t depth = 0;          // of a key
  std::size_t width = 0;          // of a value
  std::size_t padded = 0;         // width, rounded up to kPad
  float* q = nullptr;             // scaled, [tile of heads][depth][head]
  float* scores = nullptr;        // [group][kTokens], after softmax the weights
  float* accumulators = nullptr;  // [group][padded]
  float* maxima = nullptr;        // [group]
  float* sums = nullptr;          // [group]
};

HWY_INLINE std::size_t tile_heads(const QueryGroup& g, std::size_t first) {
  return std::min(kTileHeads, g.group - first);
}

// Scales the heads' queries, `depth` floats each, and interleaves them by tiles.
HWY_INLINE void interleave_queries(const QueryGroup& g, const float* q, float scale) {
  for (std::size_t first = 0; first < g.group; first += kTileHeads) {
    const std::size_t heads = tile_heads(g, first);
    float* tile = g.q + first * g.depth;
    for (std::size_t h = 0; h < heads; ++h) {
      for (std::size_t i = 0; i < g.depth; ++i) tile[i * heads + h] = q[(first + h) * g.depth + i] * scale;
    }
  }
}

// Takes the queries in, with nothing summed yet.
HWY_INLINE void begin_group(const QueryGroup& g, const float* q, float scale) {
  interleave_queries(g, q, scale);
  std::fill_n(g.accumulators, g.group * g.padded, 0.0F);
  std::fill_n(g.maxima, g.group, kMinusInfinity);
  std::fill_n(g.sums, g.group, 0.0F);
}

// Keys in panels: `bytes` from one panel to the next.
struct KeyPanels {
  const std::uint8_t* data = nullptr;
  std::size_t bytes = 0;
};

// scores[h][v * kLanes ...] (+)= q . keys over elements [first, last) for V vectors of tokens, H heads.
template <class Kv, std::size_t V, std::size_t H>
HWY_INLINE void score_tile(const std::uint8_t* keys, std::size_t panel_bytes, const float* HWY_RESTRICT q,
                           std::size_t first, std::size_t last, bool ask_ahead, float* HWY_RESTRICT scores) {
  const F32 d;
  constexpr std::size_t kStep = kPanel * Kv::kBytes;  // bytes from an element to the next
  constexpr std::size_t kUnroll = kStep < kLine ? kLine / kStep : 1;
  constexpr std::size_t kPanels = (V + kPanelVectors - 1) / kPanelVectors;
  // Past the panels that are read side by side.
  const std::size_t ahead = std::max(kKeysAhead, kPanels * panel_bytes);
  VF sums[V][H];
  for (std::size_t v = 0; v < V; ++v) {
    for (std::size_t h = 0; h < H; ++h) {
      sums[v][h] = first == 0 ? hn::Zero(d) : hn::LoadU(d, scores + h * kTokens + v * kLanes);
    }
  }
  const auto add = [&](std::size_t i) HWY_ATTR {
    VF key[V];
    for (std::size_t v = 0; v < V; ++v) {
      key[v] = Kv::load(keys + v / kPanelVectors * panel_bytes + i * kStep +
                        v % kPanelVectors * kLanes * Kv::kBytes);
    }
    for (std::size_t h = 0; h < H; ++h) {
      const VF query = hn::Set(d, q[i * H + h]);
      for (std::size_t v = 0; v < V; ++v) sums[v][h] = hn::MulAdd(query, key[v], sums[v][h]);
    }
  };
  std::size_t i = first;
  if (ask_ahead) {
    for (; i + kUnroll <= last; i += kUnroll) {
      for (std::size_t p = 0; p < kPanels; ++p) {
        prefetch_line(keys + p * panel_bytes + i * kStep + ahead);
      }
      for (std::size_t u = 0; u < kUnroll; ++u) add(i + u);
    }
  }
  for (; i < last; ++i) add(i);
  for (std::size_t h = 0; h < H; ++h) {
    for (std::size_t v = 0; v < V; ++v) hn::StoreU(sums[v][h], d, scores + h * kTokens + v * kLanes);
  }
}

// The same with H known at run time.
template <class Kv, std::size_t V>
HWY_INLINE void score_heads(const std::uint8_t* keys, std::size_t panel_bytes, const float* q,
                            std::size_t heads, std::size_t first, std::size_t last, bool ask_ahead,
                            float* scores) {
  switch (heads) {
    case 1:
      return score_tile<Kv, V, 1>(keys, panel_bytes, q, first, last, ask_ahead, scores);
    case 2:
      return score_tile<Kv, V, 2>(keys, panel_bytes, q, first, last, ask_ahead, scores);
    case 3:
      return score_tile<Kv, V, 3>(keys, panel_bytes, q, first, last, ask_ahead, scores);
    default:
      return score_tile<Kv, V, 4>(keys, panel_bytes, q, first, last, ask_ahead, scores);
  }
}

// scores of V vectors of tokens from vector `start` of the block on, for all heads: by chunks of elements
// that stay in the first-level cache from one tile of heads to the next.
template <class Kv, std::size_t V>
void score_vectors(const QueryGroup& g, const KeyPanels& keys, std::size_t start) {
  constexpr std::size_t kChunk = 192;
  const std::uint8_t* own =
      keys.data + start / kPanelVectors * keys.bytes + start % kPanelVectors * kLanes * Kv::kBytes;
  for (std::size_t i = 0; i < g.depth; i += kChunk) {
    const std::size_t last = std::min(i + kChunk, g.depth);
    for (std::size_t h = 0; h < g.group; h += kTileHeads) {
      // Once a line of keys: not for each tile of heads, nor for each part of a panel.
      const bool ask_ahead = Kv::kCold && h == 0 && start % kPanelVectors == 0;
      score_heads<Kv, V>(own, keys.bytes, g.q + h * g.depth, tile_heads(g, h), i, last, ask_ahead,
                         g.scores + h * kTokens + start * kLanes);
    }
  }
}

// Scores of the block's first `panels` panels.
template <class Kv>
HWY_INLINE void score_block(const QueryGroup& g, const KeyPanels& keys, std::size_t panels) {
  const std::size_t vectors = panels * kPanelVectors;
  std::size_t start = 0;
  if (g.group <= 2) {
    for (; start + 4 <= vectors; start += 4) score_vectors<Kv, 4>(g, keys, start);
  }
  for (; start + 2 <= vectors; start += 2) score_vectors<Kv, 2>(g, keys, start);
  for (; start < vectors; ++start) score_vectors<Kv, 1>(g, keys, start);
}

// Online softmax (Milakov and Gimelshein, arXiv:1805.02867): the scores of tokens [first, last) become
// exp(score - maximum), those around them 0, and what was summed under a lower maximum is scaled down.
HWY_INLINE void softmax_block(const QueryGroup& g, std::size_t first, std::size_t last) {
  const F32 d;
  const std::size_t padded = (last + kPanel - 1) / kPanel * kPanel;
  for (std::size_t h = 0; h < g.group; ++h) {
    float* scores = g.scores + h * kTokens;
    std::fill(scores, scores + first, kMinusInfinity);
    std::fill(scores + last, scores + padded, kMinusInfinity);
    const float before = g.maxima[h];
    const float largest = std::max(before, max_of(scores, padded));
    // All scores so far may be -inf, and -inf - -inf is NaN; any finite shift gives their exp, 0.
    const float shift = largest == kMinusInfinity ? 0.0F : largest;
    const float sum = exp_and_sum(scores, padded, shift);
    if (largest > before) {
      const float factor = std::exp(before - shift);
      g.sums[h] *= factor;
      float* accumulators = g.accumulators + h * g.padded;
      for (std::size_t i = 0; i < g.padded; i += kLanes) {
        hn::StoreU(hn::Mul(hn::Set(d, factor), hn::LoadU(d, accumulators + i)), d, accumulators + i);
      }
      g.maxima[h] = largest;
    }
    g.sums[h] += sum;
  }
}

// Multiplies every head's row of scores by `factors`, one a token.
HWY_INLINE void scale_scores(const QueryGroup& g, const float* factors, std::size_t tokens) {
  const F32 d;
  for (std::size_t h = 0; h < g.group; ++h) {
    for (std::size_t t = 0; t < tokens; t += kLanes) {
      float* scores = g.scores + h * kTokens + t;
      hn::StoreU(hn::Mul(hn::LoadU(d, scores), hn::LoadU(d, factors + t)), d, scores);
    }
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace memwall::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
