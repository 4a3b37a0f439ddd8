// cuBLAS and cuBLASLt, opened when they are first asked for: nothing links them, so that the module loads
// where they are not.
#pragma once

#include <cublasLt.h>
#include <cublas_v2.h>

#include <string>

namespace memwall::cuda {

// What memwall calls of cuBLAS 12 and later, by the names of their symbols.
#define MEMWALL_CUBLAS_FUNCTIONS(F) \
  F(cublasCreate_v2)                \
  F(cublasDestroy_v2)               \
  F(cublasGetProperty)              \
  F(cublasGetStatusString)          \
  F(cublasSetStream_v2)             \
  F(cublasSetWorkspace_v2)          \
  F(cublasSetMathMode)              \
  F(cublasGemmEx_64)                \
  F(cublasSgemv_v2_64)              \
  F(cublasHSHgemvStridedBatched_64) \
  F(cublasTSTgemvStridedBatched_64)
#define MEMWALL_CUBLASLT_FUNCTIONS(F)     \
  F(cublasLtCreate)                       \
  F(cublasLtDestroy)                      \
  F(cublasLtGetVersion)                   \
  F(cublasLtMatmul)                       \
  F(cublasLtMatmulAlgoConfigGetAttribute) \
  F(cublasLtMatmulAlgoGetHeuristic)       \
  F(cublasLtMatmulDescCreate)             \
  F(cublasLtMatmulDescDestroy)            \
  F(cublasLtMatmulDescSetAttribute)       \
  F(cublasLtMatmulPreferenceCreate)       \
  F(cublasLtMatmulPreferenceDestroy)      \
  F(cublasLtMatmulPreferenceSetAttribute) \
  F(cublasLtMatrixLayoutCreate)           \
  F(cublasLtMatrixLayoutDestroy)

struct CublasFunctions {
#define MEMWALL_POINTER(name) decltype(&::name) name = nullptr;
  MEMWALL_CUBLAS_FUNCTIONS(MEMWALL_POINTER)
  MEMWALL_CUBLASLT_FUNCTIONS(MEMWALL_POINTER)
#undef MEMWALL_POINTER
};

// The libraries of this process. They are opened at the first call, and never closed: CUDA's leave exit
// handlers behind.
struct CublasLibrary {
  std::string why_not;  // empty: they are open
  CublasFunctions call;
  std::string version;     // "13.1.0"
  std::string lt_version;  //
};
const CublasLibrary& cublas_library();

}  // namespace memwall::cuda
