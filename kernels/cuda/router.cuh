#pragma once

#include "kernels/cuda/platform.cuh"
#include "kernels/cuda/router.h"

namespace memwall::cuda {

template <class Run>
void dispatch(const RouterLaunch&, Run&&) {}

}  // namespace memwall::cuda
