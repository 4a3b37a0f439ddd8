// Linear layers on the CPU: y = x W^T + b, for the weight formats the CPU has kernels for.
//
// Shapes: W is [out, in] row-major in its format's own block layout (ggml's blocks for q8_0 and q4_0),
// x is [rows, in] f32, y is [rows, out] f32. A call computes the outputs [first, last) of every row, so
// that threads split `out` between them; calls on disjoint ranges may run at once. Nothing is allocated.
// Pointers need no alignment beyond their element's; `in` may be any positive number (blocks are rounded
// up; the padding weights of a last block count as zero).
#pragma once

#include <cstdint>

#include "format/format.h"

namespace memwall::cpu {

struct Linear {
  Format format;
  const void* weights = nullptr;
  std::int64_t out = 0;
  std::int64_t in = 0;
  const float* x = nullptr;
  std::int64_t rows = 0;
  const float* bias = nullptr;  // [out], or null
  float* y = nullptr;
};

// True for f32, f16, bf16, q8_0 and q4_0.
bool has_linear(Format format);

// The format-widening dot product: each weight is read once and widened once for up to four columns at
// a time. Throws std::invalid_argument where has_linear refuses the format, or the range or shape is out of
// bounds. An infinite or NaN block scale (q8_0, q4_0) gives an output that is not finite, of either kind.
void linear(const Linear& op, std::int64_t first, std::int64_t last);

// Widens panels of weight rows to f32 in `panel` (gemm_panel_floats(in) floats, one panel a thread) and
// gives them to the BLAS, single-threaded. For prefill and large batches. f32 weights go as they are, and
// `panel` is not touched. Throws as linear does, and std::length_error past the BLAS's 32-bit sizes.
void linear_blas(const Linear& op, std::int64_t first, std::int64_t last, float* panel);
std::int64_t gemm_panel_floats(std::int64_t in);

// The name of the instruction set the dispatched kernels use here, e.g. "AVX3".
const char* instruction_set();

}  // namespace memwall::cpu
