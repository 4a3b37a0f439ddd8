#include "cuda/module/gemms.h"

namespace memwall::cuda {

Gemms::Gemms(const Stream& stream, const ArchLimits& arch)
    : stream_(stream), arch_(arch), cublas_(stream, arch) {
  MEMWALL_CHECK(cublas_library().call.cublasLtCreate(lt_.out()));
}

Gemms::Plan& Gemms::plan(const GemmProblem& p) {
  const Key key{p.type, p.m, p.n, p.k, p.w_pitch};
  if (const auto known = plans_.find(key); known != plans_.end()) return known->second;
  Plan plan;
  plan.arms = Cublas::arms(p);
  plan.first_lt = static_cast<int>(plan.arms.size());
  try {
    plan.lt.emplace(lt_.get(), p, arch_);
    for (const GemmArm& arm : plan.lt->arms()) {
      plan.arms.push_back(arm);
      plan.arms.back().id = plan.first_lt + arm.id;
    }
  } catch (const UnsupportedError& error) {
    (void)cudaGetLastError();
    plan.lt.reset();
    plan.why_no_lt = error.what();
    plan.arms.push_back({"cublasLt", 0, plan.first_lt});
  }
  return plans_.try_emplace(key, std::move(plan)).first->second;
}

const std::vector<GemmArm>& Gemms::arms(const GemmProblem& problem) { return plan(problem).arms; }

void Gemms::run(const GemmProblem& problem, int arm, const GemmOperands& operands, Launched& launched) {
  Plan& known = plan(problem);
  if (arm < 0 || arm >= static_cast<int>(known.arms.size())) {
    throw UnsupportedError("no arm " + std::to_string(arm) + " of " + std::to_string(known.arms.size()) +
                           " for this matrix product");
  }
  if (arm < known.first_lt) {
    cublas_.gemm(problem, arm, operands);
  } else if (known.lt) {
    known.lt->run(lt_.get(), arm - known.first_lt, operands, stream_);
  } else {
    throw UnsupportedError(known.why_no_lt);
  }
  launched.add(known.arms[static_cast<std::size_t>(arm)].name.c_str());
}

std::unique_ptr<MatrixLibrary> open_matrix_library(const Stream& stream, const ArchLimits& arch) {
  if (const std::string& why_not = cublas_library().why_not; !why_not.empty())
    throw UnsupportedError(why_not);
  return std::make_unique<Gemms>(stream, arch);
}

void read_library_versions(Versions& versions) {
  const CublasLibrary& library = cublas_library();
  versions.cublas = library.version;
  versions.cublasLt = library.lt_version;
  versions.no_cublas = library.why_not;
}

}  // namespace memwall::cuda
