// The sampler on a device made up for the purpose: time passes as the test says.
#include "bench/sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <csignal>
#include <map>
#include <set>

#include "bench/interrupt.h"
#include "bench/measure.h"
#include "bench/out_of_memory.h"
#include "bench/unstable.h"
#include "bench/unsupported.h"
#include "input/error.h"

namespace memwall {
namespace {

constexpr Format kF16{FormatKind::f16, 0, false};

// Launches take what the variant's rate says; the read probe runs at probe_rate.
class FakeDevice : public Device {
 public:
  struct FakeOperands : Operands {
    FakeOperands(FakeDevice& d, double bytes, bool probe) : device(d), launch_bytes(bytes), is_probe(probe) {}
    void launch(std::size_t variant, std::int64_t turn) override {
      if (!is_probe && variant == device.unsupported)
        throw UnsupportedError("lib.cpp:1: gemm: not supported (15)");
      const double rate = is_probe ? device.probe_rate : device.rates.at(variant);
      if (!is_probe && device.launches == device.interrupted_launch && !interrupted()) std::raise(SIGINT);
      if (!is_probe && interrupted()) return;  // cut short: no time passes
      device.clock += launch_bytes / rate;
      if (!is_probe && device.launches >= device.held_up_from && device.launches < device.held_up_to) {
        device.waited += launch_bytes / rate;
        device.clock += launch_bytes / rate;
      }
      if (!is_probe) {
        ++device.launches;
        device.turns[turn % device.copies_placed] += 1;
      }
    }
    double cold_bytes(std::int64_t) const override { return launch_bytes; }
    double flops(std::int64_t) const override { return 2 * launch_bytes; }
    Check check(std::size_t variant) override {
      return {.outputs = 1,
              .worst = (is_probe ? device.wrong_probes : device.wrong).count(variant) > 0 ? 2.0 : 0.5};
    }
    FakeDevice& device;
    double launch_bytes;
    bool is_probe;
  };

  FakeDevice() {
    info_.kind = "fake";
    info_.threads = 1;
    info_.last_level_bytes = 32 << 20;
    info_.available_bytes = std::int64_t{16} << 30;
  }
  const DeviceInfo& info() const override { return info_; }
  std::vector<Variant> variants(const Task& task) const override {
    std::vector<Variant> all;
    if (std::holds_alternative<StreamTask>(task)) {
      for (int i = 1; i <= probes; ++i) all.push_back({std::to_string(i) + " streams", 0});
      return all;
    }
    for (std::size_t i = 0; i < rates.size(); ++i) all.push_back({"v" + std::to_string(i), 0});
    return all;
  }
  Footprint footprint(const Task& task) const override {
    const auto* stream = std::get_if<StreamTask>(&task);
    return {.copy_bytes = stream != nullptr ? stream->bytes : copy_bytes, .cold = cold};
  }
  std::unique_ptr<Operands> place(const Task& task, std::int64_t copies, std::uint64_t) override {
    if (no_memory) throw OutOfMemory("needs 3 GiB");
    const bool probe = std::holds_alternative<StreamTask>(task);
    if (!probe) copies_placed = copies;
    return std::make_unique<FakeOperands>(*this, static_cast<double>(footprint(task).copy_bytes), probe);
  }
  double time(const std::function<void()>& launches_to_time) override {
    const double before = clock;
    launches_to_time();
    return clock - before;
  }
  double time_alone(const std::function<void()>& launches_to_time) override {
    return 3e-6 + time(launches_to_time);
  }
  Conditions conditions() override {
    ++looks;
    return {.clock_MHz = 1980,
            .slowed_by = looks == 2 ? std::vector<std::string>{"power cap"} : std::vector<std::string>{}};
  }
  std::optional<ProcessMoment> process_moment() override { return ProcessMoment{clock, clock, waited}; }
  double huge_page_share() const override { return 1; }
  DeviceInfo& mutable_info() { return info_; }

  // Launches that wait as long for a CPU as they run.
  int held_up_from = 0;
  int held_up_to = 0;
  double waited = 0;

  int looks = 0;
  std::vector<double> rates = {10e9};
  double probe_rate = 20e9;
  std::int64_t copy_bytes = 1 << 20;
  bool cold = true;
  std::set<std::size_t> wrong;
  std::set<std::size_t> wrong_probes;
  int probes = 1;
  std::size_t unsupported = 99;
  int interrupted_launch = -1;
  bool no_memory = false;
  double clock = 0;
  int launches = 0;
  std::int64_t copies_placed = 1;
  std::map<std::int64_t, int> turns;

 private:
  DeviceInfo info_;
};

Task some_task() { return OpTask{LinearWork{.out = 1024, .in = 512, .format = kF16}, {}}; }

TEST(Sampler, GivesTheShareOfTheReadBandwidth) {
  FakeDevice device;
  ReadCeiling ceiling(device);
  EXPECT_NEAR(ceiling.median(), 20e9, 1);
  const auto m = measure_task(device, some_task(), &ceiling, {});
  ASSERT_TRUE(m);
  EXPECT_NEAR(m->seconds.median, static_cast<double>(1 << 20) / 10e9, 1e-12);
  ASSERT_TRUE(m->of_read_bandwidth);
  EXPECT_NEAR(m->of_read_bandwidth->median, 0.5, 1e-9);
  EXPECT_EQ(m->stop, StopReason::quiet);
  EXPECT_GE(m->seconds.n, 10U);
}

// A read of a launch's own size runs beside it where a launch costs much; here both run at the probe's rate.
TEST(Sampler, HoldsSmallOpsAgainstAReadOfTheirSizeWhereLaunchesAreCostly) {
  FakeDevice device;
  ReadCeiling ceiling(device);
  auto m = measure_task(device, some_task(), &ceiling, {});
  ASSERT_TRUE(m);
  EXPECT_FALSE(m->of_same_size_read);
  EXPECT_FALSE(m->alone_seconds);
  device.mutable_info().costly_launches = true;
  m = measure_task(device, some_task(), &ceiling, {});
  ASSERT_TRUE(m && m->of_same_size_read && m->alone_seconds);
  EXPECT_NEAR(m->of_same_size_read->median, 0.5, 1e-9);
  EXPECT_NEAR(m->alone_seconds->median, m->seconds.median + 3e-6, 1e-12);
  device.copy_bytes = kLargeBytes;
  m = measure_task(device, some_task(), &ceiling, {});
  ASSERT_TRUE(m);
  EXPECT_FALSE(m->of_same_size_read);
}

TEST(Sampler, GoesOnWithoutAWayThatALibraryDoesNotSupport) {
  FakeDevice device;
  device.rates = {20e9, 10e9, 5e9};
  device.unsupported = 0;
  const auto m = measure_task(device, some_task(), nullptr, {});
  ASSERT_TRUE(m);
  EXPECT_EQ(m->variant, "v1");
  ASSERT_EQ(m->variants.size(), 3U);
  EXPECT_TRUE(m->variants[0].refused);
  EXPECT_FALSE(m->variants[0].failed.empty());
  EXPECT_TRUE(m->variants[1].works());
  device.rates = {20e9};
  EXPECT_THROW(measure_task(device, some_task(), nullptr, {}), RunError);
}

// A wrong result costs the way that gave it; where no way is right, each says why.
TEST(Sampler, TakesTheNextWayWhereTheFastestIsWrong) {
  FakeDevice device;
  device.rates = {20e9, 10e9};
  device.wrong = {0};
  const auto m = measure_task(device, some_task(), nullptr, {});
  ASSERT_TRUE(m);
  EXPECT_EQ(m->variant, "v1");
  EXPECT_THAT(m->variants[0].failed, testing::HasSubstr("times its tolerance away"));
  EXPECT_FALSE(m->variants[0].refused);
  device.wrong = {0, 1};
  EXPECT_THAT(failure_of([&] { measure_task(device, some_task(), nullptr, {}); }),
              testing::AllOf(testing::HasSubstr("v0: wrong"), testing::HasSubstr("v1: wrong")));
}

TEST(Sampler, DoesNotTryAgainWhatLostTheDevice) {
  FakeDevice device;
  device.rates = {20e9, 10e9};
  std::vector<std::string> tried;
  const auto m = measure_task(device, some_task(), nullptr,
                              {.rule = {},
                               .lost = {{"v0", 0, "the GPU was lost"}},
                               .tries = [&](const std::string& name) { tried.push_back(name); }});
  ASSERT_TRUE(m);
  EXPECT_EQ(m->variant, "v1");
  EXPECT_EQ(m->variants[0].failed, "the GPU was lost");
  EXPECT_EQ(tried, (std::vector<std::string>{"v1", "v1", "v1"}));  // timed, checked, sampled
}

// A tenth of a second beside others, then a quiet machine: what is told is the quiet one's.
TEST(Sampler, TakesSamplesAgainThatOthersHeldUp) {
  FakeDevice device;
  ReadCeiling ceiling(device);
  const std::size_t probed = ceiling.samples().size();
  const double launch = static_cast<double>(device.copy_bytes) / device.rates[0];
  device.held_up_to = static_cast<int>(0.1 / launch);
  const auto m = measure_task(device, some_task(), &ceiling, {});
  ASSERT_TRUE(m);
  EXPECT_NEAR(m->seconds.median, launch, 1e-12);
  EXPECT_NEAR(m->seconds.q3, launch, 1e-12);
  EXPECT_GT(m->disturbance.discarded, 10);
  EXPECT_EQ(m->disturbance.kept, 0);
  EXPECT_EQ(ceiling.samples().size(), probed + m->seconds.n);  // those beside them are forgotten, too
  EXPECT_EQ(unstable_because(*m), "");
}

TEST(Sampler, SaysSoWhereOthersDoNotStop) {
  FakeDevice device;
  device.held_up_to = 1'000'000'000;
  ReadCeiling ceiling(device);
  const auto m = measure_task(device, some_task(), &ceiling, {});
  ASSERT_TRUE(m);
  EXPECT_EQ(m->disturbance.kept, static_cast<std::int64_t>(m->seconds.n));
  EXPECT_THAT(unstable_because(*m), testing::HasSubstr("threads waited for a CPU during"));
  // The next task does not wait as long for them, and one on a quiet machine forgets it.
  const auto next = measure_task(device, some_task(), &ceiling, {});
  ASSERT_TRUE(next);
  EXPECT_NEAR(static_cast<double>(next->disturbance.discarded),
              static_cast<double>(m->disturbance.discarded) / 2, 2);
  EXPECT_EQ(device.patience, 0.25);
  device.held_up_to = 0;
  EXPECT_TRUE(measure_task(device, some_task(), &ceiling, {}));
  EXPECT_EQ(device.patience, 1);
}

// As ops are: for 2 ms at least, and on a GPU through the whole buffer.
TEST(ReadCeiling, SamplesForAsLongAsOpsAre) {
  FakeDevice device;
  ReadCeiling ceiling(device);
  const std::int64_t slice = device.info().read_slice_bytes;
  const double slice_seconds = static_cast<double>(slice) / ceiling.median();
  EXPECT_EQ(ceiling.sample_bytes(), slice * launches_a_sample(slice_seconds));
  device.mutable_info().costly_launches = true;
  device.mutable_info().read_buffer_bytes = 64 * slice;
  EXPECT_GE(ReadCeiling(device).sample_bytes(), 64 * slice);
}

TEST(ReadCeiling, DoesWithoutAVariantThatFails) {
  FakeDevice device;
  device.probes = 2;
  device.wrong_probes = {0};
  EXPECT_EQ(ReadCeiling(device).variant(), "2 streams");
  device.wrong_probes = {0, 1};
  EXPECT_THROW(ReadCeiling{device}, RunError);
}

TEST(Sampler, TellsTheClockAndWhatSlowedTheDevice) {
  FakeDevice device;
  const auto m = measure_task(device, some_task(), nullptr, {});
  ASSERT_TRUE(m);
  EXPECT_EQ(m->clock_MHz, 1980);
  EXPECT_EQ(m->slowed_samples, 1);
  EXPECT_EQ(m->slowed_by, std::vector<std::string>{"power cap"});
}

TEST(Sampler, ReadsOfASizeAreWholePages) {
  DeviceInfo info;
  EXPECT_FALSE(same_size_read(info, 5000));
  info.costly_launches = true;
  EXPECT_EQ(same_size_read(info, 5000)->bytes, 8192);
  EXPECT_EQ(same_size_read(info, 4096)->bytes, 4096);
  EXPECT_FALSE(same_size_read(info, 0));
  EXPECT_FALSE(same_size_read(info, static_cast<double>(kLargeBytes)));
}

TEST(Sampler, AGpuRotatesThroughFiveCachesAndReadsItsOwnSlices) {
  DeviceInfo info;
  info.last_level_bytes = std::int64_t{60} << 20;
  info.cold_caches = 5;
  info.read_slice_bytes = info.read_buffer_bytes = std::int64_t{960} << 20;
  EXPECT_EQ(least_cold_bytes(info), std::int64_t{300} << 20);
  EXPECT_EQ(ReadCeiling::bytes(info), std::int64_t{960} << 20);
  info.read_slice_bytes = info.read_buffer_bytes = 1 << 20;
  info.last_level_bytes = 64 << 10;
  EXPECT_EQ(least_cold_bytes(info), 1 << 20);
  EXPECT_EQ(ReadCeiling::bytes(info), 1 << 20);
}

TEST(Sampler, RotatesThroughFourTimesTheCache) {
  FakeDevice device;
  measure_task(device, some_task(), nullptr, {});
  EXPECT_EQ(device.copies_placed, 128);  // 4 x 32 MiB of 1 MiB copies
  EXPECT_EQ(device.turns.size(), 128U);  // and every one of them was used
}

TEST(Sampler, OneLargeCopyIsColdByItself) {
  Footprint footprint{.copy_bytes = std::int64_t{512} << 20};
  DeviceInfo info;
  info.last_level_bytes = 32 << 20;
  EXPECT_EQ(cold_copies(footprint, info), 1);
  footprint = {.copy_bytes = 1 << 20, .cold = false};
  EXPECT_EQ(cold_copies(footprint, info), 1);
  footprint = {.copy_bytes = 100 << 20, .least_copies = 8};
  EXPECT_EQ(cold_copies(footprint, info), 8);  // a launch touches eight experts
}

TEST(Sampler, TakesTheFastestVariantAndKeepsTheOthersFigures) {
  FakeDevice device;
  device.rates = {5e9, 15e9, 10e9};
  const auto m = measure_task(device, some_task(), nullptr, {});
  ASSERT_TRUE(m);
  EXPECT_EQ(m->variant, "v1");
  ASSERT_EQ(m->variants.size(), 3U);
  EXPECT_GT(m->variants[0].seconds, m->variants[2].seconds);
}

// A launch that an interrupt cuts short looks fast and leaves its result undone: neither may be seen.
TEST(Sampler, AnInterruptedSampleIsDiscarded) {
  for (const int at : {0, 1, 2, 3, 5, 50, 200, 500, 1500, 3000}) {
    FakeDevice device;
    device.rates = {10e9, 10e9};
    device.interrupted_launch = at;
    const InterruptGuard guard;
    const auto m = measure_task(device, some_task(), nullptr, {});
    if (!m) continue;
    EXPECT_NEAR(m->fastest, static_cast<double>(1 << 20) / 10e9, 1e-12) << at;
    EXPECT_GE(m->seconds.n, 3U) << at;
    EXPECT_EQ(m->stop, interrupted() ? StopReason::interrupted : StopReason::quiet) << at;
  }
}

TEST(Sampler, AnInterruptBeforeTheCheckIsNoWrongKernel) {
  FakeDevice device;
  device.wrong = {0};  // as an undone result would look
  device.interrupted_launch = 1;
  const InterruptGuard guard;
  EXPECT_FALSE(measure_task(device, some_task(), nullptr, {}));
}

TEST(Sampler, TellsTheHugePagesOfWhatIsCold) {
  FakeDevice device;
  EXPECT_EQ(measure_task(device, some_task(), nullptr, {})->huge_page_share, 1.0);
  device.cold = false;
  EXPECT_FALSE(measure_task(device, some_task(), nullptr, {})->huge_page_share);
}

TEST(Sampler, AWrongKernelFailsTheRun) {
  FakeDevice device;
  device.wrong = {0};
  EXPECT_THROW(measure_task(device, some_task(), nullptr, {}), RunError);
}

TEST(Sampler, NoVariantNoFigure) {
  FakeDevice device;
  device.rates.clear();
  EXPECT_FALSE(measure_task(device, some_task(), nullptr, {}));
}

TEST(Sampler, HotTasksHaveNoShare) {
  FakeDevice device;
  device.cold = false;
  ReadCeiling ceiling(device);
  const auto m = measure_task(device, some_task(), &ceiling, {});
  ASSERT_TRUE(m);
  EXPECT_FALSE(m->of_read_bandwidth);
}

TEST(Check, NothingComparedOrNaNIsNoPass) {
  EXPECT_FALSE((Check{.outputs = 0, .worst = 0}).passed());
  EXPECT_FALSE((Check{.outputs = 3, .worst = std::nan("")}).passed());
  EXPECT_TRUE((Check{.outputs = 3, .worst = 1}).passed());
}

std::vector<Op> two_ops() {
  const LinearWork wide{.out = 64, .in = 32, .format = kF16};
  return {{.name = "a", .work = wide, .layers = {0, 1, 2}},
          {.name = "b", .work = wide, .layers = {0}},
          {.name = "c", .work = LinearWork{.out = 32, .in = 64, .format = kF16}, .layers = {}}};
}

TEST(Session, MeasuresEqualShapesOnceAndMultiplies) {
  FakeDevice device;
  std::vector<std::string> announced;
  Session session(device, std::int64_t{4} << 30,
                  [&](const std::string& what, const ProgressState&) { announced.push_back(what); });
  session.probe();
  const std::size_t probes = announced.size();
  session.run_model({.ops = two_ops()}, {.batches = {1}, .contexts = {16}, .prompts = {}});
  EXPECT_EQ(announced.size() - probes, 2U);  // a and b share their shape
  ASSERT_EQ(session.decode().size(), 1U);
  const MeasuredStep& step = session.decode().front();
  EXPECT_FALSE(step.partial());
  const double one = static_cast<double>(1 << 20) / 10e9;
  EXPECT_NEAR(step.measured_seconds(), 5 * one, 1e-9);  // three, one and one
}

// Known before the first unit, kept to the last: several formats, batches, contexts, prompts, the baselines.
TEST(Session, ProgressHasATotalThatDoesNotGrow) {
  FakeDevice device;
  const auto run = [](Session& session) {
    session.probe();
    session.run_baselines({.n = 64, .formats = {kF16}, .sweep_format = kF16, .sweep_to = 64});
    const MeasureSettings settings{.batches = {1, 4}, .contexts = {16, 32}, .prompts = {8}};
    session.run_model({.ops = two_ops(), .weights = "f16", .head_weights = "f16", .kv = "f16"}, settings);
    session.run_model({.ops = two_ops(), .weights = "q8_0", .head_weights = "q8_0", .kv = "int8"}, settings);
  };
  std::vector<ProgressState> states;
  std::set<std::string> units;
  Session session(device, std::int64_t{4} << 30, [&](const std::string& what, const ProgressState& state) {
    states.push_back(state);
    units.insert(what);
  });
  const WorkPlan plan = Session::plan_of(device.info(), run);
  const std::size_t total = plan.state().of;
  session.follow(plan);
  run(session);
  ASSERT_FALSE(states.empty());
  ASSERT_GT(total, 20U);
  EXPECT_EQ(states.front().done, 0U);
  for (std::size_t i = 0; i < states.size(); ++i) {
    EXPECT_EQ(states[i].of, total);
    EXPECT_LT(states[i].done, total) << "a unit that begins is not the last one's successor";
    if (i == 0) continue;
    EXPECT_GE(states[i].done, states[i - 1].done);
    EXPECT_GE(states[i].share, states[i - 1].share);
  }
  EXPECT_EQ(states.back().done, total - 1) << "all that was planned came";
  EXPECT_GT(states.back().share, 0.9);
  // Tries of the read probe lie within a unit.
  EXPECT_EQ(units.size(), total + static_cast<std::size_t>(device.probes));
}

// Of a run that goes on behind what an earlier process left.
TEST(Session, ProgressCountsWhatIsInTheLedger) {
  FakeDevice device;
  const auto run = [](Session& session) {
    session.probe();
    session.run_model({.ops = two_ops()}, {.batches = {1}, .contexts = {16}, .prompts = {}});
  };
  Session first(device, std::int64_t{4} << 30, nullptr);
  first.probe();
  std::vector<ProgressState> states;
  Session second(
      device, std::int64_t{4} << 30,
      [&](const std::string&, const ProgressState& state) { states.push_back(state); }, first.ledger());
  second.follow(Session::plan_of(device.info(), run));
  run(second);
  ASSERT_FALSE(states.empty());
  EXPECT_EQ(states.front().of - states.front().done, 2U) << "a and c are left";
  EXPECT_EQ(states.back().done + 1, states.back().of);
}

TEST(Session, AShortageOfMemoryKeepsWhatWasMeasured) {
  FakeDevice device;
  Session session(device, std::int64_t{4} << 30, nullptr);
  session.probe();
  session.run_model({.ops = two_ops()}, {.batches = {1}, .contexts = {16}, .prompts = {}});
  EXPECT_FALSE(session.stopped());
  device.no_memory = true;
  const Op other{.name = "d", .work = LinearWork{.out = 8, .in = 8, .format = kF16}, .layers = {0}};
  std::vector<Op> ops = two_ops();
  ops.push_back(other);
  session.run_model({.ops = ops}, {.batches = {1}, .contexts = {16}, .prompts = {8}});
  EXPECT_TRUE(session.stopped());
  ASSERT_TRUE(session.shortage());
  EXPECT_EQ(*session.shortage(), "needs 3 GiB");
  ASSERT_EQ(session.decode().size(), 2U);
  EXPECT_TRUE(session.decode()[1].ops[0].measurement);
  EXPECT_FALSE(session.decode()[1].ops.back().measurement);
  EXPECT_TRUE(session.prefill().empty());
}

TEST(Session, SeveralFormatsShareProbesAndAreToldApart) {
  FakeDevice device;
  Session session(device, std::int64_t{4} << 30, nullptr);
  session.probe();
  const MeasureSettings settings{.batches = {1}, .contexts = {16}, .prompts = {}};
  session.run_model({.ops = two_ops(), .weights = "f16", .head_weights = "f16", .kv = "f16"}, settings);
  session.run_model({.ops = two_ops(), .weights = "q8_0", .head_weights = "q8_0", .kv = "int8"}, settings);
  ASSERT_EQ(session.decode().size(), 2U);
  EXPECT_EQ(session.decode()[0].weights, "f16");
  EXPECT_EQ(session.decode()[1].weights, "q8_0");
  EXPECT_EQ(session.decode()[1].kv, "int8");
  // Both are held to the same best samples.
  EXPECT_EQ(session.decode()[0].predicted.ceiling.ms_per_step,
            session.decode()[1].predicted.ceiling.ms_per_step);
}

// A read probe with one fast sample among slow ones: the bound is the fast one, the share paired.
TEST(Session, BoundsRestOnTheBestSample) {
  FakeDevice device;
  Session session(device, std::int64_t{4} << 30, nullptr);
  session.probe();
  device.probe_rate = 40e9;
  session.run_model({.ops = two_ops()}, {.batches = {1}, .contexts = {16}, .prompts = {}});
  device.probe_rate = 20e9;
  session.run_model({.ops = two_ops()}, {.batches = {1}, .contexts = {16}, .prompts = {}});
  const DeviceFigures figures = session.figures();
  EXPECT_NEAR(figures.best_read_GBps, 40, 1e-6);
  EXPECT_EQ(card_of(figures).bandwidth_GBps, figures.best_read_GBps);
  EXPECT_NEAR(figures.ridge(), figures.peak_GFLOPs / 40, 1e-9);
}

TEST(Session, RefusesAMemoryBoundThatTheLargestOpDoesNotFit) {
  FakeDevice device;
  EXPECT_THROW(Session(device, std::int64_t{1} << 50, nullptr), InputError);  // more than there is
  const Session session(device, std::int64_t{1} << 30, nullptr);
  EXPECT_NO_THROW(session.require_memory(two_ops(), {.batches = {1}, .contexts = {16}, .prompts = {}}));
  device.copy_bytes = std::int64_t{3} << 30;
  EXPECT_THROW(session.require_memory(two_ops(), {.batches = {1}, .contexts = {16}, .prompts = {}}),
               InputError);
}

TEST(Session, NoShareOfAPeakPassesOne) {
  FakeDevice device;
  Session session(device, 0, nullptr);
  session.probe();
  session.run_baselines({.n = 64, .formats = {kF16}, .sweep_format = kF16, .sweep_to = 32});
  const DeviceFigures figures = session.figures();
  ASSERT_EQ(figures.streams.size(), 9U);  // a read, and four patterns by two kinds of stores
  for (const StreamFigure& stream : figures.streams) {
    EXPECT_NEAR(stream.GBps, 20, 1e-6) << stream_name(stream.task.pattern);
    EXPECT_NEAR(stream.traffic_of_read, stream.task.traffic(figures.info), 1e-6)
        << stream_name(stream.task.pattern);
  }
  EXPECT_NEAR(figures.copy_GBps, 20, 1e-6);
  EXPECT_NEAR(figures.triad_GBps, 20, 1e-6);
  EXPECT_EQ(session.baselines().pairs.size(), 2U);
  EXPECT_EQ(session.baselines().sweep.size(), 4U);  // add and matmul at 16 and 32
  for (const Baseline& b : session.baselines().pairs) {
    EXPECT_LE(b.measurement.flops / b.seconds() / 1e9, figures.peak_GFLOPs * (1 + 1e-12));
    EXPECT_LE(b.measurement.bytes / b.seconds() / 1e9, figures.peak_GBps * (1 + 1e-12));
  }
}

// baseline and measure find one device: the same probes, the same peaks, one ridge.
TEST(Session, BothCommandsFindTheSamePeaks) {
  FakeDevice one;
  FakeDevice other;
  Session baseline(one, 0, nullptr);
  baseline.probe();
  baseline.run_baselines({.n = 64, .formats = {kF16}, .sweep_format = kF16, .sweep_to = 64});
  Session measure(other, 0, nullptr);
  measure.probe();
  measure.run_baselines({.n = 32, .formats = {kF16}, .sweep_format = kF16, .sweep_to = 16});
  measure.run_model({.ops = two_ops()}, {.batches = {1}, .contexts = {16}, .prompts = {8}});
  const DeviceFigures a = baseline.figures();
  const DeviceFigures b = measure.figures();
  EXPECT_NEAR(a.best_read_GBps, b.best_read_GBps, 1e-9);
  EXPECT_NEAR(a.peak_GFLOPs, b.peak_GFLOPs, 1e-9);
  EXPECT_NEAR(a.ridge(), b.ridge(), 1e-9);
  ASSERT_EQ(a.peaks.size(), b.peaks.size());
  for (const auto& [type, peak] : a.peaks) EXPECT_NEAR(peak.GFLOPs, b.peaks.at(type).GFLOPs, 1e-9);
}

TEST(StreamTraffic, NamesTheWriteAllocate) {
  const auto traffic = [](StreamPattern pattern, bool nontemporal) {
    return StreamTask{pattern, nontemporal, 64}.traffic(DeviceInfo{});
  };
  using enum StreamPattern;
  EXPECT_DOUBLE_EQ(traffic(read, false), 1);
  for (const StreamPattern pattern : {copy, scale}) EXPECT_DOUBLE_EQ(traffic(pattern, false), 3.0 / 2);
  for (const StreamPattern pattern : {add, triad}) EXPECT_DOUBLE_EQ(traffic(pattern, false), 4.0 / 3);
  for (const StreamPattern pattern : {copy, scale, add, triad}) EXPECT_DOUBLE_EQ(traffic(pattern, true), 1);
  DeviceInfo gpu;  // writes whole sectors without reading them
  gpu.gpu.emplace();
  EXPECT_DOUBLE_EQ((StreamTask{copy, false, 64}.traffic(gpu)), 1);
}

TEST(Baseline, IntensitiesAreTheTextbooks) {
  const auto intensity = [](const char* kernel, FormatKind kind) {
    const Baseline b{
        .kernel = kernel, .n = 4096, .format = {kind, 0, false}, .measurement = {}, .in_cache = {}};
    return b.intensity();
  };
  EXPECT_NEAR(intensity("add", FormatKind::f16), 0.1667, 5e-5);
  EXPECT_NEAR(intensity("add", FormatKind::f32), 0.0833, 5e-5);
  EXPECT_NEAR(intensity("matmul", FormatKind::f16), 1365.3, 0.05);
  EXPECT_NEAR(intensity("matmul", FormatKind::f32), 682.7, 0.05);
}

}  // namespace
}  // namespace memwall
