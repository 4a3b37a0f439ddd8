// What is doubtful in a measurement, in every format of output.
#include <gmock/gmock.h>

#include "report/measured.h"
#include "report/rows.h"

namespace memwall {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr Format kQ8{FormatKind::q8_0, 0, false};

Summary spread(double low, double median, double high) {
  return {.n = 12, .median = median, .q1 = low, .q3 = high, .ci95 = Interval{low, high}};
}

// One linear that takes 100 us, of a memory of 10 GB/s and 100 GFLOP/s in bytes, and predicted to take 90.
MeasuredOp linear() {
  const LinearWork work{.out = 1000, .in = 800, .format = kQ8};
  MeasuredOp op{
      .op = {.name = "proj", .work = work, .layers = {0}},
      .cost = cost_of(work, {.phase = Phase::decode, .batch = 1, .context = 8}),
      .prediction = {.peak = {ComputeType::int8, 100e9}, .ceiling_s = 90e-6, .bound = Bound::memory},
      .measurement = Measurement{}};
  op.measurement->seconds = spread(98e-6, 100e-6, 102e-6);
  op.measurement->of_read_bandwidth = spread(0.88, 0.9, 0.92);
  op.measurement->stop = StopReason::quiet;
  return op;
}

MeasuredStep step_of(MeasuredOp op) {
  MeasuredStep step;
  step.workload = {.phase = Phase::decode, .batch = 1, .context = 8};
  step.weights = "q8_0";
  step.head_weights = "q8_0";
  step.kv = "f16";
  step.predicted.peak = op.prediction.peak;
  step.predicted.ridge = 10;
  step.predicted.ceiling = speed_of(op.prediction.ceiling_s, 1, 1, op.prediction.bound);
  step.predicted.ops = {op.prediction};
  step.ops = {std::move(op)};
  return step;
}

DeviceFigures device() {
  DeviceFigures figures;
  figures.best_read_GBps = 10;
  figures.peaks[ComputeType::int8] = {100, 90, "vpdpbusd"};
  return figures;
}

TEST(Flags, NoneWhereNothingIsDoubtful) {
  EXPECT_THAT(flags_of(linear(), device()), IsEmpty());
  const MeasuredStep step = step_of(linear());
  EXPECT_THAT(flags_of(step, device()), IsEmpty());
  EXPECT_EQ(measured_step_figures(step, device())["flags"], Json::array());
  EXPECT_THAT(impossible_figures(device(), {step}), IsEmpty());
}

TEST(Flags, WhatPassesTheBoundIsAnErrorAndNoBound) {
  MeasuredOp op = linear();
  op.prediction.ceiling_s = 106e-6;  // 102 us at most, and 103 % of that is 105
  const MeasuredStep step = step_of(op);
  EXPECT_THAT(flags_of(op, device()), ElementsAre("above the bound"));
  EXPECT_THAT(flags_of(step, device()), ElementsAre("above the bound"));
  EXPECT_EQ(impossible_figures(device(), {step}).size(), 2U);  // the op and the step
  const std::string text = measured_step_text(step, device(), Style{});
  EXPECT_THAT(text, Not(HasSubstr("at most")));
  EXPECT_THAT(text, HasSubstr("an error to explain, no bound"));
  EXPECT_THAT(text, HasSubstr("above the bound: proj"));
  EXPECT_EQ(measured_step_figures(step, device())["predicted"]["is_bound"], false);
}

TEST(Flags, NoisePassesNoBound) {
  MeasuredOp op = linear();
  op.prediction.ceiling_s = 104e-6;  // the interval ends at 102
  const MeasuredStep step = step_of(op);
  EXPECT_THAT(flags_of(step, device()), IsEmpty());
  EXPECT_THAT(measured_step_text(step, device(), Style{}),
              HasSubstr("tokens/s at most (memory-bound by this "
                        "device's best samples, arithmetic in int8"));
}

// A GPU's arithmetic is told by the GEMMs of a library, which another kernel may pass.
TEST(Flags, OfAGpuOnlyMemoryBounds) {
  DeviceFigures gpu = device();
  gpu.info.gpu.emplace();
  MeasuredOp op = linear();
  op.prediction.ceiling_s = 120e-6;
  EXPECT_THAT(flags_of(op, gpu), ElementsAre("above the bound"));
  op.prediction.bound = Bound::compute;
  EXPECT_THAT(flags_of(op, gpu), IsEmpty());
  const MeasuredStep step = step_of(op);
  EXPECT_FALSE(predicts_bound(step, gpu));
  EXPECT_THAT(measured_step_text(step, gpu, Style{}), Not(HasSubstr("at most")));
  EXPECT_TRUE(predicts_bound(step, device()));
}

// A best sample far above the median: others use the machine, and its best was not seen.
TEST(Flags, ArithmeticProbedOnABusyMachineBoundsNothing) {
  DeviceFigures busy = device();
  busy.peaks[ComputeType::int8] = {100, 60, "vpdpbusd"};
  MeasuredOp op = linear();
  op.prediction.bound = Bound::compute;
  op.prediction.ceiling_s = 120e-6;  // passed, but it is no bound
  EXPECT_THAT(flags_of(op, busy), IsEmpty());
  const MeasuredStep step = step_of(op);
  EXPECT_THAT(flags_of(step, busy), ElementsAre("unstable"));
  EXPECT_EQ(measured_step_figures(step, busy)["predicted"]["is_bound"], false);
  EXPECT_THAT(measured_step_text(step, busy, Style{}), HasSubstr("no bound: this machine was busy"));
  EXPECT_THAT(flags_of(step, device()), ElementsAre("above the bound"));
}

TEST(Flags, UnstableIsWhatEndedAtALimitAndIsNotKnownWithinFivePerCent) {
  MeasuredOp op = linear();
  op.measurement->stop = StopReason::time_limit;
  EXPECT_THAT(flags_of(op, device()), IsEmpty());  // 98 to 102
  op.measurement->seconds = spread(94e-6, 100e-6, 106e-6);
  EXPECT_THAT(flags_of(op, device()), ElementsAre("unstable"));
  op.measurement->stop = StopReason::noise_stable;
  EXPECT_THAT(flags_of(op, device()), IsEmpty());
  op.measurement->stop = StopReason::interrupted;
  EXPECT_THAT(flags_of(op, device()), ElementsAre("unstable", "interrupted"));
  op.measurement->slowed_samples = 1;
  EXPECT_THAT(flags_of(op, device()), Contains("slowed"));
}

// Of a figure beside others' work nothing is concluded.
TEST(Flags, UnstableIsWhatOthersDisturbed) {
  MeasuredOp op = linear();
  op.measurement->disturbance = {.discarded = 40, .kept = 9};
  op.measurement->of_read_bandwidth = spread(4.0, 4.25, 4.5);
  MeasuredStep step = step_of(op);
  EXPECT_THAT(flags_of(op, device()), ElementsAre("above 103 % of read", "unstable"));
  EXPECT_THAT(impossible_figures(device(), {step}), IsEmpty());
  const std::string text = measured_step_text(step, device(), Style{});
  EXPECT_THAT(text, HasSubstr("no verdict: unstable"));
  EXPECT_THAT(text, HasSubstr("proj: threads waited for a CPU during 9 of 12 samples"));
  for (const char* plain : {"425", "-bound", "of the prediction"}) EXPECT_THAT(text, Not(HasSubstr(plain)));
  const Json json = measured_step_figures(step, device());
  EXPECT_THAT(json["unstable_because"].get<std::string>(), HasSubstr("proj: threads waited"));
  EXPECT_EQ(json["ops"][0]["disturbance"]["kept"], 9);
  EXPECT_THAT(unstable_warnings(device(), {}, {step}), ElementsAre(HasSubstr("a figure is unstable")));
  // An op that makes little of the step leaves its verdict.
  step.ops.push_back(linear());
  step.ops.front().measurement->seconds = spread(9e-6, 10e-6, 11e-6);
  EXPECT_THAT(unstable_warnings(device(), {}, {step}), IsEmpty());
  EXPECT_THAT(flags_of(step, device()), Contains("unstable"));
}

TEST(Flags, UnstableIsAShareThatIsWiderThanAThird) {
  MeasuredOp op = linear();
  op.measurement->of_read_bandwidth = spread(0.75, 0.9, 1.04);
  EXPECT_THAT(flags_of(op, device()), IsEmpty());
  op.measurement->of_read_bandwidth = spread(0.25, 1.0, 7.41);
  EXPECT_THAT(flags_of(op, device()), ElementsAre("unstable"));
  EXPECT_THAT(measured_step_text(step_of(op), device(), Style{}), HasSubstr("anywhere between 25 and 741 %"));
}

// 53 and 84 GB/s: two states of one machine.
TEST(Flags, AMemoryThatDriftsIsTold) {
  MeasuredStep step = step_of(linear());
  step.ops.push_back(linear());
  for (MeasuredOp& op : step.ops) op.measurement->bytes = 850e3;
  step.ops[0].measurement->read_rate = 53e9;
  step.ops[1].measurement->read_rate = 60e9;
  EXPECT_THAT(flags_of(step, device()), IsEmpty());
  EXPECT_TRUE(measured_step_figures(step, device())["memory_drift_GBps"].is_null());
  step.ops[1].measurement->read_rate = 84e9;
  EXPECT_THAT(flags_of(step, device()), ElementsAre("drifted"));
  EXPECT_EQ(measured_step_figures(step, device())["memory_drift_GBps"], Json({53.0, 84.0}));
  EXPECT_THAT(measured_step_text(step, device(), Style{}),
              HasSubstr("between 53.0 GB/s beside one op and 84.0"));
}

TEST(Flags, RowsCarryThem) {
  MeasuredOp op = linear();
  op.measurement->stop = StopReason::time_limit;
  op.measurement->seconds = spread(90e-6, 100e-6, 110e-6);
  op.measurement->of_read_bandwidth = spread(1.04, 1.1, 1.2);
  MeasuredStep step = step_of(op);
  step.ops.push_back(op);
  step.ops.back().measurement.reset();
  const std::vector<Json> steps = {flatten(measured_step_figures(step, device()))};
  for (const std::string& text : {to_csv(steps), to_markdown(steps)}) {
    EXPECT_THAT(text, HasSubstr("partial;above 103 % of read;unstable"));
    EXPECT_THAT(text, HasSubstr("time limit"));
    EXPECT_THAT(text, HasSubstr("q8_0"));
  }
  const std::vector<Json> ops = {flatten(measured_op_figures(step.ops[0], device())),
                                 flatten(measured_op_figures(step.ops[1], device()))};
  for (const std::string& text : {to_csv(ops), to_markdown(ops)}) {
    EXPECT_THAT(text, HasSubstr("above 103 % of read;unstable"));
    EXPECT_THAT(text, HasSubstr("not measured"));
  }
}

TEST(Flags, ABaselineAndAWholeStepHaveTheirs) {
  Baseline baseline{.kernel = "add", .n = 16, .format = kQ8, .measurement = {}, .in_cache = {}};
  baseline.measurement.seconds = spread(90e-6, 100e-6, 110e-6);
  baseline.measurement.stop = StopReason::time_limit;
  EXPECT_EQ(baseline_figures(baseline, device(), 1)["flags"], Json({"unstable"}));
  WholeStep whole;
  whole.seconds = spread(98e-6, 100e-6, 102e-6);
  whole.stop = StopReason::quiet;
  whole.of_read_bandwidth = spread(1.05, 1.1, 1.2);
  whole.partial = true;
  EXPECT_THAT(flags_of(whole), ElementsAre("partial", "above 103 % of read"));
  whole.cold = false;  // caches serve a part: its share says nothing
  EXPECT_THAT(flags_of(whole), ElementsAre("partial", "not cold"));
}

TEST(DeviceFiguresJson, WhatIsNotKnownIsNullNeverZero) {
  const Json json = device_figures({});
  for (const char* key : {"cores", "read_GBps", "best_read_GBps", "best_traffic_GBps", "read_variant",
                          "copy_GBps", "triad_GBps", "peak_GBps", "peak_GFLOPs", "ridge", "huge_page_share",
                          "l1d_bytes", "l2_bytes", "last_level_bytes"})
    EXPECT_TRUE(json[key].is_null()) << key;
  EXPECT_TRUE(json["peaks"].empty());
  EXPECT_THAT(device_text({}, Style{}), Not(HasSubstr("0 %")));
}

TEST(DeviceFiguresJson, PeaksSayByWhatAndTheRidgeIsBestOverBest) {
  DeviceFigures figures = device();
  figures.read_GBps = 5;  // the median: in no ridge
  figures.peaks[ComputeType::f32] = {50, 40, "FMA"};
  figures.peak_GFLOPs = 50;
  const Json json = device_figures(figures);
  EXPECT_EQ(json["peaks"]["int8"]["GFLOPs"], 100);
  EXPECT_EQ(json["peaks"]["int8"]["median_GFLOPs"], 90);
  EXPECT_EQ(json["peaks"]["int8"]["by"], "vpdpbusd");
  EXPECT_EQ(json["peaks"]["int8"]["ridge"], 10);
  EXPECT_EQ(json["peaks_GFLOPs"]["f32"], 50);
  EXPECT_EQ(json["ridge"], 5);
  const std::string text = device_text(figures, Style{});
  EXPECT_THAT(text, HasSubstr("best samples: read 10.0 GB/s, f32 50.0 GFLOP/s, int8 100 GFLOP/s"));
  EXPECT_THAT(text, HasSubstr("ridge point: f32 5.00, int8 10.0 FLOP/byte"));
}

// What reads at half the best sample's rate because the memory is slow then says so.
TEST(MeasuredStepText, TellsTheMemoryBesideTheOps) {
  MeasuredOp op = linear();
  op.measurement->bytes = 850'000;
  op.measurement->read_rate = 5e9;
  EXPECT_THAT(measured_step_text(step_of(op), device(), Style{}),
              HasSubstr("read at 5.00 GB/s beside these ops, at 10.0 GB/s in the run's best sample"));
}

TEST(FormatsText, ARowAFormatWithItsShare) {
  MeasuredOp op = linear();
  op.measurement->bytes = 400'000;
  op.measurement->read_rate = 5e9;  // 80 us of the 100
  MeasuredStep q8 = step_of(op);
  MeasuredStep q4 = step_of(op);
  q4.weights = "q4_0";
  EXPECT_NEAR(*share_of_read(q8), 0.8, 1e-12);
  const std::string text = summary_text({q8, q4}, {}, device(), Style{});
  EXPECT_THAT(text, HasSubstr("q8_0"));
  EXPECT_THAT(text, HasSubstr("q4_0"));
  EXPECT_THAT(text, HasSubstr("80 %"));
  EXPECT_THAT(text, HasSubstr("10000"));  // tokens/s
}

}  // namespace
}  // namespace memwall
