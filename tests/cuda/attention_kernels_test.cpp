// Attention's kernels on the host executor, against float64.
#include <gtest/gtest.h>

#include <utility>

#include "kernels/cuda/attention.cuh"
#include "tests/cuda/attention_case.h"
#include "tests/cuda/executor.h"

namespace memwall::cuda {
namespace {

const ArchLimits kHopper{.major = 9};
const ArchLimits kTuring{.major = 7, .minor = 5};

AttentionLaunch launch_of(AttentionCase& test, const ArchLimits& arch, int multiprocessors) {
  AttentionLaunch launch = attention_launch(test.shape, arch, multiprocessors);
  test.point(launch.params, attention_partial_floats(launch.params, test.shape.seqs),
             attention_counters(test.shape));
  return launch;
}

void run(const AttentionLaunch& launch, Executor& executor) {
  dispatch(launch, [&]<class Kernel>(const Geometry& geometry, const typename Kernel::Params& params) {
    executor.run<Kernel>(geometry, params);
  });
}

struct Settings {
  Order order = Order::forward;
  int multiprocessors = 1;
  bool chosen = false;
  bool turned = false;
};

void expect_right(const AttentionShape& shape, const ArchLimits& arch, const Settings& settings) {
  SCOPED_TRACE(testing::Message() << static_cast<int>(shape.element) << " heads " << shape.heads << "/"
                                  << shape.kv_heads << " d " << shape.d_k << "/" << shape.d_v << " tokens "
                                  << shape.read << "/" << shape.held << " sm " << settings.multiprocessors);
  AttentionCase test(shape, settings.chosen, settings.turned);
  const AttentionLaunch launch = launch_of(test, arch, settings.multiprocessors);
  Executor executor({.blocks = settings.order, .threads = settings.order, .seed = 7, .arch = arch});
  run(launch, executor);
  EXPECT_LE(test.worst_error(), 1);
  EXPECT_TRUE(test.counters_are_zero());
}

TEST(CudaAttentionKernel, AgreesWithFloat64InEveryWidthGroupAndFormat) {
  for (const KvElement element : {KvElement::f16, KvElement::bf16, KvElement::f8_e4m3}) {
    expect_right({element, 2, 2, 2, 64, 64, 20, 20}, kHopper, {Order::forward, 4});
    expect_right({element, 1, 7, 1, 33, 57, 150, 137}, kHopper, {Order::backward, 2, false, true});
    expect_right({element, 1, 9, 1, 64, 33, 40, 1}, kHopper, {Order::shuffled});
    expect_right({element, 1, 6, 1, 80, 80, 100, 21}, kHopper, {Order::shuffled, 4, true});
    expect_right({element, 1, 16, 1, 128, 128, 135, 131}, kHopper, {Order::shuffled, 2, true, true});
    expect_right({element, 1, 3, 1, 250, 201, 33, 33}, kHopper, {Order::backward, 1, false, true});
  }
}

TEST(CudaAttentionKernel, WithoutTensorCoresAgreesToo) {
  for (const KvElement element : {KvElement::f32, KvElement::bf16, KvElement::f16, KvElement::f8_e4m3}) {
    expect_right({element, 1, 5, 1, 33, 30, 70, 67}, kTuring, {Order::backward, 2, false, true});
    expect_right({element, 1, 2, 1, 300, 290, 40, 35}, kTuring, {Order::shuffled, 2, true});
  }
}

TEST(CudaAttentionKernel, OverNothingIsZero) {
  for (const KvElement element : {KvElement::f16, KvElement::f32})
    expect_right({element, 1, 2, 1, 16, 16, 32, 0}, kHopper, {});
}

TEST(CudaAttentionKernel, StreamsKAndVOnceAndCoalesced) {
  for (const KvElement element : {KvElement::f16, KvElement::f8_e4m3}) {
    AttentionCase test({element, 1, 4, 1, 128, 128, 160, 160}, false, false);
    const AttentionLaunch launch = launch_of(test, kHopper, 2);
    EXPECT_GT(launch.params.parts, 1);
    Executor executor;
    executor.watch(test.k.data(), test.k.size());
    run(launch, executor);
    EXPECT_EQ(executor.watched().least, 1U);
    EXPECT_EQ(executor.watched().most, 1U);
    const auto bytes = static_cast<std::int64_t>(test.k.size() + test.v.size());
    EXPECT_EQ(executor.traffic().streamed_bytes, bytes);
    EXPECT_EQ(executor.traffic().streamed_sectors, bytes / 32);
    executor.watch(test.v.data(), test.v.size());
    run(launch, executor);  // again: the counters are left as they were
    EXPECT_EQ(executor.watched().least, 1U);
    EXPECT_EQ(executor.watched().most, 1U);
    EXPECT_LE(test.worst_error(), 1);
  }
}

// The kernels' own layouts, which the choice must know.
TEST(CudaAttentionKernel, TakesTheSharedMemoryThatTheChoiceGrants) {
  for (const KvElement element : {KvElement::f32, KvElement::f16, KvElement::bf16, KvElement::f8_e4m3}) {
    for (const std::int64_t heads : {1, 16}) {
      for (const auto& [d_k, d_v] : {std::pair{64, 64}, {128, 128}, {192, 128}, {256, 256}}) {
        if (heads == 16 && d_k == 256) continue;
        const AttentionLaunch launch = attention_launch({element, 1, heads, 1, d_k, d_v, 9, 9}, kHopper, 1);
        dispatch(launch, [&]<class Kernel>(const Geometry& geometry, const typename Kernel::Params&) {
          EXPECT_EQ(geometry.shared_bytes, Kernel::kSharedBytes);
        });
      }
    }
  }
}

}  // namespace
}  // namespace memwall::cuda
