// Grouped experts on a GPU that is the host executor.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cuda/operands.h"
#include "tests/cuda/fake_gpu.h"

namespace memwall::cuda {
namespace {

ExpertWork experts(const char* format, std::int64_t total, std::int64_t per_token) {
  const LinearWork each{.out = 19, .in = 72, .format = *find_format(format), .bias_format = {}};
  return {.each = each, .total = total, .per_token = per_token};
}

OpTask task_of(const ExpertWork& work, std::int64_t batch, bool whole_layers) {
  return {.work = work,
          .workload = {.phase = Phase::decode, .batch = batch, .context = 1},
          .whole_layers = whole_layers};
}

TEST(CudaExperts, RunThoseDrawnInOneLaunch) {
  for (const char* format : {"bf16", "q4_0"}) {
    for (const std::int64_t batch : {1, 9}) {
      for (const bool whole_layers : {false, true}) {
        FakeGpu gpu;
        Context context(gpu);
        ExpertWork work = experts(format, 6, 2);
        work.each.bias = whole_layers;
        work.each.bias_format = {FormatKind::bf16};
        const OpTask task = task_of(work, batch, whole_layers);
        ASSERT_EQ(variants_of(work, task, context).size(), 1U);
        const Footprint footprint = footprint_of(work, task, context);
        const std::int64_t copies = footprint.least_copies * 2;
        const auto operands = place(work, task, context, copies, 3);
        EXPECT_LE(gpu.allocated(), copies * footprint.copy_bytes + footprint.fixed_bytes);
        const std::int64_t before = gpu.launches();
        const Check check = operands->check(0);
        EXPECT_TRUE(check.passed()) << format << " x " << batch << ": " << check.worst;
        EXPECT_EQ(gpu.launches(), before + 2);  // it, and the filling of its outputs
        EXPECT_GE(operands->touched(1), 2);
        EXPECT_DOUBLE_EQ(operands->cold_bytes(1) / operands->touched(1),
                         static_cast<double>(work.each.weight_bytes()));
        const std::int64_t allocated = gpu.allocated();
        operands->launch(0, 2);
        EXPECT_EQ(gpu.allocated(), allocated);
      }
    }
  }
}

// More tokens than a kernel's columns: the matrix is read again for each 16.
TEST(CudaExperts, TakeAnExpertOfManyTokensInParts) {
  FakeGpu gpu;
  Context context(gpu);
  const ExpertWork work = experts("f16", 2, 1);
  const OpTask task = task_of(work, 32, true);
  const auto operands = place(work, task, context, 2, 3);
  EXPECT_TRUE(operands->check(0).passed());
  EXPECT_TRUE(variants_of(work, task_of(work, 64, true), context).empty());
}

}  // namespace
}  // namespace memwall::cuda
