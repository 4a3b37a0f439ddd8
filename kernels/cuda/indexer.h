#pragma once

#include <cstdint>

#include "kernels/cuda/geometry.h"

namespace memwall::cuda {

struct IndexerLaunch {
  Geometry geometry;
};

}  // namespace memwall::cuda
