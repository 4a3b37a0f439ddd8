// Linear layers on the CPU: y = x W^T + b, for the weight formats that panel_layout.h lays out.
//
// Shapes: W is [out, in] in panels of 16 rows, x is [rows, in] f32, y is [rows, out] f32. Threads split the
// panels between them; calls on disjoint ranges may run at once. Nothing is allocated. Pointers need no
// alignment beyond their element's; `in` may be any positive number.
//
// A call has two parts: `prepare` brings x into the form that a kernel reads, once; then the kernel runs over
// panels. Both are split over threads, with a barrier between them.
#pragma once

#include <cstdint>

#include "format/format.h"

namespace memwall::cpu {

struct Linear {
  Format format{};
  const void* panels = nullptr;  // with the trailing scales of f8_e4m3
  std::int64_t out = 0;
  std::int64_t in = 0;
  const float* x = nullptr;
  std::int64_t rows = 0;
  const float* bias = nullptr;  // [out], or null
  float* y = nullptr;
  void* prepared = nullptr;  // prepared_bytes() of room for prepare(); may be null where that is 0
};

// True where panel_layout.h has a layout for the format.
bool has_linear(Format format);

// The kernels.
//   dot:  GEMV and skinny GEMM. Each weight is read from memory once and widened once for all rows (up to
//         a target's registers, then from the cache). Integer formats: byte dot products against activations
//         quantised to 8 bits in blocks of 32, whose f32 scale is largest / 127.
//   gemm: panels widened to f32 in the cache, register-blocked multiply-adds. For prefill.
//   gemm_int8: panels of the integer formats brought into bytes in the cache, byte dot products as in dot, of
//         the same quantised activations. For prefill.
//   blas: the same panels given to the BLAS, single-threaded.
enum class LinearKernel : std::uint8_t { dot, gemm, gemm_int8, blas };

// True where the kernel takes the format: gemm_int8 the integer ones alone, the others all that has_linear
// does.
bool takes_format(LinearKernel kernel, Format format);

// True where the kernel quantises the activations to 8 bits first (quantised.h).
bool quantises_activations(LinearKernel kernel, Format format);

// The most rows of x that dot takes.
inline constexpr std::int64_t kMostDotRows = 16;

// Bytes of `prepared`, and the units of work that prepare() splits into: 0 where x is read as it is.
std::int64_t prepared_bytes(LinearKernel kernel, Format format, std::int64_t rows, std::int64_t in);
std::int64_t prepare_units(LinearKernel kernel, Format format, std::int64_t rows, std::int64_t in);
void prepare(LinearKernel kernel, const Linear& op, std::int64_t first_unit, std::int64_t last_unit);

// Floats of scratch that a thread needs while it runs: 0 for dot.
std::int64_t linear_scratch_floats(LinearKernel kernel, Format format, std::int64_t in);
// Bytes that a library maps and touches by itself for each thread meanwhile, at most: the BLAS's, else 0.
std::int64_t linear_library_bytes(LinearKernel kernel, std::int64_t rows, std::int64_t in);

// The outputs of panels [first, last) for every row of x. Throws std::invalid_argument where takes_format
// refuses the format, or the range or shape is out of bounds; blas also std::length_error past 32-bit sizes.
// A scale or activation that is infinite or NaN gives outputs that are not finite, of either kind.
void linear(LinearKernel kernel, const Linear& op, std::int64_t first, std::int64_t last, float* scratch);

}  // namespace memwall::cpu
