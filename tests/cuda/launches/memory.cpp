#include "kernels/cuda/fill.cuh"
#include "kernels/cuda/gather.cuh"
#include "kernels/cuda/stream.cuh"
#include "tests/cuda/launches/run_launch.h"

namespace memwall::cuda {

void run_launch(const FillLaunch& launch, LaunchRunner& runner) { dispatch(launch, runner); }
void run_launch(const StreamLaunch& launch, LaunchRunner& runner) { dispatch(launch, runner); }
void run_launch(const GatherLaunch& launch, LaunchRunner& runner) { dispatch(launch, runner); }

}  // namespace memwall::cuda
