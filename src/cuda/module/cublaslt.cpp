#include "cuda/module/cublaslt.h"

#include <array>
#include <string>

#include "cublaslt_names.h"  // made by cmake/Cuda.cmake from cublasLt.h

namespace memwall::cuda {
namespace {

constexpr int kHeuristics = 16;

// Eight-bit floats came with Ada (8.9). They need a transposed A, which ours is, and rows and columns of
// whole 16 bytes (cuBLAS documentation, cublasLtMatmul, "To use FP8 kernels").
bool allowed(const GemmProblem& p, const ArchLimits& arch) {
  switch (p.type) {
    case ScalarType::f32:
      return false;  // GemmEx's business
    case ScalarType::f16:
    case ScalarType::bf16:
      return true;
    case ScalarType::f8_e4m3:
      return arch.major * 10 + arch.minor >= 89 && p.k % 16 == 0 && p.w_pitch % 16 == 0 && p.n % 16 == 0;
    case ScalarType::i8:
      return p.k % 16 == 0 && p.w_pitch % 16 == 0 && p.n % 4 == 0;
  }
  return false;
}

const CublasFunctions& functions() { return cublas_library().call; }

template <class T>
void set(cublasLtMatmulDesc_t operation, cublasLtMatmulDescAttributes_t attribute, const T& value) {
  MEMWALL_CHECK(functions().cublasLtMatmulDescSetAttribute(operation, attribute, &value, sizeof(T)));
}

template <class T>
void set(cublasLtMatmulPreference_t preference, cublasLtMatmulPreferenceAttributes_t attribute,
         const T& value) {
  MEMWALL_CHECK(functions().cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value, sizeof(T)));
}

// 0 where the algorithm has no such attribute.
std::uint32_t get(const cublasLtMatmulAlgo_t& algorithm, cublasLtMatmulAlgoConfigAttributes_t attribute) {
  std::uint32_t value = 0;
  std::size_t written = 0;
  const cublasStatus_t status = functions().cublasLtMatmulAlgoConfigGetAttribute(
      &algorithm, attribute, &value, sizeof(value), &written);
  return status == CUBLAS_STATUS_SUCCESS ? value : 0;
}

std::string shape(const LtName* names, std::size_t count, std::uint32_t id) {
  for (std::size_t i = 0; i < count; ++i)
    if (names[i].id == id) return names[i].words;
  return '#' + std::to_string(id);
}

// "cublasLt 3 (algorithm 66, tile 128x64, stages 64xAUTO, split-k 4)"; 3 counts the heuristics' proposals.
std::string name_of(std::size_t rank, const cublasLtMatmulAlgo_t& algorithm) {
  std::string name = "cublasLt " + std::to_string(rank) + " (algorithm " +
                     std::to_string(get(algorithm, CUBLASLT_ALGO_CONFIG_ID));
  const auto tile = get(algorithm, CUBLASLT_ALGO_CONFIG_TILE_ID);
  if (tile != 0) name += ", tile " + shape(kLtTiles, std::size(kLtTiles), tile);
  const auto stages = get(algorithm, CUBLASLT_ALGO_CONFIG_STAGES_ID);
  if (stages != 0) name += ", stages " + shape(kLtStages, std::size(kLtStages), stages);
  const auto split = get(algorithm, CUBLASLT_ALGO_CONFIG_SPLITK_NUM);
  if (split > 1) name += ", split-k " + std::to_string(split);
  return name + ')';
}

}  // namespace

LtPlan::LtPlan(cublasLtHandle_t handle, const GemmProblem& problem, const ArchLimits& arch)
    : type_(problem.type) {
  if (!allowed(problem, arch)) return;
  describe(problem);
  ask(handle, arch);
}

void LtPlan::describe(const GemmProblem& problem) {
  const LibraryTypes types = library_types(problem.type);
  const auto n = static_cast<std::uint64_t>(problem.n);
  const auto m = static_cast<std::uint64_t>(problem.m);
  const auto k = static_cast<std::uint64_t>(problem.k);
  MEMWALL_CHECK(call_->cublasLtMatmulDescCreate(operation_.out(), types.compute, types.scale));
  set(operation_.get(), CUBLASLT_MATMUL_DESC_TRANSA, CUBLAS_OP_T);
  set(operation_.get(), CUBLASLT_MATMUL_DESC_TRANSB, CUBLAS_OP_N);
  MEMWALL_CHECK(call_->cublasLtMatrixLayoutCreate(w_.out(), types.in, k, n, problem.w_pitch));
  MEMWALL_CHECK(call_->cublasLtMatrixLayoutCreate(x_.out(), types.in, k, m, problem.k));
  MEMWALL_CHECK(call_->cublasLtMatrixLayoutCreate(y_.out(), types.out, n, m, problem.n));
}

void LtPlan::ask(cublasLtHandle_t handle, const ArchLimits& arch) {
  LibraryHandle<cublasLtMatmulPreference_t> preference{call_->cublasLtMatmulPreferenceDestroy};
  MEMWALL_CHECK(call_->cublasLtMatmulPreferenceCreate(preference.out()));
  set(preference.get(), CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
      static_cast<std::uint64_t>(library_workspace_bytes(arch)));
  // Parts of a split sum in f32 (or i32), never in the output's type.
  set(preference.get(), CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
      static_cast<std::uint32_t>(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
  // What rows of 16 bytes leave of the buffers' 256.
  for (const auto side :
       {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
    set(preference.get(), side, std::uint32_t{16});

  std::array<cublasLtMatmulHeuristicResult_t, kHeuristics> results{};
  int found = 0;
  const cublasStatus_t status =
      call_->cublasLtMatmulAlgoGetHeuristic(handle, operation_.get(), w_.get(), x_.get(), y_.get(), y_.get(),
                                            preference.get(), kHeuristics, results.data(), &found);
  // These say that there is none for such a problem.
  if (status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_INVALID_VALUE) return;
  check(status, __FILE__, __LINE__, "cublasLtMatmulAlgoGetHeuristic");
  for (int i = 0; i < found; ++i) {
    const cublasLtMatmulHeuristicResult_t& result = results[static_cast<std::size_t>(i)];
    if (result.state != CUBLAS_STATUS_SUCCESS) continue;
    const std::size_t id = algorithms_.size();
    arms_.push_back(
        {name_of(id, result.algo), static_cast<std::int64_t>(result.workspaceSize), static_cast<int>(id)});
    algorithms_.push_back(result.algo);
  }
}

void LtPlan::run(cublasLtHandle_t handle, int id, const GemmOperands& operands, const Stream& stream) {
  const auto at = static_cast<std::size_t>(id);
  const std::int32_t one_i32 = 1;
  const std::int32_t zero_i32 = 0;
  const float one = 1;
  const float zero = 0;
  const bool integers = type_ == ScalarType::i8;
  const void* alpha = integers ? static_cast<const void*>(&one_i32) : &one;
  const void* beta = integers ? static_cast<const void*>(&zero_i32) : &zero;
  if (type_ == ScalarType::f8_e4m3) {
    set(operation_.get(), CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, operands.w_scale);
    set(operation_.get(), CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, operands.x_scale);
  }
  MEMWALL_CHECK(call_->cublasLtMatmul(handle, operation_.get(), alpha, operands.w, w_.get(), operands.x,
                                      x_.get(), beta, operands.y, y_.get(), operands.y, y_.get(),
                                      &algorithms_.at(at), operands.workspace,
                                      static_cast<std::size_t>(arms_.at(at).workspace_bytes), stream.get()));
}

}  // namespace memwall::cuda
