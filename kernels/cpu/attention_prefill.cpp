// Prefill attention: a few query rows at a time, kTileRows, against all the tokens that they see. A head's
// keys are laid out once as panels of 16 tokens and its values as panels of 16 columns, so that scores and
// sums are products of the tiles that GEMM uses (tile-inl.h).
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>

#include "kernels/cpu/attention.h"
#include "kernels/cpu/attention_shape.h"
#include "kernels/cpu/highway_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/attention_prefill.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
//
#include "hwy/highway.h"
#include "kernels/cpu/kv-inl.h"
#include "kernels/cpu/softmax-inl.h"
#include "kernels/cpu/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace memwall::cpu::HWY_NAMESPACE {

// Tokens a pass: what a tile's rows score against them, 25 KiB, stays in the first-level cache. From one row
// to the next not a multiple of a page, where they would meet in the same sets.
constexpr std::size_t kPass = 512;
constexpr std::size_t kScores = kPass + kTileWidth;
static_assert(kPass % (kTilePanels * kTileWidth) == 0);

// A head's keys, values and query rows, and room for the scores of a tile.
struct Head {
  std::size_t context;
  std::size_t depth;        // of a key
  std::size_t width;        // of a value
  std::size_t queries;      // floats from a query row to the next
  std::size_t outputs;      // likewise of y
  float* keys = nullptr;    // [panels of tokens][depth][16], zeros after the last token
  float* values = nullptr;  // [panels of columns][context][16], zeros after the last column
  float* scores = nullptr;  // [kTileRows][kScores]
  float* row = nullptr;     // one row of the cache as f32
  float* tile = nullptr;    // [passes of depth][kTileRows][kScores]: a tile's queries
};

std::size_t key_panels(std::size_t context) { return (context + kTileWidth - 1) / kTileWidth; }
std::size_t depth_passes(std::size_t depth) { return (depth + kPass - 1) / kPass; }
std::size_t value_panels(std::size_t width) { return (width + kTileWidth - 1) / kTileWidth; }

std::int64_t scratch_floats(const Attention& op) {
  const auto context = static_cast<std::size_t>(op.context);
  const auto depth = static_cast<std::size_t>(op.d_k);
  const auto width = static_cast<std::size_t>(op.d_v);
  const std::size_t floats = key_panels(context) * kTileWidth * depth +
                             value_panels(width) * kTileWidth * context + kTileRows * kScores +
                             std::max(depth, width) + kPad + depth_passes(depth) * kTileRows * kScores + kPad;
  return static_cast<std::int64_t>(floats);
}

Head head_of(const Attention& op, float* scratch) {
  Head head{static_cast<std::size_t>(op.context), static_cast<std::size_t>(op.d_k),
            static_cast<std::size_t>(op.d_v), static_cast<std::size_t>(op.heads * op.d_k),
            static_cast<std::size_t>(op.heads * op.d_v)};
  head.keys = line_aligned(scratch);
  head.values = head.keys + key_panels(head.context) * kTileWidth * head.depth;
  head.scores = head.values + value_panels(head.width) * kTileWidth * head.context;
  head.row = head.scores + kTileRows * kScores;
  head.tile = head.row + std::max(head.depth, head.width) + kPad;
  return head;
}

// The cache of KV head `kv_head`, rows of tokens, to panels.
void lay_out(const Attention& op, std::int64_t kv_head, const Head& head) {
  with_kv_type(op.kv, [&](auto kv) HWY_ATTR {
    using Kv = decltype(kv);
    const auto row_of = [&](const void* cache, std::size_t width, std::size_t token) HWY_ATTR {
      const std::size_t bytes = width * Kv::kBytes + (Kv::kScaled ? 2 : 0);
      const KvLayout layout{op.kv, KvOrder::rows, static_cast<std::int64_t>(width)};
      widen_kv_row<Kv>(
          static_cast<const std::uint8_t*>(cache) + kv_head * layout.bytes(op.context) + token * bytes, width,
          head.row);
    };
    std::fill_n(head.keys + (key_panels(head.context) - 1) * kTileWidth * head.depth, kTileWidth * head.depth,
                0.0F);
    for (std::size_t token = 0; token < head.context; ++token) {
      row_of(op.k, head.depth, token);
      float* to = head.keys + token / kTileWidth * kTileWidth * head.depth + token % kTileWidth;
      for (std::size_t i = 0; i < head.depth; ++i) to[i * kTileWidth] = head.row[i];
      row_of(op.v, head.width, token);
      for (std::size_t panel = 0; panel < value_panels(head.width); ++panel) {
        float columns[kTileWidth] = {};
        const std::size_t first = panel * kTileWidth;
        std::memcpy(columns, head.row + first, std::min(kTileWidth, head.width - first) * sizeof(float));
        std::memcpy(head.values + (panel * head.context + token) * kTileWidth, columns, sizeof columns);
      }
    }
  });
}

// `rows` query rows to head.tile, zeros in the place of others.
void lay_out_queries(const Head& head, const float* q, std::size_t rows) {
  const F32 d;
  for (std::size_t r = 0; r < kTileRows; ++r) {
    for (std::size_t pass = 0; pass < head.depth; pass += kPass) {
      float* to = head.tile + (pass / kPass * kTileRows + r) * kScores;
      const float* from = q + r * head.queries + pass;
      const std::size_t count = std::min(kPass, head.depth - pass);
      std::size_t i = 0;
      for (; r < rows && i + kLanes <= count; i += kLanes) hn::StoreU(hn::LoadU(d, from + i), d, to + i);
      for (; i < count; ++i) to[i] = r < rows ? from[i] : 0.0F;
    }
  }
}

// scores[row][...] = (first pass of the depth: 0, else themselves) + a tile of queries times P panels of
// keys, over `count` elements. A function of its own for one pass, so that the sums stay in registers.
template <std::size_t P>
HWY_INLINE void score_tile(const float* tile, const float* const* panels, std::size_t count, bool first_pass,
                           float* scores) {
  const F32 d;
  TileSums sums;
  clear_tile(sums);
  multiply_tile<kScores, 1, P>(tile, panels, count, sums);
  for (std::size_t r = 0; r < kTileRows; ++r) {
    for (std::size_t t = 0; t < P; ++t) {
      for (std::size_t p = 0; p < kTileParts; ++p) {
        float* to = scores + r * kScores + t * kTileWidth + p * kLanes;
        hn::StoreU(first_pass ? sums[r][t][p] : hn::Add(sums[r][t][p], hn::LoadU(d, to)), d, to);
      }
    }
  }
}

// scores[row][...] = q . k for a tile of rows and the tokens of panels [first, last), P panels at a time.
template <std::size_t P = kTilePanels>
void score_rows(const Head& head, std::size_t first, std::size_t last, float* scores) {
  for (; first + P <= last; first += P, scores += P * kTileWidth) {
    for (std::size_t i = 0; i < head.depth; i += kPass) {
      const float* panels[P];
      for (std::size_t t = 0; t < P; ++t) {
        panels[t] = head.keys + ((first + t) * head.depth + i) * kTileWidth;
      }
      score_tile<P>(head.tile + i / kPass * kTileRows * kScores, panels, std::min(kPass, head.depth - i),
                    i == 0, scores);
    }
  }
  if constexpr (P > 1) score_rows<P - 1>(head, first, last, scores);
}

// A row's softmax so far: online (Milakov and Gimelshein, arXiv:1805.02867), from one pass of tokens to the
// next, in powers of two.
struct Softmax {
  float largest = kMinusInfinity;  // times `scale`
  float sum = 0.0F;
  float factor = 0.0F;  // what the last pass multiplies the sums before it by

  // Of n scores, n a multiple of kPad, 2^(scale * score - largest), where `most` is the largest score and
  // `scale` above 0.
  void add(float* scores, std::size_t n, float most, float scale) {
    const F32 d;
    const float before = largest;
    largest = std::max(largest, scale * most);
    // A row may see none of the tokens: any finite shift gives their power, 0.
    const float shift = largest == kMinusInfinity ? 0.0F : largest;
    const VF shifts = hn::Set(d, shift);
    const VF scales = hn::Set(d, scale);
    VF total = hn::Zero(d);
    for (std::size_t i = 0; i < n; i += kLanes) {
      const VF e = exp2_nonpositive(hn::MulSub(hn::LoadU(d, scores + i), scales, shifts));
      hn::StoreU(e, d, scores + i);
      total = hn::Add(total, e);
    }
    factor = std::exp2(before - shift);
    sum = sum * factor + hn::GetLane(hn::SumOfLanes(d, total));
  }
};

// y = factor * y (first pass: 0) + weights (the tile's scores, of `tokens` tokens from `low` on) times
// values, for `rows` rows from `y` on; after the last pass over the weights' sum.
void sum_values(const Head& head, std::size_t low, std::size_t tokens, std::size_t rows, bool first_pass,
                bool last_pass, const Softmax* softmax, float* y) {
  const F32 d;
  for (std::size_t panel = 0; panel < value_panels(head.width); panel += kTilePanels) {
    const std::size_t here = std::min(kTilePanels, value_panels(head.width) - panel);
    const float* panels[kTilePanels];
    for (std::size_t t = 0; t < kTilePanels; ++t) {
      panels[t] = head.values + ((panel + std::min(t, here - 1)) * head.context + low) * kTileWidth;
    }
    TileSums sums;
    clear_tile(sums);
    multiply_tile<kScores, 1>(head.scores, panels, tokens, sums);
    for (std::size_t r = 0; r < rows; ++r) {
      for (std::size_t t = 0; t < here; ++t) {
        const std::size_t first = (panel + t) * kTileWidth;
        const std::size_t bytes = std::min(kTileWidth, head.width - first) * sizeof(float);
        float columns[kTileWidth] = {};
        if (!first_pass) std::memcpy(columns, y + r * head.outputs + first, bytes);
        const VF factor = hn::Set(d, softmax[r].factor);
        const VF inverse = hn::Set(d, last_pass ? 1.0F / softmax[r].sum : 1.0F);
        for (std::size_t p = 0; p < kTileParts; ++p) {
          const VF before = hn::LoadU(d, columns + p * kLanes);
          hn::StoreU(hn::Mul(hn::MulAdd(before, factor, sums[r][t][p]), inverse), d, columns + p * kLanes);
        }
        std::memcpy(y + r * head.outputs + first, columns, bytes);
      }
    }
  }
}

// Query rows [first, last), a tile at most.
void attend(const Attention& op, const Head& head, std::size_t first, std::size_t last, const float* q,
            float* y) {
  const std::size_t rows = last - first;
  lay_out_queries(head, q + first * head.queries, rows);
  constexpr float kLog2OfE = 1.44269504088896341F;
  const float scale = kLog2OfE / std::sqrt(static_cast<float>(op.d_k));
  Softmax softmax[kTileRows];
  const auto seen = static_cast<std::size_t>(first_seen(op, static_cast<std::int64_t>(first)));
  const std::size_t begin = seen / kTileWidth * kTileWidth;
  float* outputs = y + first * head.outputs;
  for (std::size_t low = begin; low < last; low += kPass) {
    const std::size_t high = std::min(low + kPass, last);
    const std::size_t padded = key_panels(high) * kTileWidth - low;
    score_rows(head, low / kTileWidth, key_panels(high), head.scores);
    float most[kTileRows];
    for (std::size_t r = 0; r < rows; ++r) {
      float* scores = head.scores + r * kScores;
      const auto own = static_cast<std::size_t>(first_seen(op, static_cast<std::int64_t>(first + r)));
      const std::size_t before = std::clamp(own, low, low + padded) - low;
      const std::size_t after = std::clamp(first + r + 1, low, low + padded) - low;
      std::fill(scores, scores + before, kMinusInfinity);
      std::fill(scores + after, scores + padded, kMinusInfinity);
      most[r] = max_of(scores, padded);
    }
    for (std::size_t r = 0; r < rows; ++r) {
      softmax[r].add(head.scores + r * kScores, padded, most[r], scale);
    }
    sum_values(head, low, high - low, rows, low == begin, high == last, softmax, outputs);
  }
}

void prefill_head(const Attention& op, std::int64_t task, bool laid_out, float* scratch) {
  const Head head = head_of(op, scratch);
  const std::int64_t sequence = task / op.heads;
  const std::int64_t index = task % op.heads;
  if (!laid_out) lay_out(op, sequence * op.kv_heads + index / (op.heads / op.kv_heads), head);
  const float* q = op.q + (sequence * op.context * op.heads + index) * op.d_k;
  float* y = op.y + (sequence * op.context * op.heads + index) * op.d_v;
  for (std::size_t row = 0; row < head.context; row += kTileRows) {
    attend(op, head, row, std::min(row + kTileRows, head.context), q, y);
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace memwall::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace memwall::cpu {

HWY_EXPORT(scratch_floats);
HWY_EXPORT(prefill_head);

std::int64_t prefill_scratch_floats(const Attention& op) {
  check_attention(op);
  return HWY_DYNAMIC_DISPATCH(scratch_floats)(op);
}

// A masked token's weight is an exact 0, but it is multiplied with its value all the same: an infinity or
// NaN in V reaches the rows of its tile that do not see it.
void attention_prefill(const Attention& op, std::int64_t first, std::int64_t last, float* scratch) {
  check_attention(op);
  const std::int64_t group = op.heads / op.kv_heads;
  for (std::int64_t task = first; task < last; ++task) {
    const bool laid_out = task > first && task / group == (task - 1) / group;
    HWY_DYNAMIC_DISPATCH(prefill_head)(op, task, laid_out, scratch);
  }
}

}  // namespace memwall::cpu
#endif  // HWY_ONCE
