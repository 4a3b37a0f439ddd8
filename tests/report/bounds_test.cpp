// Bounds of what was timed: baselines, and ops beside their predictions.
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "report/measured.h"

namespace memwall {
namespace {

constexpr Format kF16{FormatKind::f16, 0, false};
constexpr Format kF32{FormatKind::f32, 0, false};

// 100 GB/s, 1000 GFLOP/s in f32.
DeviceFigures device() {
  DeviceFigures figures;
  figures.info.blas = "OpenBLAS 0.3.21 Haswell";
  figures.read_GBps = 80;
  figures.best_read_GBps = 100;
  figures.peak_GBps = 120;
  figures.peak_GFLOPs = 1000;
  figures.peaks[ComputeType::f32] = {1000, 990, "FMA"};
  return figures;
}

// At `share` of the arithmetic peak.
Baseline matmul(std::int64_t n, double share, Format format = kF32, const char* in_cache = "L1") {
  Baseline b{.kernel = "matmul", .n = n, .format = format, .measurement = {}, .in_cache = in_cache};
  const double seconds = b.flops() / (share * 1000e9);
  b.measurement.seconds = {
      .n = 10, .median = seconds, .q1 = seconds, .q3 = seconds, .ci95 = {{seconds, seconds}}};
  b.measurement.stop = StopReason::quiet;
  b.measurement.variant = "gemm";
  b.measurement.variants = {{"blas", seconds * 2}, {"gemm", seconds}};
  return b;
}

TEST(BaselineBound, CacheResidentTensorsAreNotBoundByMemory) {
  Baseline baseline = matmul(512, 0.9);
  const double intensity = baseline.intensity();
  EXPECT_EQ(baseline_bound(baseline, device(), 2 * intensity), "cache");
  EXPECT_EQ(baseline_bound(baseline, device(), intensity / 2), "compute");
  baseline.in_cache = "";
  EXPECT_EQ(baseline_bound(baseline, device(), 2 * intensity), "memory");
}

// A 64 x 64 matmul at 9 % of the peak has an intensity above the ridge, and is bound by neither.
TEST(BaselineBound, ASmallOneFarFromItsPeakIsBoundByOverhead) {
  ASSERT_GT(matmul(64, 0.09).intensity(), device().ridge());
  EXPECT_EQ(baseline_bound(matmul(64, 0.09), device(), device().ridge()), "overhead");
  EXPECT_EQ(baseline_bound(matmul(64, 0.6), device(), device().ridge()), "compute");
  EXPECT_EQ(baseline_bound(matmul(16, 0.02, kF16), device(), device().ridge()), "overhead");
  EXPECT_EQ(baseline_bound(matmul(2048, 0.3), device(), device().ridge()), "compute") << "slow, no launch";
  const Json json = baseline_figures(matmul(64, 0.09), device(), device().ridge());
  EXPECT_EQ(json["bound"], "overhead");
  BaselineFigures figures;
  for (const double share : {0.09, 0.6}) {
    Baseline add = matmul(64, 0.5);
    add.kernel = "add";
    figures.sweep.push_back(add);
    figures.sweep.push_back(matmul(64, share));
  }
  const std::string text =
      baselines_text(figures, device(), {device().ridge(), "measured here"}, {}, Style{});
  EXPECT_NE(text.find("9 % overhead       gemm"), std::string::npos) << text;
  EXPECT_NE(text.find("60 % compute        gemm"), std::string::npos) << text;
  EXPECT_EQ(baselines_figures(figures, device(), device().ridge())["sweep"][1]["bound"], "overhead");
}

TEST(BaselineWays, NameAllWithTheirFigures) {
  Baseline b = matmul(1024, 0.5, kF16, "");
  EXPECT_EQ(baseline_ways(b), "gemm 500 GFLOP/s; blas 250 GFLOP/s");
  b.measurement.variants[0].failed = "no BLAS";
  b.measurement.variants[0].seconds = std::numeric_limits<double>::infinity();
  EXPECT_EQ(baseline_ways(b), "gemm 500 GFLOP/s; blas failed");
  b = matmul(1024, 0.5, kF16, "");
  const Json json = baseline_figures(b, device(), 1);
  EXPECT_EQ(json["variant"], "gemm");
  ASSERT_EQ(json["variants"].size(), 2U);
  EXPECT_EQ(json["variants"][0]["name"], "blas");
  Baseline add = b;
  add.kernel = "add";
  const std::string text =
      baselines_text({.pairs = {add, b}, .sweep = {}}, device(), {10, "measured here"}, {}, Style{});
  EXPECT_NE(
      text.find("f16 matmul by gemm, the best of: gemm 500 GFLOP/s; blas 250 GFLOP/s (blas: OpenBLAS 0.3.21 "
                "Haswell)"),
      std::string::npos)
      << text;
}

// What is unstable has no verdict.
TEST(BaselineBound, AnUnstableOneHasNone) {
  Baseline noisy = matmul(64, 0.09);
  noisy.measurement.stop = StopReason::time_limit;
  noisy.measurement.seconds.ci95 = {{noisy.seconds() * 0.7, noisy.seconds() * 1.4}};
  EXPECT_EQ(baseline_bound(noisy, device(), 1), "");
  EXPECT_TRUE(baseline_figures(noisy, device(), 1)["bound"].is_null());
}

// What is doubtful in the sweep stands in its table as in JSON, CSV and Markdown.
TEST(BaselinesText, TheSweepHasItsFlags) {
  Baseline add = matmul(64, 0.5);
  add.kernel = "add";
  Baseline noisy = matmul(64, 0.5);
  noisy.measurement.stop = StopReason::time_limit;
  noisy.measurement.seconds.ci95 = {{noisy.seconds() * 0.7, noisy.seconds() * 1.4}};
  const std::string text =
      baselines_text({.pairs = {}, .sweep = {add, noisy}}, device(), {10, "measured here"}, {}, Style{});
  EXPECT_NE(text.find("matmul unstable"), std::string::npos) << text;
  EXPECT_EQ(baseline_figures(noisy, device(), 10)["flags"], Json({"unstable"}));
}

// On a GPU a format is a share of what its own type does: f8 is no peak of bf16's.
TEST(BaselinePeak, IsThatOfTheTypeThatIsMultiplied) {
  DeviceFigures gpu = device();
  gpu.peaks[ComputeType::f16] = {600, 600, "library"};
  EXPECT_EQ(baseline_peak_GFLOPs(matmul(64, 0.5, kF16), gpu), 1000) << "a CPU's GEMMs compute in f32";
  gpu.info.gpu.emplace();
  EXPECT_EQ(baseline_peak_GFLOPs(matmul(64, 0.5, kF16), gpu), 600);
  EXPECT_EQ(baseline_peak_GFLOPs(matmul(64, 0.5, {FormatKind::bf16, 0, false}), gpu), 1000)
      << "none of its own";
}

MeasuredOp timed(double seconds, double bytes) {
  MeasuredOp op;
  LinearWork work;
  work.out = 64;
  work.in = 64;
  work.format = kF16;
  op.op = {.name = "router", .work = work, .layers = {0, 1}};
  op.cost = cost_of(work, {.phase = Phase::decode, .batch = 1, .context = 8}).times(2);
  op.prediction.peak = {ComputeType::f32, 1000e9};
  op.prediction.ceiling_s = op.cost.bytes() / 100e9;
  Measurement m;
  m.stop = StopReason::quiet;
  m.seconds = {.n = 10, .median = seconds, .q1 = seconds, .q3 = seconds, .ci95 = {{seconds, seconds}}};
  m.bytes = bytes;
  m.flops = 8192;
  op.measurement = m;
  return op;
}

// One launch of two: 8.4 kB take 84 ns at 100 GB/s.
TEST(MeasuredBound, SmallOpsAreBoundByOverhead) {
  EXPECT_EQ(measured_bound(timed(100e-9, 8192), device()), Bound::memory);
  EXPECT_EQ(measured_bound(timed(1e-6, 8192), device()), Bound::overhead);
  EXPECT_EQ(measured_op_figures(timed(1e-6, 8192), device())["measured_bound"], "overhead");
  MeasuredOp disturbed = timed(1e-6, 8192);
  disturbed.measurement->fastest = 100e-9;
  EXPECT_EQ(measured_bound(disturbed, device()), Bound::memory)
      << "what others cost is no overhead of its own";
  MeasuredOp noisy = timed(1e-6, 8192);
  noisy.measurement->stop = StopReason::time_limit;
  noisy.measurement->seconds.ci95 = {{0.7e-6, 1.4e-6}};
  EXPECT_EQ(measured_bound(noisy, device()), std::nullopt) << "unstable: no verdict";
  // From a cache: no bound of the memory, but launches cost what they cost.
  EXPECT_EQ(measured_bound(timed(100e-9, 0), device()), std::nullopt);
  EXPECT_EQ(measured_bound(timed(1e-6, 0), device()), Bound::overhead);
  EXPECT_TRUE(measured_op_figures(timed(100e-9, 0), device())["measured_bound"].is_null());
  EXPECT_EQ(measured_bound(timed(1e-6, 8192), {}), std::nullopt) << "no probe";
  MeasuredStep step;
  step.workload = {.phase = Phase::decode, .batch = 1, .context = 8};
  step.ops = {timed(1e-6, 8192)};
  const std::string text = measured_step_text(step, device(), Style{});
  EXPECT_NE(text.find("overhead   bound by launches"), std::string::npos) << text;
  step.ops = {timed(100e-9, 8192)};
  EXPECT_EQ(measured_step_text(step, device(), Style{}).find("overhead   bound"), std::string::npos);
}

}  // namespace
}  // namespace memwall
