#include "cuda/module/launch.cuh"
#include "kernels/cuda/recurrent.cuh"

namespace memwall::cuda {

void start(const RecurrentLaunch& launch, const Target& target) { dispatch(launch, Starter{target}); }

}  // namespace memwall::cuda
