// Linears of few rows of x: y[c] = W x[c] (+ bias), 1 to 16 columns c, each weight read once. A launch runs
// up to four matrices over the same x, or the experts that were drawn, with a norm before and an activation
// or a sum behind.
#pragma once

#include <cstdint>

#include "kernels/cuda/geometry.h"
#include "kernels/cuda/linear_layout.h"

namespace memwall::cuda {

constexpr int kMostLinearColumns = 16;
constexpr int kMostLinearSegments = 4;

// One matrix of a launch (linear_layout.h) and where its outputs go.
struct LinearSegment {
  const std::byte* quants = nullptr;
  const std::byte* scales = nullptr;
  const std::byte* zeros = nullptr;
  const void* bias = nullptr;  // [out], or none
  ActivationType bias_type = ActivationType::f16;
  void* y = nullptr;  // [columns, out], of the activations' type
  std::int64_t out = 0;
  unsigned first_block = 0;  // of the grid's x
};

enum class LinearNorm : std::uint8_t { none, rms, layer };
enum class LinearActivation : std::uint8_t { none, silu, gelu, relu };

// An expert of a draw: its matrix is (matrix_offset + matrix) % matrices, its columns are x's rows
// tokens[first ... first + count - 1], its outputs y's rows from `first` on.
struct ExpertEntry {
  std::uint32_t matrix = 0;
  std::uint32_t first = 0;
  std::uint32_t count = 0;
};

struct LinearParams {
  LinearSegment segments[kMostLinearSegments];
  int segment_count = 1;

  const void* x = nullptr;  // [columns, in] without gaps
  std::int64_t in = 0;
  int columns = 1;  // at most the kernel's

  // Of all segments.
  std::int64_t pitch = 0;
  std::int64_t groups = 0;
  std::int64_t zero_pitch = 0;
  int group_shift = 31;
  int row_scale_stride = 0;  // 0: the tensor's one scale, 1: a row's

  // x' = norm(x) * norm_weight (+ norm_bias), [in] of norm_type, readable up to a multiple of 8 elements.
  LinearNorm norm = LinearNorm::none;
  ActivationType norm_type = ActivationType::bf16;
  float epsilon = 0;
  const void* norm_weight = nullptr;
  const void* norm_bias = nullptr;

  // y = f(W0 x) * (W1 x) where gated, of two segments of one shape, into the first one's y; else f(W x).
  LinearActivation activation = LinearActivation::none;
  bool gated = false;
  const void* residual = nullptr;  // y += residual, [columns, out], one segment

  // Experts: grid's y indexes entries, and segment 0 holds matrix 0, the others `matrix_stride` bytes on.
  const ExpertEntry* entries = nullptr;
  const std::uint32_t* tokens = nullptr;
  std::int64_t matrix_stride = 0;
  std::int64_t bias_stride = 0;
  std::uint32_t matrix_offset = 0;
  std::uint32_t matrices = 1;

  // Tiling (choose_linear_tiling).
  int warps_a_row = 1;
  int chunk_steps = 1;
  int steps_a_split = 1;
  float* partials = nullptr;     // where split: linear_partials() floats
  unsigned* counters = nullptr;  // where split: one a block of rows, zero before and after a launch
};

struct LinearLaunch {
  WeightCode code = WeightCode::f16;
  ScaleRule rule = ScaleRule::none;
  int columns = 1;  // the kernel's: 1, 2, 4, 8 or 16
  LinearParams params;
  Geometry geometry;
};

}  // namespace memwall::cuda
