#include "kernels/cuda/stream.h"

#include <algorithm>

#include "format/checked.h"

namespace memwall::cuda {
namespace {

// What one block takes at a time, and what is to be spread over the multiprocessors before any takes more.
std::int64_t vectors_at_once(const StreamLaunch& launch) {
  if (launch.path == ReadPath::bulk) return kRingBytes / 16 / launch.unroll;
  return launch.threads;
}

}  // namespace

StreamLaunch with_geometry(StreamLaunch launch, StreamGrid grid, const ArchLimits& arch,
                           int multiprocessors) {
  const std::int64_t resident =
      static_cast<std::int64_t>(multiprocessors) * resident_stream_blocks(launch, arch.major, arch.minor);
  std::int64_t blocks = std::min(resident, div_up(launch.params.vectors, vectors_at_once(launch)));
  if (grid == StreamGrid::one_pass && launch.path == ReadPath::loads) {
    const std::int64_t batch = static_cast<std::int64_t>(launch.threads) * stream_unroll(launch);
    blocks = std::max(blocks, div_up(launch.params.vectors, batch));
  }
  launch.geometry.threads = launch.threads;
  launch.geometry.grid_x = static_cast<unsigned>(std::max<std::int64_t>(1, blocks));
  launch.geometry.shared_bytes = stream_shared_bytes(launch.kind, launch.path, launch.unroll, launch.threads);
  return launch;
}

}  // namespace memwall::cuda
