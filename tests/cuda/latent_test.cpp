// Latent attention's operands on a GPU that is the host executor.
#include <gtest/gtest.h>

#include "cuda/operands.h"
#include "tests/cuda/fake_gpu.h"

namespace memwall::cuda {
namespace {

TEST(CudaLatent, OperandsPassTheirCheck) {
  const LatentState all{.heads = 5, .rank = 32, .rope = 16, .d_nope = 24, .d_v = 16};
  LatentState sparse = all;
  sparse.top_k = 17;
  LatentState windowed = all;
  windowed.window = 20;
  LatentState sampled = all;
  sampled.every = 4;
  const LatentState odd{.heads = 3, .rank = 20, .rope = 9};
  for (const KvFormat kv : {KvFormat::f32, KvFormat::f16, KvFormat::bf16, KvFormat::f8_e4m3}) {
    for (const LatentState& state : {all, sparse, windowed, sampled, odd}) {
      SCOPED_TRACE(testing::Message()
                   << kv_format_name(kv) << " rank " << state.rank << " top " << state.top_k << " window "
                   << state.window << " every " << state.every);
      FakeGpu gpu;
      Context context(gpu);
      const LatentWork work{.state = state, .kv = kv};
      const OpTask task{work, {Phase::decode, 2, 70}, false};
      ASSERT_EQ(variants_of(work, task, context).size(), 1U);
      const Footprint footprint = footprint_of(work, task, context);
      const auto operands = place(work, task, context, 2, 5);
      EXPECT_LE(gpu.most_allocated(), 2 * footprint.copy_bytes + footprint.fixed_bytes + 64);
      const Check check = operands->check(0);
      EXPECT_TRUE(check.passed()) << check.worst;
      EXPECT_GT(operands->cold_bytes(0), 0);
      EXPECT_GE(operands->padding_bytes(0), 0);
    }
  }
}

TEST(CudaLatent, HasNoKernelForPromptsAndInt8) {
  FakeGpu gpu;
  Context context(gpu);
  LatentWork work{.state = {.heads = 2, .rank = 16, .rope = 16}};
  EXPECT_TRUE(variants_of(work, {work, {Phase::prefill, 1, 8}, false}, context).empty());
  work.kv = KvFormat::int8;
  EXPECT_TRUE(variants_of(work, {work, {Phase::decode, 1, 8}, false}, context).empty());
}

}  // namespace
}  // namespace memwall::cuda
