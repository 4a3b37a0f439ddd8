#include "cuda/module/launch.cuh"
#include "kernels/cuda/elementwise.cuh"

namespace memwall::cuda {

void start(const ElementwiseLaunch& launch, const Target& target) { dispatch(launch, Starter{target}); }

}  // namespace memwall::cuda
