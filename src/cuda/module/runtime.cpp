// What the module exports.
#include "cuda/runtime.h"

#include "cuda/module/gpu.h"
#include "cuda/module/properties.h"
#include "cuda/seam_hash.h"

namespace memwall::cuda {
namespace {

class CudaRuntime final : public Runtime {
 public:
  int device_count() override { return count_devices(); }
  GpuProperties properties(int device) override { return read_properties(device); }
  std::unique_ptr<Gpu> open(int device) override { return open_gpu(device); }
  Versions versions() override { return read_versions(); }
};

}  // namespace
}  // namespace memwall::cuda

#define MEMWALL_EXPORT extern "C" __attribute__((visibility("default")))

MEMWALL_EXPORT std::uint64_t memwall_cuda_module_version() { return memwall::cuda::kSeamHash; }

MEMWALL_EXPORT memwall::cuda::Runtime* memwall_cuda_runtime() { return new memwall::cuda::CudaRuntime; }
