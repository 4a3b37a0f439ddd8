#include "cuda/module/cublas.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

namespace memwall::cuda {
namespace {

constexpr int kGemmEx = 0;
constexpr int kGemv = 1;

constexpr float kOne = 1;
constexpr float kZero = 0;

}  // namespace

Cublas::Cublas(const Stream& stream, const ArchLimits& arch) {
  MEMWALL_CHECK(call_.cublasCreate_v2(handle_.out()));
  MEMWALL_CHECK(call_.cublasSetStream_v2(handle_.get(), stream.get()));
  // Our own, so that no call allocates, a captured one neither. cublasSetStream would reset it: after.
  const std::int64_t bytes = library_workspace_bytes(arch);
  MEMWALL_CHECK(cudaMalloc(workspace_.out(), static_cast<std::size_t>(bytes)));
  MEMWALL_CHECK(
      call_.cublasSetWorkspace_v2(handle_.get(), workspace_.get(), static_cast<std::size_t>(bytes)));
  // Sums in f32, the parts of a split sum too; f32 stays f32, not TF32.
  MEMWALL_CHECK(call_.cublasSetMathMode(
      handle_.get(),
      static_cast<cublasMath_t>(CUBLAS_DEFAULT_MATH | CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION)));
}

std::vector<GemmArm> Cublas::arms(const GemmProblem& problem) {
  if (problem.type == ScalarType::f8_e4m3 || problem.type == ScalarType::i8) return {};
  std::vector<GemmArm> arms = {{"cublas gemmEx", 0, kGemmEx}};
  if (problem.m == 1)
    arms.push_back({problem.type == ScalarType::f32 ? "cublas gemv" : "cublas gemvStridedBatched", 0, kGemv});
  return arms;
}

void Cublas::gemm(const GemmProblem& problem, int id, const GemmOperands& operands) {
  if (id == kGemv) return gemv(problem, operands);
  const LibraryTypes types = library_types(problem.type);
  MEMWALL_CHECK(call_.cublasGemmEx_64(handle_.get(), CUBLAS_OP_T, CUBLAS_OP_N, problem.n, problem.m,
                                      problem.k, &kOne, operands.w, types.in, problem.w_pitch, operands.x,
                                      types.in, problem.k, &kZero, operands.y, types.out, problem.n,
                                      types.compute, CUBLAS_GEMM_DEFAULT));
}

// A batch of one. The strided calls need no arrays of pointers in device memory.
void Cublas::gemv(const GemmProblem& p, const GemmOperands& operands) {
  const auto call = [&](auto function, auto element) {
    using T = decltype(element);
    return function(handle_.get(), CUBLAS_OP_T, p.k, p.n, &kOne, static_cast<const T*>(operands.w), p.w_pitch,
                    p.w_pitch * p.n, static_cast<const T*>(operands.x), 1, p.k, &kZero,
                    static_cast<T*>(operands.y), 1, p.n, 1);
  };
  if (p.type == ScalarType::f16) {
    MEMWALL_CHECK(call(call_.cublasHSHgemvStridedBatched_64, __half()));
  } else if (p.type == ScalarType::bf16) {
    MEMWALL_CHECK(call(call_.cublasTSTgemvStridedBatched_64, __nv_bfloat16()));
  } else {
    MEMWALL_CHECK(call_.cublasSgemv_v2_64(
        handle_.get(), CUBLAS_OP_T, p.k, p.n, &kOne, static_cast<const float*>(operands.w), p.w_pitch,
        static_cast<const float*>(operands.x), 1, &kZero, static_cast<float*>(operands.y), 1));
  }
}

}  // namespace memwall::cuda
