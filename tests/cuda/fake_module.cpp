// A CUDA backend for tests of loading it, of the command line and of scripts/gpu-check.sh: a module of its
// own, whose machine is the one that MEMWALL_FAKE_MACHINE names. Every machine has two GPUs but `no-device`.
//
//   (unset)          H200s that do nothing: a launch leaves memory as it is, and takes no time
//   executes         small GPUs that run every kernel, on the host, timed by a model, so slow that few
//                    launches make a sample: a model of two small layers is measured in seconds
//   small            H200s of 64 MiB
//   no-driver        asking for the devices fails
//   no-device        there is none
//   other-build      the module is of another version
//   must-not-load    loading it ends the program
//   fails-running    opens; every launch fails, as every later call does
//
// Behind it, separated by commas, what goes wrong: does-not-open (opening a device fails with RunError), and
// on a machine that executes the faults of faulty_gpu.h: "executes,lost-at:AttentionKernel".
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "cuda/runtime.h"
#include "cuda/seam_hash.h"
#include "input/error.h"
#include "tests/cuda/faulty_gpu.h"

namespace memwall::cuda {
namespace {

std::vector<std::string> words() {
  const char* value = std::getenv("MEMWALL_FAKE_MACHINE");
  const std::string text = value != nullptr ? value : "";
  std::vector<std::string> words;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    words.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

std::string machine() { return words().front(); }

bool is_told(const std::string& word) {
  for (const std::string& each : words()) {
    if (each == word) return true;
  }
  return false;
}

// Ends the program where the module must not even be loaded.
[[maybe_unused]] const bool kLoaded = [] {
  if (machine() == "must-not-load") std::abort();
  return true;
}();

// Memory of the host's; launches do nothing.
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
    require(device);
    GpuProperties properties;
    if (machine() == "executes") properties = faulty_gpu_properties();
    properties.index = device;
    if (machine() == "executes") return properties;
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
    if (is_told("does-not-open"))
      throw RunError("fake.cu:2: cudaSetDevice: all CUDA-capable devices are busy or unavailable");
    require(device);
    if (machine() == "executes") return make_faulty_gpu(device, words());
    return std::make_unique<HostGpu>(properties(device));
  }
  Versions versions() override { return {"13.0", "13.0", "13.1.0", "13.1.0", ""}; }

 private:
  static void require(int device) {
    if (device < 0 || device > 1)
      throw RunError("fake.cu:6: there is no device cuda:" + std::to_string(device) + " among 2");
  }
};

}  // namespace
}  // namespace memwall::cuda

extern "C" {
__attribute__((visibility("default"))) std::uint64_t memwall_cuda_module_version() {
  return memwall::cuda::kSeamHash + (memwall::cuda::machine() == "other-build" ? 1 : 0);
}
__attribute__((visibility("default"))) memwall::cuda::Runtime* memwall_cuda_runtime() {
  return new memwall::cuda::HostRuntime;
}
}
