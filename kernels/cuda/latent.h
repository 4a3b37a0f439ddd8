#pragma once

#include <cstdint>

#include "kernels/cuda/geometry.h"

namespace memwall::cuda {

struct LatentLaunch {
  Geometry geometry;
};

}  // namespace memwall::cuda
