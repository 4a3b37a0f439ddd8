#include "cuda/module/launch.cuh"
#include "kernels/cuda/indexer.cuh"

namespace memwall::cuda {

void start(const IndexerLaunch& launch, const Target& target) { dispatch(launch, Starter{target}); }

}  // namespace memwall::cuda
