// What the module's two matrix libraries share: their checks, their types, and the problem as they see it.
#pragma once

#include <cublas_v2.h>
#include <library_types.h>

#include <cstdint>

#include "bench/unsupported.h"
#include "cuda/module/check.h"
#include "cuda/runtime.h"

namespace memwall::cuda {

inline void check(cublasStatus_t status, const char* file, int line, const char* call) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  (void)cudaGetLastError();
  if (status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_ARCH_MISMATCH)
    fail<UnsupportedError>(file, line, call, cublasGetStatusString(status), static_cast<int>(status));
  fail(file, line, call, cublasGetStatusString(status), static_cast<int>(status));
}

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
