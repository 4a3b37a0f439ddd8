// A whole measuring session on a GPU that is the host executor: every op of a small model, its variants, the
// fusions of a step, and what is told of them.
#include <gmock/gmock.h>

#include "bench/measure.h"
#include "cuda/device.h"
#include "report/measured.h"
#include "tests/cuda/fake_gpu.h"
#include "tests/model/support.h"

namespace memwall::cuda {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

constexpr double kLaunch = 0.06;  // seconds, so that few launches make a sample and few samples a figure
constexpr double kRate = 50e6;    // bytes/s

// A GPU of one multiprocessor and so small an L2 that little memory is cold.
std::unique_ptr<FakeGpu> small_gpu() {
  GpuProperties properties = fake_properties();
  properties.multiprocessors = 1;
  properties.l2_bytes = 4 << 10;
  auto gpu = std::make_unique<FakeGpu>(properties);
  gpu->library = true;
  gpu->captures_need_a_first_launch = true;
  gpu->seconds_a_launch = kLaunch;
  gpu->bytes_per_s = kRate;
  gpu->seconds_alone = 1;
  gpu->clocks_.available = true;
  gpu->clocks_.sm_MHz = 1700;
  gpu->clocks_.driver_version = "1.2.3";
  return gpu;
}

CardMatch some_card() {
  CardMatch match;
  match.card.title = "Some Card";
  match.card.bandwidth_GBps = 1;
  return match;
}

const MeasuredOp& op_of(const MeasuredStep& step, const std::string& name) {
  for (const MeasuredOp& op : step.ops) {
    if (op.op.name == name) return op;
  }
  throw std::out_of_range(name);
}

TEST(CudaSession, MeasuresAModelsStepAndWhatItFuses) {
  const auto device = make_device(small_gpu(), {"13.0", "13.0", "13.1", "13.1"}, some_card());
  EXPECT_EQ(device->info().read_slice_bytes, 64 << 10);
  Session session(*device, 0, nullptr);
  const std::vector<Op> ops =
      lower(read_model(with_layers("  - repeat: 2\n"
                                   "    attention: {heads: 4, kv_heads: 2, head_dim: 16}\n"
                                   "    mlp: {intermediate: 96}\n")));
  MeasureSettings settings;
  settings.batches = {2};
  settings.contexts = {40};
  settings.whole_steps = true;
  session.require_memory(ops, settings);
  session.probe();
  session.run_model({.ops = ops}, settings);

  const DeviceFigures figures = session.figures();
  ASSERT_TRUE(figures.launch_fit);
  EXPECT_NEAR(figures.launch_fit->seconds_a_launch, kLaunch, 0.1 * kLaunch);
  EXPECT_NEAR(figures.launch_fit->bytes_per_s, kRate, 0.1 * kRate);
  EXPECT_EQ(figures.peaks.size(), 4U);  // f32, f16, bf16, f8_e4m3
  // Medians of a GPU: a cool one's short products run at clocks that it does not hold.
  for (const auto& [type, peak] : figures.peaks) EXPECT_EQ(peak.GFLOPs, peak.median_GFLOPs);

  const MeasuredStep& step = session.decode().front();
  EXPECT_FALSE(step.partial());
  for (const MeasuredOp& op : step.ops) {
    ASSERT_TRUE(op.measurement) << op.op.name;
    EXPECT_TRUE(op.measurement->check.passed()) << op.op.name;
    ASSERT_TRUE(op.measurement->alone_seconds) << op.op.name;
    EXPECT_GE(op.measurement->alone_seconds->median, op.measurement->seconds.median + 0.99) << op.op.name;
    EXPECT_EQ(op.measurement->clock_MHz, 1700) << op.op.name;
  }
  const Measurement& q = *op_of(step, "q_proj").measurement;
  std::vector<std::string> tried;
  for (const VariantFigure& variant : q.variants) tried.push_back(variant.name);
  EXPECT_THAT(tried, Contains("fake library"));
  EXPECT_GE(tried.size(), 2U);  // and ours
  ASSERT_TRUE(q.of_same_size_read);
  EXPECT_GT(q.of_same_size_read->median, 0.8);  // both pay one launch

  ASSERT_TRUE(step.whole);
  std::vector<std::string> fused;
  for (const StepFusion& fusion : step.whole->fusions) fused.push_back(fusion.ops);
  EXPECT_THAT(fused, Contains(HasSubstr("q_proj + k_proj + v_proj")));
  EXPECT_THAT(fused, Contains(HasSubstr("gate_proj + up_proj")));
  EXPECT_THAT(fused, Contains("rotary + attention"));
  EXPECT_THAT(fused, Contains("down_proj + mlp_residual"));
  EXPECT_LE(step.whole->launches(), 2 * 5);  // a layer takes five: q, k, v; attention; o; gate, up; down
  EXPECT_LT(step.whole->seconds.median, step.measured_seconds());

  const Json json = device_figures(figures);
  EXPECT_EQ(json["driver"], "1.2.3");
  EXPECT_EQ(json["gpu"]["card"], "Some Card");
  EXPECT_EQ(json["gpu"]["card_from"], "datasheet");
  EXPECT_EQ(json["gpu"]["cuda"], "13.0");
  EXPECT_GT(json["launch"]["t0_us"].get<double>(), 0);
  EXPECT_EQ(json["peaks_GFLOPs"].size(), 4U);
  const std::string text = device_text(figures, Style{}) + measured_step_text(step, figures, Style{});
  for (const char* part : {"sm_90", "driver 1.2.3", "CUDA 13.0", "Some Card's datasheet", "a launch costs",
                           "of a read its size", "fused", "launches "}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
  // What is in its ledger makes the same session, without the device; half a ledger the half of it.
  const auto repeat = [&](const Ledger& ledger) {
    Session again(device->info(), 0, ledger);
    again.require_memory(ops, settings);
    again.probe();
    again.run_model({.ops = ops}, settings);
    return again;
  };
  const Session again = repeat(session.ledger());
  EXPECT_FALSE(again.stopped());
  EXPECT_EQ(device_figures(again.figures()), json);
  EXPECT_EQ(measured_step_figures(again.decode().front(), again.figures()),
            measured_step_figures(step, figures));
  Ledger half;
  half.add("read bandwidth", *session.ledger().find("read bandwidth"));
  const Session cut = repeat(half);
  EXPECT_TRUE(cut.stopped());
  EXPECT_EQ(cut.figures().read_variant, figures.read_variant);
  EXPECT_TRUE(cut.decode().empty() || cut.decode().front().partial());
  const Json op = measured_op_figures(op_of(step, "q_proj"), figures);
  EXPECT_GT(op["of_same_size_read"].get<double>(), 0.8);
  EXPECT_GT(op["alone_us"].get<double>(), 1e6);
  EXPECT_EQ(op["clock_MHz"], 1700);
  EXPECT_EQ(op["slowed"]["samples"], 0);
  EXPECT_FALSE(whole_step_figures(*step.whole, step.workload)["fusions"].empty());
}

TEST(CudaSession, GivesBackWhatItTakes) {
  auto gpu = small_gpu();
  FakeGpu& fake = *gpu;
  const auto device = make_device(std::move(gpu));
  {
    Session session(*device, 0, nullptr);
    session.probe();
    EXPECT_GT(fake.allocated(), 0);  // the read probe's buffer
  }
  EXPECT_EQ(fake.allocated(), 0);
  EXPECT_LT(fake.most_allocated(), 8 << 20);
}

TEST(CudaDeviceInfo, FollowsFromTheGpu) {
  GpuProperties h200 = fake_properties();
  h200.multiprocessors = 132;
  h200.l2_bytes = std::int64_t{60} << 20;
  h200.total_bytes = std::int64_t{140} << 30;
  const auto device = make_device(std::make_unique<FakeGpu>(h200));
  const DeviceInfo& info = device->info();
  EXPECT_EQ(info.kind, "cuda");
  EXPECT_EQ(info.instruction_set, "sm_90");
  EXPECT_EQ(least_cold_bytes(info), std::int64_t{300} << 20);
  EXPECT_EQ(info.read_slice_bytes, std::int64_t{960} << 20);
  EXPECT_EQ(info.matmul_n, 8192);
  EXPECT_TRUE(info.costly_launches);
  ASSERT_TRUE(info.gpu);
  EXPECT_EQ(info.gpu->card, "");
}

// The probes take five slices, and by default a quarter of what is free.
TEST(CudaDeviceInfo, ReadsLessWhereTheL2IsLargeForTheMemory) {
  for (const auto& [l2_mebibytes, mebibytes] :
       {std::pair{64, 15'900}, {48, 11'800}, {32, 7'800}, {4, 15'900}, {60, 140'000}}) {
    GpuProperties p = fake_properties();
    p.l2_bytes = std::int64_t{l2_mebibytes} << 20;
    p.total_bytes = std::int64_t{mebibytes} << 20;
    const auto device = make_device(std::make_unique<FakeGpu>(p));
    const DeviceInfo& info = device->info();
    EXPECT_GE(info.read_slice_bytes, 5 * p.l2_bytes) << l2_mebibytes;
    EXPECT_LE(5 * info.read_slice_bytes, p.total_bytes / 4) << l2_mebibytes;
    EXPECT_LE(info.read_slice_bytes, 16 * p.l2_bytes) << l2_mebibytes;
  }
}

TEST(CudaDeviceInfo, AClockThatIsNotToldIsNone) {
  auto gpu = small_gpu();
  gpu->clocks_.sm_MHz = 0;
  const auto device = make_device(std::move(gpu));
  EXPECT_FALSE(device->conditions().clock_MHz);
}

TEST(SlowedWarnings, NameTheReasonsOnce) {
  MeasuredStep step;
  step.ops.resize(2);
  for (MeasuredOp& op : step.ops) {
    op.measurement.emplace();
    op.measurement->seconds.n = 10;
  }
  EXPECT_TRUE(slowed_warnings({step}).empty());
  step.ops[1].measurement->slowed_samples = 3;
  step.ops[1].measurement->slowed_by = {"power cap"};
  EXPECT_THAT(slowed_warnings({step}),
              testing::ElementsAre(
                  "3 of 20 samples were taken while the device ran slower than it could: power cap"));
}

TEST(ImpossibleFigures, ASampleAboveTheDatasheet) {
  DeviceFigures figures;
  figures.info.gpu.emplace();
  figures.info.gpu->card = "Some Card";
  figures.info.gpu->datasheet_GBps = 100;
  figures.peak_GBps = 101;
  EXPECT_TRUE(impossible_figures(figures, {}).empty());  // peaks made of attributes promise nothing
  figures.info.gpu->card_is_datasheet = true;
  ASSERT_EQ(impossible_figures(figures, {}).size(), 1U);
  EXPECT_THAT(impossible_figures(figures, {}).front(),
              HasSubstr("above the 100 GB/s of Some Card's datasheet"));
}

}  // namespace
}  // namespace memwall::cuda
