// Recurrent layers on the CPU device: the form a state is run in, and each form against float64.
#include "bench/cpu_recurrent.h"

#include <gtest/gtest.h>

#include <memory>

#include "bench/device.h"

namespace memwall {
namespace {

// Mamba-2 130M's: 24 heads of 64 channels, a state of 128, a convolution of 4 taps over 1792 channels.
RecurrentWork mamba2(std::int64_t element_bytes) {
  const std::int64_t elements = 24 * 64 * 128;
  return {.state = {.elements = elements,
                    .element_bytes = element_bytes,
                    .conv_elements = 3 * 1792,
                    .flops = 5 * elements + 2 * 4 * 1792},
          .weight_bytes = 2 * (5 * 1792 + 3 * 24)};
}

// Mamba 130M's: 1536 channels, a state of 16; A, D and the convolution's bias.
RecurrentWork mamba(std::int64_t element_bytes) {
  const std::int64_t elements = 1536 * 16;
  return {.state = {.elements = elements,
                    .element_bytes = element_bytes,
                    .conv_elements = 3 * 1536,
                    .flops = 7 * elements + 2 * 4 * 1536},
          .weight_bytes = 2 * (elements + 6 * 1536)};
}

// A gated delta net of 4 heads, 128 by 128.
RecurrentWork delta_net(std::int64_t element_bytes) {
  const std::int64_t elements = 4 * 128 * 128;
  return {.state = {.elements = elements,
                    .element_bytes = element_bytes,
                    .conv_elements = 3 * 1536,
                    .flops = 7 * elements + 2 * 4 * 1536},
          .weight_bytes = 2 * (4 * 1536 + 2 * 4)};
}

// LFM2's short convolution: 3 taps, and 2 FLOPs a channel for its gates.
RecurrentWork short_convolution() {
  return {.state = {.conv_elements = 2 * 2048, .flops = 8 * 2048}, .weight_bytes = 2 * 3 * 2048};
}

TEST(RecurrenceForms, FollowFromTheFlopsAndTheWeights) {
  const RecurrenceForm second = recurrence_form(mamba2(4));
  EXPECT_EQ(second.update, cpu::StateUpdate::decay);
  EXPECT_EQ(second.width, 128);
  EXPECT_EQ(second.rows, 24 * 64);
  EXPECT_EQ(second.heads(), 24);
  EXPECT_EQ(second.channels, 1792);
  EXPECT_EQ(second.taps, 4);
  EXPECT_TRUE(second.kernel_is_weight);

  const RecurrenceForm first = recurrence_form(mamba(4));
  EXPECT_EQ(first.update, cpu::StateUpdate::selective);
  EXPECT_EQ(first.width, 16);
  EXPECT_EQ(first.rows, 1536);

  EXPECT_EQ(recurrence_form(delta_net(4)).update, cpu::StateUpdate::delta);

  const RecurrenceForm convolution = recurrence_form(short_convolution());
  EXPECT_EQ(convolution.rows, 0);
  EXPECT_EQ(convolution.heads(), 0);
  EXPECT_EQ(convolution.channels, 2048);
  EXPECT_EQ(convolution.taps, 3);
}

// RWKV keeps each block's last input: two taps, whose FLOPs are not the convolution's.
TEST(RecurrenceForms, ATokenShiftIsTwoTaps) {
  const RecurrenceForm shift =
      recurrence_form({.state = {.conv_elements = 768, .flops = 6 * 768}, .weight_bytes = 2 * 2 * 768});
  EXPECT_EQ(shift.channels, 768);
  EXPECT_EQ(shift.taps, 2);
  EXPECT_TRUE(shift.kernel_is_weight);
  const RecurrenceForm matrix = recurrence_form(
      {.state = {.elements = 768 * 64, .conv_elements = 768, .flops = 5 * 768 * 64}, .weight_bytes = 100});
  EXPECT_EQ(matrix.update, cpu::StateUpdate::decay);
  EXPECT_EQ(matrix.taps, 2);
  EXPECT_FALSE(matrix.kernel_is_weight);
}

// What the kernel computes is what the cost counts, where the form is the layer's own.
TEST(RecurrenceForms, FlopsAgreeWithTheCost) {
  for (const RecurrentWork& work : {mamba2(4), mamba(4), delta_net(2)})
    EXPECT_EQ(recurrence_form(work).flops, static_cast<double>(work.state.flops));
}

class CpuRecurrentTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { device_ = make_cpu_device().release(); }
  static void TearDownTestSuite() {
    delete device_;
    device_ = nullptr;
  }
  static Device* device_;
};
Device* CpuRecurrentTest::device_ = nullptr;

TEST_F(CpuRecurrentTest, HoldsToFloat64AndMovesWhatTheCostCounts) {
  for (const std::int64_t bytes : {2, 4}) {
    for (const RecurrentWork& work :
         {mamba2(bytes), mamba(bytes), delta_net(bytes), short_convolution(),
          RecurrentWork{{.elements = 1237, .element_bytes = bytes, .flops = 5 * 1237}, 0},
          RecurrentWork{{.elements = 7, .element_bytes = bytes, .conv_elements = 5, .flops = 50}, 6}}) {
      for (const Workload& workload :
           {Workload{Phase::decode, 1, 1}, Workload{Phase::decode, 3, 1}, Workload{Phase::prefill, 2, 11}}) {
        SCOPED_TRACE(testing::Message() << work.state.elements << " of " << bytes << " bytes, phase "
                                        << static_cast<int>(workload.phase) << ", batch " << workload.batch);
        const Task task = OpTask{work, workload};
        ASSERT_EQ(device_->variants(task).size(), 1U);
        const auto operands = device_->place(task, 2, 42);
        for (int i = 0; i < 3; ++i) {
          const Check check = operands->check(0);
          EXPECT_TRUE(check.passed()) << check.worst << " of " << check.outputs;
        }
        const Cost cost = cost_of(work, workload);
        EXPECT_EQ(operands->cold_bytes(5), cost.state_bytes + cost.weight_bytes);
        EXPECT_LE(operands->flops(0), cost.flops + 1e3);
        EXPECT_GE(static_cast<double>(device_->footprint(task).copy_bytes),
                  static_cast<double>(workload.batch * work.state.bytes() + work.weight_bytes));
      }
    }
  }
}

TEST_F(CpuRecurrentTest, StaysRightOverThousandsOfLaunches) {
  for (const RecurrentWork& work : {mamba2(2), mamba(4), delta_net(4)}) {
    const auto operands = device_->place(OpTask{work, {Phase::decode, 1, 1}}, 1, 42);
    for (int i = 0; i < 2000; ++i) operands->launch(0, i);
    const Check check = operands->check(0);
    EXPECT_TRUE(check.passed()) << check.worst;
  }
}

TEST_F(CpuRecurrentTest, StatesOfOtherWidthsHaveNoKernel) {
  for (const std::int64_t bytes : {1, 8}) {
    EXPECT_TRUE(device_->variants(OpTask{mamba2(bytes), {}}).empty());
  }
}

}  // namespace
}  // namespace memwall
