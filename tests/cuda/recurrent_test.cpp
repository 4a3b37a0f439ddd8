// Recurrent layers on the fake GPU: every update, both widths of a state, against float64 in every order.
#include "kernels/cuda/recurrent.h"

#include <gtest/gtest.h>

#include <memory>

#include "cuda/operands.h"
#include "cuda/recurrent_places.h"
#include "load/load_model.h"
#include "tests/cuda/fake_gpu.h"
#include "tests/cuda/order.h"
#include "tests/support.h"

namespace memwall::cuda {
namespace {

constexpr std::int64_t kChannels = 40;

// A layer of so many elements of state, 5 or 7 FLOPs each, and a convolution of 4 taps; the weights beyond
// the convolution's kernel are 50 bytes, or rates.
RecurrentWork layer(RecurrentKind kind, std::int64_t elements, std::int64_t element_bytes,
                    std::int64_t channels = kChannels) {
  const std::int64_t flops = kind == RecurrentKind::decay ? 5 : 7;
  const bool selective = kind == RecurrentKind::selective;
  return {.state = {.elements = elements,
                    .element_bytes = element_bytes,
                    .conv_elements = 3 * channels,
                    .flops = flops * elements + 2 * 4 * channels},
          .weight_bytes = 2 * 4 * channels + (selective ? 2 * elements : 0) + 50};
}

RecurrentWork short_convolution(std::int64_t channels) {
  return {.state = {.conv_elements = 2 * channels, .flops = 8 * channels}, .weight_bytes = 6 * channels};
}

struct Case {
  const char* name;
  RecurrentWork work;
};

std::vector<Case> cases(std::int64_t element_bytes) {
  using K = RecurrentKind;
  return {{"decay", layer(K::decay, 70 * 128, element_bytes)},
          {"decay, a short last row", layer(K::decay, 67 * 128 + 13, element_bytes)},
          {"delta", layer(K::delta, 70 * 128, element_bytes)},
          {"delta, odd channels", layer(K::delta, 5 * 128 + 1, element_bytes, 37)},
          {"selective", layer(K::selective, 150 * 16, element_bytes)},
          {"selective, a short last row", layer(K::selective, 77 * 16 + 3, element_bytes)},
          {"narrower than a row", {.state = {.elements = 7, .element_bytes = element_bytes, .flops = 35}}},
          {"a token shift",
           {.state = {.elements = 300, .element_bytes = element_bytes, .conv_elements = 24, .flops = 1596},
            .weight_bytes = 96}},
          {"convolution", short_convolution(88)}};
}

OpTask task(const RecurrentWork& work, const Workload& workload) {
  return {.work = work, .workload = workload};
}

// On a card of 4 multiprocessors small batches take one load in flight, larger ones four.
TEST(CudaRecurrent, HoldsToFloat64) {
  for (const std::int64_t bytes : {2, 4}) {
    for (const Case& each : cases(bytes)) {
      for (const Workload& workload :
           {Workload{Phase::decode, 1, 1}, Workload{Phase::decode, 9, 1}, Workload{Phase::prefill, 2, 5}}) {
        SCOPED_TRACE(testing::Message() << each.name << ", " << bytes << " bytes, batch " << workload.batch);
        FakeGpu gpu;
        Context context(gpu);
        ASSERT_EQ(variants_of(each.work, task(each.work, workload), context).size(), 1U);
        const auto operands = place(each.work, task(each.work, workload), context, 2, 42);
        for (const Order order : {Order::forward, Order::shuffled}) {
          set_order(gpu.executor(), {order, order});
          const Check check = operands->check(0);
          EXPECT_TRUE(check.passed()) << check.worst << " of " << check.outputs;
        }
        const Cost cost = cost_of(each.work, workload);
        EXPECT_EQ(operands->cold_bytes(0), cost.state_bytes + cost.weight_bytes);
        EXPECT_LE(operands->flops(0), cost.flops);
      }
    }
  }
}

TEST(CudaRecurrent, StaysRightOverManyLaunches) {
  for (const RecurrentKind kind : {RecurrentKind::decay, RecurrentKind::delta, RecurrentKind::selective}) {
    const RecurrentWork work = layer(kind, 8 * 128, 2);
    FakeGpu gpu;
    Context context(gpu);
    const auto operands = place(work, task(work, {Phase::decode, 1, 1}), context, 1, 7);
    for (int i = 0; i < 100; ++i) operands->launch(0, i);
    const Check check = operands->check(0);
    EXPECT_TRUE(check.passed()) << check.worst;
  }
}

TEST(CudaRecurrent, LeavesTheSameBitsInEveryOrder) {
  for (const RecurrentKind kind : {RecurrentKind::decay, RecurrentKind::delta, RecurrentKind::selective}) {
    const RecurrentWork work = layer(kind, 70 * 128, 4);
    FakeGpu gpu;
    Context context(gpu);
    const auto operands = place(work, task(work, {Phase::decode, 2, 1}), context, 1, 7);
    expect_order_independent(gpu.executor(), gpu.ranges(), [&] { operands->launch(0, 0); });
  }
}

// The state is streamed once in whole sectors and written back in whole sectors; rates and other weights are
// streamed once too.
TEST(CudaRecurrent, ReadsAndWritesTheStateOnce) {
  for (const RecurrentKind kind : {RecurrentKind::decay, RecurrentKind::delta, RecurrentKind::selective}) {
    for (const std::int64_t bytes : {2, 4}) {
      for (const Workload& workload : {Workload{Phase::decode, 8, 1}, Workload{Phase::prefill, 1, 3}}) {
        const std::int64_t elements = 64 * 128;
        const RecurrentWork work = layer(kind, elements, bytes, 64);
        FakeGpu gpu;
        Context context(gpu);
        const auto operands = place(work, task(work, workload), context, 1, 7);
        const RecurrentPlaces at(work, workload);
        const auto copy = [&]() -> void* {
          for (const MemoryRange& range : gpu.ranges()) {
            if (range.bytes == static_cast<std::size_t>(at.copy_bytes)) return range.data;
          }
          return nullptr;
        }();
        ASSERT_NE(copy, nullptr);
        gpu.executor().watch(copy, static_cast<std::size_t>(workload.batch * elements * bytes));
        gpu.executor().forget_traffic();
        operands->launch(0, 0);
        EXPECT_EQ(gpu.executor().watched().least, 1U);
        EXPECT_EQ(gpu.executor().watched().most, 1U);
        const Traffic& traffic = gpu.executor().traffic();
        const std::int64_t state = workload.batch * elements * bytes;
        const std::int64_t rates = kind == RecurrentKind::selective ? workload.batch * elements * 2 : 0;
        EXPECT_EQ(traffic.streamed_bytes, state + rates + 48);
        EXPECT_EQ(traffic.streamed_sectors, (state + rates) / 32 + 2);
        const std::int64_t tokens = workload.rows();
        EXPECT_EQ(traffic.bytes_written,
                  state + workload.batch * 3 * 64 * 2 + tokens * 2 * (at.form.rows + 64));
      }
    }
  }
}

TEST(CudaRecurrent, ACheckNoticesAWrongOperand) {
  const auto passes = [](const RecurrentWork& work, const std::function<void(RecurrentLaunch&)>& change) {
    FakeGpu gpu;
    Context context(gpu);
    const auto operands = place(work, task(work, {Phase::decode, 2, 1}), context, 1, 7);
    gpu.tamper = [&](Launch& launch) {
      if (auto* recurrent = std::get_if<RecurrentLaunch>(&launch)) change(*recurrent);
    };
    return operands->check(0).passed();
  };
  const auto shift = [](const void*& p) { p = static_cast<const std::byte*>(p) + 256; };
  for (const RecurrentKind kind : {RecurrentKind::decay, RecurrentKind::delta, RecurrentKind::selective}) {
    const RecurrentWork work = layer(kind, 34 * 128, 4, 136);
    EXPECT_TRUE(passes(work, [](RecurrentLaunch&) {}));
    EXPECT_FALSE(passes(work, [&](RecurrentLaunch& l) { shift(l.state.v); }));
    EXPECT_FALSE(passes(work, [&](RecurrentLaunch& l) { l.state.k = l.state.q; }));
    EXPECT_FALSE(passes(work, [&](RecurrentLaunch& l) { l.state.rows -= 1; }));
    EXPECT_FALSE(passes(work, [&](RecurrentLaunch& l) { l.convolution.taps -= 1; }));
    EXPECT_FALSE(passes(work, [&](RecurrentLaunch& l) { shift(l.convolution.x); }));
  }
}

TEST(CudaRecurrent, StatesOfOtherWidthsHaveNoKernel) {
  FakeGpu gpu;
  Context context(gpu);
  const RecurrentWork work = layer(RecurrentKind::decay, 1280, 1);
  EXPECT_TRUE(variants_of(work, task(work, {}), context).empty());
}

// Every recurrent layer of the shipped models: blocks cover the rows and no more, and enough of them where
// there are rows enough.
TEST(CudaRecurrent, LaunchesFitTheShippedModels) {
  int layers = 0;
  const DataVariable data;
  for (const Model& model : zoo()) {
    for (const Op& op : lower(model)) {
      const auto* work = std::get_if<RecurrentWork>(&op.work);
      if (work == nullptr) continue;
      ++layers;
      SCOPED_TRACE(model.name + " " + op.name);
      for (const std::int64_t batch : {1, 64}) {
        const RecurrentPlaces at(*work, {Phase::decode, batch, 1});
        const double bytes = cost_of(*work, {Phase::decode, batch, 1}).state_bytes / 2 +
                             static_cast<double>(work->weight_bytes);
        EXPECT_GE(static_cast<double>(at.copy_bytes), bytes);
        EXPECT_LE(static_cast<double>(at.copy_bytes), 1.02 * bytes + 2048 * static_cast<double>(batch + 1));
        if (at.form.rows == 0) continue;
        const bool narrow = work->state.element_bytes == 2;
        const RecurrentLaunch launch = state_update_launch(
            at.kind, narrow, {.rows = static_cast<int>(at.form.rows), .sequences = static_cast<int>(batch)},
            132);
        const std::int64_t a_block = 4 * recurrent_rows_a_warp(at.kind, narrow, launch.vectors);
        EXPECT_GE(launch.geometry.grid_x * a_block, at.form.rows);
        EXPECT_LT((launch.geometry.grid_x - 1) * a_block, at.form.rows);
        EXPECT_EQ(launch.geometry.grid_y, batch);
        EXPECT_TRUE(launch.vectors == 1 || launch.geometry.grid_x * launch.geometry.grid_y >= 2 * 132U);
      }
    }
  }
  EXPECT_GT(layers, 20);
}

}  // namespace
}  // namespace memwall::cuda
