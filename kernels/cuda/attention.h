#pragma once

#include <cstdint>

#include "kernels/cuda/geometry.h"

namespace memwall::cuda {

struct AttentionLaunch {
  Geometry geometry;
};

}  // namespace memwall::cuda
