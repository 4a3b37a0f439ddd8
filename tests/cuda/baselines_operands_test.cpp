// The operands of the memory probes and of the baselines.
#include <gtest/gtest.h>

#include "tests/cuda/operands_support.h"

namespace memwall::cuda {
namespace {

TEST(CudaStreamOperands, EveryPatternHoldsToFloat64) {
  IdleGpu gpu;
  for (const StreamPattern pattern : {StreamPattern::read, StreamPattern::copy, StreamPattern::scale,
                                      StreamPattern::add, StreamPattern::triad}) {
    for (const bool nontemporal : {false, true}) {
      const StreamTask task{.pattern = pattern, .nontemporal = nontemporal, .bytes = 9'000};
      const std::size_t variants = hold_to_checks(gpu, "stream", task);
      EXPECT_EQ(variants, pattern == StreamPattern::read ? 5U : 2U);
      if (pattern == StreamPattern::read) break;
    }
  }
}

TEST(CudaStreamOperands, CountsWhatTheArraysHold) {
  IdleGpu gpu;
  Context context(gpu);
  const StreamTask task{.pattern = StreamPattern::triad, .bytes = 1030};  // 64 vectors
  const auto operands = place(task, context, 1, 1);
  EXPECT_EQ(operands->cold_bytes(0), 3 * 1024);
  EXPECT_EQ(operands->flops(0), 2 * 256);
  EXPECT_EQ(footprint_of(task, context).copy_bytes, 3 * 1024);
}

TEST(CudaBaselineOperands, AddsHoldToFloat64) {
  IdleGpu gpu;
  // 77^2 fills no vector: a tail of one element.
  for (const FormatKind kind : {FormatKind::f32, FormatKind::f16, FormatKind::bf16}) {
    for (const std::int64_t n : {1, 77})
      EXPECT_EQ(hold_to_checks(gpu, "add", AddTask{.n = n, .format = {.kind = kind}}), 4U);
  }
  Context context(gpu);
  const AddTask quantised{.n = 64, .format = {.kind = FormatKind::q4_0}};
  EXPECT_TRUE(variants_of(quantised, context).empty());
  EXPECT_EQ(footprint_of(quantised, context).copy_bytes, 0);
}

TEST(CudaBaselineOperands, MatmulsHoldToFloat64) {
  IdleGpu gpu;
  gpu.gpu.library = true;
  for (const FormatKind kind : {FormatKind::f32, FormatKind::f16, FormatKind::bf16})
    EXPECT_EQ(hold_to_checks(gpu, "matmul", MatmulTask{.n = 40, .format = {.kind = kind}}), 1U);
  Context context(gpu);
  EXPECT_TRUE(variants_of(MatmulTask{.n = 40, .format = {.kind = FormatKind::q8_0}}, context).empty());
  // f8's product is bf16.
  const MatmulTask f8{.n = 64, .format = {.kind = FormatKind::f8_e4m3}};
  EXPECT_EQ(footprint_of(f8, context).copy_bytes, 4 * 64 * 64);
  const auto operands = place(MatmulTask{.n = 40, .format = {.kind = FormatKind::f32}}, context, 1, 1);
  EXPECT_EQ(operands->flops(0), 2 * 40 * 40 * 40);
  EXPECT_EQ(operands->cold_bytes(0), 3 * 40 * 40 * 4);
  gpu.gpu.library = false;
  EXPECT_TRUE(variants_of(MatmulTask{.n = 40, .format = {.kind = FormatKind::f32}}, context).empty());
}

}  // namespace
}  // namespace memwall::cuda
