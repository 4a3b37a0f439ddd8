#include "cuda/module/launch.cuh"
#include "kernels/cuda/latent.cuh"

namespace memwall::cuda {

void start(const LatentLaunch& launch, const Target& target) { dispatch(launch, Starter{target}); }

}  // namespace memwall::cuda
