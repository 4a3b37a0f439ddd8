#include "cuda/module/launch.cuh"
#include "kernels/cuda/stream.cuh"

namespace memwall::cuda {

void start(const StreamLaunch& launch, const Target& target) { dispatch(launch, Starter{target}); }

}  // namespace memwall::cuda
