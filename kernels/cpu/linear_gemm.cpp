// GEMM on panels, for prefill: after BLIS (Van Zee and van de Geijn, ACM TOMS 41(3), 2015), with the panels
// in the place of its packed B. A part of a panel is widened to f32 once for all rows of x, into the
// second-level cache, and multiplied by x's packed blocks.
#include <algorithm>
#include <cstddef>
#include <cstring>

#include "kernels/cpu/highway_targets.h"
#include "kernels/cpu/linear_parts.h"
#include "kernels/cpu/panel_layout.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/linear_gemm.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
//
#include "hwy/highway.h"
#include "kernels/cpu/panel-inl.h"
#include "kernels/cpu/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace memwall::cpu::HWY_NAMESPACE {

static_assert(kPanel == kTileWidth);
// k's a pass: kTilePanels panels of them (64 KiB as f32) and kBlockRows rows of x stay in the second level.
constexpr std::size_t kDepth = 512;
constexpr std::size_t kBlockRows = 384 / kTileRows * kTileRows;

std::int64_t gemm_rows() { return static_cast<std::int64_t>(kTileRows); }

// x in blocks of kTileRows rows, [in][kTileRows] each, the last one padded with zeros.
void gemm_pack(const Linear& op, std::int64_t first, std::int64_t last) {
  const std::int64_t tile = gemm_rows();
  for (std::int64_t block = first; block < last; ++block) {
    float* to = static_cast<float*>(op.prepared) + block * tile * op.in;
    for (std::int64_t r = 0; r < tile; ++r) {
      const std::int64_t row = block * tile + r;
      const float* x = op.x + row * op.in;
      for (std::int64_t k = 0; k < op.in; ++k) to[k * tile + r] = row < op.rows ? x[k] : 0.0F;
    }
  }
}

// One k of a panel, its scale (where the format has one) included.
template <class Rows>
void widen_plain(const std::uint8_t* weights, std::size_t count, float* HWY_RESTRICT values) {
  for (std::size_t i = 0; i < count * kPanel; i += kLanes) {
    hn::StoreU(Rows::load(weights + i * Rows::kBytes), F32(), values + i);
  }
}

void widen_f8(const std::uint8_t* weights, std::size_t count, const float* scales,
              float* HWY_RESTRICT values) {
  const F32 d;
  const hn::Rebind<std::int16_t, F32> d16;
  for (std::size_t i = 0; i < count * kPanel; i += kLanes) {
    const VF value = widen_f16(hn::BitCast(U16Half(), f8_as_f16_exactly(d16, weights + i)));
    hn::StoreU(hn::Mul(value, hn::LoadU(d, scales + i % kPanel)), d, values + i);
  }
}

// The k's [first, first + count) of an integer panel; first is a multiple of 32.
void widen_integer(Format format, const PanelLayout& layout, const std::uint8_t* panel, std::size_t first,
                   std::size_t count, float* HWY_RESTRICT values) {
  const Quants kind = quants_of(format);
  for (std::size_t k = 0; k < count; k += kBlock) {
    const std::int64_t block = static_cast<std::int64_t>((first + k) / kBlock);
    const std::uint8_t* group = panel + block / layout.blocks_per_group * layout.group_bytes;
    const std::uint8_t* quants =
        group + layout.quants_at + block % layout.blocks_per_group * layout.block_bytes;
    const std::size_t here = std::min(kBlock, count - k);
    float scales[kPanel];
    float zeros[kPanel];
    panel_scales(format, group, scales, zeros);
    widen_integer_block(kind, quants, here, scales, zeros, values + k * kPanel);
  }
}

void widen_part(const Linear& op, std::int64_t index, std::size_t first, std::size_t count,
                float* HWY_RESTRICT values) {
  const PanelLayout layout = panel_layout(op.format, op.in);
  const std::uint8_t* panels = static_cast<const std::uint8_t*>(op.panels);
  const std::uint8_t* panel = panels + index * layout.bytes;
  switch (op.format.kind) {
    case FormatKind::f32:
      return widen_plain<RowsF32>(panel + first * kPanel * 4, count, values);
    case FormatKind::f16:
      return widen_plain<RowsF16>(panel + first * kPanel * 2, count, values);
    case FormatKind::bf16:
      return widen_plain<RowsBf16>(panel + first * kPanel * 2, count, values);
    case FormatKind::q8_0:
    case FormatKind::q4_0:
    case FormatKind::int4_group:
    case FormatKind::mxfp4:
      return widen_integer(op.format, layout, panel, first, count, values);
    default:
      break;
  }
  const std::uint8_t* trailing = panels + panels_of(op.out) * layout.bytes;
  const std::size_t run = op.format.kind == FormatKind::f8_e4m3_b128 ? 128 : count;
  for (std::size_t k = 0; k < count; k += run) {
    float scales[kPanel];
    f8_scales(op, trailing, index, static_cast<std::int64_t>(first + k), scales);
    widen_f8(panel + (first + k) * kPanel, std::min(run, count - k), scales, values + k * kPanel);
  }
}

// y's tile at (row, panel) becomes (first pass: the bias, else itself) plus the sums.
HWY_INLINE void add_to_outputs(const Linear& op, std::size_t row, std::int64_t panel, std::size_t panels,
                               bool first_pass, const TileSums& sums) {
  const F32 d;
  const std::size_t rows = std::min(kTileRows, static_cast<std::size_t>(op.rows) - row);
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t t = 0; t < panels; ++t) {
      const std::int64_t column = (panel + static_cast<std::int64_t>(t)) * kPanelRows;
      float* y = op.y + static_cast<std::int64_t>(row + r) * op.out + column;
      const std::int64_t width = std::min(kPanelRows, op.out - column);
      const float* before = first_pass ? (op.bias != nullptr ? op.bias + column : nullptr) : y;
      if (width == kPanelRows) {
        for (std::size_t p = 0; p < kParts; ++p) {
          VF sum = sums[r][t][p];
          if (before != nullptr) sum = hn::Add(sum, hn::LoadU(d, before + p * kLanes));
          hn::StoreU(sum, d, y + p * kLanes);
        }
      } else {
        float last[kPanel];
        for (std::size_t p = 0; p < kParts; ++p) hn::StoreU(sums[r][t][p], d, last + p * kLanes);
        for (std::int64_t i = 0; i < width; ++i) y[i] = last[i] + (before != nullptr ? before[i] : 0.0F);
      }
    }
  }
}

void gemm(const Linear& op, std::int64_t first, std::int64_t last, float* scratch) {
  const std::size_t in = static_cast<std::size_t>(op.in);
  const std::size_t rows = static_cast<std::size_t>(op.rows);
  const float* packed = static_cast<const float*>(op.prepared);
  for (std::size_t block = 0; block < rows; block += kBlockRows) {
    const std::size_t block_end = std::min(rows, block + kBlockRows);
    for (std::size_t k = 0; k < in; k += kDepth) {
      const std::size_t count = std::min(kDepth, in - k);
      for (std::int64_t panel = first; panel < last; panel += static_cast<std::int64_t>(kTilePanels)) {
        const std::size_t panels = std::min(kTilePanels, static_cast<std::size_t>(last - panel));
        const float* values[kTilePanels];
        for (std::size_t t = 0; t < kTilePanels; ++t) {
          // A tile's second panel may be missing: it computes the first one again, for nobody.
          const std::int64_t index = panel + static_cast<std::int64_t>(std::min(t, panels - 1));
          if (op.format.kind == FormatKind::f32) {
            values[t] =
                static_cast<const float*>(op.panels) + (static_cast<std::size_t>(index) * in + k) * kPanel;
          } else {
            float* room = scratch + t * kDepth * kPanel;
            widen_part(op, index, k, count, room);
            values[t] = room;
          }
        }
        for (std::size_t row = block; row < block_end; row += kTileRows) {
          TileSums sums;
          clear_tile(sums);
          multiply_tile<1, kTileRows>(packed + row * in + k * kTileRows, values, count, sums);
          add_to_outputs(op, row, panel, panels, k == 0, sums);
        }
      }
    }
  }
}

// k in [first, last) of one panel as f32, `stride` floats from one k to the next.
void widen_panel(const Linear& op, std::int64_t panel, std::int64_t first, std::int64_t last,
                 std::int64_t stride, float* values) {
  float part[kBlock * kPanel];
  for (std::int64_t k = first; k < last; k += static_cast<std::int64_t>(kBlock)) {
    const std::size_t count = std::min(kBlock, static_cast<std::size_t>(last - k));
    widen_part(op, panel, static_cast<std::size_t>(k), count, part);
    for (std::size_t i = 0; i < count; ++i) {
      std::memcpy(values + (k - first + static_cast<std::int64_t>(i)) * stride, part + i * kPanel,
                  kPanel * sizeof(float));
    }
  }
}

std::int64_t gemm_scratch() { return static_cast<std::int64_t>(kTilePanels * kDepth * kPanel); }

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace memwall::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace memwall::cpu {

HWY_EXPORT(gemm_rows);
HWY_EXPORT(gemm_pack);
HWY_EXPORT(gemm);
HWY_EXPORT(gemm_scratch);
HWY_EXPORT(widen_panel);

std::int64_t gemm_rows() { return HWY_DYNAMIC_DISPATCH(gemm_rows)(); }

void gemm_pack(const Linear& op, std::int64_t first, std::int64_t last) {
  HWY_DYNAMIC_DISPATCH(gemm_pack)(op, first, last);
}

std::int64_t gemm_scratch_floats(Format format) {
  return format.kind == FormatKind::f32 ? 0 : HWY_DYNAMIC_DISPATCH(gemm_scratch)();
}

void gemm(const Linear& op, std::int64_t first, std::int64_t last, float* scratch) {
  HWY_DYNAMIC_DISPATCH(gemm)(op, first, last, scratch);
}

void widen_panel(const Linear& op, std::int64_t panel, std::int64_t first, std::int64_t last,
                 std::int64_t stride, float* values) {
  HWY_DYNAMIC_DISPATCH(widen_panel)(op, panel, first, last, stride, values);
}

}  // namespace memwall::cpu
#endif  // HWY_ONCE
