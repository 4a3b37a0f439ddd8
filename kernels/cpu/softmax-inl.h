// exp for softmax and sigmoid. Highway's per-target header.
#if defined(MEMWALL_KERNELS_CPU_SOFTMAX_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MEMWALL_KERNELS_CPU_SOFTMAX_INL_H_
#undef MEMWALL_KERNELS_CPU_SOFTMAX_INL_H_
#else
#define MEMWALL_KERNELS_CPU_SOFTMAX_INL_H_
#endif

#include <cstddef>
#include <limits>

#include "hwy/highway.h"
#include "kernels/cpu/widen-inl.h"

HWY_BEFORE_NAMESPACE();
namespace memwall::cpu::HWY_NAMESPACE {

// e^x for x <= 0, to about 2 units in the last place; below the least normal number, ln 2^-126, it is 0.
// NaN stays NaN. Cody and Waite's reduction to |r| <= ln(2)/2, then Cephes's polynomial (Moshier, expf.c).
HWY_INLINE VF exp_nonpositive(VF x) {
  const F32 d;
  const hn::RebindToSigned<F32> di;
  const VF least = hn::Set(d, -87.336544F);
  // n = round(x / ln 2), by the adder: it stands in the last bits of the sum.
  const VF magic = hn::Set(d, 0x1.8p23F);
  const VF shifted = hn::MulAdd(x, hn::Set(d, 1.44269504088896341F), magic);
  const VF nf = hn::Sub(shifted, magic);
  const VF high = hn::NegMulAdd(nf, hn::Set(d, 0.693359375F), x);  // exact: the factor has 9 bits
  const VF r = hn::NegMulAdd(nf, hn::Set(d, -2.12194440e-4F), high);
  VF p = hn::Set(d, 1.9875691500e-4F);
  p = hn::MulAdd(p, r, hn::Set(d, 1.3981999507e-3F));
  p = hn::MulAdd(p, r, hn::Set(d, 8.3334519073e-3F));
  p = hn::MulAdd(p, r, hn::Set(d, 4.1665795894e-2F));
  p = hn::MulAdd(p, r, hn::Set(d, 1.6666665459e-1F));
  p = hn::MulAdd(p, r, hn::Set(d, 5.0000001201e-1F));
  p = hn::Add(hn::MulAdd(p, hn::Mul(r, r), r), hn::Set(d, 1.0F));
  const VF power =
      hn::BitCast(d, hn::Add(hn::ShiftLeft<23>(hn::BitCast(di, shifted)), hn::Set(di, 127 << 23)));
  // What lies below has no n, and no sense until here; a NaN is not below, and made p one.
  return hn::IfThenZeroElse(hn::Lt(x, least), hn::Mul(p, power));
}

// 2^x for x <= 0 (or a rounding error above), to about 2 units in the last place; below 2^-126 it is 0. NaN
// stays NaN. Cephes's polynomial for |r| <= 1/2 (Moshier, exp2f.c). It takes 7 multiplications where
// exp_nonpositive takes 11, and whoever scales and shifts x can do both in one: with that, and with an odd
// last panel of keys scored alone, prefill attention took 0.92 of the time before (Zen 5, 512 and 2048
// tokens, d 64).
HWY_INLINE VF exp2_nonpositive(VF x) {
  const F32 d;
  const hn::RebindToSigned<F32> di;
  const VF magic = hn::Set(d, 0x1.8p23F);
  const VF shifted = hn::Add(x, magic);
  const VF r = hn::Sub(x, hn::Sub(shifted, magic));
  VF p = hn::Set(d, 1.535336188319500e-4F);
  p = hn::MulAdd(p, r, hn::Set(d, 1.339887440266574e-3F));
  p = hn::MulAdd(p, r, hn::Set(d, 9.618437357674640e-3F));
  p = hn::MulAdd(p, r, hn::Set(d, 5.550332471162809e-2F));
  p = hn::MulAdd(p, r, hn::Set(d, 2.402264791363012e-1F));
  p = hn::MulAdd(p, r, hn::Set(d, 6.931472028550421e-1F));
  p = hn::MulAdd(p, r, hn::Set(d, 1.0F));
  const VF power =
      hn::BitCast(d, hn::Add(hn::ShiftLeft<23>(hn::BitCast(di, shifted)), hn::Set(di, 127 << 23)));
  return hn::IfThenZeroElse(hn::Lt(x, hn::Set(d, -126.0F)), hn::Mul(p, power));
}

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

// The largest of n values, n a multiple of kLanes.
HWY_INLINE float max_of(const float* values, std::size_t n) {
  const F32 d;
  VF largest = hn::Set(d, kMinusInfinity);
  for (std::size_t i = 0; i < n; i += kLanes) largest = hn::Max(largest, hn::LoadU(d, values + i));
  return hn::GetLane(hn::MaxOfLanes(d, largest));
}

// values[i] = exp(values[i] - shift), n a multiple of kLanes; returns their sum.
HWY_INLINE float exp_and_sum(float* values, std::size_t n, float shift) {
  const F32 d;
  const VF shifts = hn::Set(d, shift);
  VF sum = hn::Zero(d);
  for (std::size_t i = 0; i < n; i += kLanes) {
    const VF e = exp_nonpositive(hn::Sub(hn::LoadU(d, values + i), shifts));
    hn::StoreU(e, d, values + i);
    sum = hn::Add(sum, e);
  }
  return hn::GetLane(hn::SumOfLanes(d, sum));
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace memwall::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
