// A real GPU for tests. Their suites' names begin with CudaGpu, which gives them ctest's label gpu; they
// skip, with the reason, on a machine without one (gpu_here.h).
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>

#include "input/error.h"
#include "tests/cuda/gpu_here.h"

namespace memwall::cuda {

// The message of the RunError that `call` throws.
inline std::string failure_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const RunError& error) {
    return error.what();
  }
  return "nothing was thrown";
}

class CudaGpu : public ::testing::Test {
 protected:
  void SetUp() override {
    GpuHere here = find_gpu(device_sources([](const std::string&) {}), gpu_required());
    if (!here.failed.empty()) FAIL() << here.failed;
    if (!here.skipped.empty()) GTEST_SKIP() << here.skipped;
    runtime_ = std::move(here.runtime);
    gpu_ = std::move(here.gpu);
  }

  std::unique_ptr<Runtime> runtime_;
  std::unique_ptr<Gpu> gpu_;
};

}  // namespace memwall::cuda
