// Both libraries' ways to compute a problem, found once and kept.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "cuda/module/cublas.h"
#include "cuda/module/cublaslt.h"
#include "cuda/module/matrix_library.h"

namespace memwall::cuda {

class Gemms final : public MatrixLibrary {
 public:
  // The library is open.
  Gemms(const Stream& stream, const ArchLimits& arch);

  // Where cuBLASLt fails to propose, one arm in place of its own, which says so when it is run.
  const std::vector<GemmArm>& arms(const GemmProblem& problem) override;
  void run(const GemmProblem& problem, int arm, const GemmOperands& operands, Launched& launched) override;

 private:
  using Key = std::tuple<ScalarType, std::int64_t, std::int64_t, std::int64_t, std::int64_t>;
  struct Plan {
    int first_lt = 0;          // arms before it are cuBLAS's
    std::optional<LtPlan> lt;  // none where it failed
    std::string why_no_lt;
    std::vector<GemmArm> arms;
  };
  Plan& plan(const GemmProblem& problem);

  const Stream& stream_;
  ArchLimits arch_;
  Cublas cublas_;
  LibraryHandle<cublasLtHandle_t> lt_{cublas_library().call.cublasLtDestroy};
  std::map<Key, Plan> plans_;  // a plan's names stay where they are
};

}  // namespace memwall::cuda
