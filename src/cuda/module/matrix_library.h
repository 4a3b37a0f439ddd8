// What multiplies matrices on one device besides memwall's own kernels. It knows no header of a library's, so
// that the module can be built where there are none.
#pragma once

#include <memory>
#include <vector>

#include "cuda/module/launched.h"
#include "cuda/module/stream.h"
#include "cuda/runtime.h"

namespace memwall::cuda {

class MatrixLibrary {
 public:
  virtual ~MatrixLibrary() = default;
  // As Gpu::gemm_arms.
  virtual const std::vector<GemmArm>& arms(const GemmProblem& problem) = 0;
  // Asynchronous, and captured where the stream is. Throws UnsupportedError where the library refuses or
  // fails, and where arms() did not name the arm.
  virtual void run(const GemmProblem& problem, int arm, const GemmOperands& operands, Launched& launched) = 0;
};

// On the current device, whose stream and limits these are. Throws UnsupportedError, saying why in one line,
// where there is no library, or it does not start.
std::unique_ptr<MatrixLibrary> open_matrix_library(const Stream& stream, const ArchLimits& arch);

// Sets cublas and cublasLt, or no_cublas.
void read_library_versions(Versions& versions);

}  // namespace memwall::cuda
