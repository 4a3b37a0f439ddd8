#include "kernels/cuda/gather.h"

#include <algorithm>

#include "format/checked.h"

namespace memwall::cuda {
std::int64_t gather_pieces(GatherFormat format, const GatherParams& params) {
  constexpr std::int64_t kHalfBlock = 16;
  if (format == GatherFormat::plain) return params.row_bytes / (params.vectors ? 16 : 2);
  return 2 * div_up(params.width, 2 * kHalfBlock);
}

GatherLaunch gather_launch(GatherFormat format, GatherParams params) {
  const auto misaligned =
      (reinterpret_cast<std::uintptr_t>(params.table) | reinterpret_cast<std::uintptr_t>(params.y)) % 16;
  const std::int64_t y_bytes = format == GatherFormat::plain ? params.row_bytes : params.width * 2;
  params.vectors = misaligned == 0 && y_bytes % 16 == 0;
  GatherLaunch launch;
  launch.format = format;
  launch.params = params;
  launch.geometry.threads = kGatherThreads;
  launch.geometry.grid_x = static_cast<unsigned>(std::max<std::int64_t>(params.rows, 1));
  // Wider rows than y has blocks for go round.
  constexpr std::int64_t kMostBlocks = 65535;
  launch.geometry.grid_y = static_cast<unsigned>(
      std::clamp<std::int64_t>(div_up(gather_pieces(format, params), kGatherThreads), 1, kMostBlocks));
  return launch;
}

}  // namespace memwall::cuda
