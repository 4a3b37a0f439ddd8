#pragma once

#include "kernels/cuda/gather.h"
#include "kernels/cuda/platform.cuh"

namespace memwall::cuda {

template <class Run>
void dispatch(const GatherLaunch&, Run&&) {}

}  // namespace memwall::cuda
