// A device of CUDA's.
#pragma once

#include <memory>

#include "cuda/runtime.h"

namespace memwall::cuda {

// Throws RunError where there is no such device, where the module has no code for it, or where it has not the
// memory for the libraries' workspace.
std::unique_ptr<Gpu> open_gpu(int device);

}  // namespace memwall::cuda
