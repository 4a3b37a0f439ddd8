#include <algorithm>
#include <cmath>
#include <cstddef>

#include "kernels/cpu/attention.h"
#include "kernels/cpu/attention_shape.h"
#include "kernels/cpu/highway_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/attention_decode.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
//
#include "hwy/highway.h"
#include "kernels/cpu/attention_rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace memwall::cpu::HWY_NAMESPACE {

// Attention of the group over tokens [first, last) of one KV head in panels.
template <class Kv>
void attend_panels(const QueryGroup& g, const std::uint8_t* k, const std::uint8_t* v, std::size_t first,
                   std::size_t last) {
  constexpr std::size_t kScales = Kv::kScaled ? 2 * kPanel : 0;  // bytes a panel
  const std::size_t k_bytes = kPanel * g.depth * Kv::kBytes + kScales;
  const std::size_t v_row = g.width * Kv::kBytes;
  const std::size_t v_bytes = kPanel * v_row + kScales;
  alignas(64) float scales[kTokens];
  const auto apply_scales = [&](const std::uint8_t* block, std::size_t bytes, std::size_t panels) HWY_ATTR {
    for (std::size_t p = 0; p < panels; ++p) {
      widen_scales(block + (p + 1) * bytes - kScales, kPanel, scales + p * kPanel);
    }
    scale_scores(g, scales, panels * kPanel);
  };
  for (std::size_t t = first / kPanel * kPanel; t < last; t += kTokens) {
    const std::size_t skipped = first > t ? first - t : 0;
    const std::size_t tokens = std::min(last - t, kTokens);
    const std::size_t panels = (tokens + kPanel - 1) / kPanel;
    const std::uint8_t* keys = k + t / kPanel * k_bytes;
    const std::uint8_t* values = v + t / kPanel * v_bytes;
    score_block<Kv>(g, {keys, k_bytes}, panels);
    if constexpr (Kv::kScaled) apply_scales(keys, k_bytes, panels);
    softmax_block(g, skipped, tokens);
    if constexpr (Kv::kScaled) apply_scales(values, v_bytes, panels);
    weigh_block<Kv>(g, {values, v_row, v_bytes, skipped, tokens}, kTokens / kPanel * v_bytes);
  }
}

template <class Kv>
void decode(const Attention& op, std::int64_t splits, std::int64_t first, std::int64_t last, float* scratch,
            float* partials) {
  const Partials partial{op.heads / op.kv_heads, op.d_v};
  QueryGroup g;
  g.group = static_cast<std::size_t>(partial.group);
  g.depth = static_cast<std::size_t>(op.d_k);
  g.width = static_cast<std::size_t>(op.d_v);
  g.padded = static_cast<std::size_t>(partial.padded());
  g.q = line_aligned(scratch);
  g.scores = g.q + round_up(op.d_k * partial.group, kPad);
  float* own = g.scores + g.group * kTokens;
  RowScratch room;
  room.stride = static_cast<std::size_t>(round_up(op.d_k, kPad));
  room.values_stride = g.padded;
  room.rows = own + partial.floats();
  room.panels = room.rows + kTokens * room.stride;
  room.values = room.panels + kTokens * room.stride;

  const float scale = Kv::kFactor / std::sqrt(static_cast<float>(op.d_k));
  const KvLayout k_layout{op.kv, op.chosen != nullptr ? KvOrder::rows : KvOrder::key_panels, op.d_k};
  const KvLayout v_layout{op.kv, op.chosen != nullptr ? KvOrder::rows : KvOrder::value_panels, op.d_v};
  const std::int64_t end = op.chosen != nullptr ? op.decode_tokens() : op.context;
  for (std::int64_t task = first; task < last; ++task) {
    const std::int64_t head = task / splits;
    const std::uint8_t* k = static_cast<const std::uint8_t*>(op.k) + head * k_layout.bytes(op.context);
    const std::uint8_t* v = static_cast<const std::uint8_t*>(op.v) + head * v_layout.bytes(op.context);
    float* state = splits > 1 ? partials + task * partial.floats() : own;
    g.accumulators = partial.accumulators(state);
    g.maxima = partial.maxima(state);
    g.sums = partial.sums(state);
    const TokenRange range = part_of(end - op.decode_tokens(), end, splits, task % splits);
    const std::size_t from = static_cast<std::size_t>(range.first);
    const std::size_t to = static_cast<std::size_t>(range.last);
    const float* q = op.q + head * partial.group * op.d_k;
    if (op.chosen != nullptr) {
      const std::int32_t* chosen = op.chosen + head / op.kv_heads * op.top_k;
      const TokenRows keys{k, static_cast<std::size_t>(kv_vector_bytes(op.kv, op.d_k)), g.depth, chosen};
      const TokenRows values{v, static_cast<std::size_t>(kv_vector_bytes(op.kv, op.d_v)), g.width, chosen};
      begin_group(g, q, scale / Kv::kFactor);
      attend_rows<Kv>(g, keys, &values, from, to, room);
    } else {
      begin_group(g, q, scale);
      attend_panels<Kv>(g, k, v, from, to);
      if constexpr (Kv::kFactor != 1.0F) {
        for (std::size_t i = 0; i < g.group * g.padded; ++i) g.accumulators[i] *= Kv::kFactor;
      }
    }
    if (splits == 1) partial.merge(state, 1, 0, partial.group, op.y + head * partial.group * op.d_v);
  }
}

void attention_decode(const Attention& op, std::int64_t splits, std::int64_t first, std::int64_t last,
                      float* scratch, float* partials) {
  with_kv_type(op.kv,
               [&](auto kv) HWY_ATTR { decode<decltype(kv)>(op, splits, first, last, scratch, partials); });
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace memwall::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace memwall::cpu {

HWY_EXPORT(attention_decode);

void attention_decode(const Attention& op, std::int64_t splits, std::int64_t first, std::int64_t last,
                      float* scratch, float* partials) {
  check_attention(op);
  HWY_DYNAMIC_DISPATCH(attention_decode)(op, splits, first, last, scratch, partials);
}

std::int64_t attention_scratch_floats(const Attention& op) {
  check_attention(op);
  const Partials partial{op.heads / op.kv_heads, op.d_v};
  const std::int64_t rows =
      op.top_k > 0 ? kDecodeTokens * (2 * round_up(op.d_k, kPad) + partial.padded()) : 0;
  return kPad + round_up(partial.group * op.d_k, kPad) + partial.group * kDecodeTokens + partial.floats() +
         rows;
}

}  // namespace memwall::cpu
#endif  // HWY_ONCE
