// For programs that run work of their own beside the CPU device's, on its threads.
#pragma once

#include "bench/cpu_operands.h"
#include "bench/device.h"

namespace memwall {

// The device's threads. Throws std::bad_cast where it is not the CPU device.
CpuContext& cpu_context(Device& device);

}  // namespace memwall
