#include "kernels/cuda/recurrent.cuh"

#include "tests/cuda/launches/run_launch.h"

namespace memwall::cuda {

void run_launch(const RecurrentLaunch& launch, LaunchRunner& runner) { dispatch(launch, runner); }

}  // namespace memwall::cuda
