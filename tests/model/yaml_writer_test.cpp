// A model written as YAML and read back is the same model: its tensors, states, layers and sums.
#include "model/yaml_writer.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "cost/cost.h"
#include "huggingface/read_config.h"
#include "load/load_model.h"
#include "model/components.h"
#include "model/yaml_text.h"
#include "paths.h"
#include "round_trip.h"
#include "support.h"

namespace memwall {
namespace {

namespace fs = std::filesystem;

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

TEST(YamlWriter, BlocksThatNoKeyDescribesAreWrittenOut) {
  const Model model = read_model(
      "name: m\nhidden_size: 64\nlayers:\n"
      "  - attention:\n      run:\n        - odd_norm: {norm: 64}\n        - attention: {heads: 4, head_dim: "
      "16}\n"
      "        - o_proj: {shape: [64, 64], bytes: 5000}\n"
      "    mlp:\n      gated: false\n      activation: relu\n      run:\n        - up_proj: [96, 64]\n"
      "        - gate_mix: {parameters: 7, weights: f32}\n        - down_proj: {shape: [64, 96], bias: "
      "true}\n"
      "  - moe:\n      per_token: 2\n      run:\n        - router: {shape: [8, 64], role: router}\n"
      "        - experts.up_proj: {shape: [32, 64], experts: 8, bias: true}\n"
      "        - experts.down_proj: {shape: [64, 32], experts: 8, bytes: 40000}\n"
      "        - experts.scale: {parameters: 1, experts: 8, weights: f32}\n"
      "    run:\n      - foo.weight: {parameters: 64}\n      - bar: {shape: [3, 64], read: never}\n"
      "outside:\n  - left_over: [64, 32]\n  - left_over.bias: {parameters: 64, role: bias, weights: f32}\n");
  ASSERT_EQ(model.blocks.size(), 5U);
  EXPECT_EQ(model.blocks[0].kind, BlockKind::attention);
  EXPECT_EQ(model.blocks[1].kind, BlockKind::mlp);
  EXPECT_FALSE(model.blocks[1].gated);
  EXPECT_EQ(model.blocks[2].kind, BlockKind::moe);
  const Tensor& up = *model.blocks[2].find("experts.up_proj");
  EXPECT_EQ(up.role, Role::expert);
  EXPECT_EQ(up.copies, 8);
  EXPECT_EQ(up.read, Read::per_expert);
  EXPECT_EQ(model.blocks[2].find("experts.up_proj.bias")->copies, 8);
  EXPECT_EQ(model.blocks[3].kind, BlockKind::shapes);
  EXPECT_TRUE(model.blocks[4].layers.empty());
  // 16-bit but for what states its bytes: attention 128 + 5000; MLP 2·96·64·2 + 28 + 128; experts 1024 +
  // 8·(32·64 + 32)·2 + 40000 + 32; the layer's own 128 + 384; outside 4096 + 256.
  EXPECT_EQ(stored_bytes(model), 5128 + 24732 + 1024 + 33280 + 40032 + 512 + 4352);
  // Of the experts two of eight, and nothing of `bar`.
  EXPECT_EQ(read_bytes(model), 5128 + 24732 + 1024 + 33280 / 4 + 40032 / 4 + 128 + 4352);
  expect_round_trip(model);
}

TEST(YamlWriter, BiasesOfOtherFormatsAndBytesOfSingleTensorsAreKept) {
  Model model = read_model(
      "name: m\nhidden_size: 64\nnorm: layer\nvocab_size: 10\nlayers:\n  - attention: {heads: 4, bias: true, "
      "bytes: "
      "{q_proj: 9000}, formats: {q_proj.bias: f32}}\n    mixer:\n      name: x\n      run:\n"
      "        - in_proj: {shape: [8, 64], bias: true}\n        - a_norm: {norm: 8, kind: layer}\n");
  Tensor* bias = nullptr;
  Tensor* norm_bias = nullptr;
  for (Block& block : model.blocks) {
    for (Tensor& tensor : block.tensors) {
      if (tensor.name == "in_proj.bias") bias = &tensor;
      if (tensor.name == "a_norm.bias") norm_bias = &tensor;
    }
  }
  ASSERT_NE(bias, nullptr);
  ASSERT_NE(norm_bias, nullptr);
  bias->format = Format{FormatKind::f32, 0, false};
  norm_bias->stored_bytes = 20;
  expect_round_trip(model);
}

TEST(YamlWriter, ExtrasAndWarningsSurvive) {
  Model model = read_model("name: m\nhidden_size: 64\nlayers:\n  - mlp: {intermediate: 8}\n");
  model.approximate = true;
  model.warnings = {"a: b # c", "'quoted' \"twice\"", "- x"};
  model.extras = {{.what = "a vision tower: \"x\"", .tensors = 3, .parameters = 12, .bytes = 24},
                  {.what = "multi-token prediction"}};
  expect_round_trip(model);
}

// The sharpest of what files hold: each text, alone and in pairs, as the source and as an alias.
TEST(YamlWriter, EveryTextComesBack) {
  const std::vector<std::string> pieces = {"plain",
                                           "https://a.b/c # d",
                                           "a: b",
                                           "\"",
                                           "'",
                                           "\\",
                                           "\\n",
                                           "#",
                                           " lead",
                                           "trail ",
                                           "yes",
                                           "No",
                                           "null",
                                           "~",
                                           "true",
                                           "-",
                                           "- a",
                                           "? x",
                                           "1",
                                           "0x10",
                                           "1.5e3",
                                           "[a]",
                                           "{b: c}",
                                           "&a",
                                           "*a",
                                           "!tag",
                                           "|",
                                           ">",
                                           "%x",
                                           "@",
                                           "`",
                                           ", ",
                                           "...",
                                           "---",
                                           "a\xc3\xa4",
                                           "\xe4\xb8\xad",
                                           "\xf0\x9f\x99\x82",
                                           "\xe2\x80\xa8",
                                           ".",
                                           "=",
                                           "<<",
                                           ".nan",
                                           "a\"b: '",
                                           "\\\"",
                                           ":",
                                           "x:",
                                           " ",
                                           "\xc2\xa0"};
  const auto expect_text = [](const std::string& text) {
    Model model = read_model("name: m\nlayers:\n  - a: [1, 2]\n");
    model.title = model.source = text;
    model.architecture = text + "x";
    model.aliases = {text, "other", text};
    const Model back = read_model(model_yaml(model));
    EXPECT_EQ(back.title, text) << model_yaml(model);
    EXPECT_EQ(back.source, text);
    EXPECT_EQ(back.architecture, text + "x");
    EXPECT_EQ(back.aliases, model.aliases);
    const Model named = read_model("name: m\nlayers:\n  - run:\n    - " + yaml_key(text) + ": [1, 2]\n");
    EXPECT_EQ(named.blocks.front().tensors.front().name, text);
  };
  for (const std::string& first : pieces) {
    SCOPED_TRACE(first);
    expect_text(first);
    for (const std::string& second : pieces) expect_text(first + second);
  }
}

// The reader refuses what must not reach a terminal, so the writer shows it instead.
TEST(YamlWriter, ControlCharactersAndBrokenUtf8AreShown) {
  for (const auto& [text, shown] :
       std::vector<std::pair<std::string, std::string>>{{"a\nb", "a\\x0ab"},
                                                        {"\x1b[31m", "\\x1b[31m"},
                                                        {"\t", "\\x09"},
                                                        {"\x7f", "\\x7f"},
                                                        {"\xc2\x9b", "\\xc2\\x9b"},
                                                        {"\xff\xfe", "\\xff\\xfe"},
                                                        {"\xe4\xb8", "\\xe4\\xb8"},
                                                        {"\xed\xa0\x80", "\\xed\\xa0\\x80"},
                                                        {std::string("\0", 1), "\\x00"}}) {
    Model model = read_model("name: m\nlayers:\n  - a: [1, 2]\n");
    model.source = text;
    EXPECT_EQ(read_model(model_yaml(model)).source, shown);
  }
}

TEST(YamlWriter, LongNamesFitAKeyAndStayApart) {
  const std::string a = yaml_key(std::string(3000, 'a') + "1");
  const std::string b = yaml_key(std::string(3000, 'a') + "2");
  EXPECT_LT(a.size(), 300U);
  EXPECT_NE(a, b);
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
