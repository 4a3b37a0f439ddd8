#pragma once

#include <cstdint>

#include "kernels/cuda/geometry.h"

namespace memwall::cuda {

struct GatherLaunch {
  Geometry geometry;
};

}  // namespace memwall::cuda
