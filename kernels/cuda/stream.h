// The memory probes: a read and STREAM's patterns, and the add baseline.
#pragma once

#include <cstdint>

#include "kernels/cuda/geometry.h"

namespace memwall::cuda {

enum class StreamKind : std::uint8_t { read, copy, scale, add, triad };
// Of the elements; all but add are over f32.
enum class StreamType : std::uint8_t { f32, f16, bf16 };

// c = f(a, b), elementwise: copy c = a, scale c = 0.4 a, add c = a + b, triad c = a + 0.4 b. A read leaves
// one partial sum a block in `sums`. Arrays are 16-byte aligned, `vectors` of 16 bytes each and then `tail`
// elements, fewer than a vector's; a read takes vectors alone.
struct StreamParams {
  const void* a = nullptr;
  const void* b = nullptr;
  void* c = nullptr;
  float* sums = nullptr;
  std::int64_t vectors = 0;
  std::int64_t tail = 0;
};

// How many blocks share an array.
enum class StreamGrid : std::uint8_t {
  persistent,  // as many as are resident at once: all start together and stride through it
  one_pass,    // as many as give each thread one batch of loads: the GPU hands them out as others end
};

struct StreamLaunch {
  StreamKind kind = StreamKind::read;
  StreamType type = StreamType::f32;
  int unroll = 4;          // of a read: 16-byte loads in flight a thread, 4, 8 or 16
  bool streaming = false;  // stores that pass the caches
  StreamParams params{};
  Geometry geometry{};
};

constexpr unsigned kStreamThreads = 256;
constexpr int kWriteUnroll = 4;  // of the patterns that write: loads in flight a thread and array

// Blocks of a probe that every multiprocessor holds at once. Kernels ask the compiler for as many
// (kMinBlocks): with 1024 threads or fewer and 65536 registers they fit all architectures, and a thousand
// threads with 4 loads each have 64 KiB in flight, where 4.8 TB/s over 132 multiprocessors and 0.8 us of
// latency need 29 KiB.
constexpr int resident_stream_blocks(StreamKind kind, int unroll) {
  if (kind != StreamKind::read) return 3;
  return unroll == 16 ? 2 : 4;
}

// The blocks for `vectors` an array. Small arrays are spread over all multiprocessors before a thread gets a
// second load.
unsigned stream_blocks(StreamKind kind, int unroll, std::int64_t vectors, StreamGrid grid,
                       int multiprocessors);

// `launch` with its geometry.
StreamLaunch with_geometry(StreamLaunch launch, StreamGrid grid, int multiprocessors);

}  // namespace memwall::cuda
