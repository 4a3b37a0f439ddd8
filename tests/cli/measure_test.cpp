// measure and baseline with real kernels on this machine. No test here looks at how fast anything was.
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "bench/topology.h"
#include "paths.h"
#include "tests/cli/process.h"

namespace memwall {
namespace {

using Json = nlohmann::json;

const std::string kMixed = MEMWALL_TEST_DATA "/fixtures/mixed.yaml";
const std::string kNoKernel = MEMWALL_TEST_DATA "/fixtures/no-kernel.yaml";

void expect_keys(const Json& object, const std::vector<std::string>& keys, const std::string& where) {
  for (const std::string& key : keys) EXPECT_TRUE(object.contains(key)) << where << " lacks " << key;
}

void expect_baseline(const Json& row) {
  expect_keys(row, {"n", "format", "ms", "bytes", "flops", "intensity", "GBps", "TFLOPs"}, "a baseline");
  EXPECT_GT(row["ms"].get<double>(), 0);
}

void expect_measured_op(const Json& op, const std::string& phase) {
  const std::string where = phase + " " + op["name"].get<std::string>();
  expect_keys(op,
              {"name",
               "kind",
               "layers",
               "count",
               "out",
               "in",
               "format",
               "bytes",
               "weight_bytes",
               "kv_bytes",
               "state_bytes",
               "activation_bytes",
               "flops",
               "intensity",
               "bound",
               "fusible",
               "ceiling_us",
               "variant",
               "variants",
               "measured_us",
               "ci95_us",
               "GBps",
               "of_read_bandwidth",
               "of_read_bandwidth_ci95"},
              where);
  EXPECT_FALSE(op.contains("not_measured")) << where;
  EXPECT_GT(op["measured_us"].get<double>(), 0) << where;
  EXPECT_GT(op["checked_outputs"].get<int>(), 0) << where;
  bool among = false;
  for (const Json& variant : op["variants"]) among = among || variant["name"] == op["variant"];
  EXPECT_TRUE(among) << where;
}

void expect_whole_step(const Json& step, const Json& sum_of_parts, std::int64_t launches) {
  expect_keys(step,
              {"ms_per_step",
               "tokens_per_s",
               "tokens_per_s_per_user",
               "ci95_ms",
               "fastest_ms",
               "bytes",
               "GBps",
               "of_read_bandwidth",
               "of_read_bandwidth_ci95",
               "read_GBps",
               "parts_read_GBps",
               "cold",
               "layers",
               "layers_held",
               "all_experts_held",
               "memory_bytes",
               "samples",
               "stopped",
               "steps_per_sample",
               "launches",
               "barriers",
               "barrier_us",
               "sum_of_parts_ms",
               "difference_ms",
               "breakdown"},
              "measured.step");
  const double ms = step["ms_per_step"].get<double>();
  EXPECT_GT(ms, 0);
  EXPECT_EQ(step["layers_held"], step["layers"]);
  EXPECT_EQ(step["launches"], launches);
  const double parts = sum_of_parts["ms_per_step"].get<double>();
  EXPECT_NEAR(step["sum_of_parts_ms"].get<double>(), parts, 1e-9 * parts);
  double bytes = 0;
  std::int64_t launched = 0;
  double explained = 0;
  for (const Json& kind : step["breakdown"]) {
    expect_keys(kind, {"kind", "launches", "bytes", "ms", "alone_ms"}, "breakdown[]");
    bytes += kind["bytes"].get<double>();
    launched += kind["launches"].get<std::int64_t>();
  }
  EXPECT_EQ(launched, launches);
  EXPECT_DOUBLE_EQ(bytes, step["bytes"].get<double>());
  const Json& difference = step["difference_ms"];
  for (const char* part : {"memory_ops", "small_ops", "rest"}) explained += difference[part].get<double>();
  EXPECT_NEAR(explained, ms - parts, 1e-9 * (ms + parts));
  EXPECT_NEAR(explained, difference["total"].get<double>(), 1e-9 * (ms + parts));
}

TEST(MeasureCommand, MeasuresEveryOpOfEveryFormatItHasKernelsFor) {
  const Finished done = run("measure " + kMixed + " --context 64 --prompt 8 --step --format json");
  ASSERT_EQ(done.status, 0) << done.err;
  const Json json = Json::parse(done.out);
  EXPECT_EQ(json["schema"], "memwall.measure/1");
  expect_keys(json["device"], {"name", "kind", "read_GBps", "copy_GBps", "triad_GBps", "peak_GFLOPs"},
              "device");
  EXPECT_EQ(json["device"]["kind"], "cpu");
  for (const char* rate : {"read_GBps", "copy_GBps", "triad_GBps", "peak_GFLOPs"}) {
    EXPECT_GT(json["device"][rate].get<double>(), 0) << rate;
  }
  expect_baseline(json["baselines"]["add"]);
  expect_baseline(json["baselines"]["matmul"]);
  ASSERT_FALSE(json["baselines"]["sweep"].empty());
  for (const Json& row : json["baselines"]["sweep"]) expect_baseline(row);
  EXPECT_FALSE(json.contains("incomplete"));

  std::set<std::string> formats;
  for (const auto& [phase, tokens] : {std::pair{"decode", 64}, std::pair{"prefill", 8}}) {
    ASSERT_EQ(json[phase].size(), 1U) << phase;
    const Json& step = json[phase][0];
    EXPECT_EQ(step["batch"], 1);
    EXPECT_EQ(step["context"], tokens);
    EXPECT_FALSE(step["measured"].contains("partial")) << phase;
    double sum_us = 0;
    std::int64_t launches = 0;
    for (const Json& op : step["ops"]) {
      expect_measured_op(op, phase);
      launches += op["count"].get<std::int64_t>();
      sum_us += op["measured_us"].get<double>();
      if (op["format"].is_string()) formats.insert(op["format"].get<std::string>());
    }
    for (const char* part : {"predicted", "measured"}) {
      expect_keys(step[part], {"ms_per_step", "tokens_per_s", "tokens_per_s_per_user"}, part);
    }
    const double ms = step["measured"]["ms_per_step"].get<double>();
    EXPECT_NEAR(ms, sum_us / 1e3, 1e-9 * ms);
    const double a_step = step["measured"]["tokens_per_s"].get<double>() * ms / 1e3;
    EXPECT_NEAR(a_step, std::string(phase) == "decode" ? 1 : 8, 1e-9) << "prompt tokens in prefill";
    EXPECT_EQ(step["measured"].contains("step"), std::string(phase) == "decode");
    if (std::string(phase) == "decode")
      expect_whole_step(step["measured"]["step"], step["measured"], launches);
  }
  for (const char* format : {"f32", "f16", "bf16", "q8_0", "q4_0"})
    EXPECT_EQ(formats.count(format), 1U) << format;
}

TEST(MeasureCommand, AnOpWithoutAKernelIsNotMeasuredAndTheTotalIsPartial) {
  const Finished done = run("measure " + kNoKernel + " --prompt 0 --step --format json");
  ASSERT_EQ(done.status, 0) << done.err;
  const Json json = Json::parse(done.out);
  EXPECT_TRUE(json["prefill"].empty());
  ASSERT_EQ(json["decode"].size(), 1U);
  const Json& step = json["decode"][0];
  ASSERT_EQ(step["ops"].size(), 2U);
  EXPECT_FALSE(step["ops"][0].contains("not_measured"));
  EXPECT_EQ(step["ops"][1]["name"], "other_proj");
  EXPECT_EQ(step["ops"][1]["not_measured"], true);
  EXPECT_FALSE(step["ops"][1].contains("measured_us"));
  EXPECT_EQ(step["measured"]["partial"], true);
  EXPECT_EQ(step["measured"]["step"]["partial"], true);
  EXPECT_EQ(step["measured"]["step"]["launches"], 1);
  EXPECT_GT(step["measured"]["tokens_per_s"].get<double>(), 0);
}

// What a run of that seed drew, op by op.
Json drawn_by(const std::string& seed) {
  const Finished done =
      run("measure " MEMWALL_TEST_DATA "/fixtures/experts.yaml --batch 3 --context 4 --prompt 0 " + seed +
          " --format json");
  EXPECT_EQ(done.status, 0) << done.err;
  const Json json = Json::parse(done.out);
  Json drawn = {{"seed", json["seed"]}, {"experts", Json::array()}};
  for (const Json& op : json["decode"][0]["ops"]) {
    if (op["kind"] == "expert")
      drawn["experts"].push_back({op["experts"]["first_drawn"], op["experts"]["measured_touched"]});
  }
  EXPECT_FALSE(drawn["experts"].empty());
  return drawn;
}

TEST(MeasureCommand, EqualSeedsTouchEqualExpertsAndOthersOthers) {
  const Json first = drawn_by("--seed 5");
  EXPECT_EQ(first["seed"], 5);
  EXPECT_EQ(first, drawn_by("--seed 5"));
  EXPECT_NE(first["experts"], drawn_by("--seed 6")["experts"]);
  EXPECT_EQ(drawn_by("")["seed"], 1);
}

// A ridge is a best sample over a best sample, wherever it stands.
void expect_best_over_best(const Json& ridge, const Json& gflops, const Json& device) {
  const double best = gflops.get<double>() / device["best_read_GBps"].get<double>();
  EXPECT_NEAR(ridge.get<double>(), best, 1e-9 * best);
}

TEST(MeasureCommand, ListsOfFormatsAreMeasuredInTurn) {
  const TemporaryFolder folder;
  const std::string measure =
      "measure " MEMWALL_TEST_DATA
      "/fixtures/experts.yaml --weights f16,q8_0 --kv f16,int8 --context 4 --prompt 0 ";
  const Finished done = run(measure + "--format json");
  ASSERT_EQ(done.status, 0) << done.err;
  const Json json = Json::parse(done.out);
  ASSERT_EQ(json["decode"].size(), 4U);
  std::vector<std::string> formats;
  for (const Json& step : json["decode"]) {
    formats.push_back(step["weights"].get<std::string>() + "/" + step["kv"].get<std::string>());
    EXPECT_GT(step["measured"]["tokens_per_s"].get<double>(), 0);
    EXPECT_TRUE(step["flags"].is_array());
    for (const Json& op : step["ops"]) {
      if (op["kind"] != "expert" && op["kind"] != "attention") continue;
      EXPECT_EQ(op["format"], step[op["kind"] == "expert" ? "weights" : "kv"]);
    }
  }
  EXPECT_EQ(formats, (std::vector<std::string>{"f16/f16", "f16/int8", "q8_0/f16", "q8_0/int8"}));
  EXPECT_EQ(json["models"].size(), 4U);
  EXPECT_EQ(json["model"], json["models"][0]);
  const Json& peaks = json["device"]["peaks"];
  EXPECT_GT(peaks["f32"]["GFLOPs"].get<double>(), 0);
  EXPECT_GE(json["device"]["best_read_GBps"].get<double>(), json["device"]["read_GBps"].get<double>());
  for (const auto& [type, peak] : peaks.items()) {
    EXPECT_GE(peak["GFLOPs"].get<double>(), peak["median_GFLOPs"].get<double>()) << type;
    expect_best_over_best(peak["ridge"], peak["GFLOPs"], json["device"]);
  }
  expect_best_over_best(json["device"]["ridge"], json["device"]["peak_GFLOPs"], json["device"]);
  EXPECT_EQ(json["device"]["peak_GFLOPs"], peaks["f32"]["GFLOPs"]);
  for (const Json& step : json["decode"]) {
    const std::string type = step["predicted"]["peak"];
    if (type == "f32")
      expect_best_over_best(step["predicted"]["ridge"], peaks[type]["GFLOPs"], json["device"]);
  }

  const Finished table = run(measure + "--kv f16");
  EXPECT_EQ(table.status, 2) << "an option given twice";
  const Finished rows = run("measure " MEMWALL_TEST_DATA
                            "/fixtures/experts.yaml --weights f16,q8_0 --batch 1,2 --context 4 --prompt 2 "
                            "--format csv");
  ASSERT_EQ(rows.status, 0) << rows.err;
  EXPECT_EQ(lines_of(rows.out).size(), 1U + 2 * 2 * 2) << "a head, and formats × batches × phases";
  const std::string header = rows.out.substr(0, rows.out.find('\n'));
  for (const char* column : {",weights,", ",kv,", ",flags", ",stopped", ",predicted.is_bound",
                             ",measured.of_read_bandwidth,", ",predicted.ridge,"})
    EXPECT_NE((header + ",").find(column), std::string::npos) << header;
  EXPECT_NE(rows.out.find(",q8_0,"), std::string::npos) << rows.out;
}

TEST(MeasureCommand, SeveralFormatsCloseWithATableOfThem) {
  const Finished done =
      run("measure " MEMWALL_TEST_DATA "/fixtures/experts.yaml --weights f16,q8_0 --context 4 --prompt 0");
  ASSERT_EQ(done.status, 0) << done.err;
  const std::size_t closing = done.out.find("Side by side");
  ASSERT_NE(closing, std::string::npos) << done.out;
  EXPECT_NE(done.out.find("f16", closing), std::string::npos);
  EXPECT_NE(done.out.find("q8_0", closing), std::string::npos);
  EXPECT_NE(done.out.find("seed 1"), std::string::npos);
}

TEST(MeasureCommand, AnInterruptKeepsWhatWasMeasured) {
  const TemporaryFolder folder;
  Process process(
      memwall_command({"measure", kMixed, "--format", "json", "--output", (folder / "run.json")}));
  ASSERT_TRUE(process.wait_until_it_catches(SIGINT));
  process.send(SIGINT);
  const Finished done = process.wait();
  EXPECT_EQ(done.status, 130) << done.err;
  EXPECT_EQ(folder.names(), std::vector<std::string>{"run.json"});
  const Json json = Json::parse(content_of(folder / "run.json"));
  EXPECT_EQ(json["incomplete"], true);
  EXPECT_EQ(json["schema"], "memwall.measure/1");
}

TEST(MeasureCommand, AnInterruptBeforeTheFirstRowStandsInRowsToo) {
  for (const char* format : {"csv", "md"}) {
    const TemporaryFolder folder;
    Process process(memwall_command({"measure", kMixed, "--format", format, "--output", (folder / "rows")}));
    ASSERT_TRUE(process.wait_until_it_catches(SIGINT));
    process.send(SIGINT);
    const Finished done = process.wait();
    EXPECT_EQ(done.status, 130) << done.err;
    const std::string rows = content_of(folder / "rows");
    EXPECT_NE(rows.find("incomplete"), std::string::npos) << rows;
    EXPECT_NE(rows.find("true"), std::string::npos) << rows;
  }
}

// Whenever a signal comes: exit status 130, what was measured as a whole document, no process left.
void interrupt_at_random_points(const std::vector<std::string>& command, int times, int longest_ms) {
  std::mt19937 engine(7);
  for (int i = 0; i < times; ++i) {
    Process process(memwall_command(command));
    ASSERT_TRUE(process.wait_until_it_catches(SIGTERM));
    const auto delay = std::chrono::microseconds(engine() % (1000U * static_cast<unsigned>(longest_ms)));
    std::this_thread::sleep_for(delay);
    process.send(i % 2 == 0 ? SIGINT : SIGTERM);
    const Finished done = process.wait();
    ASSERT_TRUE(done.status == 130 || done.status == 0) << done.status << " " << done.err;
    const Json json = Json::parse(done.out);
    EXPECT_EQ(json.contains("incomplete"), done.status == 130) << delay.count();
    EXPECT_TRUE(json["device"]["threads"].is_number());
  }
}

TEST(MeasureCommand, IsInterruptedAnywhere) {
  interrupt_at_random_points({"measure", kMixed, "--context", "64", "--prompt", "8", "--format", "json"}, 5,
                             6000);
}

TEST(BaselineCommand, IsInterruptedAnywhere) {
  interrupt_at_random_points({"baseline", "--n", "1024", "--no-prompt", "--format", "json"}, 5, 4000);
}

TEST(BaselineCommand, AnInterruptAtOnceStillPrintsATable) {
  Process process(memwall_command({"baseline", "--n", "64", "--no-prompt"}));
  ASSERT_TRUE(process.wait_until_it_catches(SIGTERM));
  process.send(SIGTERM);
  const Finished done = process.wait();
  EXPECT_EQ(done.status, 130) << done.err;
  EXPECT_NE(done.out.find("incomplete: interrupted"), std::string::npos) << done.out;
}

TEST(BaselineCommand, RunsOnTheThreadsAndCpusAskedFor) {
  const std::string cpu = std::to_string(allowed_cpus().back());
  const Finished done =
      run("baseline --n 16 --no-prompt --format json --threads 1 --numa interleave --cpus " + cpu);
  ASSERT_EQ(done.status, 0) << done.err;
  const Json device = Json::parse(done.out)["device"];
  EXPECT_EQ(device["threads"], 1);
  EXPECT_EQ(device["cores"], 1);
  EXPECT_EQ(device["cpus"], Json({std::stoi(cpu)}));
  EXPECT_GE(device["numa"]["nodes"].get<int>(), 1);
  EXPECT_GE(device["streams"].size(), 5U);
  for (const Json& stream : device["streams"]) {
    expect_keys(stream, {"pattern", "stores", "GBps", "traffic_GBps", "traffic_of_read_bandwidth"},
                "a stream");
    EXPECT_GE(stream["traffic_GBps"].get<double>(), stream["GBps"].get<double>());
  }
}

// Whether it is one says the machine; what follows, --strict alone.
TEST(BaselineCommand, AnUnstableFigureFailsAStrictRunAndNoOther) {
  const auto run = [](std::vector<std::string> more) {
    std::vector<std::string> words = {"baseline", "--n", "64", "--no-prompt", "--device", "cpu"};
    words.insert(words.end(), more.begin(), more.end());
    return Process(memwall_command(words)).wait();
  };
  const Finished strict = run({"--strict"});
  EXPECT_EQ(strict.status, strict.err.find(" unstable, which may be far from") == std::string::npos ? 0 : 1)
      << strict.err;
  EXPECT_EQ(run({}).status, 0);
}

TEST(BaselineCommand, JsonHasBothKernelsAndTheSweep) {
  const Finished done = run("baseline --n 64 --no-prompt --format json");
  ASSERT_EQ(done.status, 0) << done.err;
  const Json json = Json::parse(done.out);
  EXPECT_EQ(json["schema"], "memwall.baseline/1");
  expect_keys(json["device"], {"name", "kind", "read_GBps", "copy_GBps", "triad_GBps", "peak_GFLOPs"},
              "device");
  const Json& add = json["baselines"]["add"];
  const Json& matmul = json["baselines"]["matmul"];
  expect_baseline(add);
  expect_baseline(matmul);
  EXPECT_EQ(add["n"], 64);
  EXPECT_EQ(add["flops"], 64 * 64);
  EXPECT_EQ(matmul["flops"], 2 * 64 * 64 * 64);
  EXPECT_EQ(add["bytes"], matmul["bytes"]);  // the same tensors
  std::set<int> sizes;
  for (const Json& row : json["baselines"]["sweep"]) {
    expect_baseline(row);
    sizes.insert(row["n"].get<int>());
  }
  EXPECT_EQ(sizes, (std::set<int>{16, 32, 64}));
  // The same peaks and the same ridge as measure's.
  EXPECT_EQ(json["ridge"]["flop_per_byte"], json["device"]["ridge"]);
  expect_best_over_best(json["device"]["ridge"], json["device"]["peak_GFLOPs"], json["device"]);
  EXPECT_EQ(json["device"]["peak_GFLOPs"], json["device"]["peaks"]["f32"]["GFLOPs"]);
  // Both ways of a matmul, and what memory bounds beside a read.
  std::set<std::string> ways;
  for (const Json& way : matmul["variants"]) ways.insert(way["name"].get<std::string>());
  EXPECT_EQ(ways, (std::set<std::string>{"blas", "gemm"}));
  EXPECT_EQ(ways.count(matmul["variant"].get<std::string>()), 1U);
  EXPECT_GT(add["of_read_bandwidth"].get<double>(), 0);
  EXPECT_TRUE(matmul["of_read_bandwidth"].is_null());
  EXPECT_FALSE(json["matmul_over_add"].contains("predicted"));
}

TEST(BaselineCommand, RowsCarryPeaksRidgeAndWays) {
  for (const char* format : {"csv", "md"}) {
    const Finished done = run(std::string("baseline --n 64 --no-prompt --format ") + format);
    ASSERT_EQ(done.status, 0) << done.err;
    const std::string head = lines_of(done.out).front();
    for (const char* column : {"ridge.flop_per_byte", "ridge.from", "device.best_read_GBps",
                               "device.peak_GFLOPs", "bound", "variant", "variants", "flags"})
      EXPECT_NE(head.find(column), std::string::npos) << column << ": " << head;
    EXPECT_NE(done.out.find("gemm "), std::string::npos) << done.out;
    EXPECT_NE(done.out.find("blas "), std::string::npos) << done.out;
  }
}

TEST(BaselineCommand, TellsThePredictionBesideTheAnswer) {
  const Finished done = run("baseline --n 64 --predict 10 --card h200");
  ASSERT_EQ(done.status, 0) << done.err;
  EXPECT_NE(done.out.find("You said 10.0 times"), std::string::npos) << done.out;
  EXPECT_NE(done.out.find("ridge point 206.1 FLOP/byte"), std::string::npos) << done.out;
  EXPECT_EQ(done.out.find('\x1b'), std::string::npos);
}

}  // namespace
}  // namespace memwall
