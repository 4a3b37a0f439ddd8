#include "tests/cuda/faulty_gpu.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <thread>

#include "bench/device_lost.h"
#include "bench/unsupported.h"
#include "input/error.h"
#include "tests/cuda/fake_gpu.h"

namespace memwall::cuda {
namespace {

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
  const char* file = std::getenv("MEMWALL_FAKE_ONCE");
  if (file == nullptr || *file == '\0') return true;
  const int made = ::open(file, O_CREAT | O_EXCL | O_WRONLY, 0600);
  if (made < 0) return false;
  ::close(made);
  return true;
}

class FaultyGpu final : public Gpu {
 public:
  FaultyGpu(int device, const std::vector<std::string>& words) : gpu_(numbered(device)) {
    gpu_.library = true;
    gpu_.seconds_a_launch = 0.06;
    gpu_.bytes_per_s = 50e6;
    gpu_.seconds_alone = 1;
    gpu_.clocks_.why_not = "libnvidia-ml.so.1 is not there";
    gpu_.ask_before_kernels([this](const std::string& kernel) { return begins(kernel); });
    for (const std::string& word : words) {
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
    GpuProperties properties = faulty_gpu_properties();
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

}  // namespace

GpuProperties faulty_gpu_properties() {
  GpuProperties properties = fake_properties();
  properties.multiprocessors = 1;
  properties.l2_bytes = 4 << 10;  // little memory is cold
  return properties;
}

std::unique_ptr<Gpu> make_faulty_gpu(int device, const std::vector<std::string>& words) {
  return std::make_unique<FaultyGpu>(device, words);
}

}  // namespace memwall::cuda
