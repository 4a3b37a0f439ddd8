#include "kernels/cuda/stream.h"

#include <algorithm>

#include "format/checked.h"

namespace memwall::cuda {

unsigned stream_blocks(StreamKind kind, int unroll, std::int64_t vectors, StreamGrid grid,
                       int multiprocessors) {
  const std::int64_t resident =
      static_cast<std::int64_t>(multiprocessors) * resident_stream_blocks(kind, unroll);
  const std::int64_t spread = std::min(resident, div_up(vectors, kStreamThreads));
  const std::int64_t batches = div_up(vectors, std::int64_t{kStreamThreads} * unroll);
  return static_cast<unsigned>(
      std::max<std::int64_t>(1, grid == StreamGrid::persistent ? spread : std::max(spread, batches)));
}

StreamLaunch with_geometry(StreamLaunch launch, StreamGrid grid, int multiprocessors) {
  const bool reads = launch.kind == StreamKind::read;
  launch.geometry.threads = kStreamThreads;
  launch.geometry.grid_x = stream_blocks(launch.kind, reads ? launch.unroll : kWriteUnroll,
                                         launch.params.vectors, grid, multiprocessors);
  launch.geometry.shared_bytes = reads ? kStreamThreads / kWarp * sizeof(float) : 0;
  return launch;
}

}  // namespace memwall::cuda
