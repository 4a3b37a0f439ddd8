// The CUDA backend on a real GPU, and what it says where there is none.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <thread>

#include "cuda/context.h"
#include "cuda/device.h"
#include "tests/cuda/gpu_fixture.h"
#include "tests/cuda/tasks.h"

namespace memwall::cuda {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

TEST_F(CudaGpu, IsDescribed) {
  const GpuProperties& p = gpu_->properties();
  EXPECT_FALSE(p.name.empty());
  EXPECT_THAT(p.pci_id, MatchesRegex("[0-9a-f]+:[0-9a-f]+:[0-9a-f]+\\.[0-9]"));
  EXPECT_GE(p.arch.major * 10 + p.arch.minor, 75);
  EXPECT_EQ(p.arch.shared_a_block, 48 << 10);
  EXPECT_EQ(p.arch.registers_a_multiprocessor, 65536);
  EXPECT_GT(p.multiprocessors, 0);
  EXPECT_GE(p.l2_bytes, 1 << 20);
  EXPECT_GT(p.sm_clock_kHz, 0);
  EXPECT_GT(p.memory_clock_kHz, 0);
  EXPECT_GT(p.memory_bus_bits, 0);
  EXPECT_GT(gpu_->free_bytes(), 0);
  EXPECT_LE(gpu_->free_bytes(), p.total_bytes);
  const Versions versions = runtime_->versions();
  for (const std::string& version : {versions.driver, versions.runtime, versions.cublas, versions.cublasLt})
    EXPECT_THAT(version, MatchesRegex("[0-9]+\\.[0-9.]+"));
}

TEST_F(CudaGpu, RefusesDevicesThatAreNotThere) {
  const std::string none = "there is no device cuda:99";
  EXPECT_THAT(failure_of([&] { runtime_->open(99); }), HasSubstr(none));
  EXPECT_THAT(failure_of([&] { runtime_->properties(99); }), HasSubstr(none));
}

TEST_F(CudaGpu, MemoryIsWrittenReadAndGivenBack) {
  const std::int64_t before = gpu_->free_bytes();
  {
    const Buffer buffer(*gpu_, 64 << 20);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.data()) % 256, 0U);
    EXPECT_LE(gpu_->free_bytes(), before - buffer.bytes());
    std::vector<std::uint32_t> words(buffer.bytes() / 4);
    std::iota(words.begin(), words.end(), 1U);
    gpu_->upload(buffer.data(), words.data(), buffer.bytes());
    EXPECT_EQ(download<std::uint32_t>(*gpu_, buffer.data(), std::ssize(words)), words);
    gpu_->zero(buffer.data(), buffer.bytes());
    EXPECT_EQ(download<std::uint32_t>(*gpu_, buffer.data() + 1024, 4), std::vector<std::uint32_t>(4));
  }
  EXPECT_GT(gpu_->free_bytes(), before - (16 << 20));
  const std::int64_t too_much = gpu_->properties().total_bytes * 2;
  EXPECT_THAT(failure_of([&] { gpu_->allocate(too_much); }),
              AllOf(HasSubstr("do not fit"), HasSubstr(gpu_->properties().name)));
}

TEST_F(CudaGpu, EveryKindOfTaskIsRight) {
  Gpu& gpu = *gpu_;
  const std::unique_ptr<Device> device = make_device(std::move(gpu_));
  for (const DeviceTask& each : device_tasks(TaskSize::real)) {
    SCOPED_TRACE(each.name);
    const std::vector<Variant> variants = device->variants(each.task);
    if (each.optional && variants.empty()) continue;
    EXPECT_FALSE(variants.empty());
    const std::int64_t least = device->footprint(each.task).least_copies;
    const auto operands = device->place(each.task, std::max<std::int64_t>(2, least), 7);
    for (std::size_t variant = 0; variant < variants.size(); ++variant) {
      SCOPED_TRACE(variants[variant].name);
      const Check check = operands->check(variant);
      EXPECT_TRUE(check.passed()) << check.worst << " of " << check.outputs;
      const auto twice = [&] {
        operands->launch(variant, 0);
        operands->launch(variant, 1);
      };
      EXPECT_GT(gpu.time(twice, Timing::graph), 0);
      EXPECT_GT(gpu.time(twice, Timing::stream), 0);
    }
  }
}

TEST_F(CudaGpu, PlacedTasksGiveTheirMemoryBack) {
  Gpu& gpu = *gpu_;
  const std::unique_ptr<Device> device = make_device(std::move(gpu_));
  const Task task = StreamTask{StreamPattern::triad, false, 256 << 20};
  const auto run = [&] {
    const auto operands = device->place(task, 1, 7);
    device->time([&] { operands->launch(0, 0); });
  };
  run();  // loads the kernels, which stay
  const std::int64_t before = gpu.free_bytes();
  for (int i = 0; i < 3; ++i) run();
  EXPECT_GT(gpu.free_bytes(), before - (16 << 20));
}

TEST_F(CudaGpu, TimesGrowWithTheLaunchesAndAgree) {
  const Buffer buffer(*gpu_, 512 << 20);
  const auto fills = [&](int count) {
    return [&, count] {
      for (int i = 0; i < count; ++i) fill_random(*gpu_, buffer.data(), buffer.bytes(), kAnyBits, 3);
    };
  };
  for (int i = 0; i < 3; ++i) gpu_->time(fills(8), Timing::graph);  // the clocks rise
  const double eight = gpu_->time(fills(8), Timing::graph);
  const double sixteen = gpu_->time(fills(16), Timing::graph);
  const double one_by_one = gpu_->time(fills(8), Timing::stream);
  EXPECT_NEAR(sixteen / eight, 2, 0.3);
  EXPECT_NEAR(one_by_one / eight, 1, 0.3);
  // No faster than the memory's wires: two transfers a clock (CUDA's clock of HBM and GDDR counts so).
  const GpuProperties& p = gpu_->properties();
  const double peak = 2e3 * p.memory_clock_kHz * p.memory_bus_bits / 8;
  EXPECT_GT(eight, 8 * static_cast<double>(buffer.bytes()) / (1.1 * peak));
}

TEST_F(CudaGpu, FailuresLeaveItUsable) {
  const Buffer buffer(*gpu_, 1 << 20);
  const auto fill = [&] { fill_random(*gpu_, buffer.data(), buffer.bytes(), kAnyBits, 3); };
  FillLaunch wrong = fill_launch({.data = buffer.as<std::uint32_t>(), .bytes = buffer.bytes()});
  wrong.geometry.threads = 2048;
  const std::string refused = failure_of([&] { gpu_->launch(wrong); });
  EXPECT_THAT(refused, AllOf(HasSubstr("launch.cuh:"), HasSubstr("launching FillKernel")));
  EXPECT_GT(gpu_->time(fill, Timing::graph), 0);
  // Within a graph, and after a launch that was recorded.
  EXPECT_THAT(failure_of([&] {
                gpu_->time(
                    [&] {
                      fill();
                      gpu_->launch(wrong);
                    },
                    Timing::graph);
              }),
              HasSubstr("FillKernel"));
  EXPECT_EQ(failure_of([&] {
              gpu_->time(
                  [&] {
                    fill();
                    throw RunError("stopped");
                  },
                  Timing::graph);
            }),
            "stopped");
  EXPECT_GT(gpu_->time(fill, Timing::graph), 0);
  gpu_->synchronize();
}

TEST_F(CudaGpu, ServesAnyThread) {
  double seconds = 0;
  std::thread([&] {
    const Buffer buffer(*gpu_, 1 << 20);
    seconds =
        gpu_->time([&] { fill_random(*gpu_, buffer.data(), buffer.bytes(), kAnyBits, 3); }, Timing::graph);
  }).join();
  EXPECT_GT(seconds, 0);
}

TEST_F(CudaGpu, TellsItsClocksOrWhyNot) {
  const Clocks clocks = gpu_->clocks();
  if (!clocks.available) {
    EXPECT_FALSE(clocks.why_not.empty());
    GTEST_SKIP() << clocks.why_not;
  }
  EXPECT_GT(clocks.sm_MHz, 0);
  EXPECT_LE(clocks.sm_MHz, gpu_->properties().sm_clock_kHz / 1000 * 2);
  EXPECT_FALSE(clocks.driver_version.empty());
}

// The module itself loads without a GPU and says that there is none.
TEST(CudaModule, LoadsAndSaysWhatItFinds) {
  std::unique_ptr<Runtime> runtime;
  try {
    runtime = load_runtime();
  } catch (const RunError& error) {
    GTEST_SKIP() << error.what();
  }
  EXPECT_THAT(runtime->versions().runtime, MatchesRegex("[0-9]+\\.[0-9]"));
  EXPECT_THAT(runtime->versions().cublas, MatchesRegex("[0-9]+\\.[0-9]+\\.[0-9]+"));
  try {
    if (runtime->device_count() > 0) return;
    EXPECT_THROW(runtime->open(0), RunError);
  } catch (const RunError& error) {
    EXPECT_THAT(error.what(), HasSubstr("driver"));
    EXPECT_EQ(failure_of([&] { runtime->open(0); }), error.what());
  }
}

}  // namespace
}  // namespace memwall::cuda
