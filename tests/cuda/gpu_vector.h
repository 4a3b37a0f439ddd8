// Vectors that begin where a GPU's allocations do, so that the sectors a kernel touches are those it would
// touch there: the host's own begin at any 16 bytes.
#pragma once

#include <cstddef>
#include <new>
#include <vector>

namespace memwall::cuda {

template <class T>
struct GpuAllocator {
  using value_type = T;
  static constexpr std::align_val_t kAlignment{256};

  GpuAllocator() = default;
  template <class U>
  GpuAllocator(const GpuAllocator<U>&) {}  // NOLINT: allocators convert

  T* allocate(std::size_t count) { return static_cast<T*>(::operator new(count * sizeof(T), kAlignment)); }
  void deallocate(T* memory, std::size_t) { ::operator delete(memory, kAlignment); }

  template <class U>
  bool operator==(const GpuAllocator<U>&) const {
    return true;
  }
};

template <class T>
using GpuVector = std::vector<T, GpuAllocator<T>>;

}  // namespace memwall::cuda
