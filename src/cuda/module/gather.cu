#include "cuda/module/launch.cuh"
#include "kernels/cuda/gather.cuh"

namespace memwall::cuda {

void start(const GatherLaunch& launch, const Target& target) { dispatch(launch, Starter{target}); }

}  // namespace memwall::cuda
