// The staged kernels of latent attention on the host executor, against float64.
#include <gtest/gtest.h>

#include "kernels/cuda/latent.cuh"
#include "tests/cuda/attention_case.h"
#include "tests/cuda/executor.h"

namespace memwall::cuda {
namespace {

void run(const LatentLaunch& launch, Executor& executor) {
  dispatch(launch, [&]<class Kernel>(const Geometry& geometry, const typename Kernel::Params& params) {
    executor.run<Kernel>(geometry, params);
  });
}

LatentLaunch launch_of(AttentionCase& test, int multiprocessors) {
  LatentLaunch launch = staged_launch(test.shape, test.one_row, multiprocessors);
  test.point(launch.params, attention_partial_floats(launch.params, test.shape.seqs), 0);
  return launch;
}

void run_both(const LatentLaunch& launch, Executor& executor) {
  run(launch, executor);
  if (launch.params.parts > 1) run(merge_launch(launch), executor);
}

void expect_right(const AttentionShape& shape, bool one_row, Order order, int multiprocessors, bool chosen) {
  SCOPED_TRACE(testing::Message() << static_cast<int>(shape.element) << " heads " << shape.heads << "/"
                                  << shape.kv_heads << " d " << shape.d_k << "/" << shape.d_v << " tokens "
                                  << shape.read << "/" << shape.held);
  AttentionCase test(shape, chosen, false, one_row);
  const LatentLaunch launch = launch_of(test, multiprocessors);
  Executor executor({.blocks = order, .threads = order, .seed = 3, .arch = {}});
  test.forget_outputs();
  run_both(launch, executor);
  EXPECT_LE(test.worst_error(), 1);
}

TEST(CudaLatentKernel, AgreesWithFloat64InEveryFormatAndNumberOfHeads) {
  for (const KvElement element : {KvElement::f16, KvElement::bf16, KvElement::f8_e4m3}) {
    expect_right({element, 1, 16, 1, 576, 512, 20, 20}, true, Order::forward, 1, false);
    expect_right({element, 2, 20, 1, 288, 256, 24, 19}, true, Order::backward, 1, true);
    expect_right({element, 1, 71, 1, 64, 64, 33, 33}, false, Order::shuffled, 1, false);
    expect_right({element, 1, 48, 1, 128, 112, 17, 17}, false, Order::backward, 1, true);
  }
  expect_right({KvElement::bf16, 1, 33, 1, 512, 448, 20, 20}, true, Order::shuffled, 1, false);
  // Rows that do not fill the tiles' 16 columns, and none at all.
  expect_right({KvElement::bf16, 1, 5, 1, 40, 24, 21, 18}, true, Order::backward, 1, false);
  expect_right({KvElement::f16, 1, 17, 1, 24, 40, 130, 130}, false, Order::shuffled, 4, false);
  expect_right({KvElement::f16, 1, 17, 1, 32, 32, 16, 0}, true, Order::forward, 1, false);
}

TEST(CudaLatentKernel, StreamsEachLatentOnceAndCoalesced) {
  for (const KvElement element : {KvElement::f16, KvElement::f8_e4m3}) {
    AttentionCase test({element, 1, 16, 1, 128, 64, 150, 150}, false, false, true);
    const LatentLaunch launch = launch_of(test, 1);
    EXPECT_EQ(launch.params.parts, 2);
    Executor executor;
    executor.watch(test.k.data(), test.k.size());
    run_both(launch, executor);
    EXPECT_EQ(executor.watched().least, 1U);
    EXPECT_EQ(executor.watched().most, 1U);
    EXPECT_EQ(executor.traffic().streamed_bytes, static_cast<std::int64_t>(test.k.size()));
    EXPECT_EQ(executor.traffic().streamed_sectors, static_cast<std::int64_t>(test.k.size()) / 32);
  }
}

}  // namespace
}  // namespace memwall::cuda
