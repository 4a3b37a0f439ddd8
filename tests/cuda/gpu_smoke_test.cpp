// The first 20 seconds on a GPU: it opens, and a kernel of each important kind is right.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "cuda/context.h"
#include "cuda/device.h"
#include "tests/cuda/gpu_fixture.h"

namespace memwall::cuda {
namespace {

class CudaGpuSmoke : public CudaGpu {
 protected:
  // memwall's own kernels for a task, each against float64. None needs a library.
  void own_kernels_are_right(const Task& task) {
    const std::unique_ptr<Device> device = make_device(std::move(gpu_));
    const std::vector<Variant> variants = device->variants(task);
    ASSERT_FALSE(variants.empty());
    const std::int64_t least = device->footprint(task).least_copies;
    const auto operands = device->place(task, std::max<std::int64_t>(2, least), 7);
    int checked = 0;
    for (std::size_t variant = 0; variant < variants.size(); ++variant) {
      if (variants[variant].name.rfind("cublas", 0) == 0) continue;
      SCOPED_TRACE(variants[variant].name);
      const Check check = operands->check(variant);
      EXPECT_TRUE(check.passed()) << check.worst << " of " << check.outputs;
      EXPECT_GT(check.outputs, 0);
      ++checked;
    }
    EXPECT_GT(checked, 0);
  }
};

Task gemv(const char* format) {
  return OpTask{LinearWork{.out = 1024, .in = 2048, .format = find_format(format).value()}, {.batch = 1}};
}

TEST_F(CudaGpuSmoke, OpensAndHoldsMemory) {
  const std::vector<std::uint32_t> words = {1, 2, 3, 0xFFFFFFFFU};
  const Buffer buffer(*gpu_, 16);
  gpu_->upload(buffer.data(), words.data(), 16);
  EXPECT_EQ(download<std::uint32_t>(*gpu_, buffer.data(), 4), words);
}

TEST_F(CudaGpuSmoke, MultipliesByAVectorInF16) { own_kernels_are_right(gemv("f16")); }

TEST_F(CudaGpuSmoke, MultipliesByAVectorInQ4) { own_kernels_are_right(gemv("q4_0")); }

TEST_F(CudaGpuSmoke, AttendsOverABf16Cache) {
  AttentionWork attention{32, 8, 128, 128};
  attention.kv = KvFormat::bf16;
  own_kernels_are_right(OpTask{attention, {.batch = 1, .context = 500}});
}

TEST_F(CudaGpuSmoke, TimesAGraph) {
  const Buffer buffer(*gpu_, 1 << 20);
  const auto fills = [&] {
    for (int i = 0; i < 10; ++i) fill_random(*gpu_, buffer.data(), buffer.bytes(), kAnyBits, 3);
  };
  EXPECT_GT(gpu_->time(fills, Timing::graph), 0);
  EXPECT_GT(gpu_->time(fills, Timing::graph), 0);  // again, with the kernels loaded
  gpu_->synchronize();
}

}  // namespace
}  // namespace memwall::cuda
