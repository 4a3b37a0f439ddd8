// Bulk copies from global to shared memory (cp.async.bulk, sm_90 and later) and the barriers in shared memory
// that count their bytes (mbarrier): PTX ISA, "Data Movement and Conversion Instructions: cp.async.bulk" and
// "Parallel Synchronization and Communication Instructions: mbarrier". One thread asks for a whole chunk; no
// register and no other thread is busy until it is there. Kernels that use them are compiled for every
// architecture and trap on those that have none: there they are not launched.
//
// A barrier goes through phases, 0, 1, 2...; a phase ends when as many threads as it was made for have
// arrived and as many bytes as they expect have too.
#pragma once

#include "kernels/cuda/platform.cuh"

namespace memwall::cuda {

struct alignas(8) CopyBarrier {
  std::uint64_t state;
};

#ifdef __CUDACC__
namespace detail {
MEMWALL_DEVICE unsigned shared_address(const void* shared) {
  return static_cast<unsigned>(__cvta_generic_to_shared(shared));
}
}  // namespace detail
#endif
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
#define MEMWALL_BULK_COPIES
#endif

// Makes a barrier of `arrivals` threads. One thread does, once, and calls fence_copies before a copy and
// sync_threads before another thread uses it.
MEMWALL_DEVICE void make_barrier(CopyBarrier* barrier, unsigned arrivals) {
#ifdef MEMWALL_BULK_COPIES
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(detail::shared_address(barrier)), "r"(arrivals)
               : "memory");
#elif defined(__CUDACC__)
  __trap();
#else
  barrier->state = HostThread::current()->make_barrier(barrier, arrivals);
#endif
}

// What this thread, and those that it has met, did to shared memory comes before the copies that it asks for
// from now on: these go another way (the async proxy), which nothing else orders.
MEMWALL_DEVICE void fence_copies() {
#ifdef MEMWALL_BULK_COPIES
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#elif defined(__CUDACC__)
  __trap();
#else
  HostThread::current()->fence_copies();
#endif
}

// Arrives, and tells how many bytes will: exactly those of the copies to this barrier in this phase, less
// than 1 MiB.
MEMWALL_DEVICE void expect_bytes(CopyBarrier* barrier, unsigned bytes) {
#ifdef MEMWALL_BULK_COPIES
  asm volatile(
      "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(detail::shared_address(barrier)),
      "r"(bytes)
      : "memory");
#elif defined(__CUDACC__)
  __trap();
#else
  HostThread::current()->expect_bytes(barrier, barrier->state, bytes);
#endif
}

// Asks for `bytes`, a multiple of 16, both addresses too. They arrive at the barrier.
MEMWALL_DEVICE void copy_bulk(void* shared, const void* global, unsigned bytes, CopyBarrier* barrier) {
#ifdef MEMWALL_BULK_COPIES
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
          detail::shared_address(shared)),
      "l"(__cvta_generic_to_global(global)), "r"(bytes), "r"(detail::shared_address(barrier))
      : "memory");
#elif defined(__CUDACC__)
  __trap();
#else
  HostThread::current()->copy_bulk(shared, global, bytes, barrier, barrier->state);
#endif
}

// Until the barrier's phase of that parity (of its number) has ended: then this thread sees its bytes. A
// phase that never ends stops the kernel instead of the machine: after 2^33 cycles, some five seconds.
MEMWALL_DEVICE void wait_for_bytes(CopyBarrier* barrier, unsigned parity) {
#ifdef MEMWALL_BULK_COPIES
  long long since = 0;
  MEMWALL_NO_UNROLL
  for (;;) {
    unsigned done = 0;
    asm volatile(
        "{\n"
        ".reg .pred done;\n"
        "mbarrier.try_wait.parity.shared::cta.b64 done, [%1], %2;\n"
        "selp.u32 %0, 1, 0, done;\n"
        "}"
        : "=r"(done)
        : "r"(detail::shared_address(barrier)), "r"(parity)
        : "memory");
    if (done != 0) return;
    const long long now = clock64();
    if (since == 0) since = now;
    if (now - since > 1LL << 33) __trap();
  }
#elif defined(__CUDACC__)
  __trap();
#else
  HostThread::current()->wait_for_bytes(barrier, barrier->state, parity);
#endif
}

#undef MEMWALL_BULK_COPIES

}  // namespace memwall::cuda
