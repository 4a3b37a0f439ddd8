#include "kernels/cuda/recurrent.h"

#include <algorithm>

namespace memwall::cuda {
namespace {

constexpr int kMostGridY = 65535;

unsigned blocks_of(RecurrentKind kind, bool narrow, int vectors, int rows) {
  const int a_block =
      recurrent_rows_a_warp(kind, narrow, vectors) * static_cast<int>(kRecurrentThreads) / kWarp;
  return static_cast<unsigned>((static_cast<std::int64_t>(rows) + a_block - 1) / a_block);
}

}  // namespace

RecurrentLaunch state_update_launch(RecurrentKind kind, bool narrow, const StateUpdateParams& params,
                                    int multiprocessors) {
  RecurrentLaunch launch;
  launch.kind = kind;
  launch.narrow = narrow;
  launch.state = params;
  const std::int64_t blocks = static_cast<std::int64_t>(blocks_of(kind, narrow, 4, params.rows)) *
                              static_cast<std::int64_t>(params.sequences);
  launch.vectors = blocks >= 2 * static_cast<std::int64_t>(multiprocessors) ? 4 : 1;
  launch.geometry.grid_x = blocks_of(kind, narrow, launch.vectors, params.rows);
  launch.geometry.grid_y = static_cast<unsigned>(std::min(params.sequences, kMostGridY));
  launch.geometry.threads = kRecurrentThreads;
  return launch;
}

RecurrentLaunch short_conv_launch(const ShortConvParams& params) {
  constexpr std::int64_t kThreads = kRecurrentThreads;
  constexpr std::int64_t kMostRestBlocks = 1024;
  RecurrentLaunch launch;
  launch.kind = RecurrentKind::convolution;
  launch.convolution = params;
  launch.vectors = params.channels % 8 == 0 ? 8 : 1;  // rows of channels then start at 16 bytes
  const std::int64_t channel_blocks = (params.channels / launch.vectors + kThreads - 1) / kThreads;
  const std::int64_t rest_blocks =
      std::min(kMostRestBlocks, (params.rest_words / 4 + kThreads - 1) / kThreads);
  launch.geometry.grid_x = static_cast<unsigned>(std::max({channel_blocks, rest_blocks, std::int64_t{1}}));
  launch.geometry.grid_y = static_cast<unsigned>(std::min(params.sequences, kMostGridY));
  launch.geometry.threads = kRecurrentThreads;
  return launch;
}

}  // namespace memwall::cuda
