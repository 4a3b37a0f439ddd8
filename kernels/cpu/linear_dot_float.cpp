// GEMV and skinny GEMM on panels of f32, f16, bf16 and f8_e4m3.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

#include "kernels/cpu/highway_targets.h"
#include "kernels/cpu/linear_parts.h"
#include "kernels/cpu/panel_layout.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/linear_dot_float.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
//
#include "hwy/highway.h"
#include "kernels/cpu/panel-inl.h"

HWY_BEFORE_NAMESPACE();
namespace memwall::cpu::HWY_NAMESPACE {

// Columns of x held in registers at once.
constexpr std::size_t kColumns = kParts == 1 ? 8 : kParts == 2 ? 4 : HWY_ARCH_ARM ? 6 : 2;

// k's whose weights stay in the first-level cache for what else is done with them.
constexpr std::size_t kChunk = 512;

// k's that one load of weights covers, and the vectors they make.
constexpr std::size_t kStepK = kParts == 1 ? 2 : 1;
constexpr std::size_t kStepVectors = kStepK * kParts;

// Rows of x in tiles, of at most kColumns each and as equal as can be.
struct Tiles {
  std::size_t rows;
  std::size_t count() const { return (rows + kColumns - 1) / kColumns; }
  std::size_t first(std::size_t tile) const { return rows * tile / count(); }
  std::size_t size(std::size_t tile) const { return first(tile + 1) - first(tile); }
};

// The vectors of kStepK k's from `at` on.
template <class Rows>
struct Plain {
  static constexpr std::size_t kBytes = Rows::kBytes;
  static HWY_INLINE void load_step(const std::uint8_t* at, VF* HWY_RESTRICT w) {
    for (std::size_t i = 0; i < kStepVectors; ++i) w[i] = Rows::load(at + i * kLanes * kBytes);
  }
};

// Two vectors of f16 a load: half the integer work of one at a time.
struct F8 {
  static constexpr std::size_t kBytes = 1;
  static HWY_INLINE void load_step(const std::uint8_t* at, VF* HWY_RESTRICT w) {
#if HWY_TARGET == HWY_SCALAR
    for (std::size_t i = 0; i < kStepVectors; ++i) {
      w[i] = widen_f16(hn::BitCast(U16Half(), f8_as_f16(hn::Rebind<std::int16_t, F32>(), at + i)));
    }
#else
    const hn::Repartition<std::int16_t, F32> d16;
    for (std::size_t i = 0; i < kStepVectors; i += 2) {
      const auto pair = hn::BitCast(hn::Repartition<std::uint16_t, F32>(), f8_as_f16(d16, at + i * kLanes));
      w[i] = widen_f16(hn::LowerHalf(U16Half(), pair));
      w[i + 1] = widen_f16(hn::UpperHalf(U16Half(), pair));
    }
#endif
  }
};

// Adds `count` k's of a panel (from `weights` on) times C columns of x ([count][C]) to sums[c][16].
template <class Weights, std::size_t C>
HWY_INLINE void add_columns(const std::uint8_t* weights, std::size_t count, const float* x,
                            float* HWY_RESTRICT sums) {
  const F32 d;
  // Chains enough to hide a multiply-add's latency: 8 accumulators or more in all.
  constexpr std::size_t kChains = kParts * C >= 8 ? 1 : 8 / (kParts * C);
  constexpr std::size_t kUnroll = std::max<std::size_t>(kChains, 4);
  VF chains[kChains][C][kParts];
  for (std::size_t u = 0; u < kChains; ++u) {
    for (std::size_t c = 0; c < C; ++c) {
      for (std::size_t p = 0; p < kParts; ++p) {
        chains[u][c][p] = u == 0 ? hn::LoadU(d, sums + c * kPanel + p * kLanes) : hn::Zero(d);
      }
    }
  }
  const auto multiply = [&](const VF* w, std::size_t k, std::size_t u) HWY_ATTR {
    for (std::size_t c = 0; c < C; ++c) {
      const VF value = hn::Set(d, x[k * C + c]);
      for (std::size_t p = 0; p < kParts; ++p) chains[u][c][p] = hn::MulAdd(w[p], value, chains[u][c][p]);
    }
  };
  std::size_t k = 0;
  for (; k + kUnroll <= count; k += kUnroll) {
    const std::uint8_t* at = weights + k * kPanel * Weights::kBytes;
    prefetch_ahead<C>(at, kUnroll * kPanel * Weights::kBytes);
    for (std::size_t u = 0; u < kUnroll; u += kStepK) {
      VF w[kStepVectors];
      Weights::load_step(at + u * kPanel * Weights::kBytes, w);
      for (std::size_t i = 0; i < kStepK; ++i) multiply(w + i * kParts, k + u + i, (u + i) % kChains);
    }
  }
  for (; k < count; ++k) {
    // The last k's alone: a step of several would read past the panel.
    alignas(64) std::uint8_t last[kStepK * kPanel * Weights::kBytes] = {};
    std::memcpy(last, weights + k * kPanel * Weights::kBytes, kPanel * Weights::kBytes);
    VF w[kStepVectors];
    Weights::load_step(last, w);
    multiply(w, k, 0);
  }
  for (std::size_t c = 0; c < C; ++c) {
    for (std::size_t p = 0; p < kParts; ++p) {
      VF sum = chains[0][c][p];
      for (std::size_t u = 1; u < kChains; ++u) sum = hn::Add(sum, chains[u][c][p]);
      hn::StoreU(sum, d, sums + c * kPanel + p * kLanes);
    }
  }
}

template <class Weights, std::size_t C = kColumns>
HWY_INLINE void add_some_columns(std::size_t columns, const std::uint8_t* weights, std::size_t count,
                                 const float* x, float* sums) {
  if constexpr (C > 1) {
    if (columns < C) return add_some_columns<Weights, C - 1>(columns, weights, count, x, sums);
  }
  add_columns<Weights, C>(weights, count, x, sums);
}

// k in [first, last) of a panel that begins at `panel`, all rows of x: sums[rows][16].
template <class Weights>
HWY_INLINE void add_tiles(const Linear& op, const std::uint8_t* panel, std::size_t first, std::size_t last,
                          float* sums) {
  const std::size_t in = static_cast<std::size_t>(op.in);
  const Tiles tiles{static_cast<std::size_t>(op.rows)};
  const float* x = op.rows == 1 ? op.x : static_cast<const float*>(op.prepared);
  for (std::size_t t = 0; t < tiles.count(); ++t) {
    add_some_columns<Weights>(tiles.size(t), panel + first * kPanel * Weights::kBytes, last - first,
                              x + tiles.first(t) * in + first * tiles.size(t),
                              sums + tiles.first(t) * kPanel);
  }
}

template <class Rows>
void plain_panels(const Linear& op, std::int64_t first, std::int64_t last) {
  const std::size_t in = static_cast<std::size_t>(op.in);
  const std::uint8_t* panels = static_cast<const std::uint8_t*>(op.panels);
  // One tile reads the weights once and needs no chunks.
  const std::size_t chunk = static_cast<std::size_t>(op.rows) > kColumns ? kChunk : in;
  for (std::int64_t panel = first; panel < last; ++panel) {
    const std::uint8_t* weights = panels + static_cast<std::size_t>(panel) * in * kPanel * Rows::kBytes;
    float sums[kMostDotRows * kPanelRows] = {};
    for (std::size_t k = 0; k < in; k += chunk) {
      add_tiles<Plain<Rows>>(op, weights, k, std::min(in, k + chunk), sums);
    }
    store_panel(op, panel, sums);
  }
}

// Raises most[i] to the largest magnitude among the bytes of row i, which for a NaN is 0x7F.
HWY_INLINE void raise_magnitudes(const std::uint8_t* weights, std::size_t count,
                                 std::uint8_t* HWY_RESTRICT most) {
  const hn::CappedTag<std::uint8_t, 64> d;
  constexpr std::size_t kBytes = hn::MaxLanes(d);
  const std::size_t bytes = count * kPanel;
  std::size_t i = 0;
  if constexpr (kBytes >= kPanel) {
    auto largest = hn::Zero(d);
    for (; i + kBytes <= bytes; i += kBytes) {
      largest = hn::Max(largest, hn::And(hn::LoadU(d, weights + i), hn::Set(d, 0x7F)));
    }
    std::uint8_t lanes[kBytes];
    hn::StoreU(largest, d, lanes);
    for (std::size_t l = 0; l < kBytes; ++l) most[l % kPanel] = std::max(most[l % kPanel], lanes[l]);
  }
  for (; i < bytes; ++i) {
    most[i % kPanel] = std::max(most[i % kPanel], static_cast<std::uint8_t>(weights[i] & 0x7F));
  }
}

void f8_panels(const Linear& op, std::int64_t first, std::int64_t last) {
  const F32 d;
  const std::size_t in = static_cast<std::size_t>(op.in);
  const std::size_t rows = static_cast<std::size_t>(op.rows);
  const std::uint8_t* panels = static_cast<const std::uint8_t*>(op.panels);
  const std::uint8_t* scales = panels + static_cast<std::size_t>(panels_of(op.out)) * in * kPanel;
  const std::size_t run = op.format.kind == FormatKind::f8_e4m3_b128 ? 128 : in;
  for (std::int64_t panel = first; panel < last; ++panel) {
    const std::uint8_t* weights = panels + static_cast<std::size_t>(panel) * in * kPanel;
    float totals[kMostDotRows * kPanelRows] = {};
    std::uint8_t most[kPanelRows] = {};
    for (std::size_t start = 0; start < in; start += run) {
      float sums[kMostDotRows * kPanelRows] = {};
      const std::size_t end = std::min(in, start + run);
      for (std::size_t k = start; k < end; k += kChunk) {
        const std::size_t last_k = std::min(end, k + kChunk);
        add_tiles<F8>(op, weights, k, last_k, sums);
        raise_magnitudes(weights + k * kPanel, last_k - k, most);
      }
      float scale[kPanelRows];
      f8_scales(op, scales, panel, static_cast<std::int64_t>(start), scale);
      for (std::size_t c = 0; c < rows; ++c) {
        for (std::size_t p = 0; p < kPanel; p += kLanes) {
          float* total = totals + c * kPanel + p;
          const VF scaled = hn::Mul(hn::LoadU(d, scale + p), hn::LoadU(d, sums + c * kPanel + p));
          hn::StoreU(hn::Add(hn::LoadU(d, total), scaled), d, total);
        }
      }
    }
    for (std::size_t r = 0; r < kPanel; ++r) {
      if (most[r] != 0x7F) continue;
      for (std::size_t c = 0; c < rows; ++c) totals[c * kPanel + r] = std::numeric_limits<float>::quiet_NaN();
    }
    store_panel(op, panel, totals);
  }
}

void dot_float(const Linear& op, std::int64_t first, std::int64_t last) {
  switch (op.format.kind) {
    case FormatKind::f32:
      return plain_panels<RowsF32>(op, first, last);
    case FormatKind::f16:
      return plain_panels<RowsF16>(op, first, last);
    case FormatKind::bf16:
      return plain_panels<RowsBf16>(op, first, last);
    default:
      return f8_panels(op, first, last);
  }
}

// Columns side by side, a tile's together: their k's are then neighbours for the kernel, while whole rows a
// power of two apart would fall into the same few sets of the first-level cache.
void pack_columns(const Linear& op, std::int64_t first, std::int64_t last) {
  const Tiles tiles{static_cast<std::size_t>(op.rows)};
  float* packed = static_cast<float*>(op.prepared);
  for (std::size_t t = 0; t < tiles.count(); ++t) {
    const std::size_t size = tiles.size(t);
    for (std::size_t c = 0; c < size; ++c) {
      const float* x = op.x + static_cast<std::int64_t>(tiles.first(t) + c) * op.in;
      float* to = packed + tiles.first(t) * static_cast<std::size_t>(op.in) + c;
      for (std::int64_t k = first; k < last; ++k) to[static_cast<std::size_t>(k) * size] = x[k];
    }
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace memwall::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace memwall::cpu {

HWY_EXPORT(dot_float);
HWY_EXPORT(pack_columns);

void pack_columns(const Linear& op, std::int64_t first, std::int64_t last) {
  HWY_DYNAMIC_DISPATCH(pack_columns)(op, first, last);
}

void dot_float(const Linear& op, std::int64_t first, std::int64_t last) {
  HWY_DYNAMIC_DISPATCH(dot_float)(op, first, last);
}

}  // namespace memwall::cpu
#endif  // HWY_ONCE
