#include "cuda/module/gpu.h"

#include <cuda_runtime_api.h>

#include <array>
#include <cstdio>
#include <memory>
#include <variant>

#include "cuda/module/graph.h"
#include "cuda/module/kernels.h"
#include "cuda/module/matrix_library.h"
#include "cuda/module/nvml.h"
#include "cuda/module/properties.h"
#include "cuda/module/stream.h"

namespace memwall::cuda {
namespace {

// CUDA's current device is a thread's.
void use(int device) {
  thread_local int current = -1;
  if (current == device) return;
  MEMWALL_CHECK(cudaSetDevice(device));
  current = device;
}

std::string gibibytes(std::int64_t bytes) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.2f GiB", static_cast<double>(bytes) / (1 << 30));
  return text.data();
}

class CudaGpu final : public Gpu {
 public:
  CudaGpu(const GpuProperties& properties, std::string& no_library)
      : properties_(properties), nvml_(properties.pci_id) {
    no_library = open_library();
    synchronize();
  }

  CudaGpu(const CudaGpu&) = delete;
  CudaGpu& operator=(const CudaGpu&) = delete;
  // What the members give back is this device's, whichever is current.
  ~CudaGpu() override {
    try {
      use(properties_.index);
    } catch (const RunError&) {
    }
  }

  const GpuProperties& properties() const override { return properties_; }

  std::int64_t free_bytes() override {
    use(properties_.index);
    std::size_t free = 0;
    std::size_t total = 0;
    MEMWALL_CHECK(cudaMemGetInfo(&free, &total));
    return static_cast<std::int64_t>(free);
  }

  void* allocate(std::int64_t bytes) override {
    const std::int64_t free = free_bytes();
    if (bytes > free)
      throw RunError(gibibytes(bytes) + " do not fit: " + properties_.name + " has " + gibibytes(free) +
                     " free");
    void* memory = nullptr;
    MEMWALL_CHECK(cudaMalloc(&memory, static_cast<std::size_t>(bytes)));
    return memory;
  }

  // cudaFree waits for what runs.
  void release(void* memory) noexcept override { let_go(cudaFree(memory)); }

  void upload(void* to, const void* from, std::int64_t bytes) override {
    copy(to, from, bytes, cudaMemcpyHostToDevice);
  }
  void download(void* to, const void* from, std::int64_t bytes) override {
    copy(to, from, bytes, cudaMemcpyDeviceToHost);
  }
  void zero(void* memory, std::int64_t bytes) override {
    use(properties_.index);
    MEMWALL_CHECK(cudaMemsetAsync(memory, 0, static_cast<std::size_t>(bytes), stream_.get()));
    synchronize();
  }

  void launch(const Launch& launch) override {
    use(properties_.index);
    std::visit([&](const auto& l) { start(l, target()); }, launch);
  }

  std::vector<GemmArm> gemm_arms(const GemmProblem& problem) override {
    use(properties_.index);
    if (library_ == nullptr) return {};
    return with_library([&] { return library_->arms(problem); });
  }

  void gemm(const GemmProblem& problem, int arm, const GemmOperands& operands) override {
    use(properties_.index);
    if (library_ == nullptr) throw UnsupportedError("no library was found that multiplies matrices");
    with_library([&] { library_->run(problem, arm, operands, launched_); });
  }

  void synchronize() override {
    use(properties_.index);
    const cudaError_t status = cudaStreamSynchronize(stream_.get());
    if (status != cudaSuccess)
      check(status, __FILE__, __LINE__, ("waiting for the GPU" + launched_.words()).c_str());
    launched_.clear();
  }

  double time(const std::function<void()>& launches, Timing timing) override {
    use(properties_.index);
    if (timing == Timing::stream) return seconds_of([&] { launches(); });
    Graph graph(stream_, launches);
    synchronize_keeping_names();
    // Handing a graph over takes the host some microseconds, during which the GPU would wait with its clock
    // running. It is kept busy meanwhile.
    start_delay(cycles_of(kDelay_ns + kDelayPerNode_ns * graph.nodes()), target());
    return seconds_of([&] { graph.launch(stream_); });
  }

  Clocks clocks() override { return nvml_.clocks(); }

 private:
  // Above what launching a graph takes the host: 2 to 3 us and, with drivers before CUDA 12.6, 0.2 us a node
  // (NVIDIA's technical blog, "Constant Time Launch for Straight-Line CUDA Graphs", 2024).
  static constexpr std::uint64_t kDelay_ns = 30'000;
  static constexpr std::uint64_t kDelayPerNode_ns = 250;

  // At the highest clock there is; where it is lower, the delay is longer.
  std::uint64_t cycles_of(std::uint64_t nanoseconds) const {
    constexpr int kNoClock_kHz = 2'000'000;  // where the driver tells none
    const int kHz = properties_.sm_clock_kHz > 0 ? properties_.sm_clock_kHz : kNoClock_kHz;
    return nanoseconds * static_cast<std::uint64_t>(kHz) / 1'000'000;
  }

  // What is created below is the current device's.
  struct Current {
    explicit Current(const GpuProperties& properties) {
      use(properties.index);
      require_code(properties);
    }
  };

  // Why there is none; empty where there is.
  std::string open_library() {
    try {
      with_library([&] { library_ = open_matrix_library(stream_, properties_.arch); });
    } catch (const UnsupportedError& error) {
      return error.what();
    } catch (const OutOfMemory& error) {
      return error.what();
    }
    return "";
  }

  // A library's status does not tell whether a kernel before it, or its own, broke the context: the device
  // does.
  template <class Call>
  auto with_library(const Call& call) -> decltype(call()) {
    try {
      return call();
    } catch (const UnsupportedError& error) {
      require_device(error.what());
      throw;
    }
  }

  // Throws DeviceLost where the device does not answer, after this failure.
  void require_device(const char* failure) {
    cudaError_t status = cudaGetLastError();
    if (kind_of(status) != StatusKind::lost) status = state_of_device();
    (void)cudaGetLastError();
    if (status == cudaSuccess || kind_of(status) != StatusKind::lost) return;
    throw DeviceLost(std::string(failure) + launched_.words() +
                     "; then the GPU: " + cudaGetErrorString(status) + " (" + std::to_string(status) + ')');
  }

  // A stream that captures can be neither waited for nor asked; what the context has noticed is told by any
  // call.
  cudaError_t state_of_device() {
    cudaStreamCaptureStatus capturing = cudaStreamCaptureStatusNone;
    if (const cudaError_t status = cudaStreamIsCapturing(stream_.get(), &capturing); status != cudaSuccess)
      return status;
    if (capturing == cudaStreamCaptureStatusNone) return cudaStreamSynchronize(stream_.get());
    std::size_t free = 0;
    std::size_t total = 0;
    return cudaMemGetInfo(&free, &total);
  }

  Target target() { return {stream_.get(), launched_}; }

  void copy(void* to, const void* from, std::int64_t bytes, cudaMemcpyKind kind) {
    use(properties_.index);
    MEMWALL_CHECK(cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes), kind, stream_.get()));
    synchronize();
  }

  // Waits for what is uploaded and launched; a failure names the kernels.
  void synchronize_keeping_names() {
    const Launched names = launched_;
    synchronize();
    launched_ = names;
  }

  template <class Work>
  double seconds_of(const Work& work) {
    start_.record(stream_);
    work();
    end_.record(stream_);
    synchronize();
    return Event::seconds_between(start_, end_);
  }

  GpuProperties properties_;
  Current current_{properties_};
  Launched launched_;
  Stream stream_;
  Event start_;
  Event end_;
  std::unique_ptr<MatrixLibrary> library_;  // null where there is none
  Nvml nvml_;
};

}  // namespace

std::unique_ptr<Gpu> open_gpu(int device, std::string& no_library) {
  try {
    return std::make_unique<CudaGpu>(read_properties(device), no_library);
  } catch (const DeviceLost& error) {
    throw RunError(error.what());
  }
}

}  // namespace memwall::cuda
