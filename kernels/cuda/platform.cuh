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

// The compute capability that this is compiled for; on the host, one with all there is.
#if defined(__CUDA_ARCH__)
constexpr int kCompiledMajor = __CUDA_ARCH__ / 100;
constexpr int kCompiledMinor = __CUDA_ARCH__ / 10 % 10;
#else
constexpr int kCompiledMajor = 9;
constexpr int kCompiledMinor = 0;
#endif

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
// What other blocks of the same launch may have written: past this multiprocessor's own cache.
MEMWALL_DEVICE float load_fresh(const float* p) { return __ldcg(p); }
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
MEMWALL_DEVICE float load_fresh(const float* p) { return load(p); }
MEMWALL_DEVICE unsigned fetch_add(unsigned* counter, unsigned value) {
  return std::atomic_ref<unsigned>(*counter).fetch_add(value);
}
#endif

// Adds to a counter in shared memory.
#ifdef __CUDACC__
MEMWALL_DEVICE void add_shared(unsigned* counter, unsigned value) { atomicAdd(counter, value); }
#else
MEMWALL_DEVICE void add_shared(unsigned* counter, unsigned value) {
  std::atomic_ref<unsigned>(*counter).fetch_add(value, std::memory_order_relaxed);
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

}  // namespace memwall::cuda
