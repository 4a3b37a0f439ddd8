// The fake GPU lets nobody touch what is not on it.
#include "tests/cuda/fake_gpu.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "cuda/context.h"
#include "input/error.h"

namespace memwall::cuda {
namespace {

Launch fill(void* data, std::int64_t bytes) {
  return fill_launch({.data = static_cast<std::uint32_t*>(data), .bytes = bytes});
}

TEST(CudaFakeGpu, HoldsLaunchesToItsAllocations) {
  FakeGpu gpu;
  const Buffer first(gpu, 1000);
  const Buffer second(gpu, 1000);
  std::vector<std::byte> host(1000);
  EXPECT_NO_THROW(gpu.launch(fill(first.data(), 1000)));
  EXPECT_THROW(gpu.launch(fill(first.data(), 1001)), KernelError);
  EXPECT_THROW(gpu.launch(fill(first.data() - 4, 8)), KernelError);
  EXPECT_THROW(gpu.launch(fill(host.data(), 8)), KernelError);
  void* freed = gpu.allocate(1000);
  EXPECT_NO_THROW(gpu.launch(fill(freed, 8)));
  gpu.release(freed);
  EXPECT_THROW(gpu.launch(fill(freed, 8)), KernelError);
  EXPECT_NO_THROW(gpu.launch(fill(second.data(), 1000)));
}

TEST(CudaFakeGpu, HoldsCopiesToItsAllocations) {
  FakeGpu gpu;
  const Buffer buffer(gpu, 64);
  std::vector<std::byte> host(128);
  EXPECT_NO_THROW(gpu.upload(buffer.data(), host.data(), 64));
  EXPECT_THROW(gpu.upload(buffer.data(), host.data(), 65), KernelError);
  EXPECT_THROW(gpu.download(host.data(), buffer.data() + 1, 64), KernelError);
  EXPECT_THROW(gpu.zero(host.data(), 1), KernelError);
}

TEST(CudaFakeGpu, FillsItsMemoryWithNaN) {
  FakeGpu gpu;
  const Buffer buffer(gpu, 12);
  for (const float value : download<float>(gpu, buffer.data(), 3)) EXPECT_TRUE(std::isnan(value));
}

// What passes by platform.cuh too.
TEST(CudaFakeGpu, FindsWritesIntoItsGuardZones) {
  FakeGpu gpu;
  const Buffer buffer(gpu, 1001);
  const auto write = [&](std::ptrdiff_t at) { *const_cast<volatile std::byte*>(buffer.data() + at) = {}; };
  write(1000);
  EXPECT_NO_THROW(gpu.launch(fill(buffer.data(), 4)));
#if defined(__SANITIZE_ADDRESS__)
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(write(1001), "use-after-poison");
  EXPECT_DEATH(write(-1), "use-after-poison");
#else
  write(1001);
  EXPECT_THROW(gpu.launch(fill(buffer.data(), 4)), KernelError);
#endif
}

TEST(CudaFakeGpu, ForbidsInAGraphWhatACaptureForbids) {
  FakeGpu gpu;
  const Buffer buffer(gpu, 1024);
  const auto captured = [&](const std::function<void()>& work, Timing timing) { gpu.time(work, timing); };
  EXPECT_NO_THROW(captured([&] { gpu.launch(fill(buffer.data(), 8)); }, Timing::graph));
  EXPECT_NO_THROW(captured([&] { gpu.synchronize(); }, Timing::stream));
  EXPECT_THROW(captured([&] { gpu.synchronize(); }, Timing::graph), KernelError);
  EXPECT_THROW(captured([&] { gpu.allocate(1); }, Timing::graph), KernelError);
  EXPECT_THROW(captured([&] { gpu.zero(buffer.data(), 1); }, Timing::graph), KernelError);
  EXPECT_NO_THROW(gpu.synchronize());
}

}  // namespace
}  // namespace memwall::cuda
