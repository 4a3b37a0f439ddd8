// What a kernel's thread asks of its block, where kernels are compiled for the host: the tests' executor
// implements it. Never part of the program.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/geometry.h"

namespace memwall::cuda {

struct Index3 {
  unsigned x = 0;
  unsigned y = 0;
  unsigned z = 0;
};

class HostThread {
 public:
  virtual ~HostThread() = default;

  // The thread that runs; null outside a kernel.
  static HostThread*& current() {
    static thread_local HostThread* thread = nullptr;
    return thread;
  }

  unsigned index = 0;  // within the block
  Index3 block;
  Index3 grid;

  virtual void sync_threads() = 0;
  virtual void sync_warp() = 0;
  // The value that lane `from` of this warp brings to the same call; all lanes must come.
  virtual std::uint64_t exchange(std::uint64_t value, unsigned from) = 0;
  // A bit a lane of the warp.
  virtual std::uint32_t ballot(bool vote) = 0;
  // What all lanes of the warp bring to the same call, `words` each, one lane after the other; valid until
  // the warp meets again. None of these three orders what lanes do to memory.
  virtual const std::uint64_t* show(const std::uint64_t* own, std::size_t words) = 0;
  // Every access to global memory that goes through platform.cuh; `streaming` ones are read once by design.
  virtual void reads(const void* address, std::size_t bytes, bool streaming) = 0;
  virtual void writes(const void* address, std::size_t bytes) = 0;
  // Asynchronous copies: performed no earlier than the wait that covers them.
  virtual void copy_async(void* shared, const void* global, std::size_t bytes) = 0;
  virtual void commit_copies() = 0;
  virtual void wait_copies(int groups_left) = 0;
  // Bulk copies and their barriers (bulk_copy.cuh). The first returns what the barrier's memory must hold
  // from then on; the others take what it does hold. A copy counts as a streaming read too.
  virtual std::uint64_t make_barrier(const void* barrier, unsigned arrivals) = 0;
  virtual void fence_copies() = 0;
  virtual void expect_bytes(const void* barrier, std::uint64_t word, unsigned bytes) = 0;
  virtual void copy_bulk(void* shared, const void* global, std::size_t bytes, const void* barrier,
                         std::uint64_t word) = 0;
  virtual void wait_for_bytes(const void* barrier, std::uint64_t word, unsigned parity) = 0;
};

}  // namespace memwall::cuda
