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

// How the kernel cuts a matrix. 8 lanes read 128 neighbouring bytes of a row (a tile), so that a warp's load
// touches 4 rows and the lanes that share a piece of x read it from shared memory at once; a lane has 2 rows.
// A step is `linear_unroll` tiles, loaded before the step before it is used up. A row is read by 1 to 8 warps
// of a block, which take steps in turn, and by several blocks where split.
constexpr unsigned kLinearThreads = 256;
constexpr int kLinearWarps = 8;
constexpr int kLinearLanes = 8;
constexpr int kLinearLaneRows = 2;
constexpr int kLinearWarpRows = kWarp / kLinearLanes * kLinearLaneRows;
constexpr int kLinearTileBytes = 16 * kLinearLanes;
// Shared memory before x: the norm's statistics, and the split's vote.
constexpr int kLinearRoomBytes = 256;

// Many columns make a step long by themselves, and their x takes the shared memory.
constexpr int linear_unroll(WeightCode code, int columns) {
  const int vector = weights_a_vector(code);
  if (columns <= 2 || vector <= 8) return columns <= 8 ? 4 : 1;
  if (columns == 4) return vector <= 16 ? 4 : 2;
  return columns == 8 && vector <= 16 ? 2 : 1;
}

// Bytes of shared memory that a tile of x takes, as f32.
constexpr int linear_tile_room(WeightCode code, int columns) {
  return kLinearLanes * weights_a_vector(code) * columns * 4;
}

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
  int vector_shift = 31;     // a group is 1 << vector_shift vectors of 16 bytes; 31: the row
  int row_scale_stride = 0;  // 0: the tensor's one scale, 1: a row's

  // x' = norm(x) * norm_weight (+ norm_bias), [in] of norm_type, 0 from there up to
  // linear_norm_elements(in).
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
  int warps_shift = 0;  // 1 << this many warps a row
  int chunk_steps = 1;
  int splits = 1;  // the grid's z
  int steps_a_split = 1;
  float* partials = nullptr;     // where split: linear_partials() floats
  unsigned* counters = nullptr;  // where split: one a block of rows, zero before and after a launch
};

// How a launch is cut up.
struct LinearTiling {
  int warps_a_row = 1;   // of a block: 1, 2, 4 or 8
  int rows_a_block = 0;  // kLinearWarps / warps_a_row * kLinearWarpRows
  int chunk_steps = 1;   // whose x lies in shared memory at a time
  int splits = 1;        // blocks that share a row
  int steps_a_split = 1;
  unsigned row_blocks = 0;  // of all segments
  unsigned shared_bytes = 0;
};

// The columns of the smallest kernel that takes `columns` (1 to 16).
int linear_kernel_columns(int columns);

// The best tiling by a model of the time (linear.cpp) for matrices of `outs` rows (their number `segments`)
// and the layout's format and width, each run `repeats` times (experts). Gated matrices are read in pairs of
// rows, so that `outs` is one of twice the rows. `columns`: the kernel's.
LinearTiling choose_linear_tiling(const LinearLayout& layout, const std::int64_t* outs, int segments,
                                  std::int64_t repeats, int columns, bool can_split, const ArchLimits& arch,
                                  int multiprocessors);

struct LinearLaunch {
  WeightCode code = WeightCode::f16;
  ScaleRule rule = ScaleRule::none;
  int columns = 1;  // the kernel's: 1, 2, 4, 8 or 16
  LinearParams params;
  Geometry geometry;
};

// A launch but for its pointers: `outs` rows of `segments` matrices of one layout (its `out` is not used)
// over `columns` rows of x.
LinearLaunch linear_launch(const LinearLayout& layout, const std::int64_t* outs, int segments, int columns,
                           bool gated, const ArchLimits& arch, int multiprocessors);

// The same of `entries` experts, each of one such matrix, and at most `most_rows` rows of x each.
LinearLaunch expert_launch(const LinearLayout& layout, std::int64_t entries, std::int64_t most_rows,
                           const ArchLimits& arch, int multiprocessors);

// Elements that norm weights and biases are filled up to with zeros: whole tiles of every code.
constexpr std::int64_t linear_norm_elements(std::int64_t in) {
  constexpr std::int64_t kLargestTile = kLinearLanes * 32;
  return (in + kLargestTile - 1) / kLargestTile * kLargestTile;
}

// Room that a split launch needs: f32 partial sums, and counters. 0 where it is whole.
std::int64_t linear_partials(const LinearLaunch& launch);
std::int64_t linear_counters(const LinearLaunch& launch);

}  // namespace memwall::cuda
