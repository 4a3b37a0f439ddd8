#include "kernels/cuda/linear.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "format/checked.h"

namespace memwall::cuda {
namespace {

// x in shared memory: half as much on sm_75, so that two blocks of a multiprocessor's 64 KiB fit everywhere.
int most_x_bytes(const ArchLimits& arch) { return arch.major < 8 ? 16 << 10 : 32 << 10; }

std::int64_t tiles_of(const LinearLayout& layout) { return div_up(layout.pitch, kLinearTileBytes); }

int power_of_two_below(std::int64_t value) {
  int power = 1;
  while (power * 2 <= value && power < (1 << 20)) power *= 2;
  return power;
}

// What the busiest multiprocessor moves, in bytes of DRAM traffic or as many as would take that time. To be
// held against a GPU; until then:
//   x comes from the L2, at about twice the speed, once a block;
//   a block's first loads and last sums cost as much as 2 KiB;
//   one block alone on a multiprocessor keeps half the bytes in flight that it takes to fill its share;
//   the second pass over partial sums costs a microsecond, 36 KiB at a multiprocessor's share of 5 TB/s.
double cost(const LinearLayout& layout, const LinearTiling& tiling, std::int64_t repeats, int columns,
            int multiprocessors) {
  const double blocks = static_cast<double>(tiling.row_blocks) * static_cast<double>(repeats) *
                        static_cast<double>(tiling.splits);
  const double busiest = std::ceil(blocks / std::max(1, multiprocessors));
  const double x_bytes = static_cast<double>(columns) * static_cast<double>(layout.in) *
                         static_cast<double>(activation_bytes(layout.activations));
  const double rows_bytes = static_cast<double>(tiling.rows_a_block) * static_cast<double>(layout.pitch);
  const double a_block = (rows_bytes + x_bytes / 2) / static_cast<double>(tiling.splits) + 2048;
  return busiest * a_block / std::min(1.0, busiest / 2) + (tiling.splits > 1 ? 36.0 * 1024 : 0.0);
}

LinearTiling tiling_of(const LinearLayout& layout, const std::int64_t* outs, int segments, int columns,
                       int warps_a_row, int splits, int x_bytes) {
  LinearTiling tiling;
  tiling.warps_a_row = warps_a_row;
  tiling.rows_a_block = kLinearWarps / warps_a_row * kLinearWarpRows;
  const int step_tiles = warps_a_row * linear_unroll(layout.code, columns);
  const std::int64_t steps = div_up(tiles_of(layout), step_tiles);
  tiling.steps_a_split = static_cast<int>(div_up(steps, splits));
  tiling.splits = static_cast<int>(div_up(steps, tiling.steps_a_split));
  const int step_bytes = step_tiles * linear_tile_room(layout.code, columns);
  tiling.chunk_steps = std::min(power_of_two_below(x_bytes / step_bytes), tiling.steps_a_split);
  std::int64_t blocks = 0;
  for (int s = 0; s < segments; ++s) blocks = checked_add(blocks, div_up(outs[s], tiling.rows_a_block));
  tiling.row_blocks = static_cast<unsigned>(blocks);
  const int sums_bytes = kLinearWarps * kLinearWarpRows * columns * 4;
  tiling.shared_bytes =
      static_cast<unsigned>(kLinearRoomBytes + std::max(tiling.chunk_steps * step_bytes, sums_bytes));
  return tiling;
}

LinearLaunch base_launch(const LinearLayout& layout, const LinearTiling& tiling, int columns) {
  LinearLaunch launch;
  launch.code = layout.code;
  launch.rule = layout.rule;
  launch.columns = columns;
  LinearParams& p = launch.params;
  p.in = layout.in;
  p.pitch = layout.pitch;
  p.groups = layout.groups;
  p.zero_pitch = layout.zero_pitch;
  p.vector_shift = layout.vector_shift;
  p.row_scale_stride = layout.rule == ScaleRule::row ? 1 : 0;
  while ((1 << p.warps_shift) < tiling.warps_a_row) ++p.warps_shift;
  p.chunk_steps = tiling.chunk_steps;
  p.splits = tiling.splits;
  p.steps_a_split = tiling.steps_a_split;
  launch.geometry.grid_x = tiling.row_blocks;
  launch.geometry.grid_z = static_cast<unsigned>(tiling.splits);
  launch.geometry.threads = kLinearThreads;
  launch.geometry.shared_bytes = tiling.shared_bytes;
  return launch;
}

}  // namespace

int linear_kernel_columns(int columns) {
  int kernel = 1;
  while (kernel < columns) kernel *= 2;
  return kernel;
}

LinearTiling choose_linear_tiling(const LinearLayout& layout, const std::int64_t* outs, int segments,
                                  std::int64_t repeats, int columns, bool can_split, const ArchLimits& arch,
                                  int multiprocessors) {
  constexpr int kMostSplits = 16;
  const int x_bytes = most_x_bytes(arch);
  const int unroll = linear_unroll(layout.code, columns);
  const std::int64_t tiles = tiles_of(layout);
  const auto tiling = [&](int warps, int splits) {
    return tiling_of(layout, outs, segments, columns, warps, splits, x_bytes);
  };
  // All warps' steps fit in shared memory. A row too short for them all leaves some without, and still
  // spreads the rows over more multiprocessors.
  const auto can_share = [&](int warps) {
    return warps * unroll * linear_tile_room(layout.code, columns) <= x_bytes;
  };
  int most_warps = 1;
  while (most_warps < kLinearWarps && can_share(2 * most_warps)) most_warps *= 2;
  // Rows are too few for the card where the finest cut without splits leaves multiprocessors with one block.
  const std::int64_t finest = checked_mul(tiling(most_warps, 1).row_blocks, repeats);
  const bool splits_help = can_split && finest < 2 * static_cast<std::int64_t>(multiprocessors);
  LinearTiling best;
  double least = std::numeric_limits<double>::infinity();
  for (int warps = 1; warps <= most_warps; warps *= 2) {
    for (int splits = 1; splits <= (splits_help ? kMostSplits : 1); splits *= 2) {
      if (splits > 1 && splits * warps * unroll > tiles) break;
      const LinearTiling candidate = tiling(warps, splits);
      const double estimate = cost(layout, candidate, repeats, columns, multiprocessors);
      if (estimate >= least) continue;
      least = estimate;
      best = candidate;
    }
  }
  return best;
}

LinearLaunch linear_launch(const LinearLayout& layout, const std::int64_t* outs, int segments, int columns,
                           bool gated, const ArchLimits& arch, int multiprocessors) {
  const int kernel = linear_kernel_columns(columns);
  const std::int64_t zipped = gated ? checked_mul(2, outs[0]) : 0;
  const LinearTiling tiling = choose_linear_tiling(layout, gated ? &zipped : outs, gated ? 1 : segments, 1,
                                                   kernel, true, arch, multiprocessors);
  LinearLaunch launch = base_launch(layout, tiling, kernel);
  launch.params.columns = columns;
  launch.params.segment_count = segments;
  launch.params.gated = gated;
  std::int64_t first = 0;
  for (int s = 0; s < segments; ++s) {
    launch.params.segments[s].out = outs[s];
    launch.params.segments[s].first_block = static_cast<unsigned>(first);
    if (!gated) first += div_up(outs[s], tiling.rows_a_block);
  }
  return launch;
}

LinearLaunch expert_launch(const LinearLayout& layout, std::int64_t entries, std::int64_t most_rows,
                           const ArchLimits& arch, int multiprocessors) {
  const int columns =
      linear_kernel_columns(static_cast<int>(std::min<std::int64_t>(most_rows, kMostLinearColumns)));
  const LinearTiling tiling =
      choose_linear_tiling(layout, &layout.out, 1, entries, columns, false, arch, multiprocessors);
  LinearLaunch launch = base_launch(layout, tiling, columns);
  launch.params.segments[0].out = layout.out;
  launch.geometry.grid_y = static_cast<unsigned>(entries);
  return launch;
}

std::int64_t linear_partials(const LinearLaunch& launch) {
  if (launch.geometry.grid_z == 1) return 0;
  const std::int64_t rows = (kLinearWarps * kLinearWarpRows) >> launch.params.warps_shift;
  return static_cast<std::int64_t>(launch.geometry.grid_x) * launch.geometry.grid_z * rows * launch.columns;
}

std::int64_t linear_counters(const LinearLaunch& launch) {
  return launch.geometry.grid_z == 1 ? 0 : static_cast<std::int64_t>(launch.geometry.grid_x);
}

}  // namespace memwall::cuda
