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

// Where the bytes of a read wait until they are added up.
enum class ReadPath : std::uint8_t {
  loads,   // in registers: a thread issues its batch of loads before it uses the first
  copies,  // in shared memory, by asynchronous copies of 16 bytes a thread: from sm_80 on
  bulk,    // in shared memory, by asynchronous copies of whole chunks that one thread asks for: from sm_90 on
};

constexpr unsigned kStreamThreads = 256;
constexpr int kWriteUnroll = 4;       // of the patterns that write: loads in flight a thread and array
constexpr int kRingBytes = 32 << 10;  // of shared memory, which a block's asynchronous copies fill

struct StreamLaunch {
  StreamKind kind = StreamKind::read;
  StreamType type = StreamType::f32;
  ReadPath path = ReadPath::loads;
  int unroll = 4;                     // of a read: loads in flight a thread, 4, 8 or 16; bulk: chunks a ring
  unsigned threads = kStreamThreads;  // a block; where `full`, 512 too
  bool full = false;       // as many threads as a multiprocessor has, full_unroll loads each: f32 alone
  bool streaming = false;  // stores that pass the caches
  StreamParams params{};
  Geometry geometry{};
};

// Loads in flight a thread and array where a multiprocessor's threads all run: 2048 of them have 32 registers
// each, which hold 4 vectors and where they came from, or half of that where results go elsewhere.
constexpr int full_unroll(StreamKind kind) { return kind == StreamKind::read ? 4 : 2; }
constexpr int stream_unroll(const StreamLaunch& launch) {
  if (launch.full) return full_unroll(launch.kind);
  return launch.kind == StreamKind::read ? launch.unroll : kWriteUnroll;
}

// A block's dynamic shared memory: the ring, a bulk ring's barriers, and the warps' sums of a read.
constexpr unsigned stream_shared_bytes(StreamKind kind, ReadPath path, int unroll, unsigned threads) {
  if (kind != StreamKind::read) return 0;
  const unsigned sums = threads / kWarp * 4;
  if (path == ReadPath::loads) return sums;
  return kRingBytes + sums + (path == ReadPath::bulk ? static_cast<unsigned>(unroll) * 8 : 0);
}

// Blocks of a probe that every multiprocessor holds at once; kernels ask the compiler for as many
// (kMinBlocks). What they must have in flight is bandwidth times latency (Little's law): 29 kB a
// multiprocessor where 132 of them share 4.8 TB/s and a load takes 0.8 us (H200), 43 kB where 148 share 8
// TB/s (B200).
// - Loads: with 1024 threads or fewer and 65536 registers they fit all architectures, and a thousand threads
//   with 4 loads each have 64 KiB in flight.
// - `full`: 2048 threads with 4 loads, 128 KiB: twice the warps to choose from while one waits.
// - Copies: the rings that shared memory and threads leave room for, 192 KiB of 228 (sm_90), 96 of 100
//   (sm_86): no registers hold what is in flight. The driver divides a multiprocessor's memory between L1 and
//   shared so that the latter does not bound the blocks (CUDA C++ programming guide, "Shared Memory" of 9.0).
constexpr int resident_stream_blocks(const StreamLaunch& launch, int major, int minor) {
  const int by_threads = threads_a_multiprocessor(major, minor) / static_cast<int>(launch.threads);
  if (launch.path != ReadPath::loads) {
    const auto bytes =
        static_cast<int>(stream_shared_bytes(launch.kind, launch.path, launch.unroll, launch.threads));
    const int by_memory = shared_a_multiprocessor(major, minor) / (bytes + kSharedOfSystem);
    return by_memory < by_threads ? by_memory : by_threads;
  }
  if (launch.full) return by_threads;
  if (launch.kind != StreamKind::read) return 3;
  return launch.unroll == 16 ? 2 : 4;
}

// Whether the architecture has what the launch needs, and something to gain by it: where a multiprocessor has
// no more than 1024 threads, plain loads take them all.
constexpr bool stream_takes(const StreamLaunch& launch, int major, int minor) {
  if (launch.path == ReadPath::bulk) return major >= 9;
  if (launch.path == ReadPath::copies) return major >= 8;
  return !launch.full || threads_a_multiprocessor(major, minor) > 1024;
}

// `launch` with its geometry for `multiprocessors` of that architecture. Small arrays are spread over all
// multiprocessors before a thread gets a second load. Asynchronous copies are persistent.
StreamLaunch with_geometry(StreamLaunch launch, StreamGrid grid, const ArchLimits& arch, int multiprocessors);

}  // namespace memwall::cuda
