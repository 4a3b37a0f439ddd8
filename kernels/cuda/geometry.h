// The shape of a kernel's launch. C++17 and free of CUDA's headers: the host computes it, tests check it.
#pragma once

namespace memwall::cuda {

constexpr int kWarp = 32;

struct Geometry {
  unsigned grid_x = 1;
  unsigned grid_y = 1;
  unsigned grid_z = 1;
  unsigned threads = 1;       // a block; equals the kernel's kThreads
  unsigned shared_bytes = 0;  // a block, all of it dynamic; 48 KiB at most, which every architecture grants
};

// What an architecture grants a launch, from the CUDA C++ programming guide, "Technical Specifications per
// Compute Capability" (CUDA 13.0).
struct ArchLimits {
  int major = 0;
  int minor = 0;
  int threads_a_block = 1024;
  int threads_a_multiprocessor = 2048;
  int blocks_a_multiprocessor = 32;
  int registers_a_multiprocessor = 65536;
  int shared_a_block = 48 << 10;  // without opting in to more
};

// Of a compute capability, from the same table; of one that is not in it, the least of those since 8.0.
// Blocks that a launch counts on being resident together are counted with these.
constexpr int threads_a_multiprocessor(int major, int minor) {
  if (major == 7) return 1024;
  const bool data_center = (major == 8 && minor == 0) || major == 9 || major == 10;
  return data_center ? 2048 : 1536;
}
// Bytes, of which each block takes kSharedOfSystem beside its own.
constexpr int shared_a_multiprocessor(int major, int minor) {
  if (major == 7) return 64 << 10;
  if (major == 9 || major == 10) return 228 << 10;
  return (major == 8 && (minor == 0 || minor == 7) ? 164 : 100) << 10;
}
constexpr int kSharedOfSystem = 1 << 10;

}  // namespace memwall::cuda
