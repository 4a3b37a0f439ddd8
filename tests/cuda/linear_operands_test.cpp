// Linears on a GPU that is the host executor: what is offered, what it takes, and that it computes it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bench/cpu_operands.h"
#include "cuda/linear.h"
#include "cuda/operands.h"
#include "cuda/scalar_values.h"
#include "format/format.h"
#include "kernels/cpu/pack.h"
#include "tests/cuda/fake_gpu.h"

namespace memwall::cuda {
namespace {

OpTask decode(const Work& work, std::int64_t batch) {
  return {.work = work, .workload = {.phase = Phase::decode, .batch = batch, .context = 1}};
}

std::vector<std::string> names(const std::vector<Variant>& variants) {
  std::vector<std::string> result;
  for (const Variant& variant : variants) result.push_back(variant.name);
  return result;
}

LinearWork work_of(const char* format, std::int64_t out, std::int64_t in) {
  return {.out = out, .in = in, .format = *find_format(format), .bias_format = {}};
}

TEST(CudaLinearOperands, ComputeEveryFormatOnTheCopyOfTheTurn) {
  for (const char* format : {"f32", "f16", "bf16", "f8_e4m3", "f8_e4m3-c", "f8_e4m3-b128", "q8_0", "q4_0",
                             "int4-g64-zp", "int8-c"}) {
    for (const std::int64_t rows : {1, 5}) {
      FakeGpu gpu;
      gpu.library = true;
      Context context(gpu);
      LinearWork work = work_of(format, 37, 300);
      work.bias = rows == 5;
      work.bias_format = {FormatKind::f16};
      const OpTask task = decode(work, rows);
      const std::vector<Variant> variants = variants_of(work, task, context);
      const bool plain = is_plain_float(work.format);
      const std::vector<std::string> expected =
          plain ? std::vector<std::string>{"gemv", "fake library"} : std::vector<std::string>{"gemv"};
      EXPECT_EQ(names(variants), expected);
      const Footprint footprint = footprint_of(work, task, context);
      const std::int64_t before = gpu.allocated();
      EXPECT_EQ(before, 0);
      const auto operands = place(work, task, context, 3, 1);
      EXPECT_LE(gpu.allocated(), 3 * footprint.copy_bytes + footprint.fixed_bytes) << format;
      EXPECT_GE(operands->cold_bytes(0), static_cast<double>(storage_bytes(work.format, 37, 300)));
      EXPECT_GE(operands->padding_bytes(0), 0);
      EXPECT_LE(operands->cold_bytes(0) + operands->padding_bytes(0),
                static_cast<double>(footprint.copy_bytes));
      for (std::size_t v = 0; v < variants.size(); ++v) {
        const Check check = operands->check(v);
        EXPECT_TRUE(check.passed()) << format << " " << variants[v].name << " " << check.worst;
      }
    }
  }
}

TEST(CudaLinearOperands, LeaveManyRowsToTheLibrary) {
  FakeGpu gpu;
  Context context(gpu);
  const LinearWork work = work_of("bf16", 24, 40);
  EXPECT_THAT(names(variants_of(work, decode(work, 17), context)), testing::IsEmpty());
  gpu.library = true;
  EXPECT_THAT(names(variants_of(work, decode(work, 17), context)), testing::ElementsAre("fake library"));
  EXPECT_TRUE(place(work, decode(work, 17), context, 1, 1)->check(0).passed());
  const LinearWork unknown = work_of("mxfp4", 24, 40);
  EXPECT_THAT(names(variants_of(unknown, decode(unknown, 1), context)), testing::IsEmpty());
}

// A launch that reads another copy's weights, or leaves an output out, must not pass.
TEST(CudaLinearOperands, NoticeAWrongOutput) {
  FakeGpu gpu;
  Context context(gpu);
  const LinearWork work = work_of("bf16", 24, 40);
  PlacedLinear linear(work, 1, context, 2, 1);
  const auto x = context.inputs.with_room(gpu, ScalarType::bf16, 40);
  const auto y = context.outputs.with_room(gpu, linear.output_bytes());
  const auto compare = [&](std::int64_t turn) {
    Comparison comparison;
    linear.compare(comparison, 0, turn, x->data(), y->data());
    return comparison.result().passed();
  };
  linear.launch(0, 1, x->data(), y->data());
  EXPECT_TRUE(compare(1));
  EXPECT_TRUE(compare(3));  // the same copy
  EXPECT_FALSE(compare(0));
  poison(gpu, y->data(), linear.output_bytes());
  EXPECT_FALSE(compare(1));
}

// The library's f8 and integer arms read x in their own type.
class NarrowGpu final : public Gpu {
 public:
  const GpuProperties& properties() const override { return inner_.properties(); }
  std::int64_t free_bytes() override { return inner_.free_bytes(); }
  void* allocate(std::int64_t bytes) override { return inner_.allocate(bytes); }
  void release(void* memory) noexcept override { inner_.release(memory); }
  void upload(void* to, const void* from, std::int64_t bytes) override { inner_.upload(to, from, bytes); }
  void download(void* to, const void* from, std::int64_t bytes) override { inner_.download(to, from, bytes); }
  void zero(void* memory, std::int64_t bytes) override { inner_.zero(memory, bytes); }
  void launch(const Launch& launch) override { inner_.launch(launch); }
  void synchronize() override {}
  double time(const std::function<void()>&, Timing) override { return 0; }
  Clocks clocks() override { return {}; }
  std::vector<GemmArm> gemm_arms(const GemmProblem&) override { return {{"narrow", 512, 4}}; }
  void gemm(const GemmProblem& problem, int arm, const GemmOperands& operands) override {
    EXPECT_EQ(arm, 4);
    EXPECT_NE(operands.workspace, nullptr);
    for (std::int64_t m = 0; m < problem.m; ++m) {
      for (std::int64_t n = 0; n < problem.n; ++n) {
        double sum = 0;
        for (std::int64_t k = 0; k < problem.k; ++k) {
          const auto x = static_cast<const std::uint8_t*>(operands.x)[m * problem.k + k];
          const auto w = static_cast<const std::uint8_t*>(operands.w)[n * problem.w_pitch + k];
          sum +=
              problem.type == ScalarType::i8
                  ? static_cast<double>(static_cast<std::int8_t>(x)) * static_cast<std::int8_t>(w)
                  : static_cast<double>(cpu::f8_e4m3_to_f32(x)) * static_cast<double>(cpu::f8_e4m3_to_f32(w));
        }
        const std::int64_t at = m * problem.n + n;
        if (problem.type == ScalarType::i8) {
          static_cast<std::int32_t*>(operands.y)[at] = static_cast<std::int32_t>(sum);
        } else {
          sum *= static_cast<double>(*operands.x_scale) * static_cast<double>(*operands.w_scale);
          static_cast<std::uint16_t*>(operands.y)[at] = cpu::f32_to_bf16(static_cast<float>(sum));
        }
      }
    }
  }

 private:
  FakeGpu inner_;
};

TEST(CudaLinearOperands, HoldTheNarrowArmsToTheirOwnActivations) {
  for (const char* format : {"f8_e4m3", "int8-c"}) {
    NarrowGpu gpu;
    Context context(gpu);
    const LinearWork work = work_of(format, 20, 50);
    const auto operands = place(work, decode(work, 20), context, 2, 1);
    EXPECT_TRUE(operands->check(0).passed()) << format;
  }
}

}  // namespace
}  // namespace memwall::cuda
