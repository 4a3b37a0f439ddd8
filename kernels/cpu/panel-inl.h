// What the kernels over panels share: vectors of a panel's 16 rows. Highway's per-target header.
#if defined(MEMWALL_KERNELS_CPU_PANEL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MEMWALL_KERNELS_CPU_PANEL_INL_H_
#undef MEMWALL_KERNELS_CPU_PANEL_INL_H_
#else
#define MEMWALL_KERNELS_CPU_PANEL_INL_H_
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "hwy/highway.h"
#include "kernels/cpu/linear.h"
#include "kernels/cpu/panel_layout.h"
#include "kernels/cpu/widen-inl.h"

HWY_BEFORE_NAMESPACE();
namespace memwall::cpu::HWY_NAMESPACE {

constexpr std::size_t kPanel = static_cast<std::size_t>(kPanelRows);
constexpr std::size_t kParts = kPanel / kLanes;  // vectors that hold one k of a panel

// Asks for what the stream will reach in a moment, to the second-level cache. With one column the hardware's
// own prefetching keeps up with one sequential stream and this only costs (Zen 4, two threads, shares of the
// read bandwidth in one interleaved run: f16 1.00 without, 0.99 to 1.01 with 0.5 to 2 KiB ahead, 0.92 with 4
// and 0.93 with 8; q4_0 0.99 without, 0.96 with 1 KiB, 0.68 with 4). With more columns arithmetic takes its
// time between two lines, and it does not: f16 with four columns 0.70 without, 0.76 with 2 KiB, 0.94 with 4,
// 0.93 with 8. To the first level instead: never better. Past the end of an allocation the hint does nothing.
template <std::size_t kColumnsAtOnce>
HWY_INLINE void prefetch_ahead(const std::uint8_t* at, std::size_t bytes) {
#if HWY_COMPILER_GCC || HWY_COMPILER_CLANG
  constexpr std::size_t kAhead = 4096;
  if constexpr (kColumnsAtOnce > 1) {
    for (std::size_t i = 0; i < bytes; i += 64) __builtin_prefetch(at + kAhead + i, 0, 2);
  }
#endif
}

// The scales of a panel's rows at column k, times the factor that f8_as_f16 leaves out.
HWY_INLINE void f8_scales(const Linear& op, const std::uint8_t* trailing, std::int64_t panel, std::int64_t k,
                          float* HWY_RESTRICT scales) {
  for (std::int64_t r = 0; r < kPanelRows; ++r) {
    const std::int64_t row = std::min(panel * kPanelRows + r, op.out - 1);
    float scale = 0.0F;
    std::memcpy(&scale, trailing + trailing_scale_of(op.format, op.in, row, k) * 4, sizeof scale);
    scales[r] = scale * kF8Factor;
  }
}

// The zero points, as f32, of rows r to r + kLanes of a group; `zeros` is where the group's begin.
HWY_INLINE VF zero_points(bool wide, const std::uint8_t* zeros, std::size_t r) {
  if (wide) return widen_f16(load_u16(zeros + r * 2));
  float values[kLanes];
  for (std::size_t i = 0; i < kLanes; ++i) {
    const std::size_t row = r + i;
    values[i] = static_cast<float>(row % 2 == 0 ? zeros[row / 2] & 15 : zeros[row / 2] >> 4);
  }
  return hn::LoadU(F32(), values);
}

// Half of what E8M0 codes say: 2^(code - 128), of which the codes 0 and 1 are subnormals.
HWY_INLINE VF widen_e8m0_half(const std::uint8_t* codes) {
  const F32 d;
  const hn::RebindToSigned<F32> di;
  const auto code = hn::PromoteTo(di, hn::LoadU(hn::Rebind<std::uint8_t, F32>(), codes));
  const auto one = hn::Set(di, 1);
  const auto normal = hn::ShiftLeft<23>(hn::Sub(code, one));
  const auto subnormal = hn::ShiftLeft<21>(hn::Add(code, one));
  return hn::BitCast(d, hn::IfThenElse(hn::Gt(code, one), normal, subnormal));
}

// Codes of E2M1 in 32-bit lanes, twice their value: 0 1 2 3 4 6 8 12 are three straight lines' largest.
template <class V>
HWY_INLINE V doubled_e2m1(V code) {
  const hn::RebindToSigned<F32> di;
  const auto magnitude = hn::And(code, hn::Set(di, 7));
  const auto twice = hn::Sub(hn::Add(magnitude, magnitude), hn::Set(di, 4));
  const auto four_times = hn::Sub(hn::ShiftLeft<2>(magnitude), hn::Set(di, 16));
  const auto value = hn::Max(hn::Max(magnitude, twice), four_times);
  return hn::IfThenElse(hn::Gt(code, hn::Set(di, 7)), hn::Neg(value), value);
}

// A group's scales and zero points (8 where the format has none; unused for q8_0 and mxfp4), as f32.
HWY_INLINE void panel_scales(Format format, const std::uint8_t* group, float* HWY_RESTRICT scales,
                             float* HWY_RESTRICT zeros) {
  const F32 d;
  for (std::size_t r = 0; r < kPanel; r += kLanes) {
    const bool e8m0 = format.kind == FormatKind::mxfp4;
    hn::StoreU(e8m0 ? widen_e8m0_half(group + r) : widen_f16(load_u16(group + r * 2)), d, scales + r);
    const VF zero =
        format.zero_points ? zero_points(format.wide_zero_points, group + kPanel * 2, r) : hn::Set(d, 8.0F);
    hn::StoreU(zero, d, zeros + r);
  }
}

enum class Quants { bytes, nibbles, e2m1 };

HWY_INLINE Quants quants_of(Format format) {
  if (format.kind == FormatKind::q8_0) return Quants::bytes;
  return format.kind == FormatKind::mxfp4 ? Quants::e2m1 : Quants::nibbles;
}

// The first `count` k's of a block of quants, (quant - zero) * scale or (8 bits, E2M1) quant * scale, as f32
// [count][16]. A 32-bit lane holds 4 k's of a row: a shift up and one down bring each out, its sign with it.
template <Quants kQuants>
HWY_INLINE void widen_quants(const std::uint8_t* quants, std::size_t count, const float* scales,
                             const float* zeros, float* HWY_RESTRICT values) {
  constexpr bool kFourBits = kQuants != Quants::bytes;
  const F32 d;
  const hn::RebindToSigned<F32> di;
  const hn::RebindToUnsigned<F32> du;
  const auto store = [&](std::size_t k, std::size_t r, auto quant) HWY_ATTR {
    if (k >= count) return;
    if constexpr (kQuants == Quants::e2m1) quant = doubled_e2m1(quant);
    VF value = hn::ConvertTo(d, quant);
    if constexpr (kQuants == Quants::nibbles) value = hn::Sub(value, hn::LoadU(d, zeros + r));
    hn::StoreU(hn::Mul(value, hn::LoadU(d, scales + r)), d, values + k * kPanel + r);
  };
  constexpr std::size_t kFours = kFourBits ? 4 : 8;
  for (std::size_t four = 0; four < kFours; ++four) {
    for (std::size_t r = 0; r < kPanel; r += kLanes) {
      const std::uint8_t* at = quants + (four * kPanel + r) * 4;
      const auto lanes = hn::LoadU(du, reinterpret_cast<const std::uint32_t*>(at));
      const auto each = [&](std::size_t j, auto shifted) HWY_ATTR {  // shifted: byte j on top
        if constexpr (kFourBits) {
          store(four * 4 + j, r, hn::BitCast(di, hn::And(hn::ShiftRight<24>(shifted), hn::Set(du, 15))));
          store(kBlock / 2 + four * 4 + j, r, hn::BitCast(di, hn::ShiftRight<28>(shifted)));
        } else {
          store(four * 4 + j, r, hn::ShiftRight<24>(hn::BitCast(di, shifted)));
        }
      };
      each(0, hn::ShiftLeft<24>(lanes));
      each(1, hn::ShiftLeft<16>(lanes));
      each(2, hn::ShiftLeft<8>(lanes));
      each(3, lanes);
    }
  }
}

HWY_INLINE void widen_integer_block(Quants kind, const std::uint8_t* quants, std::size_t count,
                                    const float* scales, const float* zeros, float* HWY_RESTRICT values) {
  if (kind == Quants::bytes) return widen_quants<Quants::bytes>(quants, count, scales, zeros, values);
  if (kind == Quants::e2m1) return widen_quants<Quants::e2m1>(quants, count, scales, zeros, values);
  widen_quants<Quants::nibbles>(quants, count, scales, zeros, values);
}

// Writes sums[rows][16] to y, with the bias, leaving out the padding rows of a last panel.
HWY_INLINE void store_panel(const Linear& op, std::int64_t panel, const float* HWY_RESTRICT sums) {
  const std::int64_t row = panel * kPanelRows;
  const std::int64_t count = std::min(kPanelRows, op.out - row);
  for (std::int64_t c = 0; c < op.rows; ++c) {
    float* y = op.y + c * op.out + row;
    for (std::int64_t r = 0; r < count; ++r) {
      const float sum = sums[c * kPanelRows + r];
      y[r] = op.bias != nullptr ? sum + op.bias[row + r] : sum;
    }
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace memwall::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
