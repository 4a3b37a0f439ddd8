// NVML through a library that the tests make up.
#include "cuda/module/nvml.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>
#include <map>

#include "cuda/module/launched.h"

namespace memwall::cuda {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

int open_libraries = 0;
int init_status = 0;

int init() {
  if (init_status == 0) ++open_libraries;
  return init_status;
}
int shut_down() {
  --open_libraries;
  return 0;
}
const char* error_string(int code) { return code == 9 ? "Driver Not Loaded" : "Not Found"; }
int driver_version(char* version, unsigned length) {
  std::snprintf(version, length, "580.65.06");
  return 0;
}
int by_pci_id(const char* id, void** device) {
  *device = &open_libraries;
  return std::strcmp(id, "0000:3b:00.0") == 0 ? 0 : 6;
}
int clock(void*, int kind, unsigned* MHz) {
  *MHz = kind == 1 ? 1980 : 2619;
  return 0;
}
int temperature(void*, int, unsigned* celsius) {
  *celsius = 41;
  return 0;
}
int power(void*, unsigned* milliwatts) {
  *milliwatts = 123500;
  return 0;
}
int reasons(void*, unsigned long long* bits) {
  *bits = 0x1 | 0x4;
  return 0;
}

std::map<std::string, void*> library() {
  return {{"nvmlInit_v2", reinterpret_cast<void*>(&init)},
          {"nvmlShutdown", reinterpret_cast<void*>(&shut_down)},
          {"nvmlErrorString", reinterpret_cast<void*>(&error_string)},
          {"nvmlSystemGetDriverVersion", reinterpret_cast<void*>(&driver_version)},
          {"nvmlDeviceGetHandleByPciBusId_v2", reinterpret_cast<void*>(&by_pci_id)},
          {"nvmlDeviceGetClockInfo", reinterpret_cast<void*>(&clock)},
          {"nvmlDeviceGetTemperature", reinterpret_cast<void*>(&temperature)},
          {"nvmlDeviceGetPowerUsage", reinterpret_cast<void*>(&power)},
          {"nvmlDeviceGetCurrentClocksThrottleReasons", reinterpret_cast<void*>(&reasons)}};
}

Nvml::Lookup lookup_in(std::map<std::string, void*> functions) {
  return [functions = std::move(functions)](const char* name) -> void* {
    const auto found = functions.find(name);
    return found == functions.end() ? nullptr : found->second;
  };
}

class CudaNvml : public ::testing::Test {
 protected:
  void SetUp() override { init_status = 0; }
  void TearDown() override { EXPECT_EQ(open_libraries, 0); }
};

TEST_F(CudaNvml, TellsTheClocksAndWhatSlowsThem) {
  const Clocks clocks = Nvml("0000:3b:00.0", lookup_in(library())).clocks();
  EXPECT_TRUE(clocks.available) << clocks.why_not;
  EXPECT_EQ(clocks.sm_MHz, 1980);
  EXPECT_EQ(clocks.memory_MHz, 2619);
  EXPECT_EQ(clocks.temperature_C, 41);
  EXPECT_DOUBLE_EQ(clocks.power_W, 123.5);
  EXPECT_EQ(clocks.driver_version, "580.65.06");
  EXPECT_THAT(clocks.slowed_by, ElementsAre("power cap"));
}

TEST_F(CudaNvml, SaysWhyThereAreNone) {
  const Clocks no_device = Nvml("0000:00:00.0", lookup_in(library())).clocks();
  EXPECT_FALSE(no_device.available);
  EXPECT_EQ(no_device.why_not, "NVML does not know device 0000:00:00.0: Not Found");
  EXPECT_EQ(no_device.driver_version, "580.65.06");

  auto lacking = library();
  lacking.erase("nvmlShutdown");
  EXPECT_THAT(Nvml("0000:3b:00.0", lookup_in(lacking)).clocks().why_not, HasSubstr("lacks a function"));
  EXPECT_EQ(open_libraries, 0);

  init_status = 9;
  EXPECT_EQ(Nvml("0000:3b:00.0", lookup_in(library())).clocks().why_not,
            "NVML does not start: Driver Not Loaded");
}

TEST_F(CudaNvml, LivesWithoutSingleFunctions) {
  auto lacking = library();
  for (const char* name :
       {"nvmlDeviceGetClockInfo", "nvmlDeviceGetPowerUsage", "nvmlDeviceGetCurrentClocksThrottleReasons"})
    lacking.erase(name);
  const Clocks clocks = Nvml("0000:3b:00.0", lookup_in(lacking)).clocks();
  EXPECT_TRUE(clocks.available);
  EXPECT_EQ(clocks.sm_MHz, 0);
  EXPECT_EQ(clocks.temperature_C, 41);
  EXPECT_THAT(clocks.slowed_by, IsEmpty());
}

// As in a container or a slice of a GPU that grants nothing.
TEST_F(CudaNvml, LivesWithoutPermission) {
  auto refusing = library();
  const auto refuse = +[](void*, int, unsigned* value) {
    *value = 123;
    return 4;  // NVML_ERROR_NO_PERMISSION
  };
  for (const char* name : {"nvmlDeviceGetClockInfo", "nvmlDeviceGetTemperature"})
    refusing[name] = reinterpret_cast<void*>(refuse);
  const Clocks clocks = Nvml("0000:3b:00.0", lookup_in(refusing)).clocks();
  EXPECT_TRUE(clocks.available);
  EXPECT_EQ(clocks.sm_MHz, 0);
  EXPECT_EQ(clocks.temperature_C, 0);
  EXPECT_DOUBLE_EQ(clocks.power_W, 123.5);
}

TEST_F(CudaNvml, NamesEveryReasonButIdleness) {
  EXPECT_THAT(slowed_by(0x1), IsEmpty());
  EXPECT_EQ(slowed_by(0x1FF).size(), 8U);
  EXPECT_THAT(slowed_by(0x8 | 0x40), ElementsAre("hardware slowdown", "hardware thermal limit"));
}

TEST(CudaLaunched, NamesTheKernelsThatRanSinceTheLastWait) {
  EXPECT_EQ(kernel_name("const char* memwall::cuda::pretty_name() [with Kernel = "
                        "memwall::cuda::WriteKernel<memwall::cuda::StreamKind::add, true>]"),
            "WriteKernel<StreamKind::add, true>");
  Launched launched;
  EXPECT_EQ(launched.words(), "");
  const char* fill = "[with Kernel = memwall::cuda::FillKernel; T = int]";
  const char* gemm = "cublas gemmEx";
  for (const char* name : {fill, gemm, fill}) launched.add(name);
  EXPECT_EQ(launched.words(), " in one of: FillKernel, cublas gemmEx");
  launched.clear();
  EXPECT_EQ(launched.words(), "");
}

}  // namespace
}  // namespace memwall::cuda
