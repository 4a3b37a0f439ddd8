// The operands of routers.
#include <gtest/gtest.h>

#include "format/checked.h"
#include "tests/cuda/operands_support.h"

namespace memwall::cuda {
namespace {

RouterWork router(Format format, std::int64_t experts, std::int64_t per_token) {
  RouterWork work;
  work.linear.out = experts;
  work.linear.in = 128;
  work.linear.format = format;
  work.per_token = per_token;
  return work;
}

OpTask decode(const RouterWork& work, std::int64_t batch) {
  return op_task(work, {.phase = Phase::decode, .batch = batch, .context = 16});
}

TEST(CudaRouterOperands, LinearAndChoiceHoldToFloat64) {
  IdleGpu gpu;
  gpu.gpu.library = true;
  for (const char* name : {"f32", "f16", "bf16", "q8_0", "int8-c"}) {
    const RouterWork work = router(find_format(name).value(), 24, 4);
    for (const std::int64_t batch : {1, 5})
      EXPECT_GE(hold_to_checks(gpu, name, work, decode(work, batch)), 1U) << name;
  }
}

TEST(CudaRouterOperands, HasNoVariantWhereThereIsNoKernel) {
  IdleGpu gpu;
  Context context(gpu);
  const Format bf16{.kind = FormatKind::bf16};
  // More experts than shared memory holds; more choices than experts; a format without a linear.
  for (const RouterWork& work :
       {router(bf16, 20'000, 8), router(bf16, 4, 5), router({.kind = FormatKind::iq1_s}, 24, 4)}) {
    EXPECT_TRUE(variants_of(work, decode(work, 1), context).empty());
  }
}

}  // namespace
}  // namespace memwall::cuda
