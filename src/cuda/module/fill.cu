#include "cuda/module/launch.cuh"
#include "kernels/cuda/fill.cuh"

namespace memwall::cuda {

void start(const FillLaunch& launch, const Target& target) { dispatch(launch, Starter{target}); }

}  // namespace memwall::cuda
