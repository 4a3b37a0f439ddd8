// What the row operations share: rows that no vector divides. Highway's per-target header.
#if defined(MEMWALL_KERNELS_CPU_ELEMENTWISE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MEMWALL_KERNELS_CPU_ELEMENTWISE_INL_H_
#undef MEMWALL_KERNELS_CPU_ELEMENTWISE_INL_H_
#else
#define MEMWALL_KERNELS_CPU_ELEMENTWISE_INL_H_
#endif

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

#include "hwy/highway.h"
#include "kernels/cpu/widen-inl.h"

HWY_BEFORE_NAMESPACE();
namespace memwall::cpu::HWY_NAMESPACE {

// The first n < kLanes values, zeros behind them; nothing is read past them. Highway 1.0.3's MaskedLoad reads
// whole vectors on targets without masks.
HWY_INLINE VF load_first(const float* p, std::size_t n) {
  alignas(64) float padded[kLanes] = {};
  std::memcpy(padded, p, n * sizeof(float));
  return hn::Load(F32(), padded);
}

HWY_INLINE void store_first(VF v, float* p, std::size_t n) {
  alignas(64) float padded[kLanes];
  hn::Store(v, F32(), padded);
  std::memcpy(p, padded, n * sizeof(float));
}

HWY_INLINE VF widen_bf16(VU16 bits) {
  const hn::RebindToUnsigned<F32> du;
  return hn::BitCast(F32(), hn::ShiftLeft<16>(hn::PromoteTo(du, bits)));
}

HWY_INLINE VF load_bf16(const std::uint16_t* p) { return widen_bf16(hn::LoadU(U16Half(), p)); }

HWY_INLINE VF load_first_bf16(const std::uint16_t* p, std::size_t n) {
  alignas(64) std::uint16_t padded[kLanes] = {};
  std::memcpy(padded, p, n * sizeof(std::uint16_t));
  return widen_bf16(hn::Load(U16Half(), padded));
}

// Rounds to nearest even. A NaN stays one where its lower half is zero, as the hardware's own and those of
// bf16 are; canonical() makes any NaN such a one.
HWY_INLINE VU16 round_bf16(VF value) {
  const hn::RebindToUnsigned<F32> du;
  const hn::RebindToSigned<F32> di;
  const auto bits = hn::BitCast(du, value);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 1));
  const auto rounded = hn::Add(bits, hn::Add(odd, hn::Set(du, 0x7FFF)));
  // The shift copies the sign, so that the signed demotion saturates nothing.
  return hn::BitCast(
      U16Half(), hn::DemoteTo(hn::Rebind<std::int16_t, F32>(), hn::ShiftRight<16>(hn::BitCast(di, rounded))));
}

HWY_INLINE VF canonical(VF value) {
  return hn::IfThenElse(hn::IsNaN(value), hn::Set(F32(), std::numeric_limits<float>::quiet_NaN()), value);
}

HWY_INLINE void store_first_u16(VU16 v, std::uint16_t* p, std::size_t n) {
  alignas(64) std::uint16_t padded[kLanes];
  hn::Store(v, U16Half(), padded);
  std::memcpy(p, padded, n * sizeof(std::uint16_t));
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace memwall::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
