// f32 multiply-adds and byte products by the instruction sets that the kernels are compiled for.
#define MEMWALL_WANT_BYTE_DOT
#include "kernels/cpu/arithmetic.h"

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/arithmetic_parts.h"
#include "kernels/cpu/highway_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/arithmetic.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
//
#include "hwy/highway.h"
#include "kernels/cpu/byte_dot-inl.h"

// The compiler must take the vector for a new one: else it multiplies once for all rounds, and finds that the
// chains are all the same.
#undef MEMWALL_RENEW
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
#define MEMWALL_RENEW(v) asm volatile("" : "+v"((v).raw))
#elif HWY_ARCH_X86
#define MEMWALL_RENEW(v) asm volatile("" : "+x"((v).raw))
#else
#define MEMWALL_RENEW(v) asm volatile("" : "+w"((v).raw))
#endif

HWY_BEFORE_NAMESPACE();
namespace memwall::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Independent chains: as many as cover two units' latency of 5 cycles (four units' of 4 where there are 32
// registers), with room for the operands.
#if (HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3) || HWY_ARCH_ARM_A64
constexpr std::size_t kChains = 24;
#else
constexpr std::size_t kChains = 12;
#endif

using MultiplyF32 = hn::CappedTag<float, 16>;

std::int64_t f32_products() { return static_cast<std::int64_t>(kChains * hn::Lanes(MultiplyF32())); }

double multiply_f32(std::int64_t rounds) {
  const MultiplyF32 d;
  constexpr auto kA = repeated(kFactors);
  constexpr auto kB = repeated(kInverses);
  auto a = hn::LoadU(d, kA.data());
  const auto b = hn::LoadU(d, kB.data());
  double total = 0;
  for (std::int64_t done = 0; done < rounds; done += kRoundsAtOnce) {
    const std::int64_t now = HWY_MIN(kRoundsAtOnce, rounds - done);
    hn::Vec<MultiplyF32> sums[kChains];
    MEMWALL_UNROLL
    for (auto& sum : sums) {
      sum = hn::Zero(d);
      MEMWALL_RENEW(sum);
    }
    for (std::int64_t i = 0; i < now; ++i) {
      MEMWALL_UNROLL
      for (std::size_t c = 0; c < kChains; ++c) {
        MEMWALL_RENEW(a);
        sums[c] = hn::MulAdd(a, b, sums[c]);
      }
    }
    auto all = hn::Zero(d);
    MEMWALL_UNROLL
    for (const auto& sum : sums) all = hn::Add(all, sum);
    total += static_cast<double>(hn::GetLane(hn::SumOfLanes(d, all)));
  }
  return total;
}

#if MEMWALL_HAS_BYTE_DOT
// Instructions that add to their own sums need the chains; where products are summed in pairs of 16 bits by
// an addition of one cycle, six are enough, and with their operands fit 16 registers. Pairs go to 32 bits
// after as many rounds as 16 bits hold of the smallest weights there are (2 bits: 32 × 2 × 3 × 127); a format
// of more bits does so sooner, and is the slower for it. The sums are plain vectors, as GCC 12 keeps an array
// of ByteDot in memory.
#if HWY_ARCH_X86 && HWY_TARGET != HWY_AVX3_DL
constexpr std::size_t kByteChains = 6;
constexpr std::int64_t kByteRounds = 32;
using ByteSum = VH;
HWY_INLINE ByteSum no_bytes() { return hn::Zero(Halves()); }
HWY_INLINE void add_bytes(ByteSum& sum, VB weights, VB& x) {
  MEMWALL_RENEW(x);
  sum = hn::Add(sum, multiply_pairs(weights, x));
  MEMWALL_RENEW(sum);  // in its own register
}
HWY_INLINE VI total_of(ByteSum sum) { return sum_pairs(sum); }
#else
constexpr std::size_t kByteChains = kChains;
constexpr std::int64_t kByteRounds = kRoundsAtOnce;
using ByteSum = VI;
HWY_INLINE ByteSum no_bytes() { return hn::Zero(Words()); }
HWY_INLINE void add_bytes(ByteSum& sum, VB weights, VB& x) {
#if HWY_ARCH_X86
  sum.raw = _mm512_dpbusd_epi32(sum.raw, weights.raw, x.raw);
  MEMWALL_RENEW(sum);  // in its own register
#else
  MEMWALL_RENEW(x);
  ByteDot dot(sum);
  dot.add(weights, x);
  sum = dot.total();
#endif
}
HWY_INLINE VI total_of(ByteSum sum) { return sum; }
#endif

// 0 where the set has no byte products.
std::int64_t int8_products() { return static_cast<std::int64_t>(kByteChains * hn::Lanes(Bytes())); }

HWY_INLINE VI byte_rounds(std::int64_t rounds, VB weights, VB x) {
  ByteSum sums[kByteChains];
  MEMWALL_UNROLL
  for (ByteSum& sum : sums) {
    sum = no_bytes();
    MEMWALL_RENEW(sum);
  }
  for (std::int64_t i = 0; i < rounds; ++i) {
    MEMWALL_UNROLL
    for (std::size_t c = 0; c < kByteChains; ++c) add_bytes(sums[c], weights, x);
  }
  VI all = total_of(sums[0]);
  MEMWALL_UNROLL
  for (std::size_t c = 1; c < kByteChains; ++c) all = hn::Add(all, total_of(sums[c]));
  return all;
}

double multiply_int8(std::int64_t rounds) {
  constexpr auto kA = repeated(kByteWeights);
  constexpr auto kB = repeated(kByteInputs);
  const VB weights = hn::LoadU(Bytes(), kA.data());
  const VB x = hn::LoadU(Bytes(), kB.data());
  double total = 0;
  for (std::int64_t done = 0; done < rounds; done += kRoundsAtOnce) {
    const std::int64_t now = HWY_MIN(kRoundsAtOnce, rounds - done);
    VI all = hn::Zero(Words());
    for (std::int64_t i = 0; i < now; i += kByteRounds)
      all = hn::Add(all, byte_rounds(HWY_MIN(kByteRounds, now - i), weights, x));
    total += static_cast<double>(hn::GetLane(hn::SumOfLanes(Words(), all)));
  }
  return total;
}
#else
std::int64_t int8_products() { return 0; }
double multiply_int8(std::int64_t) { return 0; }
#endif

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace memwall::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "kernels/cpu/instruction_sets.h"

namespace memwall::cpu {

HWY_EXPORT(f32_products);
HWY_EXPORT(multiply_f32);
HWY_EXPORT(int8_products);
HWY_EXPORT(multiply_int8);

namespace {

double run_f32(std::int64_t rounds) { return HWY_DYNAMIC_DISPATCH(multiply_f32)(rounds); }
double run_int8(std::int64_t rounds) { return HWY_DYNAMIC_DISPATCH(multiply_int8)(rounds); }

}  // namespace

std::vector<MultiplyWay> multiply_ways(Multiply type) {
  std::vector<MultiplyWay> ways;
  if (type == Multiply::f32) {
    ways.push_back({"multiply-add, " + instruction_set(), HWY_DYNAMIC_DISPATCH(f32_products)(), run_f32});
  } else if (type == Multiply::int8 && HWY_DYNAMIC_DISPATCH(int8_products)() > 0) {
    ways.push_back({"byte products, " + instruction_set(), HWY_DYNAMIC_DISPATCH(int8_products)(), run_int8});
  }
  add_own_ways(type, ways);
  return ways;
}

double multiply_product(Multiply type) { return type == Multiply::int8 ? 126 : 1; }

}  // namespace memwall::cpu
#endif  // HWY_ONCE
