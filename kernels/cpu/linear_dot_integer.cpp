// GEMV and skinny GEMM on panels of q8_0, q4_0, int4 and mxfp4, against activations in 8 bits.
#define MEMWALL_WANT_BYTE_DOT
#include <algorithm>
#include <cstddef>

#include "kernels/cpu/highway_targets.h"
#include "kernels/cpu/linear_parts.h"
#include "kernels/cpu/pack.h"
#include "kernels/cpu/panel_layout.h"
#include "kernels/cpu/quantised.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/linear_dot_integer.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
//
#include "hwy/highway.h"
#include "kernels/cpu/byte_dot-inl.h"
#include "kernels/cpu/panel-inl.h"

HWY_BEFORE_NAMESPACE();
namespace memwall::cpu::HWY_NAMESPACE {

// One column's activations.
struct Column {
  const std::int8_t* quants;
  const float* scales;
  const std::int32_t* sums;
  const float* scaled_sums;
};

HWY_INLINE Column column_of(const Quantised& x, std::size_t column) {
  const std::size_t at = column * static_cast<std::size_t>(x.blocks);
  return {x.quants + at * kBlock, x.scales + at, x.sums + at, x.scaled_sums + at};
}

// Scales of a group's rows r to r + kLanes.
struct F16Scales {
  static HWY_INLINE VF scale(const std::uint8_t* group, std::size_t r) {
    return widen_f16(load_u16(group + r * 2));
  }
};
struct E8m0Scales {
  static HWY_INLINE VF scale(const std::uint8_t* group, std::size_t r) { return widen_e8m0_half(group + r); }
};

enum class Zeros { none, four_bits, wide };

#if MEMWALL_HAS_BYTE_DOT

// Columns of x at once: each keeps sums of products and of floats in registers.
constexpr std::size_t kColumns = kParts == 1 ? 8 : kParts == 2 ? 2 : 1;

HWY_INLINE VB four_of(const std::int8_t* x) {
  std::int32_t four = 0;
  std::memcpy(&four, x, sizeof four);
  return hn::BitCast(Bytes(), hn::Set(Words(), four));
}

// The integer sums of block b for C columns: sum over its 32 weights of quant * activation.
struct Q8Block : F16Scales {
  static constexpr std::size_t kBytes = 512;
  static constexpr std::int32_t kOffset = ByteDot::kSignedOffset;
  template <std::size_t C>
  static HWY_INLINE void add(const std::uint8_t* quants, const Column* x, std::size_t b,
                             ByteDot (&dots)[C][kParts]) {
    for (std::size_t g = 0; g < 8; ++g) {
      VB w[kParts];
      for (std::size_t p = 0; p < kParts; ++p) {
        w[p] =
            hn::LoadU(Bytes(), reinterpret_cast<const std::int8_t*>(quants) + (g * kParts + p) * kLanes * 4);
      }
      for (std::size_t c = 0; c < C; ++c) {
        const VB four = four_of(x[c].quants + b * kBlock + g * 4);
        for (std::size_t p = 0; p < kParts; ++p) dots[c][p].add_signed(w[p], four);
      }
    }
  }
};

template <std::int32_t kZero>
struct Q4Block : F16Scales {
  static constexpr std::size_t kBytes = 256;
  static constexpr std::int32_t kOffset = kZero;
  template <std::size_t C>
  static HWY_INLINE void add(const std::uint8_t* quants, const Column* x, std::size_t b,
                             ByteDot (&dots)[C][kParts]) {
    const VB mask = hn::Set(Bytes(), 15);
    const hn::Repartition<std::uint16_t, Words> d16;
    for (std::size_t g = 0; g < 4; ++g) {
      VB low[kParts];
      VB high[kParts];
      for (std::size_t p = 0; p < kParts; ++p) {
        const VB pairs =
            hn::LoadU(Bytes(), reinterpret_cast<const std::int8_t*>(quants) + (g * kParts + p) * kLanes * 4);
        low[p] = hn::And(pairs, mask);
        high[p] = hn::And(hn::BitCast(Bytes(), hn::ShiftRight<4>(hn::BitCast(d16, pairs))), mask);
      }
      for (std::size_t c = 0; c < C; ++c) {
        const VB four_low = four_of(x[c].quants + b * kBlock + g * 4);
        const VB four_high = four_of(x[c].quants + b * kBlock + kBlock / 2 + g * 4);
        for (std::size_t p = 0; p < kParts; ++p) {
          dots[c][p].add(low[p], four_low);
          dots[c][p].add(high[p], four_high);
        }
      }
    }
  }
};

// E2M1, doubled, by a look-up of 16 bytes that already holds them as ByteDot keeps signed weights.
struct E2m1Block : E8m0Scales {
  static constexpr std::size_t kBytes = 256;
  static constexpr std::int32_t kOffset = ByteDot::kSignedOffset;
  template <std::size_t C>
  static HWY_INLINE void add(const std::uint8_t* quants, const Column* x, std::size_t b,
                             ByteDot (&dots)[C][kParts]) {
    const VB mask = hn::Set(Bytes(), 15);
    const VB table = ByteDot::keep(hn::LoadDup128(Bytes(), kDoubledE2m1));
    const hn::Repartition<std::uint16_t, Words> d16;
    for (std::size_t g = 0; g < 4; ++g) {
      VB low[kParts];
      VB high[kParts];
      for (std::size_t p = 0; p < kParts; ++p) {
        const VB pairs =
            hn::LoadU(Bytes(), reinterpret_cast<const std::int8_t*>(quants) + (g * kParts + p) * kLanes * 4);
        low[p] = hn::TableLookupBytes(table, hn::And(pairs, mask));
        high[p] = hn::TableLookupBytes(
            table, hn::And(hn::BitCast(Bytes(), hn::ShiftRight<4>(hn::BitCast(d16, pairs))), mask));
      }
      for (std::size_t c = 0; c < C; ++c) {
        const VB four_low = four_of(x[c].quants + b * kBlock + g * 4);
        const VB four_high = four_of(x[c].quants + b * kBlock + kBlock / 2 + g * 4);
        for (std::size_t p = 0; p < kParts; ++p) {
          dots[c][p].add_kept(low[p], four_low);
          dots[c][p].add_kept(high[p], four_high);
        }
      }
    }
  }
};

// sums[c][16] = the panel times C columns. Symmetric formats take their offset (8, or VNNI's 128) away in
// integers, block by block; zero points, one a group, in floats.
template <class Block, Zeros kZeros, std::size_t C>
HWY_INLINE void panel_times_columns(const std::uint8_t* panel, const PanelLayout& layout, const Column* x,
                                    float* HWY_RESTRICT sums) {
  const F32 d;
  VF totals[C][kParts];
  for (auto& column : totals) {
    for (VF& total : column) total = hn::Zero(d);
  }
  const std::size_t blocks = static_cast<std::size_t>(layout.blocks);
  const std::size_t blocks_per_group = static_cast<std::size_t>(layout.blocks_per_group);
  const bool one_block_a_group = blocks_per_group == 1;
  const std::uint8_t* at = panel;
  for (std::size_t b = 0; b < blocks;) {
    const std::uint8_t* group = at;
    VF scale[kParts];
    for (std::size_t p = 0; p < kParts; ++p) {
      scale[p] = Block::scale(group, p * kLanes);
    }
    VF in_group[C][kParts];
    float activations[C];
    if (!one_block_a_group || kZeros != Zeros::none) {
      for (std::size_t c = 0; c < C; ++c) {
        activations[c] = 0.0F;
        for (VF& sum : in_group[c]) sum = hn::Zero(d);
      }
    }
    at += layout.quants_at;
    for (std::size_t end = b + blocks_per_group; b < end; ++b, at += Block::kBytes) {
      prefetch_ahead<C>(at, Block::kBytes);
      ByteDot dots[C][kParts];
      for (std::size_t c = 0; c < C; ++c) {
        const std::int32_t offset = kZeros == Zeros::none ? -Block::kOffset * x[c].sums[b] : 0;
        for (std::size_t p = 0; p < kParts; ++p) dots[c][p] = ByteDot(hn::Set(Words(), offset));
      }
      Block::template add<C>(at, x, b, dots);
      for (std::size_t c = 0; c < C; ++c) {
        const VF x_scale = hn::Set(d, x[c].scales[b]);
        if (kZeros != Zeros::none) activations[c] += x[c].scaled_sums[b];
        for (std::size_t p = 0; p < kParts; ++p) {
          const VF sum = hn::ConvertTo(d, dots[c][p].total());
          if (one_block_a_group && kZeros == Zeros::none) {
            totals[c][p] = hn::MulAdd(hn::Mul(sum, x_scale), scale[p], totals[c][p]);
          } else {
            in_group[c][p] = hn::MulAdd(sum, x_scale, in_group[c][p]);
          }
        }
      }
    }
    if (one_block_a_group && kZeros == Zeros::none) continue;
    for (std::size_t p = 0; p < kParts; ++p) {
      VF zero = hn::Zero(d);
      if constexpr (kZeros != Zeros::none) {
        zero = zero_points(kZeros == Zeros::wide, group + kPanel * 2, p * kLanes);
      }
      for (std::size_t c = 0; c < C; ++c) {
        VF sum = in_group[c][p];
        if constexpr (kZeros != Zeros::none) sum = hn::NegMulAdd(zero, hn::Set(d, activations[c]), sum);
        totals[c][p] = hn::MulAdd(sum, scale[p], totals[c][p]);
      }
    }
  }
  for (std::size_t c = 0; c < C; ++c) {
    for (std::size_t p = 0; p < kParts; ++p) hn::StoreU(totals[c][p], d, sums + c * kPanel + p * kLanes);
  }
}

template <class Block, Zeros kZeros, std::size_t C = kColumns>
HWY_INLINE void panel_times_some(std::size_t columns, const std::uint8_t* panel, const PanelLayout& layout,
                                 const Column* x, float* sums) {
  if constexpr (C > 1) {
    if (columns < C) return panel_times_some<Block, kZeros, C - 1>(columns, panel, layout, x, sums);
  }
  panel_times_columns<Block, kZeros, C>(panel, layout, x, sums);
}

#else  // no byte products: plain loops, right and slow

constexpr std::size_t kColumns = 1;

struct Q8Block : F16Scales {
  static constexpr std::size_t kBytes = 512;
  static constexpr std::int32_t kOffset = 0;
  static HWY_INLINE std::int32_t quant(const std::uint8_t* block, std::size_t r, std::size_t i) {
    return static_cast<std::int8_t>(block[(i / 4 * kPanel + r) * 4 + i % 4]);
  }
};

template <std::int32_t kZero>
struct Q4Block : F16Scales {
  static constexpr std::size_t kBytes = 256;
  static constexpr std::int32_t kOffset = kZero;
  static HWY_INLINE std::int32_t quant(const std::uint8_t* block, std::size_t r, std::size_t i) {
    const std::size_t half = i % (kBlock / 2);
    const std::uint8_t pair = block[(half / 4 * kPanel + r) * 4 + half % 4];
    return i < kBlock / 2 ? pair & 15 : pair >> 4;
  }
};

struct E2m1Block : E8m0Scales {
  static constexpr std::size_t kBytes = 256;
  static constexpr std::int32_t kOffset = 0;
  static HWY_INLINE std::int32_t quant(const std::uint8_t* block, std::size_t r, std::size_t i) {
    return kDoubledE2m1[Q4Block<0>::quant(block, r, i)];
  }
};

template <class Block, Zeros kZeros>
void panel_times_some(std::size_t, const std::uint8_t* panel, const PanelLayout& layout, const Column* x,
                      float* sums) {
  for (std::size_t r = 0; r < kPanel; ++r) sums[r] = 0.0F;
  for (std::int64_t b = 0; b < layout.blocks; ++b) {
    const std::uint8_t* group = panel + b / layout.blocks_per_group * layout.group_bytes;
    const std::uint8_t* quants = group + layout.quants_at + b % layout.blocks_per_group * layout.block_bytes;
    float zeros[kPanel] = {};
    if constexpr (kZeros != Zeros::none) {
      for (std::size_t p = 0; p < kParts; ++p) {
        hn::StoreU(zero_points(kZeros == Zeros::wide, group + kPanel * 2, p * kLanes), F32(),
                   zeros + p * kLanes);
      }
    }
    for (std::size_t r = 0; r < kPanel; ++r) {
      std::int32_t sum = kZeros == Zeros::none ? -Block::kOffset * x->sums[b] : 0;
      for (std::size_t i = 0; i < kBlock; ++i) {
        sum += Block::quant(quants, r, i) * x->quants[static_cast<std::size_t>(b) * kBlock + i];
      }
      const float products = static_cast<float>(sum) * x->scales[b] - zeros[r] * x->scaled_sums[b];
      sums[r] += products * hn::GetLane(Block::scale(group, r));
    }
  }
}

#endif  // MEMWALL_HAS_BYTE_DOT

template <class Block, Zeros kZeros>
void integer_panels(const Linear& op, std::int64_t first, std::int64_t last) {
  const PanelLayout layout = panel_layout(op.format, op.in);
  const Quantised x(op.prepared, op.rows, layout.blocks);
  const std::size_t rows = static_cast<std::size_t>(op.rows);
  const std::size_t tiles = (rows + kColumns - 1) / kColumns;
  Column columns[kMostDotRows];
  for (std::size_t c = 0; c < rows; ++c) columns[c] = column_of(x, c);
  for (std::int64_t index = first; index < last; ++index) {
    const std::uint8_t* panel = static_cast<const std::uint8_t*>(op.panels) + index * layout.bytes;
    float sums[kMostDotRows * kPanelRows];
    for (std::size_t t = 0; t < tiles; ++t) {
      const std::size_t column = rows * t / tiles;
      panel_times_some<Block, kZeros>(rows * (t + 1) / tiles - column, panel, layout, columns + column,
                                      sums + column * kPanel);
    }
    store_panel(op, index, sums);
  }
}

void dot_integer(const Linear& op, std::int64_t first, std::int64_t last) {
  if (op.format.kind == FormatKind::q8_0) return integer_panels<Q8Block, Zeros::none>(op, first, last);
  if (op.format.kind == FormatKind::mxfp4) return integer_panels<E2m1Block, Zeros::none>(op, first, last);
  if (!op.format.zero_points) return integer_panels<Q4Block<8>, Zeros::none>(op, first, last);
  if (op.format.wide_zero_points) return integer_panels<Q4Block<0>, Zeros::wide>(op, first, last);
  integer_panels<Q4Block<0>, Zeros::four_bits>(op, first, last);
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace memwall::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace memwall::cpu {

HWY_EXPORT(dot_integer);

void dot_integer(const Linear& op, std::int64_t first, std::int64_t last) {
  HWY_DYNAMIC_DISPATCH(dot_integer)(op, first, last);
}

}  // namespace memwall::cpu
#endif  // HWY_ONCE
