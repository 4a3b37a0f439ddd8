// The kernels that are the module's own.
#include "cuda/module/launch.cuh"
#include "kernels/cuda/platform.cuh"

namespace memwall::cuda {
struct DelayParams {
  std::uint64_t cycles;
};

struct DelayKernel {
  using Params = DelayParams;
  static constexpr unsigned kThreads = 1;
  static MEMWALL_DEVICE void run(const Params& p, std::byte*) {
    const std::uint64_t start = now();
    while (now() - start < p.cycles) {
    }
  }

 private:
  // Cycles, not the nanoseconds of %globaltimer: those may stand still for a millisecond, or for good on a
  // virtual machine.
  static MEMWALL_DEVICE std::uint64_t now() {
    std::uint64_t cycles = 0;
    asm volatile("mov.u64 %0, %%clock64;" : "=l"(cycles));
    return cycles;
  }
};

void require_code(const GpuProperties& properties) {
  cudaFuncAttributes attributes{};
  const cudaError_t status = cudaFuncGetAttributes(
      &attributes, reinterpret_cast<const void*>(&entry<DelayKernel, DelayKernel::kThreads>));
  // The last three where there is PTX alone, and the driver cannot compile it.
  if (status == cudaErrorNoKernelImageForDevice || status == cudaErrorInvalidDeviceFunction ||
      status == cudaErrorUnsupportedPtxVersion || status == cudaErrorJitCompilerNotFound ||
      status == cudaErrorJitCompilationDisabled) {
    (void)cudaGetLastError();
    throw RunError("memwall was built for CUDA architectures " MEMWALL_CUDA_BUILT_FOR ", not for sm_" +
                   std::to_string(properties.arch.major) + std::to_string(properties.arch.minor) + ", the " +
                   properties.name + "'s");
  }
  check(status, __FILE__, __LINE__, "cudaFuncGetAttributes");
}

void start_delay(std::uint64_t cycles, const Target& target) {
  Geometry geometry;
  geometry.threads = DelayKernel::kThreads;
  Starter{target}.operator()<DelayKernel>(geometry, DelayParams{cycles});
}

}  // namespace memwall::cuda
