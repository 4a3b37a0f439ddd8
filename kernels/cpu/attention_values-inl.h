// The weighted sums of attention's values. Highway's per-target header.
#if defined(MEMWALL_KERNELS_CPU_ATTENTION_VALUES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MEMWALL_KERNELS_CPU_ATTENTION_VALUES_INL_H_
#undef MEMWALL_KERNELS_CPU_ATTENTION_VALUES_INL_H_
#else
#define MEMWALL_KERNELS_CPU_ATTENTION_VALUES_INL_H_
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "hwy/highway.h"
#include "kernels/cpu/attention_block-inl.h"

HWY_BEFORE_NAMESPACE();
namespace memwall::cpu::HWY_NAMESPACE {

// Tokens [first, last) of value panels: `row` bytes from a token to the next, `bytes` from a panel to the
// next.
struct ValuePanels {
  const std::uint8_t* data = nullptr;
  std::size_t row = 0;
  std::size_t bytes = 0;
  std::size_t first = 0;
  std::size_t last = 0;
};

// accumulators[h] += weights . values for V vectors of elements, H heads. `next`: what to ask for meanwhile,
// as many bytes a token as are read of it; null: nothing.
template <class Kv, std::size_t V, std::size_t H>
HWY_INLINE void weigh_tile(const ValuePanels& values, std::size_t element, const float* HWY_RESTRICT weights,
                           const std::uint8_t* next, float* HWY_RESTRICT accumulators, std::size_t padded) {
  const F32 d;
  constexpr std::size_t kAsk = V * kLanes * Kv::kBytes;
  constexpr std::size_t kTokensALine = kAsk < kLine ? kLine / kAsk : 1;
  VF sums[H][V];
  for (std::size_t h = 0; h < H; ++h) {
    for (std::size_t v = 0; v < V; ++v) sums[h][v] = hn::LoadU(d, accumulators + h * padded + v * kLanes);
  }
  const auto add = [&](const std::uint8_t* row, const float* weight) HWY_ATTR {
    VF value[V];
    for (std::size_t v = 0; v < V; ++v) value[v] = Kv::load(row + v * kLanes * Kv::kBytes);
    for (std::size_t h = 0; h < H; ++h) {
      const VF w = hn::Set(d, weight[h * kTokens]);
      for (std::size_t v = 0; v < V; ++v) sums[h][v] = hn::MulAdd(w, value[v], sums[h][v]);
    }
  };
  for (std::size_t t = values.first; t < values.last;) {
    const std::uint8_t* row =
        values.data + t / kPanel * values.bytes + t % kPanel * values.row + element * Kv::kBytes;
    const std::size_t end = std::min(values.last, (t / kPanel + 1) * kPanel);
    for (; t < end; ++t, row += values.row) {
      if (next != nullptr && t % kTokensALine == 0) {
        for (std::size_t i = 0; i < kAsk; i += kLine) prefetch_line(next + t * kAsk + i);
      }
      add(row, weights + t);
    }
  }
  for (std::size_t h = 0; h < H; ++h) {
    for (std::size_t v = 0; v < V; ++v) hn::StoreU(sums[h][v], d, accumulators + h * padded + v * kLanes);
  }
}

template <class Kv, std::size_t V>
void weigh_heads(const QueryGroup& g, const ValuePanels& values, std::size_t element,
                 const std::uint8_t* next) {
  for (std::size_t h = 0; h < g.group; h += kTileHeads) {
    const float* weights = g.scores + h * kTokens;
    float* accumulators = g.accumulators + h * g.padded + element;
    switch (tile_heads(g, h)) {
      case 1:
        weigh_tile<Kv, V, 1>(values, element, weights, next, accumulators, g.padded);
        break;
      case 2:
        weigh_tile<Kv, V, 2>(values, element, weights, next, accumulators, g.padded);
        break;
      case 3:
        weigh_tile<Kv, V, 3>(values, element, weights, next, accumulators, g.padded);
        break;
      default:
        weigh_tile<Kv, V, 4>(values, element, weights, next, accumulators, g.padded);
    }
    next = nullptr;
  }
}

// The last elements of values whose width is no multiple of kLanes.
template <class Kv>
void weigh_rest(const QueryGroup& g, const ValuePanels& values, std::size_t element) {
  const F32 d;
  for (std::size_t t = values.first; t < values.last; ++t) {
    const VF value = load_some<Kv>(
        values.data + t / kPanel * values.bytes + t % kPanel * values.row + element * Kv::kBytes,
        g.width - element);
    for (std::size_t h = 0; h < g.group; ++h) {
      float* sum = g.accumulators + h * g.padded + element;
      hn::StoreU(hn::MulAdd(hn::Set(d, g.scores[h * kTokens + t]), value, hn::LoadU(d, sum)), d, sum);
    }
  }
}

// accumulators += weights . values. `ahead`: bytes from a value to what to ask for meanwhile; 0: nothing.
template <class Kv>
HWY_INLINE void weigh_block(const QueryGroup& g, const ValuePanels& values, std::size_t ahead) {
  constexpr std::size_t kMost = kLanes == 16 ? 4 : 2;  // vectors a tile: registers are 32, else 16
  const std::uint8_t* next = ahead > 0 ? values.data + ahead : nullptr;
  std::size_t i = 0;
  const auto step = [&](std::size_t vectors) HWY_ATTR {
    const std::size_t elements = vectors * kLanes;
    i += elements;
    if (next != nullptr) next += kTokens * elements * Kv::kBytes;
  };
  for (; i + kMost * kLanes <= g.width; step(kMost)) weigh_heads<Kv, kMost>(g, values, i, next);
  if constexpr (kMost == 4) {
    for (; i + 2 * kLanes <= g.width; step(2)) weigh_heads<Kv, 2>(g, values, i, next);
  }
  for (; i + kLanes <= g.width; step(1)) weigh_heads<Kv, 1>(g, values, i, next);
  if (i < g.width) weigh_rest<Kv>(g, values, i);
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace memwall::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
