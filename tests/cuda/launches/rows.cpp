#include "kernels/cuda/elementwise.cuh"
#include "kernels/cuda/quantize.cuh"
#include "kernels/cuda/router.cuh"
#include "tests/cuda/launches/run_launch.h"

namespace memwall::cuda {

void run_launch(const ElementwiseLaunch& launch, LaunchRunner& runner) { dispatch(launch, runner); }
void run_launch(const QuantizeLaunch& launch, LaunchRunner& runner) { dispatch(launch, runner); }
void run_launch(const RouterLaunch& launch, LaunchRunner& runner) { dispatch(launch, runner); }

}  // namespace memwall::cuda
