// Blocks of a cache in rows, widened to f32 for the block kernels: what gathers tokens, or needs a token as
// key and value both. Highway's per-target header.
#if defined(MEMWALL_KERNELS_CPU_ATTENTION_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MEMWALL_KERNELS_CPU_ATTENTION_ROWS_INL_H_
#undef MEMWALL_KERNELS_CPU_ATTENTION_ROWS_INL_H_
#else
#define MEMWALL_KERNELS_CPU_ATTENTION_ROWS_INL_H_
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "hwy/highway.h"
#include "kernels/cpu/attention_block-inl.h"
#include "kernels/cpu/attention_values-inl.h"

HWY_BEFORE_NAMESPACE();
namespace memwall::cpu::HWY_NAMESPACE {

// One head's cache in rows, and the tokens of it to read: `chosen`, or as they lie.
struct TokenRows {
  const std::uint8_t* data = nullptr;
  std::size_t bytes = 0;  // a row
  std::size_t width = 0;
  const std::int32_t* chosen = nullptr;

  const std::uint8_t* row(std::size_t token) const {
    return data + (chosen == nullptr ? token : static_cast<std::size_t>(chosen[token])) * bytes;
  }
};

// Widens tokens [first, first + count) into rows `stride` floats apart, a multiple of kPad. Asks for the rows
// of the block after them, up to token `end`.
template <class Kv>
HWY_INLINE void widen_block(const TokenRows& from, std::size_t first, std::size_t count, std::size_t end,
                            std::size_t stride, float* HWY_RESTRICT rows) {
  for (std::size_t t = first; t < first + count; ++t) {
    if (t + kTokens < end) {
      const std::uint8_t* next = from.row(t + kTokens);
      for (std::size_t i = 0; i < from.bytes; i += kLine) prefetch_line(next + i);
    }
    widen_kv_row<Kv>(from.row(t), from.width, rows + (t - first) * stride);
  }
}

// Rows of a panel's 16 tokens to [depth][16]; depth is rounded up to 4, and `stride` is at least that.
HWY_INLINE void transpose_panel(const float* HWY_RESTRICT rows, std::size_t stride, std::size_t depth,
                                float* HWY_RESTRICT panel) {
#if HWY_TARGET == HWY_SCALAR
  for (std::size_t t = 0; t < kPanel; ++t) {
    for (std::size_t i = 0; i < depth; ++i) panel[i * kPanel + t] = rows[t * stride + i];
  }
#else
  // Four by four: [a0 b0 a1 b1] and [c0 d0 c1 d1] give [a0 b0 c0 d0] and [a1 b1 c1 d1].
  const hn::CappedTag<float, 4> d;
  const hn::Repartition<double, decltype(d)> pairs;
  const auto join = [&](auto low, auto high, float* out) HWY_ATTR {
    const auto l = hn::BitCast(pairs, low);
    const auto h = hn::BitCast(pairs, high);
    hn::StoreU(hn::BitCast(d, hn::InterleaveLower(pairs, l, h)), d, out);
    hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(pairs, l, h)), d, out + kPanel);
  };
  for (std::size_t i = 0; i < depth; i += 4) {
    for (std::size_t t = 0; t < kPanel; t += 4) {
      const float* source = rows + t * stride + i;
      const auto r0 = hn::LoadU(d, source);
      const auto r1 = hn::LoadU(d, source + stride);
      const auto r2 = hn::LoadU(d, source + 2 * stride);
      const auto r3 = hn::LoadU(d, source + 3 * stride);
      float* out = panel + i * kPanel + t;
      join(hn::InterleaveLower(d, r0, r1), hn::InterleaveLower(d, r2, r3), out);
      join(hn::InterleaveUpper(d, r0, r1), hn::InterleaveUpper(d, r2, r3), out + 2 * kPanel);
    }
  }
#endif
}

// Room for a block: widened rows of keys, the same in panels, rows of values where they are others.
struct RowScratch {
  float* rows = nullptr;
  std::size_t stride = 0;
  float* panels = nullptr;
  float* values = nullptr;
  std::size_t values_stride = 0;
};

// Attention of the group over tokens [first, last) of a cache in rows. Without `values` a token's value is
// the beginning of its key.
template <class Kv>
void attend_rows(const QueryGroup& g, const TokenRows& keys, const TokenRows* values, std::size_t first,
                 std::size_t last, const RowScratch& room) {
  const std::size_t panel_floats = (g.depth + 3) / 4 * 4 * kPanel;
  for (std::size_t t = first; t < last; t += kTokens) {
    const std::size_t tokens = std::min(last - t, kTokens);
    const std::size_t panels = (tokens + kPanel - 1) / kPanel;
    widen_block<Kv>(keys, t, tokens, last, room.stride, room.rows);
    for (std::size_t p = 0; p < panels; ++p) {
      transpose_panel(room.rows + p * kPanel * room.stride, room.stride, g.depth,
                      room.panels + p * panel_floats);
    }
    const KeyPanels key_panels{reinterpret_cast<const std::uint8_t*>(room.panels),
                               panel_floats * sizeof(float)};
    score_block<KvWidened>(g, key_panels, panels);
    softmax_block(g, 0, tokens);
    const float* wide = room.rows;
    std::size_t stride = room.stride;
    if (values != nullptr) {
      widen_block<Kv>(*values, t, tokens, last, room.values_stride, room.values);
      wide = room.values;
      stride = room.values_stride;
    }
    const ValuePanels value_panels{reinterpret_cast<const std::uint8_t*>(wide), stride * sizeof(float),
                                   kPanel * stride * sizeof(float), 0, tokens};
    weigh_block<KvWidened>(g, value_panels, 0);
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace memwall::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
