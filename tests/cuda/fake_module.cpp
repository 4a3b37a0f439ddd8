// A CUDA backend for tests of loading it, of the command line and of scripts/gpu-check.sh: a module of its
// own, whose machine is the one that MEMWALL_FAKE_MACHINE names. Every machine has two GPUs but `no-device`.
//
//   (unset)          H200s that do nothing: a launch leaves memory as it is, and takes no time
//   executes         small GPUs that run every kernel, on the host (fake_gpu.h), timed by a model, so slow
//   that
//                    few launches make a sample: a model of two small layers is measured in seconds
//   small            H200s of 64 MiB
//   no-driver        asking for the devices fails
//   no-device        there is none
//   other-build      the module is of another version
//   must-not-load    loading it ends the program
//   fails-running    opens; every launch fails, as every later call does
//
// Behind it, separated by commas, what goes wrong. KERNEL is a part of a kernel's name as C++ spells it
// ("AttentionKernel", "ReadKernel<4>"), or of a library's arm ("fake library"); N counts those kernels
// from 1.
//
//   does-not-open        opening a device fails with RunError
//   lost-at:KERNEL[#N]   the launch is fine; the next call that waits, and every call behind it but
//   release(),
//                        throws DeviceLost. Without #N: at the first one that is launched
//   hangs-at:KERNEL[#N]  the launch is fine; the next call that waits never returns
//   crashes-at:KERNEL[#N] SIGSEGV
//   refuses-at:KERNEL    every launch of it throws UnsupportedError
//   fails-at:KERNEL      every launch of it throws RunError, and the device goes on
//   wrong-at:KERNEL      every launch of it does nothing, so that its outputs are wrong
//   pauses:MS            each sample takes so long, so that a run lasts
//
// These need a machine that executes: "executes,lost-at:AttentionKernel". MEMWALL_FAKE_ONCE names a file:
// where it is there, the faults that end a process (lost, hangs, crashes) stay out; the first of them makes
// it, so that a process started anew goes on.
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "bench/device_lost.h"
#include "bench/unsupported.h"
#include "cuda/runtime.h"
#include "cuda/seam_hash.h"
#include "input/error.h"
#include "tests/cuda/fake_gpu.h"

namespace memwall::cuda {
namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

std::vector<std::string> words() {
  const std::string text = variable("MEMWALL_FAKE_MACHINE");
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

// One of the faults that a kernel's launch brings.
class Fault {
 public:
  // The one that `word` tells; none where it tells something else.
  Fault(const std::string& word, const std::string& kind) {
    if (word.rfind(kind + ":", 0) != 0) return;
    kernel_ = word.substr(kind.size() + 1);
    if (const std::size_t number = kernel_.find('#'); number != std::string::npos) {
      at_ = std::stoi(kernel_.substr(number + 1));
      kernel_.resize(number);
    }
  }
  // A launch of that kernel, and whether it is one that this fault is of.
  bool meets(const std::string& kernel) { return is_of(kernel) && ++launches_ == at_; }
  bool is_of(const std::string& kernel) const {
    return !kernel_.empty() && kernel.find(kernel_) != std::string::npos;
  }

 private:
  std::string kernel_;
  int at_ = 1;
  int launches_ = 0;
};

struct Faults {
  Fault lost, hangs, crashes, refuses, fails, wrong;
  explicit Faults(const std::string& word)
      : lost(word, "lost-at"),
        hangs(word, "hangs-at"),
        crashes(word, "crashes-at"),
        refuses(word, "refuses-at"),
        fails(word, "fails-at"),
        wrong(word, "wrong-at") {}
};

// True the first time; once the file of MEMWALL_FAKE_ONCE is there, false.
bool is_first() {
  const std::string file = variable("MEMWALL_FAKE_ONCE");
  if (file.empty()) return true;
  const int made = ::open(file.c_str(), O_CREAT | O_EXCL | O_WRONLY, 0600);
  if (made < 0) return false;
  ::close(made);
  return true;
}

GpuProperties small_properties() {
  GpuProperties properties = fake_properties();
  properties.multiprocessors = 1;
  properties.l2_bytes = 4 << 10;  // little memory is cold
  return properties;
}

// Runs kernels, and fails as it is told to.
class ExecutingGpu final : public Gpu {
 public:
  explicit ExecutingGpu(int device) : gpu_(numbered(device)) {
    gpu_.library = true;
    gpu_.seconds_a_launch = 0.06;
    gpu_.bytes_per_s = 50e6;
    gpu_.seconds_alone = 1;
    gpu_.clocks_.why_not = "libnvidia-ml.so.1 is not there";
    gpu_.ask_before_kernels([this](const std::string& kernel) { return begins(kernel); });
    for (const std::string& word : words()) {
      faults_.emplace_back(word);
      if (word.rfind("pauses:", 0) == 0) pause_ = std::chrono::milliseconds(std::stoi(word.substr(7)));
    }
  }
  const GpuProperties& properties() const override { return gpu_.properties(); }
  std::int64_t free_bytes() override {
    answer("cudaMemGetInfo");
    return gpu_.free_bytes();
  }
  void* allocate(std::int64_t bytes) override {
    answer("cudaMalloc");
    return gpu_.allocate(bytes);
  }
  void release(void* memory) noexcept override { gpu_.release(memory); }
  void upload(void* to, const void* from, std::int64_t bytes) override {
    answer("cudaMemcpyAsync");
    gpu_.upload(to, from, bytes);
  }
  void download(void* to, const void* from, std::int64_t bytes) override {
    answer("cudaMemcpyAsync");
    gpu_.download(to, from, bytes);
  }
  void zero(void* memory, std::int64_t bytes) override {
    answer("cudaMemsetAsync");
    gpu_.zero(memory, bytes);
  }
  void launch(const Launch& launch) override {
    if (told_lost_) answer("cudaLaunchKernel");
    gpu_.launch(launch);
  }
  std::vector<GemmArm> gemm_arms(const GemmProblem& problem) override {
    if (told_lost_) answer("cublasLtMatmulAlgoGetHeuristic");
    return gpu_.gemm_arms(problem);
  }
  void gemm(const GemmProblem& problem, int arm, const GemmOperands& operands) override {
    if (told_lost_) answer("cublasGemmEx");
    if (begins("fake library")) gpu_.gemm(problem, arm, operands);
  }
  void synchronize() override {
    answer("cudaStreamSynchronize");
    gpu_.synchronize();
  }
  double time(const std::function<void()>& launches, Timing timing) override {
    answer("cudaEventRecord");
    std::this_thread::sleep_for(pause_);
    const double seconds = gpu_.time(launches, timing);
    answer("cudaEventSynchronize");
    return seconds;
  }
  Clocks clocks() override { return gpu_.clocks(); }

 private:
  static GpuProperties numbered(int device) {
    GpuProperties properties = small_properties();
    properties.index = device;
    return properties;
  }

  // A kernel is launched; whether it shall run.
  bool begins(const std::string& kernel) {
    for (Faults& faults : faults_) {
      if (faults.refuses.is_of(kernel))
        throw UnsupportedError("fake.cu:3: " + kernel + ": CUBLAS_STATUS_NOT_SUPPORTED");
      if (faults.fails.is_of(kernel)) throw RunError("fake.cu:4: launching " + kernel + ": invalid argument");
      if (faults.crashes.meets(kernel) && is_first()) {
        ::signal(SIGSEGV, SIG_DFL);
        ::raise(SIGSEGV);
      }
      if (faults.lost.meets(kernel) && is_first()) lost_at_ = kernel;
      if (faults.hangs.meets(kernel) && is_first()) hangs_ = true;
      if (faults.wrong.is_of(kernel)) return false;
    }
    return true;
  }

  // Where the GPU answers, if it does.
  void answer(const char* call) {
    while (hangs_) ::pause();
    if (lost_at_.empty()) return;
    told_lost_ = true;
    throw DeviceLost(std::string("fake.cu:5: ") + call + ": an illegal memory access was encountered (" +
                     lost_at_ + ")");
  }

  FakeGpu gpu_;
  std::vector<Faults> faults_;
  std::chrono::milliseconds pause_{0};
  std::string lost_at_;     // the kernel; empty: it is not
  bool told_lost_ = false;  // a call has said so
  bool hangs_ = false;
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
    if (machine() == "executes") properties = small_properties();
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
    if (machine() == "executes") return std::make_unique<ExecutingGpu>(device);
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
