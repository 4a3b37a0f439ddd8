#include "kernels/cpu/indexer.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <functional>
#include <stdexcept>

#include "kernels/cpu/attention_shape.h"
#include "kernels/cpu/highway_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/indexer.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
//
#include "hwy/highway.h"
#include "kernels/cpu/attention_block-inl.h"

HWY_BEFORE_NAMESPACE();
namespace memwall::cpu::HWY_NAMESPACE {

// out[t] = sum over heads of weights[h] * max(0, factors[t] * scores[h][t]) for the tokens of `panels`
// panels.
HWY_INLINE void sum_heads(const QueryGroup& g, const float* weights, const float* factors, std::size_t panels,
                          float* HWY_RESTRICT out) {
  const F32 d;
  for (std::size_t t = 0; t < panels * kPanel; t += kLanes) {
    const VF factor = hn::LoadU(d, factors + t);
    VF sum = hn::Zero(d);
    for (std::size_t h = 0; h < g.group; ++h) {
      const VF score = hn::Mul(factor, hn::LoadU(d, g.scores + h * kTokens + t));
      // Not Max, which drops a NaN on some targets.
      const VF positive = hn::IfThenElse(hn::Lt(score, hn::Zero(d)), hn::Zero(d), score);
      sum = hn::MulAdd(hn::Set(d, weights[h]), positive, sum);
    }
    hn::StoreU(sum, d, out + t);
  }
}

template <class Kv>
void score_keys(const Indexer& op, std::int64_t splits, std::int64_t first, std::int64_t last,
                float* scratch) {
  QueryGroup g;
  g.group = static_cast<std::size_t>(op.heads);
  g.depth = static_cast<std::size_t>(op.width);
  g.q = line_aligned(scratch);
  g.scores = g.q + round_up(op.heads * op.width, kPad);
  constexpr std::size_t kScales = Kv::kScaled ? 2 * kPanel : 0;  // bytes a panel
  const std::size_t panel_bytes = kPanel * g.depth * Kv::kBytes + kScales;
  alignas(64) float factors[kTokens];
  alignas(64) float sums[kTokens];
  std::fill_n(factors, kTokens, Kv::kFactor);
  for (std::int64_t task = first; task < last; ++task) {
    const std::int64_t seq = task / splits;
    const std::uint8_t* cache =
        static_cast<const std::uint8_t*>(op.cache) +
        static_cast<std::size_t>(seq * round_up(op.keys, kPanelTokens) / kPanelTokens) * panel_bytes;
    interleave_queries(g, op.q + seq * op.heads * op.width, 1.0F);
    const TokenRange range = part_of(0, op.keys, splits, task % splits);
    for (std::int64_t t = range.first; t < range.last; t += kDecodeTokens) {
      const std::size_t tokens = static_cast<std::size_t>(std::min(range.last - t, kDecodeTokens));
      const std::size_t panels = (tokens + kPanel - 1) / kPanel;
      const std::uint8_t* keys = cache + static_cast<std::size_t>(t) / kPanel * panel_bytes;
      score_block<Kv>(g, {keys, panel_bytes}, panels);
      if constexpr (Kv::kScaled) {
        for (std::size_t p = 0; p < panels; ++p) {
          widen_scales(keys + (p + 1) * panel_bytes - kScales, kPanel, factors + p * kPanel);
        }
      }
      sum_heads(g, op.weights + seq * op.heads, factors, panels, sums);
      std::copy_n(sums, tokens, op.scores + seq * op.keys + t);
    }
  }
}

void indexer_scores(const Indexer& op, std::int64_t splits, std::int64_t first, std::int64_t last,
                    float* scratch) {
  with_kv_type(op.kv, [&](auto kv) HWY_ATTR { score_keys<decltype(kv)>(op, splits, first, last, scratch); });
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace memwall::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace memwall::cpu {

HWY_EXPORT(indexer_scores);

namespace {

void check_indexer(const Indexer& op) {
  if (op.keys < 1 || op.heads < 1 || op.width < 1) {
    throw std::invalid_argument("an indexer needs keys, heads and a width");
  }
}

// Ordered as the floats are, so that NaN has a place among them: above infinity.
std::uint32_t sort_key(float score) {
  const std::uint32_t bits = std::isnan(score) ? 0x7FFFFFFFU : std::bit_cast<std::uint32_t>(score + 0.0F);
  return (bits & 0x80000000U) != 0 ? ~bits : bits | 0x80000000U;
}

}  // namespace

void indexer_scores(const Indexer& op, std::int64_t splits, std::int64_t first, std::int64_t last,
                    float* scratch) {
  check_indexer(op);
  HWY_DYNAMIC_DISPATCH(indexer_scores)(op, splits, first, last, scratch);
}

std::int64_t indexer_scratch_floats(const Indexer& op) {
  check_indexer(op);
  return kPad + round_up(op.heads * op.width, kPad) + op.heads * kDecodeTokens;
}

void choose_top(const float* scores, std::int64_t count, std::int64_t k, std::uint32_t* keys,
                std::int32_t* chosen) {
  k = std::min(k, count);
  if (k <= 0) return;
  std::uint32_t* order = keys + count;
  std::transform(scores, scores + count, keys, sort_key);
  std::copy_n(keys, count, order);
  std::nth_element(order, order + (k - 1), order + count, std::greater<>());
  const std::uint32_t least = order[k - 1];
  // Those above the least are all in; of its equals the first ones fill what is left.
  std::int64_t equals = k - std::count_if(order, order + k, [&](std::uint32_t key) { return key > least; });
  for (std::int64_t i = 0; i < count; ++i) {
    if (keys[i] > least || (keys[i] == least && equals-- > 0)) *chosen++ = static_cast<std::int32_t>(i);
  }
}

}  // namespace memwall::cpu
#endif  // HWY_ONCE
