#include "kernels/cuda/attention.cuh"

#include "tests/cuda/launches/run_launch.h"

namespace memwall::cuda {

void run_launch(const AttentionLaunch& launch, LaunchRunner& runner) { dispatch(launch, runner); }

}  // namespace memwall::cuda
