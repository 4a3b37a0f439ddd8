#pragma once

#include "kernels/cuda/linear.h"
#include "kernels/cuda/platform.cuh"

namespace memwall::cuda {

template <class Run>
void dispatch(const LinearLaunch&, Run&&) {}

}  // namespace memwall::cuda
