// What the module's two matrix libraries share: their checks, their types, and the problem as they see it.
#pragma once

#include <cublas_v2.h>
#include <library_types.h>

#include <cstdint>
#include <utility>

#include "cuda/module/check.h"
#include "cuda/module/cublas_library.h"
#include "cuda/runtime.h"

namespace memwall::cuda {

// Whatever the status, it costs the arm alone: UnsupportedError. Whether the device still answers, the
// library does not tell; CudaGpu asks it.
inline void check(cublasStatus_t status, const char* file, int line, const char* call) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  fail<UnsupportedError>(file, line, call, cublas_library().call.cublasGetStatusString(status),
                         static_cast<int>(status));
}

// Made and given back by functions that are known once the library is open.
template <class T>
class LibraryHandle {
 public:
  using Destroy = cublasStatus_t(T);
  explicit LibraryHandle(Destroy* destroy) : destroy_(destroy) {}
  LibraryHandle(LibraryHandle&& other) noexcept
      : handle_(std::exchange(other.handle_, T{})), destroy_(other.destroy_) {}
  LibraryHandle& operator=(LibraryHandle&& other) noexcept {
    std::swap(handle_, other.handle_);
    std::swap(destroy_, other.destroy_);
    return *this;
  }
  LibraryHandle(const LibraryHandle&) = delete;
  LibraryHandle& operator=(const LibraryHandle&) = delete;
  ~LibraryHandle() {
    if (handle_ != T{}) let_go(destroy_(handle_));
  }

  T get() const { return handle_; }
  // For a call that makes one; this owns none yet.
  T* out() { return &handle_; }

 private:
  T handle_{};
  Destroy* destroy_;
};

// The libraries are column-major: row-major y[m, n] = x[m, k] w[n, k]^T is, column by column, the n x m
// matrix w x^T. Their A is w, read transposed from k x n columns w_pitch apart; their B is x, k x m; their C
// is y.
struct LibraryTypes {
  cudaDataType_t in = CUDA_R_16F;
  cudaDataType_t out = CUDA_R_16F;
  cudaDataType_t scale = CUDA_R_32F;  // alpha's and beta's
  cublasComputeType_t compute = CUBLAS_COMPUTE_32F;
};

inline LibraryTypes library_types(ScalarType type) {
  LibraryTypes types;
  switch (type) {
    case ScalarType::f32:
      types.in = types.out = CUDA_R_32F;
      break;
    case ScalarType::f16:
      break;
    case ScalarType::bf16:
      types.in = types.out = CUDA_R_16BF;
      break;
    case ScalarType::f8_e4m3:
      types.in = CUDA_R_8F_E4M3;
      types.out = CUDA_R_16BF;
      break;
    case ScalarType::i8:
      types.in = CUDA_R_8I;
      types.out = types.scale = CUDA_R_32I;
      types.compute = CUBLAS_COMPUTE_32I;
      break;
  }
  return types;
}

// Workspace that NVIDIA advises: 32 MiB on Hopper and later, 4 MiB before (cuBLAS documentation, 2.1.4
// "Results Reproducibility" and cublasSetWorkspace).
inline std::int64_t library_workspace_bytes(const ArchLimits& arch) {
  return std::int64_t{arch.major >= 9 ? 32 : 4} << 20;
}

}  // namespace memwall::cuda
