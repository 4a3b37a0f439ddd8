// Random contents, made where they are used.
#pragma once

#include <cstdint>

#include "kernels/cuda/geometry.h"

namespace memwall::cuda {

// Every 32-bit word becomes (random & keep) | set; a tail of 1 to 3 bytes takes a part of one. Words of equal
// seed and index are equal, however the buffer is cut.
struct FillParams {
  std::uint32_t* data = nullptr;  // 4-byte aligned
  std::int64_t bytes = 0;
  std::uint64_t seed = 1;
  std::uint32_t keep = ~std::uint32_t{0};
  std::uint32_t set = 0;
};

struct FillLaunch {
  FillParams params;
  Geometry geometry;
};

constexpr unsigned kFillThreads = 256;

// With its geometry, for any number of bytes.
inline FillLaunch fill_launch(const FillParams& params) {
  const std::int64_t words = params.bytes / 4 + 1;
  const std::int64_t blocks = (words + 4 * kFillThreads - 1) / (4 * kFillThreads);
  FillLaunch launch;
  launch.params = params;
  launch.geometry.grid_x = static_cast<unsigned>(blocks < 65536 ? blocks : 65536);
  launch.geometry.threads = kFillThreads;
  return launch;
}

}  // namespace memwall::cuda
