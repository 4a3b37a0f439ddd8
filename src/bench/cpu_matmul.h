// The matmul baseline on the CPU, in both of its ways: the BLAS, and memwall's own GEMM.
#pragma once

#include <cstdint>
#include <vector>

#include "bench/device.h"

namespace memwall {

// "blas" and "gemm"; none for what is neither f32 nor f16.
std::vector<Variant> matmul_variants(const MatmulTask& task);

// Throws std::overflow_error.
Footprint matmul_footprint(const MatmulTask& task, int workers);

}  // namespace memwall
