// --device on machines that have a GPU, that have none, and that fail.
#include "cuda/open_device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "cuda/find_devices.h"
#include "cuda/load.h"
#include "report/devices.h"
#include "tests/cuda/fake_runtime.h"
#include "tests/support.h"

namespace memwall {
namespace {

using cuda::FakeMachine;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const std::string kNoDriver = "runtime.cu:12: cudaGetDeviceCount: CUDA driver version is insufficient";

class CudaOpenDevice : public ::testing::Test {
 protected:
  std::unique_ptr<Device> open(const std::string& word, const FakeMachine& machine,
                               const CpuSettings& cpu = {}) {
    notices_.clear();
    return open_device(word, cpu, cuda::sources_of(machine, notices_));
  }
  std::string refusal(const std::string& word, const FakeMachine& machine, const CpuSettings& cpu = {}) {
    return error_of([&] { open(word, machine, cpu); });
  }
  // Auto on a machine without a usable GPU: the CPU, and one notice.
  std::string notice(const FakeMachine& machine) {
    EXPECT_EQ(open("auto", machine)->info().kind, "cpu");
    EXPECT_EQ(notices_.size(), 1U);
    return notices_.empty() ? "" : notices_.front();
  }
  std::vector<std::string> notices_;
};

TEST_F(CudaOpenDevice, WordsAreReadStrictly) {
  EXPECT_EQ(parse_device("auto").kind, DeviceChoice::Kind::automatic);
  EXPECT_EQ(parse_device("cpu").kind, DeviceChoice::Kind::cpu);
  EXPECT_EQ(parse_device("cuda:0").index, 0);
  EXPECT_EQ(parse_device("cuda:12").index, 12);
  for (const char* word :
       {"", "cuda", "cuda:", "cuda:-1", "cuda:-0", "cuda:01", "cuda:+1", "cuda: 1", "cuda:1 ", "cuda:1,2",
        "cuda:0x1", "cuda:99999999999", "cuda:10000", "CUDA:0", "Auto", "CPU", "gpu", "cpu:0"}) {
    EXPECT_THAT(error_of([&] { parse_device(word); }), HasSubstr("auto, cpu or cuda:N")) << word;
  }
}

TEST_F(CudaOpenDevice, TakesTheDeviceThatWasAskedFor) {
  const FakeMachine two{.devices = 2, .make = [](int index) {
                          cuda::GpuProperties properties = cuda::fake_properties(8 + index, 0);
                          return std::make_unique<cuda::FakeGpu>(properties);
                        }};
  EXPECT_EQ(open("cuda:0", two)->info().instruction_set, "sm_80");
  EXPECT_EQ(open("cuda:1", two)->info().instruction_set, "sm_90");
  EXPECT_EQ(open("auto", two)->info().instruction_set, "sm_80");
  EXPECT_EQ(open("auto", two)->info().kind, "cuda");
  EXPECT_THAT(notices_, IsEmpty());
}

TEST_F(CudaOpenDevice, RefusesADeviceThatIsNotThere) {
  EXPECT_EQ(refusal("cuda:1", {.devices = 1}),
            "--device cuda:1: there is no such device; this machine has 1 device, cuda:0");
  EXPECT_EQ(refusal("cuda:7", {.devices = 4}),
            "--device cuda:7: there is no such device; this machine has 4 devices, cuda:0 to cuda:3");
  EXPECT_EQ(refusal("cuda:0", {.devices = 0}), "--device cuda:0: there is no CUDA device");
  EXPECT_EQ(refusal("cuda:0", {.no_driver = kNoDriver}), "--device cuda:0: " + kNoDriver);
  EXPECT_EQ(refusal("cuda:0", {.no_module = "libcublas.so.13: cannot open"}),
            "--device cuda:0: libcublas.so.13: cannot open");
}

TEST_F(CudaOpenDevice, ADeviceThatDoesNotOpenFailsTheRun) {
  const FakeMachine busy{.does_not_open = "runtime.cu:40: cudaSetDevice: device is busy"};
  try {
    open("cuda:0", busy);
    FAIL() << "opened";
  } catch (const RunError& error) {
    EXPECT_EQ(std::string(error.what()), busy.does_not_open);
  }
  EXPECT_THAT(notice(busy), HasSubstr("device is busy"));
}

TEST_F(CudaOpenDevice, AutoFallsBackWithOneNotice) {
  EXPECT_THAT(notice({.devices = 0}), HasSubstr("there is no CUDA device; this runs on the CPU"));
  EXPECT_THAT(notice({.no_driver = kNoDriver}), HasSubstr(kNoDriver));
  EXPECT_THAT(notice({.no_module = "libcublas.so.13: cannot open"}), HasSubstr("libcublas.so.13"));
}

TEST_F(CudaOpenDevice, AGpuWithoutCublasIsTakenWithOneNotice) {
  const FakeMachine bare{.no_cublas = "libcublas.so.13 was not found"};
  for (const char* word : {"cuda:0", "auto"}) {
    const std::unique_ptr<Device> device = open(word, bare);
    EXPECT_EQ(device->info().kind, "cuda");
    EXPECT_EQ(device->info().blas, "");
    ASSERT_EQ(notices_.size(), 1U) << word;
    EXPECT_THAT(notices_[0], HasSubstr("no cuBLAS: libcublas.so.13 was not found"));
  }
}

TEST_F(CudaOpenDevice, WithoutCudaAutoIsSilentUnlessThereIsAnNvidiaDevice) {
  DeviceSources sources = cuda::sources_of({}, notices_);
  sources.load_runtime = []() -> std::unique_ptr<cuda::Runtime> { throw cuda::NoModule("no backend"); };
  EXPECT_EQ(open_device("auto", {}, sources)->info().kind, "cpu");
  EXPECT_EQ(notices_.size(), 1U);
  notices_.clear();
  sources.nvidia_here = [] { return false; };
  EXPECT_EQ(open_device("auto", {}, sources)->info().kind, "cpu");
  EXPECT_THAT(notices_, IsEmpty());
  EXPECT_EQ(error_of([&] { open_device("cuda:0", {}, sources); }), "--device cuda:0: no backend");
}

TEST_F(CudaOpenDevice, TheCpusOptionsAreNotAGpus) {
  const CpuSettings one{.choice = {.threads = 1, .cpus = {}}};
  EXPECT_THAT(refusal("cuda:0", {}, one), HasSubstr("--threads, --cpus and --numa are the CPU's"));
  EXPECT_THAT(refusal("cuda:0", {}, {.choice = {}, .numa = NumaPolicy::interleave}), HasSubstr("--numa"));
  EXPECT_EQ(open("auto", {}, one)->info().kind, "cpu");
  EXPECT_THAT(notices_, IsEmpty());
}

TEST_F(CudaOpenDevice, TheCpuNeverLoadsTheModule) {
  DeviceSources sources = cuda::sources_of({}, notices_);
  sources.load_runtime = []() -> std::unique_ptr<cuda::Runtime> { throw std::logic_error("loaded"); };
  EXPECT_EQ(open_device("cpu", {}, sources)->info().kind, "cpu");
}

// memwall devices.
FoundDevices found_on(const FakeMachine& machine) {
  std::vector<std::string> notices;
  const FoundDevices found = find_devices(cuda::sources_of(machine, notices), {});
  EXPECT_THAT(notices, IsEmpty());
  EXPECT_EQ(found.cpu.kind, "cpu");
  return found;
}

TEST(CudaFoundDevices, TellEachGpuAndWhatFails) {
  const FoundDevices two = found_on({.devices = 2});
  ASSERT_EQ(two.gpus.size(), 2U);
  EXPECT_EQ(two.gpus[1].properties.index, 1);
  EXPECT_EQ(two.gpus[0].free_bytes, std::int64_t{1} << 30);
  EXPECT_EQ(automatic_device(two), "cuda:0");
  const Json json = devices_figures(two);
  ASSERT_EQ(json["devices"].size(), 3U);
  EXPECT_EQ(json["devices"][0]["device"], "cpu");
  EXPECT_EQ(json["devices"][2]["device"], "cuda:1");
  EXPECT_EQ(json["devices"][2]["compute_capability"], "9.0");
  EXPECT_EQ(json["devices"][2]["peak_GBps"], 128);  // 2 x 1 GHz x 512 bits
  EXPECT_EQ(json["cuda"]["available"], true);
  EXPECT_TRUE(json["cuda"]["why_not"].is_null());
  EXPECT_EQ(json["cuda"]["cublas"], "13.1.0");
  const std::string text = devices_text(two, Style{});
  for (const char* part : {"cuda:1", "Fake GPU", "compute capability 9.0", "128.0 GB/s", "cuBLAS 13.1.0",
                           "--device auto takes cuda:0"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }

  const FoundDevices bare = found_on({.no_cublas = "libcublas.so.13 was not found"});
  EXPECT_TRUE(json["cuda"]["no_cublas"].is_null());
  EXPECT_EQ(devices_figures(bare)["cuda"]["no_cublas"], "libcublas.so.13 was not found");
  EXPECT_TRUE(devices_figures(bare)["cuda"]["cublas"].is_null());
  EXPECT_THAT(devices_text(bare, Style{}), HasSubstr(", no cuBLAS: libcublas.so.13 was not found\n"));

  const FoundDevices busy = found_on({.does_not_open = "it is busy"});
  ASSERT_EQ(busy.gpus.size(), 1U);
  EXPECT_EQ(automatic_device(busy), "cpu");
  EXPECT_TRUE(devices_figures(busy)["devices"][1]["free_bytes"].is_null());
  EXPECT_THAT(devices_text(busy, Style{}), HasSubstr("does not open: it is busy"));

  for (const auto& [machine, why] :
       {std::pair{FakeMachine{.devices = 0}, std::string("there is no CUDA device")},
        std::pair{FakeMachine{.no_driver = kNoDriver}, kNoDriver},
        std::pair{FakeMachine{.no_module = "no module"}, std::string("no module")}}) {
    const FoundDevices none = found_on(machine);
    EXPECT_THAT(none.gpus, IsEmpty());
    EXPECT_EQ(devices_figures(none)["cuda"]["why_not"], why);
    EXPECT_EQ(devices_figures(none)["cuda"]["available"], false);
    EXPECT_THAT(devices_text(none, Style{}), HasSubstr("no GPU: " + why));
    EXPECT_EQ(automatic_device(none), "cpu");
  }
}

}  // namespace
}  // namespace memwall
