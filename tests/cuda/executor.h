// Runs kernels of kernels/cuda on the host, watching them: blocks one after another, a block's threads as
// fibers that meet where the kernel says so.
//
// A launch throws KernelError for what a GPU forbids or leaves undefined:
// - geometry beyond the architecture's limits, and registers where settings tell them;
// - a barrier that not all threads of the block reach, those that have ended included; a shuffle, vote or
//   warp barrier that not all 32 lanes reach;
// - an access through platform.cuh at an address that is no multiple of its size, or beyond the memory the
//   launch may touch (touch_only);
// - a write beyond the block's shared memory: found when the block ends, by an address sanitizer at once;
// - an asynchronous copy that is misaligned, goes beyond shared memory, or is not waited for; of bulk copies
//   too a barrier that is not made, not fenced, written over, or does not get the bytes that it expects
//   (copy_barriers.h).
// Everything else shows in the results: shared memory that was never written is NaN; so is the target of an
// asynchronous copy until the wait that covers it; and results that depend on the order of blocks or threads
// differ from order to order (order.h). Races are found by tests/cuda/races.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <typeinfo>

#include "kernels/cuda/geometry.h"
#include "tests/cuda/traffic.h"

namespace memwall::cuda {

class DeviceMemory;

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
  // Registers a thread of the kernels of these names (kernel_name), as ptxas reports them. A kernel that is
  // not among them is taken to fit.
  std::map<std::string, int> registers{};
  bool count_traffic = true;  // false: faster
};

// A kernel's type: "memwall::cuda::ReadKernel<4>".
std::string kernel_name(const std::type_info& kernel);

// Whether a block of so many threads finds the registers it needs, which a warp gets in units of 256.
bool registers_fit(const ArchLimits& arch, unsigned threads, int registers_a_thread);

class Executor {
 public:
  explicit Executor(ExecutorSettings settings = {}) : settings_(std::move(settings)) {}

  // Throws KernelError, or what the kernel throws; the threads that have not ended then are unwound.
  template <class Kernel>
  void run(const Geometry& geometry, const typename Kernel::Params& params) {
    if (!settings_.registers.empty()) check_registers(kernel_name(typeid(Kernel)), Kernel::kThreads);
    run(geometry, Kernel::kThreads, [&](std::byte* shared) { Kernel::run(params, shared); });
  }
  void run(const Geometry& geometry, unsigned threads, const std::function<void(std::byte*)>& body);

  const Traffic& traffic() const { return counter_.traffic(); }
  void forget_traffic() { counter_.forget(); }

  // Counts how often each byte of [begin, begin + bytes) is read by kernels from now on.
  void watch(const void* begin, std::size_t bytes) { counter_.watch(begin, bytes); }
  using ReadCounts = memwall::cuda::ReadCounts;
  ReadCounts watched() const { return counter_.watched(); }

  // Launches from now on may touch that memory only; null: any. It must outlive them.
  void touch_only(const DeviceMemory* memory) { memory_ = memory; }

  ExecutorSettings& settings() { return settings_; }

 private:
  void check_registers(const std::string& kernel, unsigned threads) const;

  ExecutorSettings settings_;
  TrafficCounter counter_;
  const DeviceMemory* memory_ = nullptr;
};

}  // namespace memwall::cuda
