// Panels of the integer formats as the integer GEMM multiplies them: in bytes, with f32 scales. What is
// particular to a format stands here: one more that has a scale, and a zero point perhaps, for 32 weights or
// more needs a branch in keep(). Highway's per-target header.
#if defined(MEMWALL_KERNELS_CPU_KEPT_PANEL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MEMWALL_KERNELS_CPU_KEPT_PANEL_INL_H_
#undef MEMWALL_KERNELS_CPU_KEPT_PANEL_INL_H_
#else
#define MEMWALL_KERNELS_CPU_KEPT_PANEL_INL_H_
#endif

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "hwy/highway.h"
#include "kernels/cpu/byte_dot-inl.h"
#include "kernels/cpu/linear.h"
#include "kernels/cpu/pack.h"
#include "kernels/cpu/panel-inl.h"
#include "kernels/cpu/panel_layout.h"

HWY_BEFORE_NAMESPACE();
namespace memwall::cpu::HWY_NAMESPACE {

constexpr std::size_t kGemmBlocks = 16;  // of k, a pass: 8 KiB a panel
constexpr std::size_t kBlockQuants = kBlock * kPanel;

// A stretch of one panel, ready to be multiplied many times.
struct KeptPanel {
  std::int8_t* quants;  // [blocks][8][16][4], as ByteDot keeps them
  float* scales;        // [blocks][16]
  float* zeros;         // [blocks][16]: zero point times scale, where the format has zero points
};
constexpr std::size_t kKeptFloats = kGemmBlocks * (kBlockQuants / sizeof(float) + 2 * kPanel);

HWY_INLINE KeptPanel kept_panel(float* scratch, std::size_t index) {
  float* at = scratch + index * kKeptFloats;
  float* scales = at + kGemmBlocks * kBlockQuants / sizeof(float);
  return {reinterpret_cast<std::int8_t*>(at), scales, scales + kGemmBlocks * kPanel};
}

#if MEMWALL_HAS_BYTE_DOT

void keep_signed(const std::uint8_t* quants, std::int8_t* HWY_RESTRICT kept) {
  const Bytes d;
  for (std::size_t i = 0; i < kBlockQuants; i += kLanes * 4) {
    hn::StoreU(ByteDot::keep(hn::LoadU(d, reinterpret_cast<const std::int8_t*>(quants) + i)), d, kept + i);
  }
}

void keep_nibbles(const std::uint8_t* quants, std::int8_t* HWY_RESTRICT kept) {
  const Bytes d;
  const hn::Repartition<std::uint16_t, Words> d16;
  const VB mask = hn::Set(d, 15);
  for (std::size_t i = 0; i < kBlockQuants / 2; i += kLanes * 4) {
    const VB pairs = hn::LoadU(d, reinterpret_cast<const std::int8_t*>(quants) + i);
    hn::StoreU(hn::And(pairs, mask), d, kept + i);
    hn::StoreU(hn::And(hn::BitCast(d, hn::ShiftRight<4>(hn::BitCast(d16, pairs))), mask), d,
               kept + kBlockQuants / 2 + i);
  }
}

void keep_e2m1(const std::uint8_t* quants, std::int8_t* HWY_RESTRICT kept) {
  const Bytes d;
  const hn::Repartition<std::uint16_t, Words> d16;
  const VB mask = hn::Set(d, 15);
  const VB table = ByteDot::keep(hn::LoadDup128(d, kDoubledE2m1));
  for (std::size_t i = 0; i < kBlockQuants / 2; i += kLanes * 4) {
    const VB pairs = hn::LoadU(d, reinterpret_cast<const std::int8_t*>(quants) + i);
    const VB high = hn::And(hn::BitCast(d, hn::ShiftRight<4>(hn::BitCast(d16, pairs))), mask);
    hn::StoreU(hn::TableLookupBytes(table, hn::And(pairs, mask)), d, kept + i);
    hn::StoreU(hn::TableLookupBytes(table, high), d, kept + kBlockQuants / 2 + i);
  }
}

// What is kept: 8 bits (or E2M1, doubled) with their sign, 4 bits less 8, 4 bits whose zero point is taken
// away in f32.
struct KeptSigned {
  static constexpr std::int32_t kOffset = ByteDot::kSignedOffset;
  static constexpr bool kZeros = false;
  static HWY_INLINE void add(ByteDot& dot, VB weights, VB x) { dot.add_kept(weights, x); }
};
struct KeptNibbles {
  static constexpr std::int32_t kOffset = 8;
  static constexpr bool kZeros = false;
  static HWY_INLINE void add(ByteDot& dot, VB weights, VB x) { dot.add(weights, x); }
};
struct KeptAboveZero : KeptNibbles {
  static constexpr std::int32_t kOffset = 0;
  static constexpr bool kZeros = true;
};

#else  // no byte products: plain loops, right and slow

void keep_signed(const std::uint8_t* quants, std::int8_t* HWY_RESTRICT kept) {
  std::memcpy(kept, quants, kBlockQuants);
}

void keep_nibbles(const std::uint8_t* quants, std::int8_t* HWY_RESTRICT kept) {
  for (std::size_t i = 0; i < kBlockQuants / 2; ++i) {
    kept[i] = static_cast<std::int8_t>(quants[i] & 15);
    kept[kBlockQuants / 2 + i] = static_cast<std::int8_t>(quants[i] >> 4);
  }
}

void keep_e2m1(const std::uint8_t* quants, std::int8_t* HWY_RESTRICT kept) {
  for (std::size_t i = 0; i < kBlockQuants / 2; ++i) {
    kept[i] = kDoubledE2m1[quants[i] & 15];
    kept[kBlockQuants / 2 + i] = kDoubledE2m1[quants[i] >> 4];
  }
}

struct KeptSigned {
  static constexpr std::int32_t kOffset = 0;
  static constexpr bool kZeros = false;
};
struct KeptNibbles {
  static constexpr std::int32_t kOffset = 8;
  static constexpr bool kZeros = false;
};
struct KeptAboveZero {
  static constexpr std::int32_t kOffset = 0;
  static constexpr bool kZeros = true;
};

#endif  // MEMWALL_HAS_BYTE_DOT

// Blocks [first, first + count) of panel `index`.
template <class Kept>
void keep(const Linear& op, const PanelLayout& layout, std::int64_t index, std::size_t first,
          std::size_t count, const KeptPanel& to) {
  const std::uint8_t* panel = static_cast<const std::uint8_t*>(op.panels) + index * layout.bytes;
  for (std::size_t b = 0; b < count; ++b) {
    const auto block = static_cast<std::int64_t>(first + b);
    const std::uint8_t* group = panel + block / layout.blocks_per_group * layout.group_bytes;
    const std::uint8_t* quants =
        group + layout.quants_at + block % layout.blocks_per_group * layout.block_bytes;
    std::int8_t* kept = to.quants + b * kBlockQuants;
    if (op.format.kind == FormatKind::q8_0) {
      keep_signed(quants, kept);
    } else if (op.format.kind == FormatKind::mxfp4) {
      keep_e2m1(quants, kept);
    } else {
      keep_nibbles(quants, kept);
    }
    float* scales = to.scales + b * kPanel;
    float* zeros = to.zeros + b * kPanel;
    panel_scales(op.format, group, scales, zeros);
    if constexpr (Kept::kZeros) {
      for (std::size_t r = 0; r < kPanel; ++r) zeros[r] *= scales[r];
    }
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace memwall::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
