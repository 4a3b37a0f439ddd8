#pragma once

#include <cstdint>

#include "kernels/cuda/geometry.h"

namespace memwall::cuda {

struct ElementwiseLaunch {
  Geometry geometry;
};

}  // namespace memwall::cuda
