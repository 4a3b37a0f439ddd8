#include "cuda/module/gemms.h"

namespace memwall::cuda {

Gemms::Gemms(const Stream& stream, const ArchLimits& arch)
    : stream_(stream), arch_(arch), cublas_(stream, arch) {
  MEMWALL_CHECK(cublasLtCreate(lt_.out()));
}

Gemms::Plan& Gemms::plan(const GemmProblem& p) {
  const Key key{p.type, p.m, p.n, p.k, p.w_pitch};
  if (const auto known = plans_.find(key); known != plans_.end()) return known->second;
  std::vector<GemmArm> arms = Cublas::arms(p);
  const auto first_lt = static_cast<int>(arms.size());
  LtPlan lt(lt_.get(), p, arch_);
  for (const GemmArm& arm : lt.arms()) {
    arms.push_back(arm);
    arms.back().id = first_lt + arm.id;
  }
  return plans_.try_emplace(key, Plan{first_lt, std::move(lt), std::move(arms)}).first->second;
}

const std::vector<GemmArm>& Gemms::arms(const GemmProblem& problem) { return plan(problem).arms; }

void Gemms::run(const GemmProblem& problem, int arm, const GemmOperands& operands, Launched& launched) {
  Plan& known = plan(problem);
  if (arm < 0 || arm >= static_cast<int>(known.arms.size())) {
    throw RunError("no arm " + std::to_string(arm) + " of " + std::to_string(known.arms.size()) +
                   " for this matrix product");
  }
  if (arm < known.first_lt) {
    cublas_.gemm(problem, arm, operands);
  } else {
    known.lt.run(lt_.get(), arm - known.first_lt, operands, stream_);
  }
  launched.add(known.arms[static_cast<std::size_t>(arm)].name.c_str());
}

}  // namespace memwall::cuda
