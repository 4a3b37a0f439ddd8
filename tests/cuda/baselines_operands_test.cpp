// The operands of the memory probes and of the baselines.
#include <gtest/gtest.h>

#include <functional>
#include <variant>

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
      EXPECT_EQ(variants, pattern == StreamPattern::read ? 11U : 4U);
      if (pattern == StreamPattern::read) break;
    }
  }
}

TEST(CudaStreamOperands, WaysAreThoseOfTheArchitecture) {
  const auto ways = [](int major, int minor, StreamPattern pattern) {
    IdleGpu gpu(fake_properties(major, minor));
    return hold_to_checks(gpu, "stream", StreamTask{.pattern = pattern, .bytes = 100'000});
  };
  EXPECT_EQ(ways(7, 5, StreamPattern::read), 5U);
  EXPECT_EQ(ways(8, 0, StreamPattern::read), 9U);
  EXPECT_EQ(ways(8, 6, StreamPattern::read), 9U);
  EXPECT_EQ(ways(12, 0, StreamPattern::read), 11U);
  EXPECT_EQ(ways(7, 5, StreamPattern::triad), 2U);
  EXPECT_EQ(ways(8, 6, StreamPattern::triad), 4U);
}

// Twice what a check goes through.
constexpr std::int64_t kLargeRead = std::int64_t{6400} << 10;

TEST(CudaStreamOperands, LargeReadsAreCheckedOnLittle) {
  IdleGpu gpu;
  gpu.gpu.executor().settings().count_traffic = false;
  Context context(gpu);
  const StreamTask task{.bytes = kLargeRead};
  EXPECT_EQ(hold_to_checks(gpu, "large", task), 11U);
  gpu.idle = false;
  const auto operands = place(task, context, 1, 1);
  // The array to compare with, once, and each time two launches' sums.
  gpu.downloaded = 0;
  EXPECT_TRUE(operands->check(0).passed());
  EXPECT_LE(gpu.downloaded, 3'400'000);
  gpu.downloaded = 0;
  for (std::size_t v = 1; v < 11; ++v) EXPECT_TRUE(operands->check(v).passed());
  EXPECT_LE(gpu.downloaded, 10 * 10'000);
}

TEST(CudaStreamOperands, ChecksSeeOneVectorAndOneBlock) {
  IdleGpu gpu;
  gpu.gpu.executor().settings().count_traffic = false;
  Context context(gpu);
  for (const std::int64_t bytes : {std::int64_t{9'008}, kLargeRead}) {
    const auto operands = place(StreamTask{.bytes = bytes}, context, 1, 1);
    const std::size_t variants = variants_of(StreamTask{.bytes = bytes}, context).size();
    const auto sees = [&](std::size_t variant, const std::function<void(StreamLaunch&)>& change) {
      gpu.gpu.tamper = [&](Launch& launch) {
        if (auto* read = std::get_if<StreamLaunch>(&launch)) change(*read);
      };
      const bool passed = operands->check(variant).passed();
      gpu.gpu.tamper = {};
      return !passed;
    };
    for (std::size_t v = 0; v < variants; ++v) {
      SCOPED_TRACE(v);
      EXPECT_FALSE(sees(v, [](StreamLaunch&) {}));
      EXPECT_TRUE(sees(v, [](StreamLaunch& read) { --read.params.vectors; }));
      EXPECT_TRUE(sees(v, [](StreamLaunch& read) {
        read.params.a = static_cast<const std::byte*>(read.params.a) + 16;
        --read.params.vectors;
      }));
    }
    // One block fewer of the whole array's launch: the array, not what the check compares, lacks its sum.
    if (bytes != kLargeRead) continue;
    EXPECT_TRUE(sees(3, [&](StreamLaunch& read) {
      if (read.params.vectors == bytes / 16) --read.geometry.grid_x;
    }));
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
