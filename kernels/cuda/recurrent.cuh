#pragma once

#include "kernels/cuda/platform.cuh"
#include "kernels/cuda/recurrent.h"

namespace memwall::cuda {

template <class Run>
void dispatch(const RecurrentLaunch&, Run&&) {}

}  // namespace memwall::cuda
