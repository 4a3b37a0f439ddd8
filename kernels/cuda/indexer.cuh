#pragma once

#include "kernels/cuda/indexer.h"
#include "kernels/cuda/platform.cuh"

namespace memwall::cuda {

template <class Run>
void dispatch(const IndexerLaunch&, Run&&) {}

}  // namespace memwall::cuda
