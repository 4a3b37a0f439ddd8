// CUDA's runtime for the module's host code: a device that does nothing, and whose calls fail as told.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "cuda/runtime.h"

namespace memwall::cuda {

struct FakeCuda {
  // The next call of that name gives this status: "cudaMalloc", "a launch".
  std::map<std::string, std::deque<cudaError_t>> statuses;
  // What a kernel did: the next call that waits for the device, or asks it, tells it, and every one behind
  // that.
  cudaError_t broken = cudaSuccess;
  int sm_clock_kHz = 2'000'000;

  bool noticed = false;            // of `broken`
  cudaError_t last = cudaSuccess;  // cudaGetLastError's
  bool capturing = false;
  int waits_in_a_capture = 0;  // which spoil it
  bool spoilt = false;
  std::vector<std::uint64_t> delays;  // cycles

  // What a library does at a product, and at its opening; empty: it succeeds.
  std::string library_fails;
  std::string library_does_not_open;
};

// The one of this process.
FakeCuda& fake_cuda();

}  // namespace memwall::cuda
