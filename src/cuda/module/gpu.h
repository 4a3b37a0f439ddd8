// A device of CUDA's.
#pragma once

#include <memory>
#include <string>

#include "cuda/runtime.h"

namespace memwall::cuda {

// Throws RunError where there is no such device, where it does not open (never DeviceLost: another process
// would find it as this one does), or where the module has no code for it. `no_library` becomes why it has no
// library for matrix products; empty where it has.
std::unique_ptr<Gpu> open_gpu(int device, std::string& no_library);

}  // namespace memwall::cuda
