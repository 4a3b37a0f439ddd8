// Numbers as kernels meet them, several in a word: widened to f32, narrowed from it, and arithmetic on two
// halves at once. Like platform.cuh, each has a plain twin for the host, exact in value.
#pragma once

#include <type_traits>

#include "kernels/cuda/platform.cuh"

namespace memwall::cuda {

#ifdef __CUDACC__
MEMWALL_DEVICE std::uint32_t subtract_halves(std::uint32_t a, std::uint32_t b) {
  const __half2 d = __hsub2(*reinterpret_cast<const __half2*>(&a), *reinterpret_cast<const __half2*>(&b));
  return *reinterpret_cast<const std::uint32_t*>(&d);
}
// a * b + c, rounded once.
MEMWALL_DEVICE std::uint32_t fma_halves(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
  const __half2 d = __hfma2(*reinterpret_cast<const __half2*>(&a), *reinterpret_cast<const __half2*>(&b),
                            *reinterpret_cast<const __half2*>(&c));
  return *reinterpret_cast<const std::uint32_t*>(&d);
}
MEMWALL_DEVICE std::uint32_t multiply_halves(std::uint32_t a, std::uint32_t b) {
  const __half2 d = __hmul2(*reinterpret_cast<const __half2*>(&a), *reinterpret_cast<const __half2*>(&b));
  return *reinterpret_cast<const std::uint32_t*>(&d);
}
// Byte i of the result is byte (selector >> 4i) & 7 of b:a.
MEMWALL_DEVICE std::uint32_t byte_perm(std::uint32_t a, std::uint32_t b, std::uint32_t selector) {
  return __byte_perm(a, b, selector);
}
#else
namespace detail {
template <class Op>
std::uint32_t on_halves(std::uint32_t a, std::uint32_t b, std::uint32_t c, Op op) {
  std::uint32_t result = 0;
  for (unsigned shift = 0; shift < 32; shift += 16) {
    const auto half = [shift](std::uint32_t word) {
      return cpu::f16_to_f32(static_cast<std::uint16_t>(word >> shift));
    };
    result |= static_cast<std::uint32_t>(cpu::f32_to_f16(op(half(a), half(b), half(c)))) << shift;
  }
  return result;
}
}  // namespace detail
MEMWALL_DEVICE std::uint32_t subtract_halves(std::uint32_t a, std::uint32_t b) {
  return detail::on_halves(a, b, 0, [](float x, float y, float) { return x - y; });
}
// In f32 a product of halves is exact; the sums that kernels use it for are too.
MEMWALL_DEVICE std::uint32_t fma_halves(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
  return detail::on_halves(a, b, c, [](float x, float y, float z) { return x * y + z; });
}
MEMWALL_DEVICE std::uint32_t multiply_halves(std::uint32_t a, std::uint32_t b) {
  return detail::on_halves(a, b, 0, [](float x, float y, float) { return x * y; });
}
MEMWALL_DEVICE std::uint32_t byte_perm(std::uint32_t a, std::uint32_t b, std::uint32_t selector) {
  const std::uint64_t both = (static_cast<std::uint64_t>(b) << 32) | a;
  std::uint32_t result = 0;
  for (unsigned i = 0; i < 4; ++i) {
    const unsigned from = (selector >> (4 * i)) & 7U;
    result |= static_cast<std::uint32_t>((both >> (8 * from)) & 0xFFU) << (8 * i);
  }
  return result;
}
#endif

// Two halves {sign, magnitude} out of the upper bytes of x's half words: f8 values times 2^-8, exactly.
MEMWALL_DEVICE std::uint32_t halves_of_f8(std::uint32_t x) {
  return ((x & 0x7F007F00U) >> 1) | (x & 0x80008000U);
}

// Four E4M3 values of a word, the lowest byte first.
#if defined(__CUDACC__) && defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
MEMWALL_DEVICE void widen_f8x4(std::uint32_t word, float (&values)[4]) {
  std::uint32_t low = 0;
  std::uint32_t high = 0;
  asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(low) : "h"(static_cast<unsigned short>(word)));
  asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(high) : "h"(static_cast<unsigned short>(word >> 16)));
  const Pair a = widen_halves(low);
  const Pair b = widen_halves(high);
  values[0] = a.lo;
  values[1] = a.hi;
  values[2] = b.lo;
  values[3] = b.hi;
}
#else
// Sign and the other bits land in a half's places, whose exponent then is 8 too small (bias 15 against 7),
// subnormals included. A NaN (0x7F) becomes 480: no weight is one.
MEMWALL_DEVICE void widen_f8x4(std::uint32_t word, float (&values)[4]) {
  constexpr std::uint32_t k256 = 0x5C005C00U;  // as halves
  const Pair a = widen_halves(multiply_halves(halves_of_f8(word << 8), k256));
  const Pair b = widen_halves(multiply_halves(halves_of_f8(word), k256));
  values[0] = a.lo;
  values[1] = b.lo;
  values[2] = a.hi;
  values[3] = b.hi;
}
#endif

// Four signed bytes of a word, the lowest first. A byte more 128 is the lowest of a float of 2^23's mantissa.
MEMWALL_DEVICE void widen_i8x4(std::uint32_t word, float (&values)[4]) {
  constexpr std::uint32_t k2To23 = 0x4B000000U;
  const std::uint32_t biased = word ^ 0x80808080U;
  values[0] = bits_as_float(byte_perm(biased, k2To23, 0x7650U)) - 8388736.0F;
  values[1] = bits_as_float(byte_perm(biased, k2To23, 0x7651U)) - 8388736.0F;
  values[2] = bits_as_float(byte_perm(biased, k2To23, 0x7652U)) - 8388736.0F;
  values[3] = bits_as_float(byte_perm(biased, k2To23, 0x7653U)) - 8388736.0F;
}

// Nibbles 0, 4, 1 and 5 of a word less `zero` (0 to 15). A nibble lies in the lowest bits of the half 1024,
// or 4 bits higher, where it counts 16 times; what is subtracted is exact in both.
MEMWALL_DEVICE void widen_u4x4(std::uint32_t word, std::uint32_t zero, float (&values)[4]) {
  constexpr std::uint32_t k1024 = 0x64006400U;
  constexpr std::uint32_t kSixteenth = 0x2C002C00U;
  const std::uint32_t both = zero | (zero << 16);
  const std::uint32_t low_zero = k1024 | both;                // 1024 + zero
  const std::uint32_t high_zero = 0xD400D400U | (both << 4);  // -(64 + zero)
  const Pair n04 = widen_halves(subtract_halves((word & 0x000F000FU) | k1024, low_zero));
  const Pair n15 = widen_halves(fma_halves((word & 0x00F000F0U) | k1024, kSixteenth, high_zero));
  values[0] = n04.lo;
  values[1] = n04.hi;
  values[2] = n15.lo;
  values[3] = n15.hi;
}

// Two floats as the halves of a word, `lo` the lower one, rounded to nearest even: one instruction each, but
// for bfloats before sm_80.
#if defined(__CUDACC__)
MEMWALL_DEVICE std::uint32_t narrow_halves(float lo, float hi) {
  const __half2 both = __floats2half2_rn(lo, hi);
  std::uint32_t word;
  memcpy(&word, &both, sizeof word);
  return word;
}
#else
MEMWALL_DEVICE std::uint32_t narrow_halves(float lo, float hi) {
  return static_cast<std::uint32_t>(cpu::f32_to_f16(lo)) |
         (static_cast<std::uint32_t>(cpu::f32_to_f16(hi)) << 16);
}
#endif
#if defined(__CUDACC__) && defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
MEMWALL_DEVICE std::uint32_t narrow_bfloats(float lo, float hi) {
  std::uint32_t word;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(hi), "f"(lo));
  return word;
}
#else
MEMWALL_DEVICE std::uint32_t narrow_bfloats(float lo, float hi) {
  BFloat16 low{};
  BFloat16 high{};
  narrow(lo, &low);
  narrow(hi, &high);
  return static_cast<std::uint32_t>(low.bits) | (static_cast<std::uint32_t>(high.bits) << 16);
}
#endif

// a / b to two units in the last place; 0 where |b| passes 2^126.
#ifdef __CUDACC__
MEMWALL_DEVICE float quick_quotient(float a, float b) { return __fdividef(a, b); }
#else
MEMWALL_DEVICE float quick_quotient(float a, float b) { return a / b; }
#endif

// Round to nearest even; beyond 448 saturated, a NaN stays one.
MEMWALL_DEVICE void narrow(float value, F8E4M3* to) {
  const std::uint32_t bits = float_as_bits(value);
  const std::uint32_t sign = bits >> 24 & 0x80U;
  const std::uint32_t magnitude = bits & 0x7FFFFFFFU;
  std::uint32_t code = 0;
  if (magnitude > 0x7F800000U) {
    code = 0x7F;
  } else if (magnitude >= 0x43E80000U) {  // 464, half way to what is not there
    code = 0x7E;
  } else if (magnitude < 0x3C800000U) {  // 2^-6: subnormals, steps of 2^-9; the addition rounds
    code = float_as_bits(bits_as_float(magnitude) + 16384.0F) - float_as_bits(16384.0F);
  } else {
    code = (magnitude + 0x7FFFFU + (magnitude >> 20 & 1U) - 0x3C000000U) >> 20;  // bias 127 to 7
  }
  to->bits = static_cast<std::uint8_t>(sign | code);
}

// Round to nearest even, saturated to -127 ... 127: floats of 1.5 * 2^23 and a little have steps of 1, and
// the sum's lowest byte is the number.
MEMWALL_DEVICE void narrow(float value, std::int8_t* to) {
  const float bounded = fminf(fmaxf(value, -127.0F), 127.0F);
  *to = static_cast<std::int8_t>(static_cast<std::uint8_t>(float_as_bits(bounded + 12582912.0F)));
}

// Four floats as the bytes of a word, the first the lowest, rounded as above.
template <class Code>
MEMWALL_DEVICE std::uint32_t narrow_x4(float a, float b, float c, float d) {
  const float values[4] = {a, b, c, d};
  std::uint32_t word = 0;
  MEMWALL_UNROLL
  for (int i = 0; i < 4; ++i) {
    Code code{};
    narrow(values[i], &code);
    if constexpr (std::is_same_v<Code, F8E4M3>) {
      word |= static_cast<std::uint32_t>(code.bits) << (8 * i);
    } else {
      word |= static_cast<std::uint32_t>(static_cast<std::uint8_t>(code)) << (8 * i);
    }
  }
  return word;
}
#if defined(__CUDACC__) && defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
template <>
MEMWALL_DEVICE std::uint32_t narrow_x4<F8E4M3>(float a, float b, float c, float d) {
  unsigned short low = 0;
  unsigned short high = 0;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(low) : "f"(b), "f"(a));
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(high) : "f"(d), "f"(c));
  return static_cast<std::uint32_t>(low) | (static_cast<std::uint32_t>(high) << 16);
}
#endif

template <class T>
constexpr bool kIsBrain = false;
template <>
constexpr bool kIsBrain<BFloat16> = true;

// Two floats as one word of T, the first in the lower half.
template <class T>
MEMWALL_DEVICE std::uint32_t pack(float lo, float hi) {
  if constexpr (kIsBrain<T>) return narrow_bfloats(lo, hi);
  return narrow_halves(lo, hi);
}
template <class T>
MEMWALL_DEVICE Pair unpack(std::uint32_t word) {
  if constexpr (kIsBrain<T>) return widen_bfloats(word);
  return widen_halves(word);
}

// Bits that are set.
#ifdef __CUDACC__
MEMWALL_DEVICE unsigned count_bits(std::uint32_t bits) { return static_cast<unsigned>(__popc(bits)); }
#else
MEMWALL_DEVICE unsigned count_bits(std::uint32_t bits) { return static_cast<unsigned>(std::popcount(bits)); }
#endif

}  // namespace memwall::cuda
