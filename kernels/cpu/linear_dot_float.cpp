// GEMV and skinny GEMM on panels of f32, f16, bf16 and f8_e4m3.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

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

// k's whose weights stay in the first-level cache while all tiles of columns use them.
constexpr std::size_t kChunk = 512;

// Rows of x in tiles, of at most kColumns each and as equal as can be.
struct Tiles {
  std::size_t rows;
  std::size_t count() const { return (rows + kColumns - 1) / kColumns; }
  std::size_t first(std::size_t tile) const { return rows * tile / count(); }
  std::size_t size(std::size_t tile) const { return first(tile + 1) - first(tile); }
};

// Adds `count` k's of a panel (from `weights` on) times C columns of x ([count][C]) to sums[c][16].
template <class Rows, bool kFromMemory, std::size_t C>
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
  const auto step = [&](std::size_t k, std::size_t u) HWY_ATTR {
    VF w[kParts];
    for (std::size_t p = 0; p < kParts; ++p) {
      w[p] = Rows::load(weights + (k * kPanel + p * kLanes) * Rows::kBytes);
    }
    for (std::size_t c = 0; c < C; ++c) {
      const VF value = hn::Set(d, x[k * C + c]);
      for (std::size_t p = 0; p < kParts; ++p) chains[u][c][p] = hn::MulAdd(w[p], value, chains[u][c][p]);
    }
  };
  std::size_t k = 0;
  for (; k + kUnroll <= count; k += kUnroll) {
    if constexpr (kFromMemory) {
      prefetch_ahead<C>(weights + k * kPanel * Rows::kBytes, kUnroll * kPanel * Rows::kBytes);
    }
    for (std::size_t u = 0; u < kUnroll; ++u) step(k + u, u % kChains);
  }
  for (; k < count; ++k) step(k, 0);
  for (std::size_t c = 0; c < C; ++c) {
    for (std::size_t p = 0; p < kParts; ++p) {
      VF sum = chains[0][c][p];
      for (std::size_t u = 1; u < kChains; ++u) sum = hn::Add(sum, chains[u][c][p]);
      hn::StoreU(sum, d, sums + c * kPanel + p * kLanes);
    }
  }
}

template <class Rows, bool kFromMemory, std::size_t C = kColumns>
HWY_INLINE void add_some_columns(std::size_t columns, const std::uint8_t* weights, std::size_t count,
                                 const float* x, float* sums) {
  if constexpr (C > 1) {
    if (columns < C) return add_some_columns<Rows, kFromMemory, C - 1>(columns, weights, count, x, sums);
  }
  add_columns<Rows, kFromMemory, C>(weights, count, x, sums);
}

// k in [first, last), whose weights begin at `weights`, times all rows of x: added to sums[rows][16].
template <class Rows, bool kFromMemory>
HWY_INLINE void add_tiles(const Linear& op, const std::uint8_t* weights, std::size_t first, std::size_t last,
                          float* sums) {
  const std::size_t in = static_cast<std::size_t>(op.in);
  const Tiles tiles{static_cast<std::size_t>(op.rows)};
  const float* x = op.rows == 1 ? op.x : static_cast<const float*>(op.prepared);
  for (std::size_t t = 0; t < tiles.count(); ++t) {
    add_some_columns<Rows, kFromMemory>(tiles.size(t), weights, last - first,
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
      add_tiles<Rows, true>(op, weights + k * kPanel * Rows::kBytes, k, std::min(in, k + chunk), sums);
    }
    store_panel(op, panel, sums);
  }
}

// k's of f8 that are brought to f16 in a buffer of the first-level cache (8 KiB), from where the f16 kernel
// takes them: its conversion from memory is cheaper than one from a register, which must be cut in halves
// first, and all tiles of columns share the work. On Zen 4 with one thread, weights in the cache, this took
// one column from 13 to 19 GB/s (AVX2) and from 14 to 18 (AVX-512); of the old 14, looking at every element
// for NaN took 2. From memory, two threads, AVX2: 0.67 of a read bandwidth of 35 GB/s became 0.81.
constexpr std::size_t kF8Chunk = 256;

// `count` k's of a panel as f16 a factor of 2^8 too small.
HWY_INLINE void f8_to_f16(const std::uint8_t* HWY_RESTRICT weights, std::size_t count,
                          std::uint16_t* HWY_RESTRICT values) {
  const std::size_t elements = count * kPanel;
#if HWY_TARGET == HWY_SCALAR
  for (std::size_t i = 0; i < elements; ++i) {
    hn::Store(f8_as_f16_exactly(hn::Rebind<std::int16_t, F32>(), weights + i),
              hn::Rebind<std::int16_t, F32>(), reinterpret_cast<std::int16_t*>(values + i));
  }
#else
  // A NaN has the largest magnitude of all. None is looked for one by one: the rare chunk that holds any is
  // done again.
  const hn::CappedTag<std::uint8_t, 16 * kLanes / 4> d8;
  const hn::Repartition<std::int16_t, decltype(d8)> d16;
  constexpr std::size_t kBytes = hn::MaxLanes(d8);
  const hn::Vec<decltype(d8)> mask = hn::Set(d8, 0x7F);
  auto largest = hn::Zero(d8);
  std::int16_t* to = reinterpret_cast<std::int16_t*>(values);
  std::size_t i = 0;
  for (; i + kBytes <= elements; i += kBytes) {
    largest = hn::Max(largest, hn::And(hn::LoadU(d8, weights + i), mask));
    prefetch_ahead<2>(weights + i, kBytes);
    hn::StoreU(f8_as_f16(d16, weights + i), d16, to + i);
    hn::StoreU(f8_as_f16(d16, weights + i + kBytes / 2), d16, to + i + kBytes / 2);
  }
  if (i == elements && hn::AllFalse(d8, hn::Eq(largest, mask))) return;
  const hn::Rebind<std::int16_t, F32> few;
  for (i = 0; i < elements; i += kLanes) {
    hn::StoreU(f8_as_f16_exactly(few, weights + i), few, to + i);
  }
#endif
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
    for (std::size_t start = 0; start < in; start += run) {
      float sums[kMostDotRows * kPanelRows] = {};
      const std::size_t end = std::min(in, start + run);
      for (std::size_t k = start; k < end; k += kF8Chunk) {
        const std::size_t last_k = std::min(end, k + kF8Chunk);
        alignas(64) std::uint16_t values[kF8Chunk * kPanel];
        f8_to_f16(weights + k * kPanel, last_k - k, values);
        add_tiles<RowsF16, false>(op, reinterpret_cast<const std::uint8_t*>(values), k, last_k, sums);
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
