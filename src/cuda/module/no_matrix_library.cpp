// In place of the libraries where their headers were not there.
#include "bench/unsupported.h"
#include "cuda/module/matrix_library.h"

namespace memwall::cuda {
namespace {

constexpr const char* kWhyNot = "memwall's CUDA backend was built without cuBLAS's headers";

}  // namespace

std::unique_ptr<MatrixLibrary> open_matrix_library(const Stream&, const ArchLimits&) {
  throw UnsupportedError(kWhyNot);
}

void read_library_versions(Versions& versions) { versions.no_cublas = kWhyNot; }

}  // namespace memwall::cuda
