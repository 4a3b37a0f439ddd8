// Arm's own multiply-adds: dot and matrix products of bytes and of bf16, and f16 arithmetic, all of them
// optional.
#include "kernels/cpu/arithmetic_parts.h"

// Older compilers of LLVM know these only for a whole file.
#if defined(__aarch64__) && defined(__linux__) && (!defined(__clang__) || __clang_major__ >= 16)

#include <arm_neon.h>
#include <sys/auxv.h>

namespace memwall::cpu {
namespace {

constexpr std::size_t kChains = 24;

// The compiler must take each chain's sum for a new one, or it finds that the chains are all the same.
#define MEMWALL_RENEW(vector) asm volatile("" : "+w"(vector))

// The kernel's bits of AT_HWCAP and AT_HWCAP2 (arch/arm64/include/uapi/asm/hwcap.h).
constexpr unsigned long kHalves = 1UL << 10;
constexpr unsigned long kDotProducts = 1UL << 20;
constexpr unsigned long kByteMatrices = 1UL << 13;
constexpr unsigned long kBf16 = 1UL << 14;

__attribute__((target("+dotprod"))) double part_int8_dot(std::int64_t rounds) {
  constexpr auto kA = repeated(kByteWeights);
  constexpr auto kB = repeated(kByteInputs);
  const int8x16_t a = vld1q_s8(kA.data());
  const int8x16_t b = vld1q_s8(kB.data());
  int32x4_t sums[kChains];
  MEMWALL_UNROLL
  for (int32x4_t& sum : sums) {
    sum = vdupq_n_s32(0);
    MEMWALL_RENEW(sum);
  }
  for (std::int64_t i = 0; i < rounds; ++i) {
    MEMWALL_UNROLL
    for (std::size_t c = 0; c < kChains; ++c) sums[c] = vdotq_s32(sums[c], a, b);
  }
  double total = 0;
  MEMWALL_UNROLL
  for (const int32x4_t& sum : sums) total += static_cast<double>(vaddvq_s32(sum));
  return total;
}

__attribute__((target("+i8mm"))) double part_int8_matrix(std::int64_t rounds) {
  constexpr auto kA = repeated(kByteWeights);
  constexpr auto kB = repeated(kByteInputs);
  const int8x16_t a = vld1q_s8(kA.data());
  const int8x16_t b = vld1q_s8(kB.data());
  int32x4_t sums[kChains];
  MEMWALL_UNROLL
  for (int32x4_t& sum : sums) {
    sum = vdupq_n_s32(0);
    MEMWALL_RENEW(sum);
  }
  for (std::int64_t i = 0; i < rounds; ++i) {
    MEMWALL_UNROLL
    for (std::size_t c = 0; c < kChains; ++c) sums[c] = vmmlaq_s32(sums[c], a, b);
  }
  double total = 0;
  MEMWALL_UNROLL
  for (const int32x4_t& sum : sums) total += static_cast<double>(vaddvq_s32(sum));
  return total;
}

__attribute__((target("+bf16"))) double part_bf16_matrix(std::int64_t rounds) {
  constexpr auto kA = repeated(kFactorsBf16);
  constexpr auto kB = repeated(kInversesBf16);
  const bfloat16x8_t a = vreinterpretq_bf16_u16(vld1q_u16(kA.data()));
  const bfloat16x8_t b = vreinterpretq_bf16_u16(vld1q_u16(kB.data()));
  float32x4_t sums[kChains];
  MEMWALL_UNROLL
  for (float32x4_t& sum : sums) {
    sum = vdupq_n_f32(0);
    MEMWALL_RENEW(sum);
  }
  for (std::int64_t i = 0; i < rounds; ++i) {
    MEMWALL_UNROLL
    for (std::size_t c = 0; c < kChains; ++c) sums[c] = vbfmmlaq_f32(sums[c], a, b);
  }
  double total = 0;
  MEMWALL_UNROLL
  for (const float32x4_t& sum : sums) total += static_cast<double>(vaddvq_f32(sum));
  return total;
}

// Sums of f16 are whole numbers here, exact to 2048.
constexpr std::int64_t kRoundsInF16 = 2048;

__attribute__((target("+fp16"))) double part_f16(std::int64_t rounds) {
  constexpr auto kA = repeated(kFactorsF16);
  constexpr auto kB = repeated(kInversesF16);
  const float16x8_t a = vreinterpretq_f16_u16(vld1q_u16(kA.data()));
  const float16x8_t b = vreinterpretq_f16_u16(vld1q_u16(kB.data()));
  float16x8_t sums[kChains];
  MEMWALL_UNROLL
  for (float16x8_t& sum : sums) {
    sum = vreinterpretq_f16_u16(vdupq_n_u16(0));
    MEMWALL_RENEW(sum);
  }
  for (std::int64_t i = 0; i < rounds; ++i) {
    MEMWALL_UNROLL
    for (std::size_t c = 0; c < kChains; ++c) sums[c] = vfmaq_f16(sums[c], a, b);
  }
  double total = 0;
  MEMWALL_UNROLL
  for (const float16x8_t& sum : sums) {
    total += static_cast<double>(vaddvq_f32(vcvt_f32_f16(vget_low_f16(sum))));
    total += static_cast<double>(vaddvq_f32(vcvt_f32_f16(vget_high_f16(sum))));
  }
  return total;
}

}  // namespace

void add_own_ways(Multiply type, std::vector<MultiplyWay>& ways) {
  const unsigned long first = ::getauxval(AT_HWCAP);
  const unsigned long second = ::getauxval(AT_HWCAP2);
  if (type == Multiply::int8 && (first & kDotProducts) != 0) {
    ways.push_back({"sdot", kChains * 16,
                    [](std::int64_t rounds) { return in_parts(rounds, kRoundsAtOnce, part_int8_dot); }});
  }
  if (type == Multiply::int8 && (second & kByteMatrices) != 0) {
    ways.push_back({"smmla", kChains * 32,
                    [](std::int64_t rounds) { return in_parts(rounds, kRoundsAtOnce, part_int8_matrix); }});
  }
  if (type == Multiply::bf16 && (second & kBf16) != 0) {
    ways.push_back({"bfmmla", kChains * 16,
                    [](std::int64_t rounds) { return in_parts(rounds, kRoundsAtOnce, part_bf16_matrix); }});
  }
  if (type == Multiply::f16 && (first & kHalves) != 0) {
    ways.push_back({"fmla, f16", kChains * 8,
                    [](std::int64_t rounds) { return in_parts(rounds, kRoundsInF16, part_f16); }});
  }
}

}  // namespace memwall::cpu

#elif defined(__aarch64__) && defined(__linux__)

namespace memwall::cpu {

void add_own_ways(Multiply, std::vector<MultiplyWay>&) {}

}  // namespace memwall::cpu

#endif
