// estimate, inspect, models and cards from end to end: what is printed, in every format.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "paths.h"
#include "tests/cli/process.h"

namespace memwall {
namespace {

using Json = nlohmann::json;

const std::string kTiny = MEMWALL_TEST_DATA "/fixtures/tiny.yaml";
const std::string kCard = MEMWALL_TEST_DATA "/fixtures/round-card.yaml";

Json json_of(const std::string& line) {
  const Finished done = run(line + " --format json");
  EXPECT_EQ(done.status, 0) << line << "\n" << done.err;
  return Json::parse(done.out);
}

void expect_keys(const Json& object, const std::vector<std::string>& keys, const std::string& where) {
  for (const std::string& key : keys) EXPECT_TRUE(object.contains(key)) << where << " lacks " << key;
}

// Simple CSV: no value of these tables holds a comma, but the numbers of layers, which are quoted.
std::vector<std::map<std::string, std::string>> csv_of(const std::string& text) {
  const auto fields = [](const std::string& line) {
    std::vector<std::string> found(1);
    bool quoted = false;
    for (const char c : line) {
      if (c == '"') {
        quoted = !quoted;
      } else if (c == ',' && !quoted) {
        found.emplace_back();
      } else {
        found.back() += c;
      }
    }
    return found;
  };
  std::vector<std::string> lines = lines_of(text);
  std::vector<std::map<std::string, std::string>> rows;
  if (lines.empty()) return rows;
  const std::vector<std::string> header = fields(lines.front());
  for (std::size_t i = 1; i < lines.size(); ++i) {
    const std::vector<std::string> values = fields(lines[i]);
    EXPECT_EQ(values.size(), header.size()) << lines[i];
    for (std::size_t c = 0; c < std::min(values.size(), header.size()); ++c) {
      if (c == 0) rows.emplace_back();
      rows.back()[header[c]] = values[c];
    }
  }
  return rows;
}

TEST(EstimateCommand, JsonHasTheFixedKeys) {
  const Json json = json_of("estimate llama-3.1-8b --card h200 --prompt 512");
  EXPECT_EQ(json["schema"], "memwall.estimate/1");
  expect_keys(json["memwall"], {"version", "command", "time"}, "memwall");
  ASSERT_EQ(json["results"].size(), 1U);
  const Json& result = json["results"][0];
  expect_keys(result,
              {"card", "batch", "context", "weights", "kv", "tensor_parallel", "bytes", "flops", "intensity",
               "ridge", "ceiling", "expected", "memory", "prefill"},
              "results[0]");
  expect_keys(result["bytes"], {"weights", "kv", "kv_read", "kv_write", "state", "activations", "total"},
              "bytes");
  for (const char* speed : {"ceiling", "expected"}) {
    expect_keys(result[speed], {"ms_per_step", "tokens_per_s", "tokens_per_s_per_user", "bound"}, speed);
  }
  expect_keys(result["expected"], {"low_tokens_per_s", "high_tokens_per_s"}, "expected");
  expect_keys(result["memory"], {"required_GiB", "capacity_GiB", "fits"}, "memory");
  expect_keys(result["prefill"], {"ttft_ms", "tokens_per_s"}, "prefill");
  ASSERT_FALSE(json["ops"].empty());
  for (const Json& op : json["ops"]) {
    expect_keys(op,
                {"name", "kind", "layers", "count", "out", "in", "format", "bytes", "weight_bytes",
                 "kv_bytes", "state_bytes", "activation_bytes", "flops", "intensity", "bound", "fusible",
                 "ceiling_us", "expected_us"},
                op["name"]);
  }

  EXPECT_EQ(result["card"], "h200");
  EXPECT_EQ(result["batch"], 1);
  EXPECT_EQ(result["context"], 1024);
  EXPECT_EQ(result["weights"], "bf16");
  EXPECT_EQ(result["kv"], "bf16");
  EXPECT_EQ(result["bytes"]["weights"], 15'009'849'344);
  EXPECT_EQ(result["bytes"]["kv_read"], 134'217'728);
  EXPECT_EQ(result["bytes"]["kv_write"], 131'072);
  EXPECT_EQ(result["bytes"]["kv"], 134'348'800);
  EXPECT_EQ(result["ridge"], 206.125);
  EXPECT_NEAR(result["ceiling"]["tokens_per_s"].get<double>(), 316.953, 1e-3);
  EXPECT_EQ(result["ceiling"]["bound"], "memory");
}

TEST(EstimateCommand, TheOpsAddUpToTheResult) {
  const Json json = json_of("estimate gemma-2-9b --card h200 --batch 4 --context 8000");
  const Json& result = json["results"][0];
  std::map<std::string, double> sums;
  for (const Json& op : json["ops"]) {
    for (const char* key :
         {"bytes", "weight_bytes", "kv_bytes", "state_bytes", "activation_bytes", "flops"}) {
      sums[key] += op[key].get<double>();
    }
  }
  EXPECT_EQ(sums["bytes"], result["bytes"]["total"].get<double>());
  EXPECT_EQ(sums["weight_bytes"], result["bytes"]["weights"].get<double>());
  EXPECT_EQ(sums["kv_bytes"], result["bytes"]["kv"].get<double>());
  EXPECT_EQ(sums["state_bytes"], result["bytes"]["state"].get<double>());
  EXPECT_EQ(sums["activation_bytes"], result["bytes"]["activations"].get<double>());
  EXPECT_EQ(sums["flops"], result["flops"].get<double>());
}

TEST(EstimateCommand, ExpertsAreExpectations) {
  const Json json = json_of("estimate mixtral-8x7b --card h200 --batch 8");
  int seen = 0;
  for (const Json& op : json["ops"]) {
    if (op["kind"] != "expert") continue;
    EXPECT_EQ(op["experts"]["total"], 8);
    EXPECT_EQ(op["experts"]["per_token"], 2);
    EXPECT_NEAR(op["experts"]["touched"].get<double>(), 7.199, 1e-3);
    ++seen;
  }
  EXPECT_EQ(seen, 3);
}

TEST(EstimateCommand, AGridHasEveryCombinationAndNoOpsUnlessAsked) {
  const std::string line = "estimate " + kTiny + " --card " + kCard +
                           ",h200 --batch 1,2,4 --context 8,16 --weights q4_0,f16 --kv int8,bf16";
  const Json json = json_of(line);
  ASSERT_EQ(json["results"].size(), 2U * 3 * 2 * 2 * 2);
  EXPECT_FALSE(json.contains("ops"));
  std::set<std::string> seen;
  for (const Json& result : json["results"]) {
    EXPECT_FALSE(result.contains("ops"));
    seen.insert(result["card"].get<std::string>() + " " + result["batch"].dump() + " " +
                result["context"].dump() + " " + result["weights"].get<std::string>() + " " +
                result["kv"].get<std::string>());
  }
  EXPECT_EQ(seen.size(), json["results"].size());
  EXPECT_EQ(seen.count("round-card 4 16 q4_0 int8"), 1U);
  EXPECT_EQ(json["cards"].size(), 2U);
  const Json with_ops = json_of(line + " --ops");
  for (const Json& result : with_ops["results"]) EXPECT_FALSE(result["ops"].empty());
}

TEST(EstimateCommand, AnInt8CacheHasAScaleAVector) {
  const Json bf16 = json_of("estimate llama-3.1-8b --card h200");
  const Json int8 = json_of("estimate llama-3.1-8b --card h200 --kv int8");
  EXPECT_EQ(int8["results"][0]["kv"], "int8");
  // 128 bytes and 2 for the scale, where bf16 has 256.
  EXPECT_EQ(int8["results"][0]["bytes"]["kv_read"], 134'217'728 / 256 * 130);
  EXPECT_EQ(int8["results"][0]["bytes"]["weights"], bf16["results"][0]["bytes"]["weights"]);
}

TEST(EstimateCommand, HeadWeightsOverride) {
  const Json json = json_of("estimate llama-3.1-8b --card h200 --weights q4_0 --head-weights f16");
  EXPECT_EQ(json["results"][0]["weights"], "q4_0");
  EXPECT_EQ(json["results"][0]["head_weights"], "f16");
  // As q4_0 throughout, but the lm_head's 525,336,576 weights in 2 bytes for 18/32 of one.
  EXPECT_EQ(json["results"][0]["bytes"]["weights"], 4'221'902'848 + 525'336'576 / 32 * (64 - 18));
}

TEST(EstimateCommand, CsvHasARowAResultUnderTheDottedKeys) {
  const std::string line = "estimate " + kTiny + " --card " + kCard + " --batch 1,2";
  const Finished done = run(line + " --format csv");
  EXPECT_EQ(done.status, 0);
  const auto rows = csv_of(done.out);
  const Json json = json_of(line);
  ASSERT_EQ(rows.size(), 2U);
  for (std::size_t i = 0; i < 2; ++i) {
    const Json& result = json["results"][i];
    EXPECT_EQ(rows[i].at("batch"), result["batch"].dump());
    EXPECT_EQ(rows[i].at("card"), "round-card");
    EXPECT_EQ(rows[i].at("bytes.kv_read"), result["bytes"]["kv_read"].dump());
    EXPECT_NEAR(std::stod(rows[i].at("ceiling.tokens_per_s")),
                result["ceiling"]["tokens_per_s"].get<double>(), 1);
    EXPECT_EQ(rows[i].at("memory.fits"), "true");
    EXPECT_EQ(rows[i].at("expected.bound"), "overhead");
  }
}

TEST(EstimateCommand, CsvOfOpsHasARowAnOpOfEveryResult) {
  const std::string line = "estimate " + kTiny + " --card " + kCard + " --batch 1,2 --ops";
  const auto rows = csv_of(run(line + " --format csv").out);
  const Json json = json_of(line);
  const std::size_t ops = json["results"][0]["ops"].size();
  ASSERT_EQ(rows.size(), 2 * ops);
  for (std::size_t i = 0; i < ops; ++i) {
    const Json& op = json["results"][1]["ops"][i];
    EXPECT_EQ(rows[ops + i].at("batch"), "2");
    EXPECT_EQ(rows[ops + i].at("name"), op["name"]);
    EXPECT_EQ(rows[ops + i].at("weight_bytes"), op["weight_bytes"].dump());
  }
  EXPECT_EQ(rows[2].at("layers"), "0-3");  // q_proj
}

TEST(EstimateCommand, MarkdownHasARowAResult) {
  const Finished done = run("estimate " + kTiny + " --card " + kCard + " --batch 1,2 --format md");
  EXPECT_EQ(done.status, 0);
  const std::vector<std::string> lines = lines_of(done.out);
  ASSERT_EQ(lines.size(), 4U);
  EXPECT_EQ(lines[0].rfind("| card | model | batch | context | weights |", 0), 0U) << lines[0];
  EXPECT_EQ(lines[1].rfind("| --- | --- | ---: | ---: | --- |", 0), 0U) << lines[1];
  const auto bars = [](const std::string& line) { return std::count(line.begin(), line.end(), '|'); };
  for (const std::string& line : lines) EXPECT_EQ(bars(line), bars(lines[0])) << line;
}

TEST(EstimateCommand, TheTableSaysTheFigures) {
  const Finished done = run("estimate llama-3.1-8b --card h200");
  EXPECT_EQ(done.status, 0);
  EXPECT_EQ(done.err, "");
  for (const char* part :
       {"Llama 3.1 8B on NVIDIA H200 SXM", "15,009,849,344", "134,217,728", "316.95 tokens/s", "fits"}) {
    EXPECT_NE(done.out.find(part), std::string::npos) << part << "\n" << done.out;
  }
  EXPECT_EQ(done.out.find('\x1b'), std::string::npos);
}

TEST(EstimateCommand, WarnsOfAContextBeyondTheModels) {
  const std::string line = "estimate gemma-2-9b --card h200 --context 8192,32768";
  const Finished done = run(line);
  EXPECT_EQ(done.status, 0);
  EXPECT_EQ(done.err, "memwall: warning: context 32768 is beyond the 8192 tokens gemma-2-9b was made for\n");
  const Json json = json_of(line);
  ASSERT_EQ(json["warnings"].size(), 1U);
  EXPECT_EQ(json["warnings"][0], "context 32768 is beyond the 8192 tokens gemma-2-9b was made for");
  EXPECT_EQ(json["results"][1]["bytes"]["kv_read"], 6'341'787'648);
  EXPECT_TRUE(json_of("estimate gemma-2-9b --card h200 --context 8192")["warnings"].empty());
}

TEST(InspectCommand, JsonHasTheFixedKeys) {
  const Json json = json_of("inspect llama-3.1-8b");
  EXPECT_EQ(json["schema"], "memwall.inspect/1");
  const Json& model = json["model"];
  expect_keys(
      model,
      {"name", "architecture", "layers", "hidden_size", "vocab_size", "weights", "kv", "parameters", "bytes"},
      "model");
  EXPECT_EQ(model["name"], "llama-3.1-8b");
  EXPECT_EQ(model["layers"], 32);
  EXPECT_EQ(model["parameters"]["total"], 8'030'261'248);
  EXPECT_EQ(model["parameters"]["embedding"], 525'336'576);
  EXPECT_EQ(model["parameters"]["active"], 7'504'924'672);
  EXPECT_EQ(model["bytes"]["weights_total"], 16'060'522'496);
  EXPECT_EQ(model["bytes"]["weights_read"], 15'009'849'344);
  EXPECT_EQ(model["bytes"]["kv_per_token"], 131'072);
  EXPECT_EQ(model["bytes"]["state"], 0);
  ASSERT_FALSE(json["ops"].empty());
  EXPECT_EQ(json["ops"][0]["name"], "embed_tokens");
  EXPECT_FALSE(json["ops"][0].contains("ceiling_us"));  // no card, no time
}

TEST(InspectCommand, EveryFormat) {
  const auto rows = csv_of(run("inspect " + kTiny + " --format csv").out);
  const Json json = json_of("inspect " + kTiny);
  ASSERT_EQ(rows.size(), json["ops"].size());
  EXPECT_EQ(rows.front().at("name"), "embed_tokens");
  EXPECT_EQ(rows.back().at("name"), "lm_head");
  EXPECT_EQ(lines_of(run("inspect " + kTiny + " --format md").out).size(), rows.size() + 2);
  const Finished table = run("inspect " + kTiny);
  EXPECT_EQ(table.out.rfind("Tiny  llama, 4 layers", 0), 0U) << table.out;
  EXPECT_EQ(run("inspect " + kTiny + " --format table").out, table.out);
}

TEST(ListCommands, ListEveryModelAndCard) {
  const Json models = json_of("models");
  EXPECT_EQ(models["schema"], "memwall.models/1");
  std::set<std::string> names;
  for (const Json& model : models["models"]) names.insert(model["name"].get<std::string>());
  EXPECT_EQ(names.count("llama-3.1-8b") + names.count("mixtral-8x7b") + names.count("gemma-2-9b"), 3U);
  EXPECT_EQ(csv_of(run("models --format csv").out).size(), names.size());

  const Json cards = json_of("cards");
  EXPECT_EQ(cards["schema"], "memwall.cards/1");
  bool found = false;
  for (const Json& card : cards["cards"]) {
    expect_keys(card, {"name", "bandwidth_GBps", "capacity_GiB", "peaks_TFLOPs", "ridge", "achievable"},
                card["name"]);
    if (card["name"] != "h200") continue;
    found = true;
    EXPECT_EQ(card["bandwidth_GBps"], 4800);
    EXPECT_EQ(card["ridge"]["bf16"], 206.125);
  }
  EXPECT_TRUE(found);
  const std::string table = run("cards").out;
  for (const Json& card : cards["cards"]) {
    EXPECT_NE(table.find(card["name"].get<std::string>()), std::string::npos);
  }
}

TEST(Program, HelpAndVersion) {
  for (const char* line : {"--help", "estimate --help", "measure --help", "baseline --help", "-h"}) {
    const Finished done = run(line);
    EXPECT_EQ(done.status, 0) << line;
    EXPECT_EQ(done.err, "") << line;
    EXPECT_NE(done.out.find("--help"), std::string::npos) << line;
  }
  const Finished version = run("--version");
  EXPECT_EQ(version.status, 0);
  EXPECT_EQ(version.out.rfind("memwall ", 0), 0U) << version.out;
  EXPECT_EQ(lines_of(version.out).size(), 1U);
}

TEST(Program, OutputGoesToAFileWhole) {
  const TemporaryFolder folder;
  const Finished done = run("models --output " + (folder / "models.txt"));
  EXPECT_EQ(done.status, 0);
  EXPECT_EQ(done.out, "");
  EXPECT_EQ(content_of(folder / "models.txt"), run("models").out);
  EXPECT_EQ(folder.names(), std::vector<std::string>{"models.txt"});
}

TEST(Program, OutputToStandardOutputByName) {
  // As a file, which Process gives it, and as a pipe.
  EXPECT_EQ(run("cards -o /dev/stdout").out, run("cards").out);
  EXPECT_TRUE(std::filesystem::is_symlink("/dev/stdout"));
  ::setenv("MEMWALL_DATA", MEMWALL_SOURCE_DIR, 1);
  const Finished piped =
      Process({"sh", "-c", "\"$0\" cards -o /dev/stdout | cat", MEMWALL_EXECUTABLE}).wait();
  EXPECT_EQ(piped.out, run("cards").out);
  EXPECT_EQ(piped.err, "");
}

TEST(Program, AFullDeviceIsAFailedRun) {
  const Finished done = run("cards --output /dev/full");
  EXPECT_EQ(done.status, 1);
  EXPECT_EQ(done.out, "");
  EXPECT_EQ(done.err, "memwall: error: /dev/full cannot be written: No space left on device\n");
}

}  // namespace
}  // namespace memwall
