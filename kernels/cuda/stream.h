// The memory probes: a read and STREAM's patterns, over f32.
#pragma once

#include <cstdint>

#include "kernels/cuda/geometry.h"

namespace memwall::cuda {

enum class StreamKind : std::uint8_t { read, copy, scale, add, triad };

// c = f(a, b), elementwise: copy c = a, scale c = 0.4 a, add c = a + b, triad c = a + 0.4 b. A read leaves
// one partial sum a block in `sums`. Arrays are 16-byte aligned, `vectors` of 16 bytes each.
struct StreamParams {
  const float* a = nullptr;
  const float* b = nullptr;
  float* c = nullptr;
  float* sums = nullptr;
  std::int64_t vectors = 0;
};

struct StreamLaunch {
  StreamKind kind = StreamKind::read;
  int unroll = 4;          // of a read: 16-byte loads in flight a thread, 4, 8 or 16
  bool streaming = false;  // stores that pass the caches
  StreamParams params;
  Geometry geometry;
};

constexpr unsigned kStreamThreads = 256;

}  // namespace memwall::cuda
