#include "cuda/module/launch.cuh"
#include "kernels/cuda/attention.cuh"

namespace memwall::cuda {

void start(const AttentionLaunch& launch, const Target& target) { dispatch(launch, Starter{target}); }

}  // namespace memwall::cuda
