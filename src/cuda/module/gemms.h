// Both libraries' ways to compute a problem, found once and kept.
#pragma once

#include <map>
#include <tuple>
#include <vector>

#include "cuda/module/cublas.h"
#include "cuda/module/cublaslt.h"
#include "cuda/module/launched.h"

namespace memwall::cuda {

class Gemms {
 public:
  Gemms(const Stream& stream, const ArchLimits& arch);

  const std::vector<GemmArm>& arms(const GemmProblem& problem);
  // Throws where arms() did not name the arm.
  void run(const GemmProblem& problem, int arm, const GemmOperands& operands, Launched& launched);

 private:
  using Key = std::tuple<ScalarType, std::int64_t, std::int64_t, std::int64_t, std::int64_t>;
  struct Plan {
    int first_lt = 0;  // arms before it are cuBLAS's
    LtPlan lt;
    std::vector<GemmArm> arms;
  };
  Plan& plan(const GemmProblem& problem);

  const Stream& stream_;
  ArchLimits arch_;
  Cublas cublas_;
  Handle<cublasLtHandle_t, cublasLtDestroy> lt_;
  std::map<Key, Plan> plans_;  // a plan's names stay where they are
};

}  // namespace memwall::cuda
