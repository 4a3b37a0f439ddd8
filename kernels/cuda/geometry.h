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

}  // namespace memwall::cuda
