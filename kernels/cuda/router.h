#pragma once

#include <cstdint>

#include "kernels/cuda/geometry.h"

namespace memwall::cuda {

struct RouterLaunch {
  Geometry geometry;
};

}  // namespace memwall::cuda
