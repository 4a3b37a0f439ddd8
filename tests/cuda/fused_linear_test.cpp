// Fused linears on a GPU that is the host executor.
#include "cuda/fused_linear.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cuda/operands.h"
#include "tests/cuda/fake_gpu.h"

namespace memwall::cuda {
namespace {

constexpr std::int64_t kIn = 200;

LinearWork linear(std::int64_t out, const char* format = "bf16") {
  return {.out = out, .in = kIn, .format = *find_format(format), .bias_format = {}};
}

ElementwiseWork norm(ElementwiseFunction function, bool bias = false) {
  return {.function = function,
          .width = kIn,
          .weights = bias ? 2 * kIn : kIn,
          .weight_format = {FormatKind::bf16},
          .flops_per_element = 4};
}

ElementwiseWork activation(ActivationKind kind, std::int64_t width, bool gated) {
  return {.function = ElementwiseFunction::activate,
          .width = width,
          .inputs = gated ? 2 : 1,
          .weight_format = {},
          .flops_per_element = 5,
          .activation = kind};
}

ElementwiseWork residual(std::int64_t width) {
  return {.function = ElementwiseFunction::add, .width = width, .inputs = 2, .weight_format = {}};
}

FusedTask task_of(const std::vector<Work>& works, std::int64_t batch) {
  FusedTask task;
  for (const Work& work : works)
    task.ops.push_back({.work = work, .workload = {.phase = Phase::decode, .batch = batch, .context = 1}});
  return task;
}

TEST(CudaFusedLinear, ComputesEachCombinationInOneLaunch) {
  using Function = ElementwiseFunction;
  LinearWork biased = linear(24);
  biased.bias = true;
  biased.bias_format = {FormatKind::f32};
  const std::vector<std::vector<Work>> tasks = {
      {norm(Function::rms_norm), linear(48), linear(16), linear(17)},  // q, k, v
      {linear(40, "q4_0"), linear(40, "q4_0"), activation(ActivationKind::silu, 40, true)},
      {norm(Function::layer_norm, true), linear(33, "f16"), activation(ActivationKind::gelu, 33, false)},
      {norm(Function::layer_norm), linear(21, "f32"), linear(21, "f32"),
       activation(ActivationKind::relu, 21, true)},
      {linear(23, "f8_e4m3-c"), residual(23)},
      {norm(Function::rms_norm), linear(8, "int4-g128-zp"), linear(9, "int4-g128-zp"),
       linear(1, "int4-g128-zp"), linear(70, "int4-g128-zp")},
      {norm(Function::rms_norm), biased, biased, activation(ActivationKind::silu, 24, true)},
  };
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    for (const std::int64_t batch : {1, 3, 16}) {
      FakeGpu gpu;
      Context context(gpu);
      const FusedTask task = task_of(tasks[i], batch);
      ASSERT_TRUE(is_fused_linear(task)) << i;
      ASSERT_EQ(variants_of(task, context).size(), 1U);
      const Footprint footprint = footprint_of(task, context);
      const auto operands = place(task, context, 2, 1);
      EXPECT_LE(gpu.allocated(), 2 * footprint.copy_bytes + footprint.fixed_bytes) << i;
      const std::int64_t before = gpu.launches();
      const Check check = operands->check(0);
      EXPECT_TRUE(check.passed()) << "task " << i << " x " << batch << ": " << check.worst;
      EXPECT_EQ(gpu.launches(), before + 2);  // it, and the filling of its outputs
      EXPECT_GT(operands->cold_bytes(0), 0);
      EXPECT_GT(operands->flops(0), 0);
    }
  }
}

TEST(CudaFusedLinear, RefusesWhatItsKernelCannot) {
  using Function = ElementwiseFunction;
  const std::vector<std::vector<Work>> tasks = {
      {norm(Function::rms_norm)},
      {linear(8), norm(Function::rms_norm)},
      {linear(8), linear(8, "f16")},
      {linear(8), linear(8), linear(8), linear(8), linear(8)},
      {linear(8), linear(9), activation(ActivationKind::silu, 8, true)},
      {linear(8), activation(ActivationKind::silu, 8, true)},
      {linear(8), linear(8), residual(8)},
      {linear(8), residual(9)},
      {linear(8), residual(8), linear(8)},
      {linear(8, "mxfp4")},
      {norm(Function::rms_norm), AttentionWork{.heads = 1, .kv_heads = 1, .d_k = 8, .d_v = 8}},
  };
  FakeGpu gpu;
  Context context(gpu);
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    EXPECT_FALSE(is_fused_linear(task_of(tasks[i], 1))) << i;
    EXPECT_TRUE(variants_of(task_of(tasks[i], 1), context).empty()) << i;
  }
  EXPECT_FALSE(is_fused_linear(task_of({linear(8)}, 17)));
}

}  // namespace
}  // namespace memwall::cuda
