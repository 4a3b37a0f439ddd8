#include "cuda/module/launch.cuh"
#include "kernels/cuda/router.cuh"

namespace memwall::cuda {

void start(const RouterLaunch& launch, const Target& target) { dispatch(launch, Starter{target}); }

}  // namespace memwall::cuda
