// The CUDA backend on a real GPU.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <memory>
#include <numeric>
#include <thread>
#include <variant>

#include "bench/device_lost.h"
#include "bench/unsupported.h"
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
  EXPECT_GE(p.arch.shared_a_block, 48 << 10);
  EXPECT_GE(p.arch.registers_a_multiprocessor, 65536);
  EXPECT_GT(p.multiprocessors, 0);
  EXPECT_GE(p.l2_bytes, 256 << 10);  // a small slice of one, too
  // A virtual machine's driver may tell no clocks.
  EXPECT_GE(p.sm_clock_kHz, 0);
  EXPECT_GE(p.memory_clock_kHz, 0);
  EXPECT_GE(p.memory_bus_bits, 0);
  EXPECT_GT(gpu_->free_bytes(), 0);
  EXPECT_LE(gpu_->free_bytes(), p.total_bytes);
  const Versions versions = runtime_->versions();
  std::vector<std::string> told = {versions.driver, versions.runtime};
  if (versions.no_cublas.empty()) told.insert(told.end(), {versions.cublas, versions.cublasLt});
  for (const std::string& version : told) EXPECT_THAT(version, MatchesRegex("[0-9]+\\.[0-9.]+"));
}

TEST_F(CudaGpu, RefusesDevicesThatAreNotThere) {
  const std::string none = "there is no device cuda:99";
  EXPECT_THAT(failure_of([&] { runtime_->open(99); }), HasSubstr(none));
  EXPECT_THAT(failure_of([&] { runtime_->properties(99); }), HasSubstr(none));
}

TEST_F(CudaGpu, MemoryIsWrittenAndRead) {
  {
    const Buffer buffer(*gpu_, 64 << 20);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.data()) % 256, 0U);
    std::vector<std::uint32_t> words(buffer.bytes() / 4);
    std::iota(words.begin(), words.end(), 1U);
    gpu_->upload(buffer.data(), words.data(), buffer.bytes());
    EXPECT_EQ(download<std::uint32_t>(*gpu_, buffer.data(), std::ssize(words)), words);
    gpu_->zero(buffer.data(), buffer.bytes());
    EXPECT_EQ(download<std::uint32_t>(*gpu_, buffer.data() + 1024, 4), std::vector<std::uint32_t>(4));
  }
  const std::int64_t too_much = gpu_->properties().total_bytes * 2;
  EXPECT_THAT(failure_of([&] { gpu_->allocate(too_much); }),
              AllOf(HasSubstr("do not fit"), HasSubstr(gpu_->properties().name)));
}

// Every variant of a task: right, and timed both ways. One that its library refuses is told, and is no
// failure where another runs.
void check_variants(Device& device, Gpu& gpu, const DeviceTask& each, const std::vector<Variant>& variants) {
  const std::int64_t least = device.footprint(each.task).least_copies;
  const auto operands = device.place(each.task, std::max<std::int64_t>(2, least), 7);
  std::size_t usable = 0;
  for (std::size_t variant = 0; variant < variants.size(); ++variant) {
    SCOPED_TRACE(variants[variant].name);
    const auto twice = [&] {
      operands->launch(variant, 0);
      operands->launch(variant, 1);
    };
    try {
      const Check check = operands->check(variant);
      EXPECT_TRUE(check.passed()) << check.worst << " of " << check.outputs;
      EXPECT_GT(gpu.time(twice, Timing::graph), 0);
      EXPECT_GT(gpu.time(twice, Timing::stream), 0);
      ++usable;
    } catch (const UnsupportedError& error) {
      std::cout << each.name << ", " << variants[variant].name << ": " << error.what() << '\n';
    }
  }
  EXPECT_GT(usable, 0U);
}

// One task that fails hides none of the others, unless the device is lost.
TEST_F(CudaGpu, EveryKindOfTaskIsRight) {
  Gpu& gpu = *gpu_;
  const std::unique_ptr<Device> device = make_device(std::move(gpu_));
  const bool library = runtime_->versions().no_cublas.empty();
  for (const DeviceTask& each : device_tasks(TaskSize::real)) {
    SCOPED_TRACE(each.name);
    try {
      const std::vector<Variant> variants = device->variants(each.task);
      const bool needs_library = std::holds_alternative<MatmulTask>(each.task);
      if (variants.empty() && (each.optional || (needs_library && !library))) continue;
      EXPECT_FALSE(variants.empty());
      check_variants(*device, gpu, each, variants);
    } catch (const DeviceLost& error) {
      FAIL() << error.what();
    } catch (const RunError& error) {
      ADD_FAILURE() << error.what();
    }
  }
}

// What other processes take meanwhile may hide one return, not three quarters of what is there.
TEST_F(CudaGpu, PlacedTasksGiveTheirMemoryBack) {
  Gpu& gpu = *gpu_;
  const std::unique_ptr<Device> device = make_device(std::move(gpu_));
  const Task task = StreamTask{StreamPattern::triad, false, 64 << 20};
  const std::int64_t free = gpu.free_bytes();
  const std::int64_t each = device->footprint(task).copy_bytes;
  ASSERT_GT(each, 0);
  const std::int64_t copies = std::max<std::int64_t>(1, free / 4 / each);
  for (std::int64_t used = 0; used < 2 * free; used += each * copies) {
    const auto operands = device->place(task, copies, 7);
    EXPECT_GT(device->time([&] { operands->launch(0, 0); }), 0);
  }
}

TEST_F(CudaGpu, TimesGrowWithTheLaunches) {
  const Buffer buffer(*gpu_, 512 << 20);
  const auto fills = [&](int count) {
    return [&, count] {
      for (int i = 0; i < count; ++i) fill_random(*gpu_, buffer.data(), buffer.bytes(), kAnyBits, 3);
    };
  };
  // A clock that rises, or another process, may pass for a factor of two, not for sixteen.
  const double two = gpu_->time(fills(2), Timing::graph);
  for (const Timing timing : {Timing::graph, Timing::stream})
    EXPECT_GT(gpu_->time(fills(32), timing), 2 * two);
}

TEST_F(CudaGpu, FailuresLeaveItUsable) {
  const Buffer buffer(*gpu_, 1 << 20);
  const auto fill = [&] { fill_random(*gpu_, buffer.data(), buffer.bytes(), kAnyBits, 3); };
  FillLaunch wrong = fill_launch({.data = buffer.as<std::uint32_t>(), .bytes = buffer.bytes()});
  wrong.geometry.threads = 2048;
  const std::string refused = failure_of([&] {
    gpu_->launch(wrong);
    gpu_->synchronize();
  });
  EXPECT_THAT(refused, HasSubstr("FillKernel"));
  EXPECT_GT(gpu_->time(fill, Timing::graph), 0);
  // Within a graph, and after a launch that was recorded: whether the launch is refused, the capture's end or
  // the graph's making is the driver's choice.
  const auto in_a_graph = [&] {
    gpu_->time(
        [&] {
          fill();
          gpu_->launch(wrong);
        },
        Timing::graph);
  };
  EXPECT_THROW(in_a_graph(), RunError);
  EXPECT_GT(gpu_->time(fill, Timing::graph), 0);
  EXPECT_GT(gpu_->time(fill, Timing::stream), 0);
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
    return;
  }
  // A driver may keep each of them for itself.
  EXPECT_GE(clocks.sm_MHz, 0);
  EXPECT_LT(clocks.sm_MHz, 10'000);
  EXPECT_FALSE(clocks.driver_version.empty());
}

}  // namespace
}  // namespace memwall::cuda
