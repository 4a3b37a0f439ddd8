#pragma once

#include "kernels/cuda/latent.h"
#include "kernels/cuda/platform.cuh"

namespace memwall::cuda {

template <class Run>
void dispatch(const LatentLaunch&, Run&&) {}

}  // namespace memwall::cuda
