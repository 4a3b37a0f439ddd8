// A real GPU for tests. Their suites' names begin with CudaGpu, which gives them ctest's label gpu; they
// skip, with the reason, where there is none.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>

#include "cuda/load.h"
#include "input/error.h"

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

// What other processes on the GPU may take meanwhile is not counted: no test looks closer than 16 MiB.
class CudaGpu : public ::testing::Test {
 protected:
  void SetUp() override {
    int devices = 0;
    try {
      runtime_ = load_runtime();
      devices = runtime_->device_count();
    } catch (const RunError& error) {
      GTEST_SKIP() << error.what();
    }
    if (devices == 0) GTEST_SKIP() << "CUDA sees no device";
    gpu_ = runtime_->open(0);
  }

  std::unique_ptr<Runtime> runtime_;
  std::unique_ptr<Gpu> gpu_;
};

}  // namespace memwall::cuda
