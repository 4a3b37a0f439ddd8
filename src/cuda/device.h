// A GPU as a device of the measuring session.
#pragma once

#include <memory>

#include "bench/device.h"
#include "cuda/runtime.h"

namespace memwall::cuda {

std::unique_ptr<Device> make_device(std::unique_ptr<Gpu> gpu);

}  // namespace memwall::cuda
