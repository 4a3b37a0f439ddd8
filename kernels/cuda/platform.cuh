// The few things that kernels need from the machine, each with a plain twin for the host, so that the same
// kernel bodies run on a GPU and, in the tests, on an executor that watches them. Kernels use no CUDA name
// but through this header.
//
// A kernel is a struct:
//   struct Kernel {
//     using Params = ...;                       // plain data, passed by value
//     static constexpr unsigned kThreads = 256; // threads a block, one-dimensional
//     static MEMWALL_DEVICE void run(const Params& p, std::byte* shared);  // dynamic shared memory, 16-byte
//     aligned
//   };
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/cuda/geometry.h"

#ifdef __CUDACC__
#include <cuda_fp16.h>
#define MEMWALL_DEVICE __device__ __forceinline__
#define MEMWALL_UNROLL _Pragma("unroll")
#define MEMWALL_NO_UNROLL _Pragma("unroll 1")
#else
#include <atomic>

#include "kernels/cpu/pack.h"
#include "kernels/cuda/host_thread.h"
#define MEMWALL_DEVICE inline
#define MEMWALL_UNROLL
#define MEMWALL_NO_UNROLL
#endif

namespace memwall::cuda {

// 16-bit floats and 8-bit ones as bits: CUDA's own types are not there where there is no toolkit.
struct alignas(2) Half {
  std::uint16_t bits;
};
struct alignas(2) BFloat16 {
  std::uint16_t bits;
};
struct F8E4M3 {
  std::uint8_t bits;
};

// What a thread loads at once.
struct alignas(16) Vec16 {
  std::uint32_t word[4];
};
struct alignas(8) Vec8 {
  std::uint32_t word[2];
};

struct Pair {
  float lo;  // of the lower half word
  float hi;
};

// --- where this thread is ---------------------------------------------------------------------------------

#ifdef __CUDACC__
MEMWALL_DEVICE unsigned thread_x() { return threadIdx.x; }
MEMWALL_DEVICE unsigned block_x() { return blockIdx.x; }
MEMWALL_DEVICE unsigned block_y() { return blockIdx.y; }
MEMWALL_DEVICE unsigned block_z() { return blockIdx.z; }
MEMWALL_DEVICE unsigned grid_x() { return gridDim.x; }
MEMWALL_DEVICE unsigned grid_y() { return gridDim.y; }
#else
MEMWALL_DEVICE unsigned thread_x() { return HostThread::current()->index; }
MEMWALL_DEVICE unsigned block_x() { return HostThread::current()->block.x; }
MEMWALL_DEVICE unsigned block_y() { return HostThread::current()->block.y; }
MEMWALL_DEVICE unsigned block_z() { return HostThread::current()->block.z; }
MEMWALL_DEVICE unsigned grid_x() { return HostThread::current()->grid.x; }
MEMWALL_DEVICE unsigned grid_y() { return HostThread::current()->grid.y; }
#endif
MEMWALL_DEVICE unsigned lane() { return thread_x() % kWarp; }
MEMWALL_DEVICE unsigned warp() { return thread_x() / kWarp; }

// --- meeting the others -----------------------------------------------------------------------------------
// All threads of the block, or all 32 lanes of the warp, must come.

#ifdef __CUDACC__
MEMWALL_DEVICE void sync_threads() { __syncthreads(); }
MEMWALL_DEVICE void sync_warp() { __syncwarp(); }
template <class T>
MEMWALL_DEVICE T shuffle(T value, unsigned from) {
  return __shfl_sync(0xFFFFFFFFU, value, static_cast<int>(from));
}
template <class T>
MEMWALL_DEVICE T shuffle_xor(T value, unsigned mask) {
  return __shfl_xor_sync(0xFFFFFFFFU, value, static_cast<int>(mask));
}
MEMWALL_DEVICE std::uint32_t ballot(bool vote) { return __ballot_sync(0xFFFFFFFFU, vote); }
#else
MEMWALL_DEVICE void sync_threads() { HostThread::current()->sync_threads(); }
MEMWALL_DEVICE void sync_warp() { HostThread::current()->sync_warp(); }
template <class T>
MEMWALL_DEVICE T shuffle(T value, unsigned from) {
  static_assert(sizeof(T) <= 8);
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  bits = HostThread::current()->exchange(bits, from % kWarp);
  std::memcpy(&value, &bits, sizeof(T));
  return value;
}
template <class T>
MEMWALL_DEVICE T shuffle_xor(T value, unsigned mask) {
  return shuffle(value, lane() ^ mask);
}
MEMWALL_DEVICE std::uint32_t ballot(bool vote) { return HostThread::current()->ballot(vote); }
#endif

// The sum, or the largest, over the warp; every lane gets it.
MEMWALL_DEVICE float warp_sum(float value) {
  MEMWALL_UNROLL
  for (unsigned mask = kWarp / 2; mask > 0; mask /= 2) value += shuffle_xor(value, mask);
  return value;
}
MEMWALL_DEVICE float warp_max(float value) {
  MEMWALL_UNROLL
  for (unsigned mask = kWarp / 2; mask > 0; mask /= 2) value = fmaxf(value, shuffle_xor(value, mask));
  return value;
}

// --- global memory ----------------------------------------------------------------------------------------
// Every access to global memory goes through these, so that the tests can count them. `load_streaming` is for
// what a step reads once (weights, caches): it shall not push activations out of the caches.

#ifdef __CUDACC__
namespace detail {
template <std::size_t Bytes>
struct Word;
template <>
struct Word<1> {
  using type = unsigned char;
};
template <>
struct Word<2> {
  using type = unsigned short;
};
template <>
struct Word<4> {
  using type = unsigned;
};
template <>
struct Word<8> {
  using type = uint2;
};
template <>
struct Word<16> {
  using type = uint4;
};
}  // namespace detail
template <class V>
MEMWALL_DEVICE V load(const V* p) {
  return *p;
}
template <class V>
MEMWALL_DEVICE V load_streaming(const V* p) {
  const auto word = __ldcs(reinterpret_cast<const typename detail::Word<sizeof(V)>::type*>(p));
  V value;
  memcpy(&value, &word, sizeof(V));
  return value;
}
template <class V>
MEMWALL_DEVICE void store(V* p, V value) {
  *p = value;
}
// Stores of what no one will read soon.
template <class V>
MEMWALL_DEVICE void store_streaming(V* p, V value) {
  typename detail::Word<sizeof(V)>::type word;
  memcpy(&word, &value, sizeof(V));
  __stcs(reinterpret_cast<typename detail::Word<sizeof(V)>::type*>(p), word);
}
// Adds to a counter and returns what it held; what this thread wrote before is visible to whoever sees the
// sum.
MEMWALL_DEVICE unsigned fetch_add(unsigned* counter, unsigned value) {
  __threadfence();
  const unsigned before = atomicAdd(counter, value);
  __threadfence();
  return before;
}
#else
template <class V>
MEMWALL_DEVICE V load(const V* p) {
  HostThread::current()->reads(p, sizeof(V), false);
  return *p;
}
template <class V>
MEMWALL_DEVICE V load_streaming(const V* p) {
  HostThread::current()->reads(p, sizeof(V), true);
  return *p;
}
template <class V>
MEMWALL_DEVICE void store(V* p, V value) {
  HostThread::current()->writes(p, sizeof(V));
  *p = value;
}
template <class V>
MEMWALL_DEVICE void store_streaming(V* p, V value) {
  store(p, value);
}
MEMWALL_DEVICE unsigned fetch_add(unsigned* counter, unsigned value) {
  return std::atomic_ref<unsigned>(*counter).fetch_add(value);
}
#endif

// 16 bytes from global to shared memory, both aligned, past the registers (cp.async, sm_80 and later; a plain
// copy before). What a thread copied it may read after wait_copies, what others copied after sync_threads
// too. wait_copies<N>: until all but the N last committed groups are there.
#if defined(__CUDACC__) && defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
MEMWALL_DEVICE void copy_async_16(void* shared, const void* global) {
  const auto to = static_cast<unsigned>(__cvta_generic_to_shared(shared));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(global) : "memory");
}
MEMWALL_DEVICE void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int N>
MEMWALL_DEVICE void wait_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}
#elif defined(__CUDACC__)
MEMWALL_DEVICE void copy_async_16(void* shared, const void* global) {
  *static_cast<Vec16*>(shared) = *static_cast<const Vec16*>(global);
}
MEMWALL_DEVICE void commit_copies() {}
template <int N>
MEMWALL_DEVICE void wait_copies() {}
#else
MEMWALL_DEVICE void copy_async_16(void* shared, const void* global) {
  HostThread::current()->reads(global, 16, true);
  HostThread::current()->copy_async(shared, global, 16);
}
MEMWALL_DEVICE void commit_copies() { HostThread::current()->commit_copies(); }
template <int N>
MEMWALL_DEVICE void wait_copies() {
  HostThread::current()->wait_copies(N);
}
#endif

// --- numbers ----------------------------------------------------------------------------------------------

#ifdef __CUDACC__
MEMWALL_DEVICE float widen(float value) { return value; }
MEMWALL_DEVICE float widen(Half value) { return __half2float(__ushort_as_half(value.bits)); }
MEMWALL_DEVICE float widen(BFloat16 value) {
  return __uint_as_float(static_cast<unsigned>(value.bits) << 16);
}
MEMWALL_DEVICE void narrow(float value, float* to) { *to = value; }
MEMWALL_DEVICE void narrow(float value, Half* to) { to->bits = __half_as_ushort(__float2half_rn(value)); }
MEMWALL_DEVICE void narrow(float value, BFloat16* to) {
  // Round to nearest even; a NaN stays one.
  const unsigned bits = __float_as_uint(value);
  to->bits =
      static_cast<std::uint16_t>(value != value ? 0x7FC0U : (bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16);
}
MEMWALL_DEVICE float exponential(float x) { return __expf(x); }
MEMWALL_DEVICE float reciprocal_root(float x) { return rsqrtf(x); }
MEMWALL_DEVICE float bits_as_float(std::uint32_t bits) { return __uint_as_float(bits); }
MEMWALL_DEVICE std::uint32_t float_as_bits(float value) { return __float_as_uint(value); }
// Two halves of a word. The hardware converts them in one instruction each.
MEMWALL_DEVICE Pair widen_halves(std::uint32_t word) {
  const float2 both = __half22float2(*reinterpret_cast<const __half2*>(&word));
  return {both.x, both.y};
}
#else
MEMWALL_DEVICE float widen(float value) { return value; }
MEMWALL_DEVICE float widen(Half value) { return cpu::f16_to_f32(value.bits); }
MEMWALL_DEVICE float widen(BFloat16 value) { return cpu::bf16_to_f32(value.bits); }
MEMWALL_DEVICE void narrow(float value, float* to) { *to = value; }
MEMWALL_DEVICE void narrow(float value, Half* to) { to->bits = cpu::f32_to_f16(value); }
MEMWALL_DEVICE void narrow(float value, BFloat16* to) { to->bits = cpu::f32_to_bf16(value); }
MEMWALL_DEVICE float exponential(float x) { return std::exp(x); }
MEMWALL_DEVICE float reciprocal_root(float x) { return 1.0F / std::sqrt(x); }
MEMWALL_DEVICE float bits_as_float(std::uint32_t bits) { return std::bit_cast<float>(bits); }
MEMWALL_DEVICE std::uint32_t float_as_bits(float value) { return std::bit_cast<std::uint32_t>(value); }
MEMWALL_DEVICE Pair widen_halves(std::uint32_t word) {
  return {cpu::f16_to_f32(static_cast<std::uint16_t>(word)),
          cpu::f16_to_f32(static_cast<std::uint16_t>(word >> 16))};
}
#endif
MEMWALL_DEVICE Pair widen_bfloats(std::uint32_t word) {
  return {bits_as_float(word << 16), bits_as_float(word & 0xFFFF0000U)};
}

// --- arithmetic on two halves of a word, and widening by it ------------------------------------------------

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
// What other blocks of the same launch may have written: past this multiprocessor's own cache.
MEMWALL_DEVICE float load_fresh(const float* p) { return __ldcg(p); }
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
MEMWALL_DEVICE float load_fresh(const float* p) { return load(p); }
#endif

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
  const std::uint32_t odd = ((word & 0x7F007F00U) >> 1) | (word & 0x80008000U);
  const std::uint32_t even_bytes = word << 8;
  const std::uint32_t even = ((even_bytes & 0x7F007F00U) >> 1) | (even_bytes & 0x80008000U);
  const Pair a = widen_halves(multiply_halves(even, k256));
  const Pair b = widen_halves(multiply_halves(odd, k256));
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

// --- for rows, routers and streams ------------------------------------------------------------------------

// Before a loop that the compiler shall leave as it is.
#ifdef __CUDACC__
#define MEMWALL_ROLLED _Pragma("unroll 1")
#else
#define MEMWALL_ROLLED
#endif

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

// The largest and the least word over the warp, for every lane; one instruction from sm_80 on.
#if defined(__CUDACC__) && defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
MEMWALL_DEVICE std::uint32_t warp_max_word(std::uint32_t word) {
  return __reduce_max_sync(0xFFFFFFFFU, word);
}
MEMWALL_DEVICE std::uint32_t warp_min_word(std::uint32_t word) {
  return __reduce_min_sync(0xFFFFFFFFU, word);
}
#else
MEMWALL_DEVICE std::uint32_t warp_max_word(std::uint32_t word) {
  MEMWALL_UNROLL
  for (unsigned mask = kWarp / 2; mask > 0; mask /= 2) {
    const std::uint32_t other = shuffle_xor(word, mask);
    word = other > word ? other : word;
  }
  return word;
}
MEMWALL_DEVICE std::uint32_t warp_min_word(std::uint32_t word) { return ~warp_max_word(~word); }
#endif

// --- tensor cores, and what attention needs besides -------------------------------------------------------

// Four bytes picked from the eight of (b, a), a's lowest being byte 0; a selector's nibble names one.
#ifdef __CUDACC__
MEMWALL_DEVICE std::uint32_t pick_bytes(std::uint32_t a, std::uint32_t b, std::uint32_t selector) {
  return __byte_perm(a, b, selector);
}
// Adds to a counter in shared memory.
MEMWALL_DEVICE void add_shared(unsigned* counter, unsigned value) { atomicAdd(counter, value); }
MEMWALL_DEVICE unsigned count_bits(std::uint32_t bits) { return static_cast<unsigned>(__popc(bits)); }
#else
MEMWALL_DEVICE std::uint32_t pick_bytes(std::uint32_t a, std::uint32_t b, std::uint32_t selector) {
  const std::uint64_t both = (static_cast<std::uint64_t>(b) << 32) | a;
  std::uint32_t picked = 0;
  for (unsigned i = 0; i < 4; ++i) {
    const std::uint64_t byte = both >> (8 * ((selector >> (4 * i)) & 7U)) & 0xFFU;
    picked |= static_cast<std::uint32_t>(byte) << (8 * i);
  }
  return picked;
}
MEMWALL_DEVICE void add_shared(unsigned* counter, unsigned value) {
  std::atomic_ref<unsigned>(*counter).fetch_add(value, std::memory_order_relaxed);
}
MEMWALL_DEVICE unsigned count_bits(std::uint32_t bits) { return static_cast<unsigned>(std::popcount(bits)); }
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
// Two halves {sign, magnitude} out of the upper bytes of x's half words: f8 values times 2^-8, exactly.
MEMWALL_DEVICE std::uint32_t halves_of_f8(std::uint32_t x) {
  return ((x & 0x7F007F00U) >> 1) | (x & 0x80008000U);
}

template <class T>
constexpr bool kIsBrain = false;
template <>
constexpr bool kIsBrain<BFloat16> = true;

// Two floats as one word of T, the first in the lower half.
template <class T>
MEMWALL_DEVICE std::uint32_t pack(float lo, float hi) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  if constexpr (sizeof(T) == 2) {
    std::uint32_t word;
    if constexpr (kIsBrain<T>) {
      asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(hi), "f"(lo));
    } else {
      asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(hi), "f"(lo));
    }
    return word;
  }
#endif
  T a;
  T b;
  narrow(lo, &a);
  narrow(hi, &b);
  return static_cast<std::uint32_t>(b.bits) << 16 | a.bits;
}
template <class T>
MEMWALL_DEVICE Pair unpack(std::uint32_t word) {
  if constexpr (kIsBrain<T>) return widen_bfloats(word);
  return widen_halves(word);
}

#ifndef __CUDACC__
namespace detail {
// What the lanes of a warp show each other: each brings a row and sees all.
template <std::size_t Words, class See>
void show_warp(const std::uint64_t (&own)[Words], See see) {
  see(reinterpret_cast<const std::uint64_t(*)[Words]>(HostThread::current()->show(own, Words)));
}
}  // namespace detail
#endif

// c += a b over the warp, a of 16 x 16, b of 16 x 8, T (Half, BFloat16), summed in f32. Lane 4 g + t holds
//   a[0]: row g, columns 2 t and 2 t + 1; a[1]: row g + 8; a[2] and a[3]: 8 columns further;
//   b0: column g, rows 2 t and 2 t + 1; b1: 8 rows further;
//   c[0] and c[1]: row g, columns 2 t and 2 t + 1; c[2] and c[3]: row g + 8.
// bf16 from sm_80 on: before, there is no such instruction, and kernels that use it are not launched.
template <class T>
MEMWALL_DEVICE void multiply_tile(float (&c)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                                  std::uint32_t b1) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  if constexpr (kIsBrain<T>) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  } else {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  }
#elif defined(__CUDACC__)
  if constexpr (!kIsBrain<T>) {
    asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(b0));
    asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[2]), "r"(a[3]), "r"(b1));
  }
#else
  const std::uint64_t own[6] = {a[0], a[1], a[2], a[3], b0, b1};
  detail::show_warp(own, [&](const auto& shown) {
    const unsigned row = lane() / 4;
    const unsigned column = lane() % 4 * 2;
    for (unsigned i = 0; i < 4; ++i) {
      for (unsigned k = 0; k < 16; k += 2) {
        const auto& of_row = shown[row * 4 + k % 8 / 2];
        const auto& of_column = shown[(column + i % 2) * 4 + k % 8 / 2];
        const Pair x = unpack<T>(static_cast<std::uint32_t>(of_row[k / 8 * 2 + i / 2]));
        const Pair w = unpack<T>(static_cast<std::uint32_t>(of_column[4 + k / 8]));
        c[i] += x.lo * w.lo + x.hi * w.hi;
      }
    }
  });
#endif
}

// The transpose of 8 x 8 half words over the warp: lane 4 g + t brings columns 2 t and 2 t + 1 of row g, and
// gets rows 2 t and 2 t + 1 of column g.
MEMWALL_DEVICE std::uint32_t transpose_tile(std::uint32_t word) {
#ifdef __CUDACC__
  std::uint32_t turned;
  asm("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(turned) : "r"(word));
  return turned;
#else
  const std::uint64_t own[1] = {word};
  std::uint32_t turned = 0;
  detail::show_warp(own, [&](const auto& shown) {
    for (unsigned i = 0; i < 2; ++i) {
      const std::uint64_t row = shown[(lane() % 4 * 2 + i) * 4 + lane() / 8][0];
      turned |= static_cast<std::uint32_t>(row >> (16 * (lane() / 4 % 2)) & 0xFFFFU) << (16 * i);
    }
  });
  return turned;
#endif
}

// Four 8 x 8 matrices of half words from shared memory: lane 8 m + r brings the address of row r of matrix m,
// 16 bytes, aligned; lane 4 g + t gets in word[m] columns 2 t and 2 t + 1 of row g or, `Transposed`, rows 2 t
// and 2 t + 1 of column g.
template <bool Transposed>
MEMWALL_DEVICE void load_tiles(std::uint32_t (&word)[4], const std::byte* row) {
#ifdef __CUDACC__
  const auto from = static_cast<unsigned>(__cvta_generic_to_shared(row));
  if constexpr (Transposed) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(word[0]), "=r"(word[1]), "=r"(word[2]), "=r"(word[3])
                 : "r"(from)
                 : "memory");
  } else {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(word[0]), "=r"(word[1]), "=r"(word[2]), "=r"(word[3])
                 : "r"(from)
                 : "memory");
  }
#else
  const std::uint64_t own[1] = {reinterpret_cast<std::uintptr_t>(row)};
  detail::show_warp(own, [&](const auto& shown) {
    for (unsigned m = 0; m < 4; ++m) {
      word[m] = 0;
      for (unsigned i = 0; i < 2; ++i) {
        const unsigned of_row = Transposed ? lane() % 4 * 2 + i : lane() / 4;
        const unsigned column = Transposed ? lane() / 4 : lane() % 4 * 2 + i;
        const auto* halves = reinterpret_cast<const std::uint16_t*>(shown[8 * m + of_row][0]);
        word[m] |= static_cast<std::uint32_t>(halves[column]) << (16 * i);
      }
    }
  });
#endif
}

}  // namespace memwall::cuda
