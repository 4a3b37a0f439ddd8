#include "cuda/module/launch.cuh"
#include "kernels/cuda/linear.cuh"

namespace memwall::cuda {

void start(const LinearLaunch& launch, const Target& target) { dispatch(launch, Starter{target}); }

}  // namespace memwall::cuda
