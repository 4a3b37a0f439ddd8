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
  std::unique_ptr<Gpu> open(int device) override { return open_gpu(device, no_library_); }
  Versions versions() override {
    Versions versions = read_versions();
    if (no_library_.empty()) return versions;
    versions.cublas.clear();
    versions.cublasLt.clear();
    versions.no_cublas = no_library_;
    return versions;
  }

 private:
  std::string no_library_;  // why the device that was opened last has none
};

}  // namespace
}  // namespace memwall::cuda

#define MEMWALL_EXPORT extern "C" __attribute__((visibility("default")))

MEMWALL_EXPORT std::uint64_t memwall_cuda_module_version() { return memwall::cuda::kSeamHash; }

MEMWALL_EXPORT memwall::cuda::Runtime* memwall_cuda_runtime() { return new memwall::cuda::CudaRuntime; }
