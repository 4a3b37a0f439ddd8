// cuBLAS: GemmEx, and for one row its matrix-vector products.
#pragma once

#include <vector>

#include "cuda/module/handle.h"
#include "cuda/module/library.h"
#include "cuda/module/stream.h"

namespace memwall::cuda {

class Cublas {
 public:
  // The library is open.
  Cublas(const Stream& stream, const ArchLimits& arch);

  // Those for f32, f16 and bf16, with ids from 0; none for other types.
  static std::vector<GemmArm> arms(const GemmProblem& problem);
  // Asynchronous, and captured where the stream is.
  void gemm(const GemmProblem& problem, int id, const GemmOperands& operands);

 private:
  void gemv(const GemmProblem& problem, const GemmOperands& operands);

  const CublasFunctions& call_ = cublas_library().call;
  LibraryHandle<cublasHandle_t> handle_{call_.cublasDestroy_v2};
  DeviceMemory workspace_;
};

}  // namespace memwall::cuda
