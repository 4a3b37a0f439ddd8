#pragma once

#include <cstdint>

#include "kernels/cuda/geometry.h"

namespace memwall::cuda {

struct RecurrentLaunch {
  Geometry geometry;
};

}  // namespace memwall::cuda
