// Outcomes between two processes: every field comes back as it was.
#include "bench/record.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <limits>
#include <utility>

namespace memwall {
namespace {

using nlohmann::json;

json through_bytes(const json& record) { return json::from_cbor(json::to_cbor(record)); }

Summary some_summary(double median) {
  return {
      .n = 7, .median = median, .q1 = median / 3, .q3 = median * 3, .ci95 = Interval{median / 2, median * 2}};
}

Measurement some_measurement() {
  Measurement m;
  m.variant = "ours";
  m.variants = {{"ours", 1e-6}, {"theirs", std::numeric_limits<double>::infinity(), "not supported", true}};
  m.seconds = some_summary(1.0 / 3);
  m.fastest = 0.1;
  m.bytes = 123456789.25;
  m.flops = 3e12;
  m.padding = 17;
  m.touched = 5.5;
  m.first_drawn = {1, 5, 9};
  m.of_read_bandwidth = some_summary(0.9);
  m.read_rate = 1e11;
  m.of_same_size_read = some_summary(0.8);
  m.alone_seconds = some_summary(2e-6);
  m.clock_MHz = 1980;
  m.slowed_samples = 3;
  m.slowed_by = {"power cap"};
  m.disturbance = {.discarded = 2, .kept = 1, .others = 0.5, .elsewhere = 0.25, .steal = 0.125};
  m.stop = StopReason::noise_stable;
  m.copies = 11;
  m.huge_page_share = 0.5;
  m.launches_per_sample = 13;
  m.check = {.outputs = 64, .worst = 0.25};
  return m;
}

TEST(Record, KeepsAMeasurementToTheLastBit) {
  Outcome outcome;
  outcome.measurement = some_measurement();
  outcome.read_samples = {1.0 / 7, 3e11};
  outcome.failed = "a launch failed";
  outcome.shortage = "needs 3 GiB";
  outcome.probe = PlacedProbe{"8 loads", 0.75};
  const json record = record_of(outcome);
  const Outcome back = outcome_of(through_bytes(record));
  EXPECT_EQ(record_of(back), record);
  const Measurement& m = back.measurement.value();
  EXPECT_EQ(m.seconds.median, 1.0 / 3);
  EXPECT_EQ(m.seconds.ci95->high, 2.0 / 3);
  EXPECT_EQ(m.variants[1].seconds, std::numeric_limits<double>::infinity());
  EXPECT_TRUE(m.variants[1].refused);
  EXPECT_EQ(m.stop, StopReason::noise_stable);
  EXPECT_EQ(m.check.outputs, 64);
  EXPECT_EQ(m.disturbance.steal, 0.125);
  EXPECT_EQ(m.first_drawn, (std::vector<std::int64_t>{1, 5, 9}));
  EXPECT_EQ(back.read_samples, outcome.read_samples);
  EXPECT_EQ(back.probe->variant, "8 loads");
  EXPECT_EQ(back.failed, "a launch failed");
  EXPECT_EQ(back.shortage, "needs 3 GiB");
  EXPECT_FALSE(back.whole);
}

TEST(Record, KeepsAWholeStepAndADevice) {
  Outcome outcome;
  WholeStep& whole = outcome.whole.emplace();
  whole.seconds = some_summary(0.01);
  whole.fastest = 0.009;
  whole.bytes = 1e9;
  whole.of_read_bandwidth = some_summary(0.97);
  whole.cold = false;
  whole.partial = true;
  whole.stop = StopReason::interrupted;
  whole.holding = {.layers_held = 3,
                   .all_experts = false,
                   .copies = {1, 2},
                   .matrices_a_copy = {3, 4},
                   .bytes = 5,
                   .cold_bytes = 6};
  whole.layers = 7;
  whole.steps_per_sample = 8;
  whole.read_rate = 9;
  whole.parts_read_rate = 10;
  whole.barrier_seconds = 11;
  whole.kinds = {{.kind = OpKind::attention, .launches = 1, .bytes = 2, .seconds = 3, .alone_seconds = 4}};
  whole.fusions = {{.ops = "a + b", .members = {0, 1}, .launches = 2, .seconds = 3, .parts_seconds = 4}};
  whole.costly_launches = true;
  const json record = record_of(outcome);
  const Outcome back = outcome_of(through_bytes(record));
  EXPECT_EQ(record_of(back), record);
  EXPECT_EQ(back.whole->kinds[0].kind, OpKind::attention);
  EXPECT_EQ(back.whole->holding.matrices_a_copy[1], 4);
  EXPECT_EQ(back.whole->fusions[0].members[1], 1U);
  EXPECT_TRUE(back.whole->partial);

  DeviceInfo info;
  info.name = "A GPU";
  info.kind = "cuda";
  info.cpus = {0, 2};
  info.numa = NumaPolicy::interleave;
  info.cold_caches = 5;
  info.read_slice_bytes = 960 << 20;
  info.costly_launches = true;
  info.gpu.emplace();
  info.gpu->card = "A card";
  info.gpu->datasheet_GBps = 4800;
  const DeviceInfo read = device_info_of(through_bytes(record_of(info)));
  EXPECT_EQ(record_of(read), record_of(info));
  EXPECT_EQ(read.gpu->datasheet_GBps, 4800);
  EXPECT_EQ(read.numa, NumaPolicy::interleave);
  EXPECT_EQ(read.read_slice_bytes, 960 << 20);
}

// What is not in a record would be lost without a word: as many keys as fields.
struct Any {
  std::size_t ignored;
  template <class T>
  operator T() const;
};
template <class T, std::size_t... I>
constexpr bool takes(std::index_sequence<I...>) {
  return requires { T{Any{I}...}; };
}
template <class T, std::size_t N = 1>
constexpr std::size_t fields() {
  if constexpr (takes<T>(std::make_index_sequence<N>())) {
    return fields<T, N + 1>();
  } else {
    return N - 1;
  }
}

TEST(Record, HasAKeyForEveryField) {
  Outcome outcome;
  outcome.measurement = some_measurement();
  outcome.whole.emplace();
  const json record = record_of(outcome);
  EXPECT_EQ(record.size(), fields<Outcome>());
  EXPECT_EQ(record["measurement"].size(), fields<Measurement>());
  EXPECT_EQ(record["whole"].size(), fields<WholeStep>());
  EXPECT_EQ(record["whole"]["holding"].size(), fields<StepHolding>());
  EXPECT_EQ(record["measurement"]["disturbance"].size(), fields<Disturbance>());
  EXPECT_EQ(record["measurement"]["variants"][0].size(), fields<VariantFigure>());
  DeviceInfo info;
  info.gpu.emplace();
  EXPECT_EQ(record_of(info).size(), fields<DeviceInfo>());
  EXPECT_EQ(record_of(info)["gpu"].size(), fields<GpuFacts>());
}

}  // namespace
}  // namespace memwall
