// Rows of f32 to and from a weight format. Plain scalar code: it runs outside the timed region and is the
// reference the fast kernels are held to.
#pragma once

#include <bit>
#include <cstdint>

#include "format/format.h"

namespace memwall::cpu {

// Packs one row of `in` floats into storage_bytes(format, 1, in) bytes. f16 and bf16 round to nearest
// even; q8_0 and q4_0 quantise as ggml's quantize_row_q8_0_ref and quantize_row_q4_0_ref do,
// a last block padded with zeros; values without a quant (NaN, infinities) get one that means nothing.
// Throws std::invalid_argument for any other format, as unpack_row does.
void pack_row(Format format, const float* values, std::int64_t in, void* row);

// The exact values of a packed row.
void unpack_row(Format format, const void* row, std::int64_t in, float* values);

// IEEE 754 binary16 and bfloat16, subnormals, infinities and NaN included.
std::uint16_t f32_to_f16(float value);
float f16_to_f32(std::uint16_t bits);
std::uint16_t f32_to_bf16(float value);
// In the header, since a call for each of a norm's weights took ten times as long as the norm.
inline float bf16_to_f32(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

}  // namespace memwall::cpu
