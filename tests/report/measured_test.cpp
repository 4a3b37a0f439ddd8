#include "report/measured.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace memwall {
namespace {

constexpr Format kF16{FormatKind::f16, 0, false};

// A linear of 100 x 10, in three layers; 2000 bytes of weights each.
MeasuredOp proj() {
  MeasuredOp measured;
  LinearWork work;
  work.out = 100;
  work.in = 10;
  work.format = kF16;
  measured.op = {.name = "proj", .work = work, .layers = {0, 1, 2}};
  measured.cost = cost_of(work, {.phase = Phase::decode, .batch = 1, .context = 8}).times(3);
  return measured;
}

Measurement measurement() {
  Measurement m;
  m.variant = "avx2";
  m.variants = {{"avx2", 1e-6}, {"blas", 4e-6}};
  m.seconds = {.n = 12, .median = 1e-6, .q1 = 0.9e-6, .q3 = 1.1e-6, .ci95 = Interval{0.8e-6, 1.25e-6}};
  m.bytes = 2000;
  m.flops = 2000;
  m.of_read_bandwidth = Summary{.n = 12, .median = 0.5, .q1 = 0.4, .q3 = 0.6, .ci95 = Interval{0.45, 0.55}};
  m.stop = StopReason::quiet;
  m.copies = 7;
  m.check = {.outputs = 100, .worst = 0.1};
  return m;
}

MeasuredStep step_of(std::vector<MeasuredOp> ops, std::int64_t batch = 2) {
  MeasuredStep step;
  step.workload = {.phase = Phase::decode, .batch = batch, .context = 8};
  step.ops = std::move(ops);
  return step;
}

TEST(MeasuredOpFigures, TimesAreOfAllCopiesRatesOfOne) {
  MeasuredOp op = proj();
  op.measurement = measurement();
  const Json json = measured_op_figures(op, {});
  EXPECT_EQ(json["name"], "proj");
  EXPECT_EQ(json["count"], 3);
  EXPECT_EQ(json["weight_bytes"], 6000);
  EXPECT_EQ(json["variant"], "avx2");
  ASSERT_EQ(json["variants"].size(), 2U);
  EXPECT_EQ(json["variants"][1]["name"], "blas");
  EXPECT_DOUBLE_EQ(json["variants"][1]["us"], 4);
  EXPECT_DOUBLE_EQ(json["measured_us"], 3);
  EXPECT_DOUBLE_EQ(json["ci95_us"][0], 2.4);
  EXPECT_DOUBLE_EQ(json["ci95_us"][1], 3.75);
  EXPECT_DOUBLE_EQ(json["GBps"], 2);
  EXPECT_DOUBLE_EQ(json["of_read_bandwidth"], 0.5);
  EXPECT_DOUBLE_EQ(json["of_read_bandwidth_ci95"][0], 0.45);
  EXPECT_DOUBLE_EQ(json["of_read_bandwidth_ci95"][1], 0.55);
  EXPECT_EQ(json["checked_outputs"], 100);
  EXPECT_EQ(json["samples"], 12);
  EXPECT_EQ(json["stopped"], "quiet");
  EXPECT_FALSE(json.contains("not_measured"));
}

TEST(DeviceText, SaysWhichCpusAndWhatTheyShare) {
  DeviceFigures device;
  device.info.threads = 2;
  device.info.cpus = {0, 1};
  device.info.cores = 2;
  device.info.pinned = true;
  const auto text = [&] { return device_text(device, Style{}); };
  EXPECT_NE(text().find("2 threads pinned, one a physical core (CPUs 0-1), "), std::string::npos) << text();
  EXPECT_EQ(text().find("NUMA"), std::string::npos);
  device.info.threads = 4;
  device.info.cpus = {0, 1, 8, 9};
  device.info.numa_nodes = 2;
  device.info.numa = NumaPolicy::interleave;
  EXPECT_NE(
      text().find("4 threads pinned on 2 physical cores (CPUs 0-1,8-9), 2 NUMA nodes, memory interleaved"),
      std::string::npos)
      << text();
  const Json json = device_figures(device);
  EXPECT_EQ(json["cpus"], Json({0, 1, 8, 9}));
  EXPECT_EQ(json["cores"], 2);
  EXPECT_EQ(json["numa"]["policy"], "interleave");
  EXPECT_EQ(json["numa"]["nodes"], 2);
}

TEST(DeviceFiguresJson, StreamsNameTheWriteAllocate) {
  DeviceFigures device;
  device.streams = {
      {.task = {}, .GBps = 20, .traffic_of_read = 1, .traffic_GBps = 20},
      {.task = {.pattern = StreamPattern::copy}, .GBps = 12, .traffic_of_read = 0.9, .traffic_GBps = 18},
      {.task = {.pattern = StreamPattern::add, .nontemporal = true}, .GBps = 18, .traffic_GBps = 18}};
  const Json streams = device_figures(device)["streams"];
  ASSERT_EQ(streams.size(), 3U);
  EXPECT_EQ(streams[0]["pattern"], "read");
  EXPECT_TRUE(streams[0]["stores"].is_null());
  EXPECT_EQ(streams[1]["stores"], "ordinary");
  EXPECT_DOUBLE_EQ(streams[1]["GBps"], 12);
  EXPECT_DOUBLE_EQ(streams[1]["traffic_GBps"], 18);
  EXPECT_DOUBLE_EQ(streams[1]["traffic_of_read_bandwidth"], 0.9);
  EXPECT_EQ(streams[2]["stores"], "nontemporal");
  EXPECT_DOUBLE_EQ(streams[2]["traffic_GBps"], 18);
  EXPECT_TRUE(streams[2]["traffic_of_read_bandwidth"].is_null());
  const std::string text = streams_text(device, Style{});
  EXPECT_NE(text.find("non-temporal"), std::string::npos) << text;
  EXPECT_NE(text.find("write-allocate"), std::string::npos) << text;
  EXPECT_EQ(streams_text({}, Style{}), "");
}

TEST(HugePageWarnings, OneLineWhereTheyWereRefused) {
  DeviceFigures device;
  device.read_GBps = 20;
  device.huge_page_share = 1;
  MeasuredOp op = proj();
  op.measurement = measurement();
  EXPECT_TRUE(huge_page_warnings(device, {step_of({op})}).empty());
  op.measurement->huge_page_share = 0.25;
  op.measurement->padding = 100;
  EXPECT_EQ(measured_op_figures(op, {})["padding_bytes"], 100.0 * static_cast<double>(op.op.count()));
  const auto of_weights = huge_page_warnings(device, {step_of({op})});
  ASSERT_EQ(of_weights.size(), 1U);
  EXPECT_NE(of_weights[0].find("only 25 % of what proj reads"), std::string::npos) << of_weights[0];
  device.huge_page_share = 0;
  const auto of_probe = huge_page_warnings(device, {step_of({op})});
  ASSERT_EQ(of_probe.size(), 1U);
  EXPECT_NE(of_probe[0].find("only 0 % of the read probe's buffer"), std::string::npos) << of_probe[0];
  EXPECT_TRUE(huge_page_warnings({}, {}).empty()) << "nothing was probed";
}

TEST(MeasuredOpFigures, HasACeilingOnlyWhereOneWasPredicted) {
  MeasuredOp op = proj();
  op.measurement = measurement();
  EXPECT_FALSE(measured_op_figures(op, {}).contains("ceiling_us"));
  op.prediction.ceiling_s = 2e-6;
  op.prediction.bound = Bound::memory;
  EXPECT_DOUBLE_EQ(measured_op_figures(op, {})["ceiling_us"], 2);
  EXPECT_EQ(measured_op_figures(op, {})["bound"], "memory");
}

TEST(MeasuredOpFigures, AnOpWithoutAKernelSaysSo) {
  const Json json = measured_op_figures(proj(), {});
  EXPECT_EQ(json["not_measured"], true);
  EXPECT_FALSE(json.contains("measured_us"));
  EXPECT_EQ(json["weight_bytes"], 6000);
}

TEST(MeasuredOpFigures, WithoutIntervalsTheyAreNull) {
  MeasuredOp op = proj();
  op.measurement = measurement();
  op.measurement->seconds.ci95.reset();
  op.measurement->of_read_bandwidth.reset();
  op.measurement->bytes = 0;
  const Json json = measured_op_figures(op, {});
  EXPECT_TRUE(json["ci95_us"].is_null());
  EXPECT_TRUE(json["of_read_bandwidth"].is_null());
  EXPECT_TRUE(json["GBps"].is_null());
}

TEST(MeasuredStepFigures, SumTheOps) {
  MeasuredOp op = proj();
  op.measurement = measurement();
  const MeasuredStep step = step_of({op, op});
  EXPECT_FALSE(step.partial());
  EXPECT_DOUBLE_EQ(step.measured_seconds(), 6e-6);
  const Json json = measured_step_figures(step, {});
  EXPECT_EQ(json["batch"], 2);
  EXPECT_EQ(json["context"], 8);
  EXPECT_EQ(json["ops"].size(), 2U);
  EXPECT_TRUE(json["predicted"].is_null());
  EXPECT_DOUBLE_EQ(json["measured"]["ms_per_step"], 6e-3);
  EXPECT_DOUBLE_EQ(json["measured"]["tokens_per_s"], 2 / 6e-6);
  EXPECT_DOUBLE_EQ(json["measured"]["tokens_per_s_per_user"], 1 / 6e-6);
  EXPECT_FALSE(json["measured"].contains("partial"));
}

TEST(MeasuredStepFigures, WhatLacksAnOpIsPartial) {
  MeasuredOp op = proj();
  op.measurement = measurement();
  const MeasuredStep step = step_of({op, proj()});
  EXPECT_TRUE(step.partial());
  const Json json = measured_step_figures(step, {});
  EXPECT_EQ(json["measured"]["partial"], true);
  EXPECT_DOUBLE_EQ(json["measured"]["ms_per_step"], 3e-3);
}

TEST(MeasuredStepFigures, NothingMeasuredIsNullAndPartial) {
  const Json json = measured_step_figures(step_of({proj()}), {});
  EXPECT_TRUE(json["measured"]["ms_per_step"].is_null());
  EXPECT_TRUE(json["measured"]["tokens_per_s"].is_null());
  EXPECT_EQ(json["measured"]["partial"], true);
}

TEST(MeasuredStepFigures, APromptsTokensAreItsRows) {
  MeasuredOp op = proj();
  op.measurement = measurement();
  MeasuredStep step = step_of({op});
  step.workload = {.phase = Phase::prefill, .batch = 2, .context = 8};
  EXPECT_DOUBLE_EQ(measured_step_figures(step, {})["measured"]["tokens_per_s"], 16 / 3e-6);
}

TEST(ImpossibleFigures, AreThoseWhoseWholeIntervalIsAbove103PerCent) {
  MeasuredOp possible = proj();
  possible.measurement = measurement();
  possible.measurement->of_read_bandwidth = Summary{.n = 12, .median = 1.2, .ci95 = Interval{1.02, 1.4}};
  MeasuredOp impossible = possible;
  impossible.op.name = "cached_proj";
  impossible.measurement->of_read_bandwidth->ci95 = Interval{1.04, 1.4};
  MeasuredOp unsure = impossible;
  unsure.measurement->of_read_bandwidth->ci95.reset();

  EXPECT_TRUE(impossible_figures({}, {}).empty());
  EXPECT_TRUE(impossible_figures({}, {step_of({possible, unsure, proj()})}).empty());
  const std::vector<std::string> found =
      impossible_figures({}, {step_of({possible}), step_of({impossible}, 64)});
  ASSERT_EQ(found.size(), 1U);
  EXPECT_NE(found.front().find("cached_proj"), std::string::npos);
  EXPECT_NE(found.front().find("batch 64"), std::string::npos);
  EXPECT_NE(found.front().find("120 %"), std::string::npos);
}

// A recurrent op's writes may go beside its reads: only half of its bytes are held to the read bandwidth.
TEST(ImpossibleFigures, AStateIsReadOnceForEachTimeItIsWritten) {
  const RecurrentWork work{.state = {.elements = 1000, .flops = 5000}};
  MeasuredOp fast = proj();
  fast.op = {.name = "mamba2", .work = work, .layers = {0}};
  fast.cost = cost_of(work, {.phase = Phase::decode, .batch = 1, .context = 8});
  fast.measurement = measurement();
  fast.measurement->of_read_bandwidth = Summary{.n = 12, .median = 1.8, .ci95 = Interval{1.7, 1.9}};
  EXPECT_TRUE(impossible_figures({}, {step_of({fast})}).empty());
  fast.measurement->of_read_bandwidth->ci95 = Interval{2.1, 2.3};
  EXPECT_EQ(impossible_figures({}, {step_of({fast})}).size(), 1U);
}

TEST(MeasuredOpFigures, ExpertsSayHowManyRan) {
  const ExpertWork work{.each = {.out = 16, .in = 32, .format = kF16}, .total = 8, .per_token = 2};
  MeasuredOp op = proj();
  op.op = {.name = "up_exps", .work = work, .layers = {0, 1}};
  op.cost = cost_of(work, {.phase = Phase::decode, .batch = 2, .context = 8});
  op.measurement = measurement();
  op.measurement->touched = 3.25;
  const Json json = measured_op_figures(op, {});
  EXPECT_EQ(json["experts"]["measured_touched"], 3.25);
  EXPECT_EQ(json["experts"]["touched"], 3.5);
  const std::string text = measured_step_text(step_of({op}), {}, Style{});
  EXPECT_NE(text.find("3.25 of 8 a layer run"), std::string::npos) << text;
  op.measurement->touched = 0;
  EXPECT_FALSE(measured_op_figures(op, {})["experts"].contains("measured_touched"));
}

}  // namespace
}  // namespace memwall
