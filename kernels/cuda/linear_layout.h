// How a GPU's kernels want a weight matrix laid out: [out, in] row-major, quants apart from scales and these
// apart from zero points, rows of quants padded to 16 bytes.
//
// A block format's own bytes (34 for q8_0, 18 for q4_0) are aligned to 2, and no warp can load them 16 at a
// time. Engines therefore repack once, after loading; the bytes are those of the format, and what rows are
// padded by is counted apart.
#pragma once

#include <cstdint>

#include "format/format.h"
#include "kernels/cuda/geometry.h"

namespace memwall::cuda {

// How a weight is coded. Quants lie in the order of `in`; but of 8 4-bit ones, which are a 32-bit word,
// weight k is nibble linear_nibble(k): even ones in its lower half and odd ones in its upper, so that two
// halves can be made of neighbours at once.
enum class WeightCode : std::uint8_t { f32, f16, bf16, f8, i8, u4 };

constexpr int linear_nibble(std::int64_t k) { return static_cast<int>(k % 2 * 4 + k % 8 / 2); }

// Where its scale is found.
enum class ScaleRule : std::uint8_t {
  none,
  tensor,      // one f32
  row,         // an f32 a row
  block128,    // an f32 a block of 128 x 128, [out / 128][in / 128]
  group,       // an f16 a group of weights, [out][groups]; 4-bit codes less 8
  group_zero,  // and a 4-bit zero point, [out][groups], each row padded to a byte: codes less that
};

// What activations a format's kernels read and write: bf16 beside bf16, f32 beside f32, else f16.
enum class ActivationType : std::uint8_t { f32, f16, bf16 };

struct LinearLayout {
  WeightCode code = WeightCode::f16;
  ScaleRule rule = ScaleRule::none;
  ActivationType activations = ActivationType::f16;
  std::int64_t out = 0;
  std::int64_t in = 0;
  std::int64_t pitch = 0;      // bytes from a row of quants to the next, a multiple of 16
  int vector_shift = 31;       // a group is 1 << vector_shift vectors of 16 bytes; 31: the row
  std::int64_t groups = 0;     // a row's
  std::int64_t scales_at = 0;  // bytes from the matrix's start, a multiple of 256 as all parts'
  std::int64_t scale_bytes = 0;
  std::int64_t zeros_at = 0;
  std::int64_t zero_pitch = 0;  // bytes from a row's zero points to the next row's
  std::int64_t zero_bytes = 0;
  std::int64_t bytes = 0;  // of it all, a multiple of 256
};

// f32, f16, bf16, f8_e4m3 with scales a tensor, row or 128 x 128 block, q8_0, q4_0, int4 and int8 in groups
// of a power of two of 32 and more or a row, int4 with or without 4-bit zero points, int8 without.
bool has_linear_layout(Format format);

// Throws std::invalid_argument for other formats, or sizes below 1; std::overflow_error.
LinearLayout linear_layout(Format format, std::int64_t out, std::int64_t in);

// Bytes of a matrix that a row's quants, scales and zero points are (what row shares with others included).
struct LinearSpan {
  std::int64_t at = 0;
  std::int64_t bytes = 0;
};
LinearSpan linear_row_quants(const LinearLayout& layout, std::int64_t row);
LinearSpan linear_row_scales(const LinearLayout& layout, std::int64_t row);
LinearSpan linear_row_zeros(const LinearLayout& layout, std::int64_t row);

// The exact values of a row, of those spans' bytes (null where a span is empty): what kernels are held to.
void unpack_linear_row(const LinearLayout& layout, const void* quants, const void* scales, const void* zeros,
                       float* values);

// Weights in 16 bytes.
constexpr int weights_a_vector(WeightCode code) {
  return code == WeightCode::f32                               ? 4
         : code == WeightCode::f16 || code == WeightCode::bf16 ? 8
         : code == WeightCode::u4                              ? 32
                                                               : 16;
}

constexpr std::int64_t activation_bytes(ActivationType type) { return type == ActivationType::f32 ? 4 : 2; }

}  // namespace memwall::cuda
