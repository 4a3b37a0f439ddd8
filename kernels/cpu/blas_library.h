// Finds a BLAS with the C interface (CBLAS) at run time and loads it when the first product asks for it, so
// that commands that multiply nothing neither need one nor pay for its start: OpenBLAS starts threads and
// maps buffers as soon as it is loaded.
#pragma once

#include <string>
#include <vector>

namespace memwall::cpu {

// Values of the CBLAS standard (BLAS Technical Forum, appendix B.1), which every implementation shares.
constexpr int kBlasRowMajor = 101;
constexpr int kBlasNoTranspose = 111;
constexpr int kBlasTranspose = 112;

// cblas_sgemm(order, transpose a, transpose b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc)
using SgemmFunction = void(int, int, int, int, int, int, float, const float*, int, const float*, int, float,
                           float*, int);
// cblas_sgemv(order, transpose, m, n, alpha, a, lda, x, incx, beta, y, incy)
using SgemvFunction = void(int, int, int, int, float, const float*, int, const float*, int, float, float*,
                           int);

struct BlasLibrary {
  SgemmFunction* sgemm = nullptr;  // null where no library was found; sgemv then, too
  SgemvFunction* sgemv = nullptr;
  std::string description;  // the library and its version where it reports them; empty where there is none
  std::string why_not;      // where there is none: one line that says so and what helps
};

// Tries the libraries of `names` in turn (as dlopen takes them) and takes the first that has both functions.
// OpenBLAS is held to one thread: ours call it at once, each for its own part.
BlasLibrary load_blas(const std::vector<std::string>& names);

// The process's one, loaded by the first call: the library that the environment variable MEMWALL_BLAS names,
// else OpenBLAS, else any CBLAS of the system. Safe to call from several threads.
const BlasLibrary& blas_library();

}  // namespace memwall::cpu
