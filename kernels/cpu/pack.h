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

// OCP 8-bit floating point, E4M3: no infinities, 0x7F and 0xFF are NaN. Larger values than 448 saturate.
// Source: OCP 8-bit Floating Point Specification (OFP8) 1.0, section 5.
inline constexpr float kLargestF8E4m3 = 448.0F;
float f8_e4m3_to_f32(std::uint8_t bits);
std::uint8_t f32_to_f8_e4m3(float value);

// E2M1's 16 codes, twice their value, so that they are whole numbers; the scale that goes with them is
// halved. Source: OCP Microscaling Formats (MX) 1.0, section 5.3.3; ggml-common.h, kvalues_mxfp4.
inline constexpr std::int8_t kDoubledE2m1[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

// The code nearest to doubled / 2, the lower one of two as near, as ggml's best_index_mxfp4; NaN gives 0.
std::uint8_t e2m1_code(float doubled);

// 2^(code - 128), half of what the E8M0 code says; and mxfp4's code for a block, floor(log2(largest)) - 2.
// Source: ggml-impl.h, ggml_e8m0_to_fp32_half (255, NaN in MX, is 2^127 there); ggml-quants.c,
// quantize_row_mxfp4_ref.
float e8m0_half(std::uint8_t code);
std::uint8_t e8m0_code(const float* values, std::int64_t count);

// How a group of weights is stored as integers under one scale. 8 bits: quants of -127 to 127, a weight is
// scale * quant; 4 bits: 0 to 15, scale * (quant - zero).
// Source: ggml-quants.c, quantize_row_q8_0_ref, d = max|x| / 127, round(x / d), halves away from zero; and
// quantize_row_q4_0_ref, d = (the value of largest magnitude) / -8, so that this value is always a quant of 0
// and exact, floor(x / d + 8.5), at most 15. With zero points, the range from least to largest (and 0) in 15
// steps. ggml casts as it is; where scale or value are not finite, or too small for 1/d, that cast is
// undefined, and here it saturates (NaN becomes 0).
class QuantRule {
 public:
  QuantRule(int bits, bool zero_points, const float* values, std::int64_t count);

  float scale() const { return scale_; }
  float zero() const { return zero_; }
  int quant(float value) const;

 private:
  int bits_;
  float scale_ = 0.0F;
  float inverse_ = 0.0F;
  float zero_ = 8.0F;
};

}  // namespace memwall::cpu
