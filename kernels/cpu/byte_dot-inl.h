// Sums of byte products in 32-bit lanes: 4 unsigned or signed weights times 4 signed activations a lane.
// Highway's per-target header; 1.0.3 has no byte dot product, so each target's own instructions stand here.
#if defined(MEMWALL_KERNELS_CPU_BYTE_DOT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MEMWALL_KERNELS_CPU_BYTE_DOT_INL_H_
#undef MEMWALL_KERNELS_CPU_BYTE_DOT_INL_H_
#else
#define MEMWALL_KERNELS_CPU_BYTE_DOT_INL_H_
#endif

#include <cstddef>
#include <cstdint>

#include "hwy/highway.h"

// Highway 1.0.3 detects AVX512_VNNI before it chooses AVX3_DL, but leaves it out of what it tells the
// compiler.
#if HWY_ARCH_X86 && HWY_TARGET == HWY_AVX3_DL
#undef HWY_TARGET_STR
#define HWY_TARGET_STR \
  HWY_TARGET_STR_AVX3  \
  ",vpclmulqdq,avx512vbmi,avx512vbmi2,vaes,avxvnni,avx512bitalg,avx512vpopcntdq,avx512vnni"
#endif

HWY_BEFORE_NAMESPACE();
namespace memwall::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#undef MEMWALL_HAS_BYTE_DOT
#if HWY_TARGET != HWY_SCALAR && (HWY_ARCH_ARM_A64 || (HWY_ARCH_X86 && HWY_TARGET <= HWY_SSE4))
#define MEMWALL_HAS_BYTE_DOT 1

using Words = hn::CappedTag<std::int32_t, 16>;
using VI = hn::Vec<Words>;
using Bytes = hn::Repartition<std::int8_t, Words>;
using VB = hn::Vec<Bytes>;

#if HWY_ARCH_X86 && HWY_TARGET != HWY_AVX3_DL
using Halves = hn::Repartition<std::int16_t, Words>;
using VH = hn::Vec<Halves>;

// multiply_pairs: the sums of two neighbouring products, unsigned times signed, in 16 bits; sum_pairs: of two
// neighbours of those, in 32; with_sign_of: x, negated where the weight is negative.
#if HWY_TARGET == HWY_AVX3
HWY_INLINE VH multiply_pairs(VB weights, VB x) { return VH{_mm512_maddubs_epi16(weights.raw, x.raw)}; }
HWY_INLINE VI sum_pairs(VH pairs) { return VI{_mm512_madd_epi16(pairs.raw, _mm512_set1_epi16(1))}; }
HWY_INLINE VB with_sign_of(VB weights, VB x) {
  return VB{_mm512_mask_sub_epi8(x.raw, _mm512_movepi8_mask(weights.raw), _mm512_setzero_si512(), x.raw)};
}
#elif HWY_TARGET == HWY_AVX2
HWY_INLINE VH multiply_pairs(VB weights, VB x) { return VH{_mm256_maddubs_epi16(weights.raw, x.raw)}; }
HWY_INLINE VI sum_pairs(VH pairs) { return VI{_mm256_madd_epi16(pairs.raw, _mm256_set1_epi16(1))}; }
HWY_INLINE VB with_sign_of(VB weights, VB x) { return VB{_mm256_sign_epi8(x.raw, weights.raw)}; }
#else
HWY_INLINE VH multiply_pairs(VB weights, VB x) { return VH{_mm_maddubs_epi16(weights.raw, x.raw)}; }
HWY_INLINE VI sum_pairs(VH pairs) { return VI{_mm_madd_epi16(pairs.raw, _mm_set1_epi16(1))}; }
HWY_INLINE VB with_sign_of(VB weights, VB x) { return VB{_mm_sign_epi8(x.raw, weights.raw)}; }
#endif
#endif

// Products of one block of 32 weights of a row, four at a time, for weights of 0 to 15 (add) or -128 to 127
// (add_signed; add_kept where keep() has been applied once, to multiply many times) and activations of -127
// to 127; total() is `bias` plus their sum, exact. No target overflows: VNNI sums in 32 bits; pmaddubsw's
// 16-bit sums of pairs are at most 15 * 127 * 2, and 8 of those fit 16 bits still; signed weights go through
// |w| and x with w's sign, 128 * 127 * 2 at most, widened at once.
class ByteDot {
 public:
  ByteDot() = default;
#if HWY_ARCH_X86 && HWY_TARGET == HWY_AVX3_DL
  HWY_INLINE explicit ByteDot(VI bias) : sum_(bias) {}
  HWY_INLINE void add(VB weights, VB x) { sum_.raw = _mm512_dpbusd_epi32(sum_.raw, weights.raw, x.raw); }
  // Weights as they are plus 128; the caller's bias takes 128 times the activations' sum away again.
  static constexpr std::int32_t kSignedOffset = 128;
  static HWY_INLINE VB keep(VB weights) {
    return hn::Xor(weights, hn::Set(Bytes(), static_cast<std::int8_t>(-128)));
  }
  HWY_INLINE void add_kept(VB kept, VB x) { add(kept, x); }
  HWY_INLINE void add_signed(VB weights, VB x) { add_kept(keep(weights), x); }
  HWY_INLINE VI total() const { return sum_; }

 private:
  VI sum_;
#elif HWY_ARCH_X86
  HWY_INLINE explicit ByteDot(VI bias) : sum_(bias), pairs_(hn::Zero(Halves())) {}
  static constexpr std::int32_t kSignedOffset = 0;
  HWY_INLINE void add(VB weights, VB x) { pairs_ = hn::Add(pairs_, multiply_pairs(weights, x)); }
  static HWY_INLINE VB keep(VB weights) { return weights; }
  HWY_INLINE void add_kept(VB weights, VB x) {
    sum_ = hn::Add(sum_, sum_pairs(multiply_pairs(hn::Abs(weights), with_sign_of(weights, x))));
  }
  HWY_INLINE void add_signed(VB weights, VB x) { add_kept(keep(weights), x); }
  HWY_INLINE VI total() const { return hn::Add(sum_, sum_pairs(pairs_)); }

 private:
  VI sum_;
  VH pairs_;
#else  // Arm, without its optional dot product
  HWY_INLINE explicit ByteDot(VI bias) : sum_(bias) {}
  static constexpr std::int32_t kSignedOffset = 0;
  HWY_INLINE void add(VB weights, VB x) { add_kept(weights, x); }
  static HWY_INLINE VB keep(VB weights) { return weights; }
  HWY_INLINE void add_kept(VB weights, VB x) {
    const int32x4_t low = vpaddlq_s16(vmull_s8(vget_low_s8(weights.raw), vget_low_s8(x.raw)));
    const int32x4_t high = vpaddlq_s16(vmull_high_s8(weights.raw, x.raw));
    sum_.raw = vaddq_s32(sum_.raw, vpaddq_s32(low, high));
  }
  HWY_INLINE void add_signed(VB weights, VB x) { add_kept(keep(weights), x); }
  HWY_INLINE VI total() const { return sum_; }

 private:
  VI sum_;
#endif
};
#else
#define MEMWALL_HAS_BYTE_DOT 0
#endif

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace memwall::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
