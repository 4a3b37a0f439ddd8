#include "kernels/cpu/blas.h"

#include <algorithm>
#include <limits>
#include <stdexcept>

#include "format/checked.h"
#include "kernels/cpu/blas_library.h"

namespace memwall::cpu {
namespace {

// cblas_sgemm takes 32-bit sizes.
int narrowed(std::int64_t size) {
  if (size < 0 || size > std::numeric_limits<int>::max()) {
    throw std::length_error("a matrix is too large for the BLAS's 32-bit sizes: " + std::to_string(size));
  }
  return static_cast<int>(size);
}

// Loaded by the first product. Throws std::runtime_error where there is none.
const BlasLibrary& blas() {
  const BlasLibrary& library = blas_library();
  if (library.sgemm == nullptr) throw std::runtime_error(library.why_not);
  return library;
}

}  // namespace

void sgemm(bool b_transposed, std::int64_t m, std::int64_t n, std::int64_t k, const float* a,
           std::int64_t lda, const float* b, std::int64_t ldb, float* c, std::int64_t ldc) {
  const int rows = narrowed(m);
  const int columns = narrowed(n);
  const int depth = narrowed(k);
  const int a_stride = narrowed(lda);
  const int b_stride = narrowed(ldb);
  const int c_stride = narrowed(ldc);
  if (rows == 0 || columns == 0) return;
  if (depth == 0) {
    // An empty sum, which not every BLAS writes.
    for (std::int64_t i = 0; i < m; ++i) std::fill_n(c + i * ldc, n, 0.0F);
    return;
  }
  blas().sgemm(kBlasRowMajor, kBlasNoTranspose, b_transposed ? kBlasTranspose : kBlasNoTranspose, rows,
               columns, depth, 1.0F, a, a_stride, b, b_stride, 0.0F, c, c_stride);
}

void sgemv(std::int64_t m, std::int64_t k, const float* a, std::int64_t lda, const float* x, float* y) {
  const int rows = narrowed(m);
  const int depth = narrowed(k);
  const int stride = narrowed(lda);
  // BLAS leaves y alone where k is 0; and a NaN in it may outlive a beta of 0 in some.
  std::fill_n(y, m, 0.0F);
  if (rows == 0 || depth == 0) return;
  blas().sgemv(kBlasRowMajor, kBlasNoTranspose, rows, depth, 1.0F, a, stride, x, 1, 0.0F, y, 1);
}

std::int64_t blas_buffer_bytes(std::int64_t m, std::int64_t n, std::int64_t k) {
  constexpr std::int64_t kDeepestBlock = 1024;
  constexpr std::int64_t kFloat = sizeof(float);
  return checked_mul(checked_add(m, n), std::min(k, kDeepestBlock) * kFloat);
}

std::string blas_description() { return blas_library().description; }

}  // namespace memwall::cpu
