#pragma once

#include "kernels/cuda/elementwise.h"
#include "kernels/cuda/platform.cuh"

namespace memwall::cuda {

template <class Run>
void dispatch(const ElementwiseLaunch&, Run&&) {}

}  // namespace memwall::cuda
