// When the tests on a real GPU are skipped, and when they fail.
#include "tests/cuda/gpu_here.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "cuda/load.h"
#include "tests/cuda/fake_runtime.h"
#include "tests/support.h"

namespace memwall::cuda {
namespace {

using ::testing::HasSubstr;

class CudaTestsGpu : public ::testing::Test {
 protected:
  GpuHere find(const FakeMachine& machine, bool nvidia = true, bool required = false) {
    DeviceSources sources = sources_of(machine, notices_);
    sources.nvidia_here = [nvidia] { return nvidia; };
    return find_gpu(sources, required);
  }
  std::vector<std::string> notices_;
};

TEST_F(CudaTestsGpu, IsOpenedWhereThereIsOne) {
  const GpuHere here = find({});
  ASSERT_NE(here.gpu, nullptr);
  EXPECT_EQ(here.failed + here.skipped, "");
}

TEST_F(CudaTestsGpu, AMachineWithoutOneSkips) {
  EXPECT_THAT(find({}, false).skipped, HasSubstr("no NVIDIA device or driver"));
  EXPECT_EQ(find({.no_driver = "no driver"}, false).failed, "");
  DeviceSources bare = sources_of({}, notices_);
  bare.load_runtime = []() -> std::unique_ptr<Runtime> { throw NoModule("this build has none"); };
  EXPECT_EQ(find_gpu(bare, false).skipped, "this build has none");
  EXPECT_EQ(find_gpu(bare, true).failed, "this build has none");
}

TEST_F(CudaTestsGpu, ADeviceThatDoesNotOpenFails) {
  for (const FakeMachine& machine : {FakeMachine{.no_module = "broken"}, FakeMachine{.no_driver = "broken"},
                                     FakeMachine{.does_not_open = "broken"}}) {
    EXPECT_EQ(find(machine).failed, "broken");
    EXPECT_EQ(find(machine).skipped, "");
  }
  EXPECT_EQ(find({.devices = 0}).failed, "CUDA sees no device");
  const EnvironmentVariable hidden("CUDA_VISIBLE_DEVICES", "");
  EXPECT_EQ(find({.devices = 0}).skipped, "CUDA sees no device");
}

TEST_F(CudaTestsGpu, WhereOneIsRequiredNothingSkips) {
  EXPECT_EQ(find({.no_driver = "no driver"}, false, true).failed, "no driver");
  const EnvironmentVariable hidden("CUDA_VISIBLE_DEVICES", "-1");
  EXPECT_EQ(find({.devices = 0}, true, true).failed, "CUDA sees no device");
  for (const auto& [value, required] : {std::pair{"1", true}, std::pair{"0", false}, std::pair{"", false}}) {
    const EnvironmentVariable variable("MEMWALL_REQUIRE_GPU", value);
    EXPECT_EQ(gpu_required(), required) << value;
  }
}

}  // namespace
}  // namespace memwall::cuda
