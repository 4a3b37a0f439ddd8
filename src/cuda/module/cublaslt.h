// cuBLASLt: the algorithms that its heuristics propose for a problem.
#pragma once

#include <cublasLt.h>

#include <vector>

#include "cuda/module/handle.h"
#include "cuda/module/library.h"
#include "cuda/module/stream.h"

namespace memwall::cuda {

// A problem as cuBLASLt knows it, and its algorithms, the most promising one first.
class LtPlan {
 public:
  // No arms where the library, or this card, has no algorithm for it.
  LtPlan(cublasLtHandle_t handle, const GemmProblem& problem, const ArchLimits& arch);

  // Ids count from 0.
  const std::vector<GemmArm>& arms() const { return arms_; }
  // Asynchronous, and captured where the stream is.
  void run(cublasLtHandle_t handle, int id, const GemmOperands& operands, const Stream& stream);

 private:
  void describe(const GemmProblem& problem);
  void ask(cublasLtHandle_t handle, const ArchLimits& arch);

  ScalarType type_;
  Handle<cublasLtMatmulDesc_t, cublasLtMatmulDescDestroy> operation_;
  Handle<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy> w_;
  Handle<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy> x_;
  Handle<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy> y_;
  std::vector<cublasLtMatmulAlgo_t> algorithms_;
  std::vector<GemmArm> arms_;
};

}  // namespace memwall::cuda
