#include "cuda/module/launch.cuh"
#include "kernels/cuda/quantize.cuh"

namespace memwall::cuda {

void start(const QuantizeLaunch& launch, const Target& target) { dispatch(launch, Starter{target}); }

}  // namespace memwall::cuda
