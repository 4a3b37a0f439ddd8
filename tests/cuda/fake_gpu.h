// A GPU that is the host executor: what the program does with a GPU runs whole on the host, and is timed by a
// model instead of a clock.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <typeindex>
#include <vector>

#include "cuda/runtime.h"
#include "tests/cuda/device_memory.h"
#include "tests/cuda/executor.h"
#include "tests/cuda/launches/run_launch.h"

namespace memwall::cuda {

// A small one of that architecture: 4 multiprocessors, 1 MiB of L2, 1 GiB of memory.
GpuProperties fake_properties(int major = 9, int minor = 0);

// Memory is filled with NaN when it is allocated. Launches, copies and library calls throw KernelError where
// they touch what is not allocated on it, or has been freed; and so does whatever a capture in a graph
// forbids.
class FakeGpu final : public Gpu {
 public:
  explicit FakeGpu(GpuProperties properties = fake_properties());

  const GpuProperties& properties() const override { return properties_; }
  std::int64_t free_bytes() override { return properties_.total_bytes - allocated_; }
  void* allocate(std::int64_t bytes) override;
  void release(void* memory) noexcept override;
  void upload(void* to, const void* from, std::int64_t bytes) override;
  void download(void* to, const void* from, std::int64_t bytes) override;
  void zero(void* memory, std::int64_t bytes) override;
  void launch(const Launch& launch) override;
  // One arm where `library` is set: plain loops, summed in double.
  std::vector<GemmArm> gemm_arms(const GemmProblem& problem) override;
  void gemm(const GemmProblem& problem, int arm, const GemmOperands& operands) override;
  void synchronize() override { forbid_in_graph("synchronises"); }
  // So long a launch, and so many bytes a second of what kernels read and write.
  double time(const std::function<void()>& launches, Timing timing) override;
  Clocks clocks() override { return clocks_; }

  Executor& executor() { return executor_; }
  std::int64_t allocated() const { return allocated_; }
  std::int64_t most_allocated() const { return most_allocated_; }
  std::int64_t launches() const { return launches_; }
  // How often each kernel was launched, by its type.
  const std::map<std::type_index, std::int64_t>& kernels() const { return runner_.kernels(); }
  // All that is allocated, for comparing what launches leave (order.h).
  std::vector<MemoryRange> ranges() const { return memory_.ranges(); }
  bool library = false;
  // A kernel, or a library's product, that was never launched outside of a graph's capture is refused in one:
  // what it loads at its first launch may not be loaded there.
  bool captures_need_a_first_launch = false;
  double seconds_a_launch = 2e-6;
  double bytes_per_s = 1e12;
  double seconds_alone = 5e-6;  // more, for each launch that the host starts by itself
  // Asked before each kernel, by its name (kernel_name): false leaves it out. What it throws, the launch
  // throws.
  void ask_before_kernels(std::function<bool(const std::string&)> ask);
  // Changes each launch before it runs, so that a check must notice; may be empty.
  std::function<void(Launch&)> tamper;
  Clocks clocks_;

 private:
  void forbid_in_graph(const char* what) const;
  void note_launch(const std::string& name);

  GpuProperties properties_;
  Executor executor_;
  LaunchRunner runner_{executor_};
  DeviceMemory memory_;
  bool capturing_ = false;
  std::set<std::string> launched_outside_;
  std::int64_t allocated_ = 0;
  std::int64_t most_allocated_ = 0;
  std::int64_t launches_ = 0;
};

}  // namespace memwall::cuda
