// Starts a launch's kernel on a stream. One function a family, each in a .cu of its own, so that they compile
// side by side.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "cuda/module/launched.h"
#include "cuda/runtime.h"
#include "kernels/cuda/launch.h"

namespace memwall::cuda {

struct Target {
  cudaStream_t stream = nullptr;
  Launched& launched;
};

// Each throws RunError with the kernel's name where the launch is refused.
void start(const FillLaunch& launch, const Target& target);
void start(const StreamLaunch& launch, const Target& target);
void start(const LinearLaunch& launch, const Target& target);
void start(const AttentionLaunch& launch, const Target& target);
void start(const LatentLaunch& launch, const Target& target);
void start(const IndexerLaunch& launch, const Target& target);
void start(const ElementwiseLaunch& launch, const Target& target);
void start(const RouterLaunch& launch, const Target& target);
void start(const GatherLaunch& launch, const Target& target);
void start(const RecurrentLaunch& launch, const Target& target);
void start(const QuantizeLaunch& launch, const Target& target);

// Throws RunError where the module holds no code that the current device, of these properties, can run.
void require_code(const GpuProperties& properties);

// Keeps the GPU busy for at least so many cycles of its multiprocessors' clock.
void start_delay(std::uint64_t cycles, const Target& target);

}  // namespace memwall::cuda
