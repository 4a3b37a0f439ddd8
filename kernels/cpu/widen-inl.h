// Stored numbers to and from f32 vectors. Highway's per-target header: included once for each target.
//
// A "rows" type describes a format in blocks of 32 weights (kBlock): load_block() gives them as f32 vectors,
// still unscaled where the format has scales, and scale() gives the block's scale in every lane.
#if defined(MEMWALL_KERNELS_CPU_WIDEN_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MEMWALL_KERNELS_CPU_WIDEN_INL_H_
#undef MEMWALL_KERNELS_CPU_WIDEN_INL_H_
#else
#define MEMWALL_KERNELS_CPU_WIDEN_INL_H_
#endif

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace memwall::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// At most 16 lanes, so that a block of 32 weights is whole vectors whatever the target.
using F32 = hn::CappedTag<float, 16>;
using VF = hn::Vec<F32>;
constexpr std::size_t kLanes = hn::MaxLanes(F32());
constexpr std::size_t kBlock = 32;
constexpr std::size_t kVectors = kBlock / kLanes;  // vectors a block

using U16Half = hn::Rebind<std::uint16_t, F32>;
using VU16 = hn::Vec<U16Half>;

// Highway 1.0.3 emulates f16 where x86 has no F16C, but reads infinities as 65536 and rounds towards zero.
#undef MEMWALL_F16C
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2
#define MEMWALL_F16C 1
#else
#define MEMWALL_F16C 0
#endif

HWY_INLINE VF widen_f16(VU16 bits) {
  const F32 d;
#if MEMWALL_F16C
  return hn::PromoteTo(d, hn::BitCast(hn::Rebind<hwy::float16_t, F32>(), bits));
#else
  const hn::RebindToSigned<F32> di;
  const hn::RebindToUnsigned<F32> du;
  const auto wide = hn::PromoteTo(di, bits);
  const auto sign = hn::ShiftLeft<16>(hn::And(wide, hn::Set(di, 0x8000)));
  const auto magnitude = hn::ShiftLeft<13>(hn::And(wide, hn::Set(di, 0x7FFF)));
  const auto infinity = hn::Set(di, 0x7C00 << 13);
  const auto normal = hn::Add(magnitude, hn::Set(di, (127 - 15) << 23));
  // A subnormal m * 2^-24: put m below an exponent of 2^-14 and take the implied one away again.
  const auto smallest = hn::Set(di, (127 - 14) << 23);
  const auto subnormal =
      hn::BitCast(di, hn::Sub(hn::BitCast(d, hn::Add(magnitude, smallest)), hn::BitCast(d, smallest)));
  const auto quiet = hn::IfThenElseZero(hn::Gt(magnitude, infinity), hn::Set(di, 1 << 22));
  const auto special = hn::Or(hn::Or(magnitude, hn::Set(di, 0xFF << 23)), quiet);
  const auto finite = hn::IfThenElse(hn::Lt(magnitude, hn::Set(di, 1 << 23)), subnormal, normal);
  const auto absolute = hn::IfThenElse(hn::Lt(magnitude, infinity), finite, special);
  return hn::BitCast(d, hn::Or(hn::BitCast(du, absolute), hn::BitCast(du, sign)));
#endif
}

// Rounds to nearest even.
HWY_INLINE VU16 narrow_f16(VF value) {
  const U16Half d16;
#if MEMWALL_F16C
  return hn::BitCast(d16, hn::DemoteTo(hn::Rebind<hwy::float16_t, F32>(), value));
#else
  const F32 d;
  const hn::RebindToSigned<F32> di;
  const auto bits = hn::BitCast(di, value);
  const auto magnitude = hn::And(bits, hn::Set(di, 0x7FFFFFFF));
  const auto sign = hn::And(hn::ShiftRight<16>(bits), hn::Set(di, 0x8000));
  const auto infinity = hn::Set(di, 0xFF << 23);
  // Below 2^-14 the adder rounds: against 0.5 the last place of the sum is worth 2^-24.
  const auto half = hn::Set(di, 126 << 23);
  const auto subnormal =
      hn::Sub(hn::BitCast(di, hn::Add(hn::BitCast(d, magnitude), hn::BitCast(d, half))), half);
  const auto odd = hn::And(hn::ShiftRight<13>(magnitude), hn::Set(di, 1));
  const auto rebased = hn::Sub(magnitude, hn::Set(di, (127 - 15) << 23));
  const auto normal = hn::ShiftRight<13>(hn::Add(rebased, hn::Add(odd, hn::Set(di, 0xFFF))));
  const auto nan = hn::Or(hn::And(hn::ShiftRight<13>(magnitude), hn::Set(di, 0x3FF)), hn::Set(di, 0x7E00));
  const auto special = hn::IfThenElse(hn::Gt(magnitude, infinity), nan, hn::Set(di, 0x7C00));
  const auto finite = hn::IfThenElse(hn::Lt(magnitude, hn::Set(di, (127 - 14) << 23)), subnormal, normal);
  const auto too_large = hn::Gt(magnitude, hn::Set(di, ((127 + 16) << 23) - 1));
  return hn::DemoteTo(d16, hn::Or(hn::IfThenElse(too_large, special, finite), sign));
#endif
}

// E4M3 as f16 a factor of 2^8 too small: the sign moves to the top, exponent and mantissa keep their places
// below it, and E4M3's bias of 7 is read as f16's 15. Subnormals come out as f16's subnormals, so nothing is
// lost. Only NaN has no such image: it comes out as 480 / 2^8.
constexpr float kF8Factor = 256.0F;
template <class D16>
HWY_INLINE hn::Vec<D16> f8_as_f16(D16 d16, const std::uint8_t* p) {
  const hn::Rebind<std::int8_t, D16> d8;
  const auto wide = hn::PromoteTo(d16, hn::LoadU(d8, reinterpret_cast<const std::int8_t*>(p)));
  return hn::And(hn::ShiftLeft<7>(wide), hn::Set(d16, static_cast<std::int16_t>(0xBFFF)));
}

// The same with NaN for NaN.
template <class D16>
HWY_INLINE hn::Vec<D16> f8_as_f16_exactly(D16 d16, const std::uint8_t* p) {
  const auto bits = f8_as_f16(d16, p);
  const auto largest = hn::Set(d16, 0x3F80);
  return hn::IfThenElse(hn::Eq(hn::And(bits, largest), largest), hn::Set(d16, 0x7E00), bits);
}

HWY_INLINE VU16 load_u16(const std::uint8_t* p) {
  return hn::LoadU(U16Half(), reinterpret_cast<const std::uint16_t*>(p));
}

// What the formats without scales have in common: an element of kBytes, load() to widen kLanes of them.
template <class Rows, std::size_t kElementBytes>
struct FloatRows {
  static constexpr bool kScaled = false;
  static constexpr std::size_t kBytes = kElementBytes;
  static constexpr std::size_t kBlockBytes = kBlock * kBytes;

  static HWY_INLINE void load_block(const std::uint8_t* block, VF* HWY_RESTRICT weights) {
    for (std::size_t j = 0; j < kVectors; ++j) weights[j] = Rows::load(block + j * kLanes * kBytes);
  }
  static HWY_INLINE VF scale(const std::uint8_t* /*block*/) { return hn::Set(F32(), 1.0F); }
};

struct RowsF32 : FloatRows<RowsF32, 4> {
  static HWY_INLINE VF load(const std::uint8_t* p) {
    return hn::LoadU(F32(), reinterpret_cast<const float*>(p));
  }
};

struct RowsF16 : FloatRows<RowsF16, 2> {
  static HWY_INLINE VF load(const std::uint8_t* p) { return widen_f16(load_u16(p)); }
};

struct RowsBf16 : FloatRows<RowsBf16, 2> {
  static HWY_INLINE VF load(const std::uint8_t* p) {
    const hn::RebindToUnsigned<F32> du;
    return hn::BitCast(F32(), hn::ShiftLeft<16>(hn::PromoteTo(du, load_u16(p))));
  }
};

// The f16 scale that begins a block of ggml's, in every lane.
HWY_INLINE VF block_scale(const std::uint8_t* block) {
  std::uint16_t bits = 0;
  std::memcpy(&bits, block, sizeof(bits));
  return widen_f16(hn::Set(U16Half(), bits));
}

// ggml-common.h, block_q8_0: f16 d, int8 qs[32]; a weight is q * d.
struct RowsQ8 {
  static constexpr bool kScaled = true;
  static constexpr std::size_t kBlockBytes = 34;

  static HWY_INLINE void load_block(const std::uint8_t* block, VF* HWY_RESTRICT weights) {
    const hn::RebindToSigned<F32> di;
    const hn::Rebind<std::int8_t, F32> d8;
    const std::int8_t* quants = reinterpret_cast<const std::int8_t*>(block + 2);
    for (std::size_t j = 0; j < kVectors; ++j) {
      weights[j] = hn::ConvertTo(F32(), hn::PromoteTo(di, hn::LoadU(d8, quants + j * kLanes)));
    }
  }
  static HWY_INLINE VF scale(const std::uint8_t* block) { return block_scale(block); }
};

// ggml-common.h, block_q4_0: f16 d, uint8 qs[16]; the low nibbles are the weights 0 to 15, the high ones 16
// to 31, and a weight is (q - 8) * d.
struct RowsQ4 {
  static constexpr bool kScaled = true;
  static constexpr std::size_t kBlockBytes = 18;

  static HWY_INLINE VF value(hn::Vec<hn::RebindToSigned<F32>> nibbles) {
    const F32 d;
#if HWY_TARGET <= HWY_AVX3 && HWY_ARCH_X86
    // One look-up in a register of 16 floats instead of a subtraction and a conversion: 5 % faster.
    alignas(64) static constexpr float kValues[16] = {-8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7};
    return hn::TableLookupLanes(hn::Load(d, kValues), hn::IndicesFromVec(d, nibbles));
#else
    return hn::ConvertTo(d, hn::Sub(nibbles, hn::Set(hn::RebindToSigned<F32>(), 8)));
#endif
  }

  static HWY_INLINE void load_block(const std::uint8_t* block, VF* HWY_RESTRICT weights) {
    const hn::RebindToSigned<F32> di;
    const hn::Rebind<std::uint8_t, F32> d8;
    for (std::size_t j = 0; j < kVectors / 2; ++j) {
      const auto pairs = hn::PromoteTo(di, hn::LoadU(d8, block + 2 + j * kLanes));
      weights[j] = value(hn::And(pairs, hn::Set(di, 15)));
      weights[j + kVectors / 2] = value(hn::ShiftRight<4>(pairs));
    }
  }
  static HWY_INLINE VF scale(const std::uint8_t* block) { return block_scale(block); }
};

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace memwall::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
