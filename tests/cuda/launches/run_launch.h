// Runs launches on an executor. The kernels of a family are compiled in a file of their own.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <typeindex>
#include <typeinfo>

#include "kernels/cuda/launch.h"
#include "tests/cuda/executor.h"

namespace memwall::cuda {

// What dispatch() of a family's .cuh calls with the kernel that a launch names.
class LaunchRunner {
 public:
  explicit LaunchRunner(Executor& executor) : executor_(executor) {}

  template <class Kernel>
  void operator()(const Geometry& geometry, const typename Kernel::Params& params) {
    static_assert(sizeof(params) <= 4096, "CUDA passes a kernel 4 KiB of parameters");
    ++kernels_[typeid(Kernel)];
    ++launched_;
    if (before && !before(typeid(Kernel))) return;
    executor_.run<Kernel>(geometry, params);
  }

  // Asked before each kernel; false leaves it out. May be empty.
  std::function<bool(const std::type_info&)> before;

  std::size_t launched() const { return launched_; }
  // How often each kernel was launched, by its type.
  const std::map<std::type_index, std::int64_t>& kernels() const { return kernels_; }

 private:
  Executor& executor_;
  std::map<std::type_index, std::int64_t> kernels_;
  std::size_t launched_ = 0;
};

void run_launch(const FillLaunch& launch, LaunchRunner& runner);
void run_launch(const StreamLaunch& launch, LaunchRunner& runner);
void run_launch(const LinearLaunch& launch, LaunchRunner& runner);
void run_launch(const AttentionLaunch& launch, LaunchRunner& runner);
void run_launch(const LatentLaunch& launch, LaunchRunner& runner);
void run_launch(const IndexerLaunch& launch, LaunchRunner& runner);
void run_launch(const ElementwiseLaunch& launch, LaunchRunner& runner);
void run_launch(const RouterLaunch& launch, LaunchRunner& runner);
void run_launch(const GatherLaunch& launch, LaunchRunner& runner);
void run_launch(const RecurrentLaunch& launch, LaunchRunner& runner);
void run_launch(const QuantizeLaunch& launch, LaunchRunner& runner);

}  // namespace memwall::cuda
