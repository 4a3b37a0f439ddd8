#include "kernels/cuda/indexer.h"

#include <limits>

namespace memwall::cuda {

bool indexer_takes(const IndexerShape& s, const ArchLimits& arch) {
  return kv_on_tensor_cores(s.element, arch) && s.width <= kIndexerWidest && s.heads <= kIndexerMostHeads &&
         s.keys <= std::numeric_limits<std::int32_t>::max() / 2;
}

IndexerLaunch indexer_launch(const IndexerShape& s, int multiprocessors) {
  constexpr std::int64_t kResident = 3;  // blocks a multiprocessor, by their registers
  constexpr std::int64_t kLeast = 8;     // tiles: two a warp
  IndexerLaunch launch;
  launch.element = s.element;
  // Parts are not merged, so that there may be many.
  const std::int64_t places = multiprocessors * kResident;
  const TokenSplit split =
      split_tokens(s.seqs, (s.keys + kTileTokens - 1) / kTileTokens, places, kLeast, 2 * places);
  IndexerParams& p = launch.params;
  p.pitch = kv_pitch(s.element, s.width);
  p.keys = static_cast<int>(s.keys);
  p.heads = static_cast<int>(s.heads);
  p.width = static_cast<int>(s.width);
  p.count = static_cast<int>(s.count);
  p.tiles_each = split.tiles_each;
  p.parts = split.parts;
  launch.geometry.grid_x = static_cast<unsigned>(s.seqs);
  launch.geometry.grid_y = static_cast<unsigned>(split.parts);
  launch.geometry.threads = kIndexerThreads;
  // Queries as half words, rows half a shared memory's width longer, and their weights.
  const std::int64_t rows = (s.heads + 7) / 8 * 8;
  launch.geometry.shared_bytes = static_cast<unsigned>(rows * ((kIndexerWidest + 32) * 2 + 4));
  return launch;
}

IndexerLaunch choose_launch(const IndexerLaunch& launch) {
  IndexerLaunch choose = launch;
  choose.choose = true;
  choose.geometry = {};
  choose.geometry.grid_x = launch.geometry.grid_x;
  choose.geometry.threads = kChooseThreads;
  choose.geometry.shared_bytes = kChooseBins * 4 + 2 * (kChooseThreads / kWarp) * 4 + 8;
  return choose;
}

}  // namespace memwall::cuda
