#pragma once

#include "kernels/cuda/attention.h"
#include "kernels/cuda/platform.cuh"

namespace memwall::cuda {

template <class Run>
void dispatch(const AttentionLaunch&, Run&&) {}

}  // namespace memwall::cuda
