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

// Tokens that a tile's rows see at most, the stride of its scores: whole tiles of keys, and not a multiple of
// a page, where the rows of a tile would meet in the same sets of the cache.
std::size_t scores_stride(const Attention& op) {
  const std::int64_t reach = op.chunk > 0 ? op.chunk : op.window > 0 ? op.window : op.context;
  const std::int64_t tokens = std::min(op.context, reach + static_cast<std::int64_t>(kTileRows) - 1);
  return static_cast<std::size_t>(round_up(tokens, 2 * kPad) + kPad);
}

// A head's keys, values and query rows, and room for the scores of a tile.
struct Head {
  std::size_t context;
  std::size_t depth;        // of a key
  std::size_t width;        // of a value
  std::size_t queries;      // floats from a query row to the next
  std::size_t outputs;      // likewise of y
  std::size_t stride;       // of a row of scores
  float* keys = nullptr;    // [panels of tokens][depth][16], zeros after the last token
  float* values = nullptr;  // [panels of columns][context][16], zeros after the last column
  float* scores = nullptr;  // [kTileRows][stride]
  float* row = nullptr;     // one row of the cache as f32
  float* tile = nullptr;  // [kTileRows][depth] queries, side by side: in q they lie a page or more apart, in
                          // the same sets of the cache
};

std::size_t key_panels(std::size_t context) { return (context + kTileWidth - 1) / kTileWidth; }
std::size_t value_panels(std::size_t width) { return (width + kTileWidth - 1) / kTileWidth; }

std::int64_t scratch_floats(const Attention& op) {
  const auto context = static_cast<std::size_t>(op.context);
  const auto depth = static_cast<std::size_t>(op.d_k);
  const auto width = static_cast<std::size_t>(op.d_v);
  const std::size_t floats = key_panels(context) * kTileWidth * depth +
                             value_panels(width) * kTileWidth * context + kTileRows * scores_stride(op) +
                             std::max(depth, width) + kPad + kTileRows * depth + kPad;
  return static_cast<std::int64_t>(floats);
}

Head head_of(const Attention& op, float* scratch) {
  Head head{static_cast<std::size_t>(op.context),
            static_cast<std::size_t>(op.d_k),
            static_cast<std::size_t>(op.d_v),
            static_cast<std::size_t>(op.heads * op.d_k),
            static_cast<std::size_t>(op.heads * op.d_v),
            scores_stride(op)};
  head.keys = line_aligned(scratch);
  head.values = head.keys + key_panels(head.context) * kTileWidth * head.depth;
  head.scores = head.values + value_panels(head.width) * kTileWidth * head.context;
  head.row = head.scores + kTileRows * head.stride;
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

// scores[row][token - low] = q . k for a tile of rows, tokens from panel `first` up to `last`, a panel too.
void score_rows(const Head& head, std::size_t first, std::size_t last) {
  const F32 d;
  for (std::size_t panel = first; panel < last; panel += kTilePanels) {
    const std::size_t here = std::min(kTilePanels, last - panel);
    const float* panels[kTilePanels];
    for (std::size_t t = 0; t < kTilePanels; ++t) {
      panels[t] = head.keys + (panel + std::min(t, here - 1)) * kTileWidth * head.depth;
    }
    TileSums sums;
    clear_tile(sums);
    multiply_tile(head.tile, head.depth, 1, panels, head.depth, sums);
    for (std::size_t r = 0; r < kTileRows; ++r) {
      float* scores = head.scores + r * head.stride + (panel - first) * kTileWidth;
      for (std::size_t t = 0; t < here; ++t) {
        for (std::size_t p = 0; p < kTileParts; ++p) {
          hn::StoreU(sums[r][t][p], d, scores + t * kTileWidth + p * kLanes);
        }
      }
    }
  }
}

// Of n scores, n a multiple of kPad, exp(scale * (score - largest)), and 1 over their sum.
float soften(float* scores, std::size_t n, float scale) {
  const F32 d;
  const VF factor = hn::Set(d, scale);
  const VF largest = hn::Set(d, max_of(scores, n));
  VF sum = hn::Zero(d);
  for (std::size_t i = 0; i < n; i += kLanes) {
    const VF e = exp_nonpositive(hn::Mul(hn::Sub(hn::LoadU(d, scores + i), largest), factor));
    hn::StoreU(e, d, scores + i);
    sum = hn::Add(sum, e);
  }
  return 1.0F / hn::GetLane(hn::SumOfLanes(d, sum));
}

// y's `rows` rows from `y` on = weights (the tile's scores, of `tokens` tokens from `low` on) times values.
void sum_values(const Head& head, std::size_t low, std::size_t tokens, std::size_t rows, const float* factors,
                float* y) {
  const F32 d;
  for (std::size_t panel = 0; panel < value_panels(head.width); panel += kTilePanels) {
    const std::size_t here = std::min(kTilePanels, value_panels(head.width) - panel);
    const float* panels[kTilePanels];
    for (std::size_t t = 0; t < kTilePanels; ++t) {
      panels[t] = head.values + ((panel + std::min(t, here - 1)) * head.context + low) * kTileWidth;
    }
    TileSums sums;
    clear_tile(sums);
    multiply_tile(head.scores, head.stride, 1, panels, tokens, sums);
    for (std::size_t r = 0; r < rows; ++r) {
      for (std::size_t t = 0; t < here; ++t) {
        float columns[kTileWidth];
        for (std::size_t p = 0; p < kTileParts; ++p) {
          hn::StoreU(hn::Mul(sums[r][t][p], hn::Set(d, factors[r])), d, columns + p * kLanes);
        }
        const std::size_t first = (panel + t) * kTileWidth;
        std::memcpy(y + r * head.outputs + first, columns,
                    std::min(kTileWidth, head.width - first) * sizeof(float));
      }
    }
  }
}

// Query rows [first, last), a tile at most.
void attend(const Attention& op, const Head& head, std::size_t first, std::size_t last, const float* q,
            float* y) {
  const std::size_t rows = last - first;
  std::fill_n(head.tile, kTileRows * head.depth, 0.0F);
  for (std::size_t r = 0; r < rows; ++r) {
    std::copy_n(q + (first + r) * head.queries, head.depth, head.tile + r * head.depth);
  }
  const std::size_t first_panel =
      static_cast<std::size_t>(first_seen(op, static_cast<std::int64_t>(first))) / kTileWidth;
  const std::size_t low = first_panel * kTileWidth;
  score_rows(head, first_panel, key_panels(last));

  const std::size_t stride = key_panels(last) * kTileWidth - low;
  const float scale = 1.0F / std::sqrt(static_cast<float>(op.d_k));
  float factors[kTileRows] = {};
  for (std::size_t r = 0; r < rows; ++r) {
    float* scores = head.scores + r * head.stride;
    const std::size_t begin =
        static_cast<std::size_t>(first_seen(op, static_cast<std::int64_t>(first + r))) - low;
    std::fill(scores, scores + begin, kMinusInfinity);
    std::fill(scores + (first + r + 1 - low), scores + stride, kMinusInfinity);
    factors[r] = soften(scores, stride, scale);
  }
  sum_values(head, low, last - low, rows, factors, y + first * head.outputs);
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
