// How the CPU lays out a weight matrix: panels of 16 rows, each read as one stream.
//
// An engine packs a weight once, after loading it. The bytes are those of the format; only their order
// differs, so that a vector holds the same k of 16 rows and no dot product needs a horizontal sum:
//
//   f32, f16, bf16, f8_e4m3   [in][16] elements, whatever `in` is;
//   q8_0                      for each block of 32 along `in`: [16] f16 scales, then [8][16][4] int8, so that
//                             a 32-bit lane holds 4 neighbours in k, which a byte dot product sums;
//   q4_0, int4-gN             for each group: [16] f16 scales, [16] zero points where there are any (f16,
//                             or 4 bits in 8 bytes), then for each block of 32 [4][16][4] bytes, the low
//                             nibbles k = 4 g + j of the block, the high ones 16 further on, as ggml pairs
//                             them;
//   mxfp4                     for each block of 32: [16] E8M0 scales, then quants as q4_0's, codes of E2M1.
//
// f8_e4m3's f32 scales follow the last panel: one, or one a row, or one a 128x128 block. A last panel of
// fewer than 16 rows is filled up with zeros: padding, which no byte count includes.
//
// What did not help: the scales of a whole panel apart from its quants. A second stream that begins anew at
// every panel cost q4_0 14 % and q8_0 8 % (Zen 4, two threads, 0.84 and 0.94 of the read bandwidth against
// 0.99 and 1.02 in one interleaved run).
#pragma once

#include <cstdint>

#include "format/format.h"

namespace memwall::cpu {

inline constexpr std::int64_t kPanelRows = 16;
inline constexpr std::int64_t kBlockWeights = 32;

// True for f32, f16, bf16, f8_e4m3 (a scale a tensor, row or 128x128 block), q8_0, q4_0, mxfp4, and int4 in
// groups of a multiple of 32 or a row, with or without zero points.
bool has_panels(Format format);

// True where the products are integer ones and activations are quantised first: q8_0, q4_0, int4, mxfp4.
bool is_integer(Format format);

// One panel's parts. Of the integer formats: groups, each scales, zero points and whole blocks of quants.
struct PanelLayout {
  std::int64_t blocks = 0;  // of 32 weights along `in`, rounded up to whole groups; integer formats only
  std::int64_t blocks_per_group = 1;
  std::int64_t groups = 0;
  std::int64_t quants_at = 0;    // bytes from a group's start; the scales are at 0, zero points behind them
  std::int64_t block_bytes = 0;  // of quants
  std::int64_t group_bytes = 0;
  std::int64_t bytes = 0;  // of a panel
};

// Throws std::invalid_argument where has_panels refuses the format or `in` is below 1.
PanelLayout panel_layout(Format format, std::int64_t in);

inline std::int64_t panels_of(std::int64_t out) { return (out + kPanelRows - 1) / kPanelRows; }

// Bytes of the whole matrix with its padding and its trailing scales. Throws as panel_layout does, and
// std::overflow_error.
std::int64_t panel_matrix_bytes(Format format, std::int64_t out, std::int64_t in);

// The trailing f32 scales of f8_e4m3: how many, and which one row `row` and column `k` use.
std::int64_t trailing_scales(Format format, std::int64_t out, std::int64_t in);
std::int64_t trailing_scale_of(Format format, std::int64_t in, std::int64_t row, std::int64_t k);

// Packs rows of f32, [out, in], into panels, quantising them as pack_row does for q8_0 and q4_0; mxfp4 as
// ggml; int4 as q4_0 over its groups (with zero points: the range from least to largest in 15 steps); f8_e4m3
// rounds to nearest even under scales of largest / 448. Values without a quant get one that means nothing.
// Scalar.
void pack_panels(Format format, const float* rows, std::int64_t out, std::int64_t in, void* panels);

// The exact values of one row, read back: the reference that the kernels are held to.
void unpack_panel_row(Format format, const void* panels, std::int64_t out, std::int64_t in, std::int64_t row,
                      float* values);

}  // namespace memwall::cpu
