// A model written as YAML and read back is the same model: its tensors, states, layers and sums.
#include "model/yaml_writer.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "cost/cost.h"
#include "huggingface/read_config.h"
#include "load/load_model.h"
#include "model/components.h"
#include "paths.h"
#include "support.h"

namespace memwall {
namespace {

namespace fs = std::filesystem;

// Each op as text, whatever the order of blocks.
std::multiset<std::string> ops_of(const Model& model) {
  std::multiset<std::string> all;
  const Workload workload{.phase = Phase::decode, .batch = 3, .context = 5000};
  for (const Op& op : group_equal(lower(model))) {
    const Cost cost = cost_of(op.work, workload);
    all.insert(fmt::format("{} {} {} {} {} {} {}", op.name, fmt::join(op.layers, ","), cost.weight_bytes,
                           cost.kv_read_bytes, cost.kv_write_bytes, cost.state_bytes, cost.flops));
  }
  return all;
}

// Warnings stand in comments, which no reader sees.
std::string without_comments(const std::string& text) {
  std::string kept;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind('#', 0) != 0) kept += line + "\n";
  }
  return kept;
}

void expect_round_trip(const Model& model) {
  const std::string text = model_yaml(model);
  const Model back = read_model(text);
  const ParameterCount a = count_parameters(model);
  const ParameterCount b = count_parameters(back);
  EXPECT_EQ(a.total, b.total) << text;
  EXPECT_EQ(a.embedding, b.embedding) << text;
  EXPECT_EQ(a.active, b.active) << text;
  EXPECT_EQ(kv_bytes_per_token(model), kv_bytes_per_token(back)) << text;
  EXPECT_EQ(kv_cache_bytes(model, 100'000), kv_cache_bytes(back, 100'000)) << text;
  EXPECT_EQ(state_bytes(model), state_bytes(back)) << text;
  EXPECT_EQ(model.layers, back.layers) << text;
  EXPECT_EQ(ops_of(model), ops_of(back)) << text;
  EXPECT_EQ(model_yaml(back), without_comments(text));
}

TEST(YamlWriter, TheZooComesBack) {
  const DataVariable data;
  for (const Model& model : zoo()) {
    SCOPED_TRACE(model.name);
    expect_round_trip(model);
  }
}

TEST(YamlWriter, EveryPublicConfigurationComesBack) {
  const fs::path folder = fs::path(MEMWALL_SOURCE_DIR) / ".." / "shared" / "data" / "configs" / "hf";
  if (!fs::is_directory(folder)) GTEST_SKIP() << "no shared configurations here";
  std::size_t read = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    SCOPED_TRACE(entry.path().filename().string());
    expect_round_trip(load_config(entry.path().string()));
    ++read;
  }
  EXPECT_GT(read, 100U);
}

TEST(YamlWriter, SingleFormatsAreKept) {
  Model model = read_model(
      "name: m\nweights: q4_k\nhidden_size: 256\nvocab_size: 512\nhead_weights: q6_k\nnorm_weights: f32\n"
      "layers:\n  - repeat: 2\n    attention: {heads: 4, formats: {v_proj: q6_k}}\n    mlp: {intermediate: "
      "512}\n");
  EXPECT_EQ(format_name(model.blocks.at(1).find("v_proj")->format), "q6_k");
  EXPECT_EQ(format_name(model.blocks.at(1).find("attn_norm")->format), "f32");
  EXPECT_EQ(format_name(model.head), "q6_k");
  EXPECT_THAT(model_yaml(model), testing::HasSubstr("formats: {v_proj: q6_k}"));
  expect_round_trip(model);
}

TEST(YamlWriter, PatternsAreFound) {
  const Model model = read_model(
      "name: m\nhidden_size: 64\nlayers:\n  - repeat: 3\n    pattern:\n      - attention: {heads: 4, window: "
      "16}\n"
      "      - attention: {heads: 4}\n  - mlp: {intermediate: 8}\n");
  EXPECT_THAT(model_yaml(model), testing::HasSubstr("  - repeat: 3\n    pattern:\n"));
  expect_round_trip(model);
}

TEST(YamlWriter, ALayerMayRunABlockTwice) {
  const Model model = read_model(
      "name: m\nhidden_size: 64\nlayers:\n  - blocks:\n      - attention: {heads: 4}\n      - mlp: "
      "{intermediate: 8}\n"
      "      - attention: {heads: 4}\n      - mlp: {intermediate: 16}\n");
  ASSERT_EQ(model.blocks.size(), 4U);
  EXPECT_EQ(model.layers, 1);
  expect_round_trip(model);
}

TEST(YamlWriter, MixersAndWhatStandsOutsideTheLayers) {
  expect_round_trip(read_model(
      "name: m\nhidden_size: 64\nvocab_size: 100\n"
      "embedding:\n  - embed_tokens: {shape: [100, 32], role: embedding}\n  - project_in: [64, 32]\n"
      "head:\n  - final_norm: {norm: 64, kind: layer}\n  - project_out: {shape: [32, 64], bias: true}\n"
      "  - lm_head: {shape: [100, 32], role: lm_head, tied: true}\n"
      "layers:\n  - mixer:\n      name: odd\n      run:\n        - mixer_norm: {norm: 64}\n"
      "        - q_a_proj: [24, 64]\n        - k_proj: {shape: [8, 64], read: never}\n"
      "        - latent: {heads: 4, rank: 16, rope: 8, top_k: 10, every: 2}\n"
      "        - indexer: {heads: 2, head_dim: 8}\n        - conv1d: {parameters: 32}\n"
      "        - recurrent: {elements: 128, conv_elements: 24, flops: 900}\n        - out_proj: [64, 24]\n"
      "    moe: {experts: 4, per_token: 2, intermediate: 8, idle: 2, latent: 16, extra: [{scale: "
      "{parameters: 3}}]}\n"
      "  - attention: {heads: 4, kv_heads: 2, gate: head, sinks: true, sub_norm: true, tied: true}\n"));
}

TEST(Components, AddUpToTheTotals) {
  const DataVariable data;
  for (const Model& model : zoo()) {
    std::int64_t parameters = 0;
    std::int64_t stored = 0;
    std::int64_t read = 0;
    for (const Component& component : components_of(model)) {
      parameters += component.parameters;
      stored += component.stored_bytes;
      read += component.read_bytes;
    }
    EXPECT_EQ(parameters, count_parameters(model).total) << model.name;
    EXPECT_EQ(stored, stored_bytes(model)) << model.name;
    EXPECT_EQ(read, read_bytes(model)) << model.name;
  }
}

// A step's weights are what the model says a token reads.
TEST(Components, AStepReadsWhatTheModelCounts) {
  const DataVariable data;
  for (const Model& model : zoo()) {
    const std::vector<Op> ops = lower(model);
    const Step step = cost_step(ops, {.phase = Phase::decode, .batch = 1, .context = 10});
    EXPECT_EQ(step.total.weight_bytes, static_cast<double>(read_bytes(model))) << model.name;
  }
}

TEST(Published, ARoundedCountIsEqualWithinHalfItsLastDigit) {
  const std::string layer = "hidden_size: 64\nlayers:\n  - up: [1000, 1049]\n";
  const auto difference = [&](const std::string& published) {
    return published_difference(read_model("name: m\nparameters: {published: " + published +
                                           ", rounded: true, source: card}\n" + layer));
  };
  EXPECT_EQ(difference("1000000"), 0);  // 1,049,000 rounds to it
  EXPECT_EQ(difference("1050000"), 0);
  EXPECT_EQ(difference("1100000"), -51'000);
  EXPECT_EQ(difference("1060000"), -11'000);
}

}  // namespace
}  // namespace memwall
