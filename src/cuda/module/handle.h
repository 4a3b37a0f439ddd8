// Owners of CUDA's handles.
#pragma once

#include <utility>

#include "cuda/module/check.h"

namespace memwall::cuda {

// Move-only; Destroy gives the handle back, and its failure is let go.
template <class T, auto Destroy>
class Handle {
 public:
  Handle() = default;
  explicit Handle(T handle) : handle_(handle) {}
  Handle(Handle&& other) noexcept : handle_(std::exchange(other.handle_, T{})) {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle() {
    if (handle_ != T{}) let_go(Destroy(handle_));
  }

  T get() const { return handle_; }
  // For a call that makes one; this owns none yet.
  T* out() { return &handle_; }

 private:
  T handle_{};
};

using DeviceMemory = Handle<void*, cudaFree>;

}  // namespace memwall::cuda
