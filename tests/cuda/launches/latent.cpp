#include "kernels/cuda/latent.cuh"

#include "kernels/cuda/indexer.cuh"
#include "tests/cuda/launches/run_launch.h"

namespace memwall::cuda {

void run_launch(const LatentLaunch& launch, LaunchRunner& runner) { dispatch(launch, runner); }
void run_launch(const IndexerLaunch& launch, LaunchRunner& runner) { dispatch(launch, runner); }

}  // namespace memwall::cuda
