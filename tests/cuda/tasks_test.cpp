// Every kind of task on the fake GPU: placed, right by every way to run it, timed, given back.
#include "tests/cuda/tasks.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "cuda/device.h"
#include "tests/cuda/fake_gpu.h"

namespace memwall::cuda {
namespace {

TEST(CudaTasks, RunOnTheFakeGpu) {
  auto owned = std::make_unique<FakeGpu>();
  FakeGpu& gpu = *owned;
  gpu.library = true;
  const std::unique_ptr<Device> device = make_device(std::move(owned));
  for (const DeviceTask& each : device_tasks(TaskSize::small)) {
    SCOPED_TRACE(each.name);
    const std::vector<Variant> variants = device->variants(each.task);
    if (each.optional && variants.empty()) continue;
    EXPECT_FALSE(variants.empty());
    if (variants.empty()) continue;
    const Footprint footprint = device->footprint(each.task);
    {
      const auto operands = device->place(each.task, std::max<std::int64_t>(2, footprint.least_copies), 7);
      // One way each, the last: the families' own tests hold every kernel to float64.
      const std::size_t last = variants.size() - 1;
      const Check check = operands->check(last);
      EXPECT_TRUE(check.passed()) << check.worst << " of " << check.outputs;
      EXPECT_GT(device->time([&] { operands->launch(0, 0); }), 0);
    }
    EXPECT_EQ(gpu.allocated(), 0);
  }
}

}  // namespace
}  // namespace memwall::cuda
