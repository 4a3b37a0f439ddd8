// cuBLASLt: the algorithms that its heuristics propose for a problem.
#pragma once

#include <cublasLt.h>

#include <vector>

#include "cuda/module/library.h"
#include "cuda/module/stream.h"

namespace memwall::cuda {

// A problem as cuBLASLt knows it, and its algorithms, the most promising one first.
class LtPlan {
 public:
  // No arms where the library, or this card, has no algorithm for it. The library is open.
  LtPlan(cublasLtHandle_t handle, const GemmProblem& problem, const ArchLimits& arch);

  // Ids count from 0.
  const std::vector<GemmArm>& arms() const { return arms_; }
  // Asynchronous, and captured where the stream is.
  void run(cublasLtHandle_t handle, int id, const GemmOperands& operands, const Stream& stream);

 private:
  void describe(const GemmProblem& problem);
  void ask(cublasLtHandle_t handle, const ArchLimits& arch);

  ScalarType type_;
  const CublasFunctions* call_ = &cublas_library().call;
  LibraryHandle<cublasLtMatmulDesc_t> operation_{call_->cublasLtMatmulDescDestroy};
  LibraryHandle<cublasLtMatrixLayout_t> w_{call_->cublasLtMatrixLayoutDestroy};
  LibraryHandle<cublasLtMatrixLayout_t> x_{call_->cublasLtMatrixLayoutDestroy};
  LibraryHandle<cublasLtMatrixLayout_t> y_{call_->cublasLtMatrixLayoutDestroy};
  std::vector<cublasLtMatmulAlgo_t> algorithms_;
  std::vector<GemmArm> arms_;
};

}  // namespace memwall::cuda
