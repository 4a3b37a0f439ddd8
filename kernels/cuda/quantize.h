// Activations in 8 bits, as the libraries' f8 and int8 products read them, and what an int8 product still
// lacks behind it. Engines do both in every step, dynamically: vLLM's dynamic_scaled_fp8_quant (a scale a
// tensor), its dynamic_scaled_int8_quant (a scale a token), and the scales in its int8 GEMM's epilogue.
#pragma once

#include <cstdint>
#include <variant>
#include <vector>

#include "kernels/cuda/geometry.h"
#include "kernels/cuda/linear_layout.h"

namespace memwall::cuda {

enum class QuantizeRule : std::uint8_t {
  f8_tensor,  // E4M3 under one scale, the largest magnitude becomes 448
  i8_rows,    // a scale a row, symmetric: its largest magnitude becomes 127
};

// x [rows, width] = codes [rows, width] * scales ([rows], or one), x finite. A scale is the largest magnitude
// over 448 or 127, but 2^-126 at least, so that zeros divide by no zero; codes are rounded to nearest even,
// from x times 1 / scale in f32. `partials` has room for kMostPartials; what launches leave there is not read
// by later ones. Set by the launches' maker: part_count (blocks of the first of two launches), and `vectors`
// (x 16-byte and codes 8-byte aligned, and rows of whole 8 elements, are moved 8 at a time).
struct QuantizeParams {
  const void* x = nullptr;
  std::uint8_t* codes = nullptr;
  float* scales = nullptr;
  float* partials = nullptr;
  std::int64_t rows = 0;
  std::int64_t width = 0;
  unsigned part_count = 0;
  bool vectors = false;
};

// y[r, o] = sums[r, o] * row_scales[r] * column_scales[o] (+ bias[o]), from i32 [rows, out] to the type of
// the activations. `vectors`: all but the bias are 16-byte aligned and rows of whole 4; set by the launch's
// maker.
struct ScaleSumsParams {
  const std::int32_t* sums = nullptr;
  const float* row_scales = nullptr;
  const float* column_scales = nullptr;
  const void* bias = nullptr;  // or none
  ActivationType bias_type = ActivationType::f16;
  void* y = nullptr;
  std::int64_t rows = 0;
  std::int64_t out = 0;
  bool vectors = false;
};

enum class QuantizeStep : std::uint8_t {
  rows,     // a block a row: its largest magnitude, then its codes
  largest,  // of a tensor's parts, a block each
  tensor,   // the codes of a tensor whose parts' largest are there
  scale_sums,
};

struct QuantizeLaunch {
  QuantizeStep step = QuantizeStep::rows;
  QuantizeRule rule = QuantizeRule::i8_rows;         // but for scale_sums
  ActivationType activations = ActivationType::f16;  // f16 or bf16: of x, or of y
  std::variant<QuantizeParams, ScaleSumsParams> params{};
  Geometry geometry{};
};

constexpr unsigned kQuantizeThreads = 512;
constexpr int kQuantizeHeld = 4;  // pieces of a row that a thread keeps from the largest to the codes
constexpr unsigned kMostPartials = 1024;
constexpr unsigned kScaleSumsThreads = 128;

// A tensor of so many elements or fewer is a row of one block, whose registers hold it; a larger one takes a
// second launch, since no block sees the largest of all before all have ended.
constexpr std::int64_t kOneBlockElements = 8LL * kQuantizeThreads * kQuantizeHeld;

// What quantises x, in order, one or two launches. Throws std::invalid_argument where activations are f32.
std::vector<QuantizeLaunch> quantize_launches(QuantizeRule rule, ActivationType activations,
                                              QuantizeParams params);

// Throws so too.
QuantizeLaunch scale_sums_launch(ActivationType activations, ScaleSumsParams params);

}  // namespace memwall::cuda
