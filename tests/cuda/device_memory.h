// The memory that kernels may touch on a fake GPU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <vector>

#include "tests/cuda/guarded.h"

namespace memwall::cuda {

struct MemoryRange {
  void* data = nullptr;
  std::size_t bytes = 0;
};

class DeviceMemory {
 public:
  void* allocate(std::int64_t bytes);
  // Returns the bytes that were allocated. Memory that was released is not given out again soon, so that a
  // use of it is found out.
  std::int64_t release(void* memory) noexcept;

  bool empty() const { return blocks_.empty(); }
  // What is allocated.
  std::vector<MemoryRange> ranges() const;

  // Throws KernelError unless [address, address + bytes) lies in one allocation; `what` is its beginning:
  // "a kernel reads".
  void check(const void* address, std::size_t bytes, const char* what) const;
  // Throws KernelError where someone wrote beyond an allocation, one already released included.
  void check_guards();

 private:
  static constexpr std::size_t kKeptBytes = std::size_t{16} << 20;

  [[noreturn]] void fail(const std::byte* address, std::size_t bytes, const char* what) const;

  std::map<const std::byte*, GuardedBytes> blocks_;  // by data()
  std::deque<GuardedBytes> released_;
  std::size_t released_bytes_ = 0;
  bool damaged_ = false;                           // what was found when a block was released
  mutable const std::byte* last_begin_ = nullptr;  // of the allocation that check() last found
  mutable const std::byte* last_end_ = nullptr;
};

}  // namespace memwall::cuda
