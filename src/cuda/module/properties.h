// What CUDA tells of a device, of its driver and of itself.
#pragma once

#include "cuda/runtime.h"

namespace memwall::cuda {

// Throws RunError, in one line that says what to do, where there is no driver or one older than the runtime
// needs.
int count_devices();
// Throws RunError where there is no such device.
GpuProperties read_properties(int device);
// Opens the matrix libraries.
Versions read_versions();

}  // namespace memwall::cuda
