// Whether a test that needs a GPU runs, is skipped or fails.
#pragma once

#include <memory>
#include <string>

#include "cuda/open_device.h"
#include "cuda/runtime.h"

namespace memwall::cuda {

// A GPU, or why there is none.
struct GpuHere {
  std::unique_ptr<Runtime> runtime;
  std::unique_ptr<Gpu> gpu;
  std::string skipped;  // this machine, or this build, has none
  std::string failed;   // it has one, which does not open
};

// Opens the first GPU. A machine with an NVIDIA device or driver has one, unless CUDA_VISIBLE_DEVICES hides
// all; with `required` (MEMWALL_REQUIRE_GPU=1 in the environment) every machine shall have one.
GpuHere find_gpu(const DeviceSources& sources, bool required);

// MEMWALL_REQUIRE_GPU is set and not 0.
bool gpu_required();

}  // namespace memwall::cuda
