// The module's host code on a runtime that fails as told (fake_cudart.h): what each failure is thrown as, and
// that the device is usable after all but a lost one.
#include "cuda/module/gpu.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bench/device_lost.h"
#include "bench/out_of_memory.h"
#include "bench/unsupported.h"
#include "cuda/module/properties.h"
#include "tests/cuda/module/fake_cudart.h"

namespace memwall::cuda {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr const char* kFailed = "gemm: CUBLAS_STATUS_EXECUTION_FAILED";

// What `call` throws, which is an Error and no class derived from it.
template <class Error, class Call>
std::string thrown(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(typeid(error), typeid(Error)) << error.what();
    return error.what();
  } catch (const std::exception& error) {
    ADD_FAILURE() << "another kind: " << error.what();
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

class CudaModuleGpu : public ::testing::Test {
 protected:
  CudaModuleGpu() { fake_cuda() = {}; }
  ~CudaModuleGpu() override {
    gpu_.reset();
    fake_cuda() = {};
  }
  void open() { gpu_ = open_gpu(0, no_library_); }
  void launch() { gpu_->launch(FillLaunch{}); }
  void multiply() { gpu_->gemm({}, 0, {}); }
  void in_a_graph(const std::function<void()>& launches) { gpu_->time(launches, Timing::graph); }
  void expect_usable() {
    EXPECT_FALSE(fake_cuda().capturing);
    EXPECT_EQ(fake_cuda().last, cudaSuccess);
    EXPECT_EQ(fake_cuda().waits_in_a_capture, 0);
    fake_cuda().library_fails.clear();
    for (const Timing timing : {Timing::graph, Timing::stream}) {
      EXPECT_NO_THROW(gpu_->time(
          [&] {
            launch();
            multiply();
          },
          timing));
    }
  }

  std::unique_ptr<Gpu> gpu_;
  std::string no_library_;
};

TEST_F(CudaModuleGpu, ALibrarysFailureCostsTheArm) {
  open();
  fake_cuda().library_fails = kFailed;
  EXPECT_EQ(thrown<UnsupportedError>([&] { multiply(); }), kFailed);
  expect_usable();
  fake_cuda().library_fails = kFailed;
  EXPECT_EQ(thrown<UnsupportedError>([&] { in_a_graph([&] { multiply(); }); }), kFailed);
  expect_usable();
}

TEST_F(CudaModuleGpu, ALibrarysFailureOnABrokenContextLosesTheDevice) {
  for (const bool captured : {false, true}) {
    fake_cuda() = {};
    open();
    launch();
    fake_cuda().library_fails = kFailed;
    fake_cuda().broken = cudaErrorIllegalAddress;
    const auto failing = [&] { captured ? in_a_graph([&] { multiply(); }) : multiply(); };
    EXPECT_THAT(thrown<DeviceLost>(failing),
                AllOf(HasSubstr(kFailed), HasSubstr("in one of: Fill"),
                      HasSubstr("an illegal memory access was encountered (700)")));
    EXPECT_EQ(fake_cuda().waits_in_a_capture, 0);
    EXPECT_FALSE(fake_cuda().capturing);
    thrown<DeviceLost>([&] { gpu_->synchronize(); });
    thrown<DeviceLost>([&] { launch(); });
    gpu_.reset();
  }
}

TEST_F(CudaModuleGpu, AKernelThatBreaksTheContextIsNamed) {
  open();
  launch();
  fake_cuda().broken = cudaErrorMisalignedAddress;
  EXPECT_THAT(thrown<DeviceLost>([&] { gpu_->synchronize(); }),
              HasSubstr("waiting for the GPU in one of: Fill"));
}

TEST_F(CudaModuleGpu, ARefusedLaunchIsNoMoreThanThat) {
  open();
  fake_cuda().statuses["a launch"] = {cudaErrorInvalidConfiguration};
  EXPECT_THAT(thrown<RunError>([&] { launch(); }), HasSubstr("launching Fill"));
  expect_usable();
  fake_cuda().statuses["a launch"] = {cudaSuccess, cudaErrorInvalidConfiguration};
  thrown<RunError>([&] {
    in_a_graph([&] {
      launch();
      launch();
    });
  });
  expect_usable();
  fake_cuda().statuses["cudaGraphInstantiateWithFlags"] = {cudaErrorInvalidValue};
  thrown<RunError>([&] { in_a_graph([&] { launch(); }); });
  expect_usable();
}

TEST_F(CudaModuleGpu, ASpoiltCaptureIsTheArmsFailure) {
  open();
  thrown<UnsupportedError>([&] { in_a_graph([&] { fake_cuda().spoilt = true; }); });
  expect_usable();
  fake_cuda().statuses["a launch"] = {cudaErrorStreamCaptureImplicit};
  thrown<UnsupportedError>([&] {
    in_a_graph([&] {
      fake_cuda().spoilt = true;
      launch();
    });
  });
  expect_usable();
}

TEST_F(CudaModuleGpu, MemoryThatLacksIsToldApart) {
  open();
  fake_cuda().statuses["cudaMalloc"] = {cudaErrorMemoryAllocation};
  thrown<OutOfMemory>([&] { gpu_->allocate(16); });
  EXPECT_THAT(thrown<RunError>([&] { gpu_->allocate(std::int64_t{2} << 30); }),
              HasSubstr("2.00 GiB do not fit"));
  expect_usable();
}

TEST_F(CudaModuleGpu, OneThatDoesNotOpenIsNotLost) {
  fake_cuda().statuses["cudaStreamCreateWithFlags"] = {cudaErrorDevicesUnavailable};
  thrown<RunError>([&] { open(); });
  open();
  expect_usable();
}

TEST_F(CudaModuleGpu, RunsItsOwnKernelsWithoutALibrary) {
  fake_cuda().library_does_not_open = "libcublas.so.13 was not found";
  open();
  EXPECT_EQ(no_library_, "libcublas.so.13 was not found");
  EXPECT_THAT(gpu_->gemm_arms({}), IsEmpty());
  thrown<UnsupportedError>([&] { multiply(); });
  EXPECT_NO_THROW(in_a_graph([&] { launch(); }));
}

// 30 us and 250 ns for each of four nodes.
TEST_F(CudaModuleGpu, TheDelayBeforeAGraphIsInCyclesOfTheHighestClock) {
  open();
  in_a_graph([&] { launch(); });
  EXPECT_THAT(fake_cuda().delays, ElementsAre(62'000U));
  fake_cuda() = {};
  fake_cuda().sm_clock_kHz = 0;  // not told
  open();
  in_a_graph([&] { launch(); });
  EXPECT_THAT(fake_cuda().delays, ElementsAre(62'000U));
}

TEST_F(CudaModuleGpu, AMachineWithoutADeviceIsNoFailure) {
  fake_cuda().statuses["cudaGetDeviceCount"] = {cudaErrorNoDevice};
  EXPECT_EQ(count_devices(), 0);
  fake_cuda().statuses["cudaGetDeviceCount"] = {cudaErrorInsufficientDriver};
  EXPECT_THAT(thrown<RunError>([&] { count_devices(); }), HasSubstr("the CUDA driver is too old for CUDA "));
  EXPECT_EQ(fake_cuda().last, cudaSuccess);
}

}  // namespace
}  // namespace memwall::cuda
