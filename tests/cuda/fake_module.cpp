// A CUDA backend for the tests of loading it and of the command line: a module of its own, whose machine is
// the one that MEMWALL_FAKE_MACHINE names. Its memory is the host's; launches do nothing.
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>

#include "cuda/runtime.h"
#include "input/error.h"

namespace memwall::cuda {
namespace {

std::string machine() {
  const char* name = std::getenv("MEMWALL_FAKE_MACHINE");
  return name != nullptr ? name : "";
}

// Ends the program where the module must not even be loaded.
[[maybe_unused]] const bool kLoaded = [] {
  if (machine() == "must-not-load") std::abort();
  return true;
}();

class HostGpu final : public Gpu {
 public:
  explicit HostGpu(GpuProperties properties) : properties_(std::move(properties)) {}
  const GpuProperties& properties() const override { return properties_; }
  std::int64_t free_bytes() override { return properties_.total_bytes; }
  void* allocate(std::int64_t bytes) override {
    return std::aligned_alloc(256, static_cast<std::size_t>((bytes + 255) / 256 * 256));
  }
  void release(void* memory) noexcept override { std::free(memory); }
  void upload(void* to, const void* from, std::int64_t bytes) override {
    std::memcpy(to, from, static_cast<std::size_t>(bytes));
  }
  void download(void* to, const void* from, std::int64_t bytes) override {
    std::memcpy(to, from, static_cast<std::size_t>(bytes));
  }
  void zero(void* memory, std::int64_t bytes) override {
    std::memset(memory, 0, static_cast<std::size_t>(bytes));
  }
  void launch(const Launch&) override { fail("cudaGraphAddKernelNode"); }
  std::vector<GemmArm> gemm_arms(const GemmProblem&) override { return {}; }
  void gemm(const GemmProblem&, int, const GemmOperands&) override { fail("cublasGemmEx"); }
  void synchronize() override { fail("cudaStreamSynchronize"); }
  double time(const std::function<void()>& launches, Timing) override {
    launches();
    return 1e-6;
  }
  Clocks clocks() override {
    Clocks clocks;
    clocks.why_not = "libnvidia-ml.so.1 is not there";
    return clocks;
  }

 private:
  static void fail(const char* call) {
    if (machine() == "fails-running")
      throw RunError(std::string("fake.cu:7: ") + call + ": an illegal memory access was encountered");
  }
  GpuProperties properties_;
};

class HostRuntime final : public Runtime {
 public:
  int device_count() override {
    if (machine() == "no-driver")
      throw RunError("fake.cu:1: cudaGetDeviceCount: CUDA driver version is insufficient");
    return machine() == "no-device" ? 0 : 2;
  }
  GpuProperties properties(int device) override {
    GpuProperties properties;
    properties.index = device;
    properties.name = "NVIDIA H200";
    properties.pci_id = "0000:3b:00.0";
    properties.arch.major = 9;
    properties.multiprocessors = 132;
    properties.l2_bytes = std::int64_t{60} << 20;
    properties.total_bytes = machine() == "small" ? std::int64_t{64} << 20 : std::int64_t{143'771} << 20;
    properties.sm_clock_kHz = 1'980'000;
    properties.memory_clock_kHz = 3'201'000;
    properties.memory_bus_bits = 6144;
    properties.ecc = true;
    return properties;
  }
  std::unique_ptr<Gpu> open(int device) override {
    if (machine() == "does-not-open")
      throw RunError("fake.cu:2: cudaSetDevice: all CUDA-capable devices are busy or unavailable");
    return std::make_unique<HostGpu>(properties(device));
  }
  Versions versions() override { return {"13.0", "13.0", "13.1.0", "13.1.0"}; }
};

}  // namespace
}  // namespace memwall::cuda

extern "C" {
int memwall_cuda_module_version() {
  return memwall::cuda::kModuleVersion + (memwall::cuda::machine() == "other-build" ? 1 : 0);
}
memwall::cuda::Runtime* memwall_cuda_runtime() { return new memwall::cuda::HostRuntime; }
}
