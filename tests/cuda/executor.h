// Runs kernels of kernels/cuda on the host, watching them: blocks one after another, a block's threads as
// fibers that meet where the kernel says so.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels/cuda/geometry.h"

namespace memwall::cuda {

// A kernel did what a GPU forbids, or leaves undefined.
class KernelError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

enum class Order : std::uint8_t { forward, backward, shuffled };

struct ExecutorSettings {
  Order blocks = Order::forward;
  Order threads = Order::forward;
  std::uint64_t seed = 1;  // of shuffled orders
  ArchLimits arch;
};

// What a launch moved to and from global memory, as a GPU would: the k-th access of each lane of a warp
// between two meetings of its threads is one instruction, which moves the 32-byte sectors its lanes touch.
struct Traffic {
  std::int64_t bytes_read = 0;
  std::int64_t sectors_read = 0;
  std::int64_t streamed_bytes = 0;  // of those, through load_streaming and copy_async_16
  std::int64_t streamed_sectors = 0;
  std::int64_t bytes_written = 0;
  std::int64_t sectors_written = 0;
};

class Executor {
 public:
  explicit Executor(ExecutorSettings settings = {}) : settings_(settings) {}

  // Throws KernelError.
  template <class Kernel>
  void run(const Geometry& geometry, const typename Kernel::Params& params) {
    run(geometry, Kernel::kThreads, [&](std::byte* shared) { Kernel::run(params, shared); });
  }
  void run(const Geometry& geometry, unsigned threads, const std::function<void(std::byte*)>& body);

  const Traffic& traffic() const { return traffic_; }
  void forget_traffic() { traffic_ = {}; }

  // Counts how often each byte of [begin, begin + bytes) is read by kernels from now on.
  void watch(const void* begin, std::size_t bytes);
  // The least and the largest count.
  struct ReadCounts {
    unsigned least = 0;
    unsigned most = 0;
  };
  ReadCounts watched() const;

  ExecutorSettings& settings() { return settings_; }

 private:
  friend class Block;
  ExecutorSettings settings_;
  Traffic traffic_;
  const std::byte* watch_begin_ = nullptr;
  std::vector<unsigned> watch_counts_;
};

}  // namespace memwall::cuda
