// The one door to the BLAS: row-major f32 products, single-threaded, because the project's own thread pool
// splits the work. The library is loaded by the first use (blas_library.h).
#pragma once

#include <cstdint>
#include <string>

namespace memwall::cpu {

// c[m, n] = a[m, k] b[k, n] (or b[n, k]^T when b_transposed); leading dimensions in elements.
// What c held is not read. May be called from several threads at once. Throws std::length_error where a size
// is negative or passes 2^31 - 1, std::runtime_error where no BLAS can be loaded.
void sgemm(bool b_transposed, std::int64_t m, std::int64_t n, std::int64_t k, const float* a,
           std::int64_t lda, const float* b, std::int64_t ldb, float* c, std::int64_t ldc);

// y[m] = a[m, k] x[k]; the same of y, threads and sizes.
void sgemv(std::int64_t m, std::int64_t k, const float* a, std::int64_t lda, const float* x, float* y);

// The most bytes of its own that a product of these sizes makes the library touch in the calling thread:
// packed copies of both factors over one block of the depth, which no instruction set of OpenBLAS cuts deeper
// than 1024 (SGEMM_Q in its param.h). Throws std::overflow_error past 2^63 - 1.
std::int64_t blas_buffer_bytes(std::int64_t m, std::int64_t n, std::int64_t k);

// The library and its version where it reports them, e.g. "OpenBLAS 0.3.21 ... SkylakeX". Loads it; empty
// where none can be loaded.
std::string blas_description();

}  // namespace memwall::cpu
