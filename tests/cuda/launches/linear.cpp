#include "kernels/cuda/linear.cuh"

#include "tests/cuda/launches/run_launch.h"

namespace memwall::cuda {

void run_launch(const LinearLaunch& launch, LaunchRunner& runner) { dispatch(launch, runner); }

}  // namespace memwall::cuda
