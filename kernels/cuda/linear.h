#pragma once

#include <cstdint>

#include "kernels/cuda/geometry.h"

namespace memwall::cuda {

struct LinearLaunch {
  Geometry geometry;
};

}  // namespace memwall::cuda
