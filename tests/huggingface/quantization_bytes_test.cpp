// Bytes of quantised checkpoints: as an independent script counted them for public configurations
// (tests/data/quantised), and worked out by hand for one small model in each layout.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <charconv>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "huggingface/read_config.h"
#include "input/json.h"
#include "paths.h"
#include "tests/support.h"

namespace memwall {
namespace {

namespace fs = std::filesystem;

std::int64_t number(const std::string& text) {
  std::int64_t value = -1;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

struct Row {
  std::string config;
  std::int64_t stored = 0;
  std::int64_t read = 0;
};

std::vector<Row> rows_of(const std::string& path) {
  std::vector<Row> rows;
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);  // the names of the columns
  while (std::getline(file, line)) {
    const std::size_t first = line.find(',');
    const std::size_t second = line.find(',', first + 1);
    const std::size_t third = line.find(',', second + 1);
    rows.push_back({line.substr(0, first), number(line.substr(first + 1, second - first - 1)),
                    number(line.substr(second + 1, third - second - 1))});
  }
  return rows;
}

TEST(QuantisedBytes, AsAnIndependentScriptCountsThem) {
  const fs::path folder = fs::path(MEMWALL_SOURCE_DIR) / ".." / "shared" / "data" / "configs" / "hf";
  const std::vector<Row> rows = rows_of(MEMWALL_SOURCE_DIR "/tests/data/quantised/quantised_bytes.csv");
  ASSERT_EQ(rows.size(), 38U);
  int compared = 0;
  for (const Row& row : rows) {
    if (!fs::exists(folder / row.config)) continue;
    const Model model = load_config((folder / row.config).string());
    EXPECT_EQ(stored_bytes(model), row.stored) << row.config;
    EXPECT_EQ(read_bytes(model), row.read) << row.config;
    ++compared;
  }
  if (compared == 0) GTEST_SKIP() << folder << " is not here";
}

// Of trials: cuts of published checkpoints to a few layers.
TEST(QuantisedBytes, OfCutCheckpoints) {
  const fs::path folder = fs::path(MEMWALL_SOURCE_DIR) / ".." / "shared" / "data" / "trials" / "configs";
  if (!fs::exists(folder)) GTEST_SKIP() << folder << " is not here";
  // With the f32 that NVFP4 has for each expert's matrices, which the trials' README leaves out: 2 layers of
  // 128 experts, 4 of 256, three matrices each.
  const std::int64_t gemma_scales = 2LL * 128 * 3 * 4;
  const std::int64_t deepseek_scales = 4LL * 256 * 3 * 4;
  const std::vector<Row> rows = {
      {"03-gemma4-moe-nvfp4-2-layers.json", 2'572'977'156 + gemma_scales, 1'770'079'236 + 2LL * 8 * 3 * 4},
      {"04-deepseek-v4-nvfp4-4-layers.json", 17'195'468'474 + deepseek_scales,
       1'980'630'714 + 4LL * 6 * 3 * 4},
      {"05-molmo-nf4-2-layers.json", 2'442'220'544, 1'352'225'792},
      {"06-mlx-quantization-key-only.json", 4'517'404'672, 4'221'902'848},
      {"07-compressed-tensors-int-quantized-4bit.json", 9'190'252'544, 8'139'579'392},
      // 4 bits for attention, 3.2 for the MLP, a 16-bit scale and zero for 64; head and table in bf16.
      {"27-hqq-per-layer.json", 5'464'047'616, 4'413'374'464},
  };
  for (const Row& row : rows) {
    const Model model = load_config((folder / row.config).string());
    EXPECT_EQ(stored_bytes(model), row.stored) << row.config;
    EXPECT_EQ(read_bytes(model), row.read) << row.config;
    EXPECT_FALSE(model.approximate) << row.config;
  }
}

// One layer of hidden size 256 and intermediate size 640, 1000 words, untied: q, k, v, o are 256x256, gate
// and up 640x256, down 256x640.
const std::string kSmall =
    R"("model_type": "llama", "hidden_size": 256, "intermediate_size": 640, "num_hidden_layers": 1,
       "num_attention_heads": 4, "vocab_size": 1000, "torch_dtype": "bfloat16", "tie_word_embeddings": false)";
constexpr std::int64_t kLinear = 4 * 256 * 256 + 3 * 640 * 256;  // weights
constexpr std::int64_t kRows = 4 * 256 + 640 + 640 + 256;
constexpr std::int64_t kColumns = 4 * 256 + 256 + 256 + 640;
constexpr std::int64_t kTable = 1000 * 256;
constexpr std::int64_t kNorms = 3 * 256 * 2;
constexpr std::int64_t kRest = 2 * kTable * 2 + kNorms;  // table, head and norms in bf16

Model small(const std::string& key, const std::string& quantization) {
  return model_from_config(
      json::parse(fmt::format("{{{}, \"{}\": {}}}", kSmall, key, quantization), "x.json"), "x");
}

struct Layout {
  const char* config;
  std::int64_t bytes;
};

TEST(QuantisedBytes, OfEveryLayout) {
  const std::vector<Layout> all = {
      {R"({"quant_method": "fp8", "weight_block_size": [64, 64]})", kLinear + 4 * kLinear / 4096 + kRest},
      {R"({"quant_method": "fp8", "weight_block_size": [1, 128]})", kLinear + 4 * kLinear / 128 + kRest},
      {R"({"quant_method": "gptq", "bits": 4, "group_size": 128, "desc_act": true})",
       kLinear / 2 + kLinear / 128 * 2 + kLinear / 128 / 2 + 4 * kColumns + kRest},
      {R"({"quant_method": "gptq", "bits": 4, "group_size": 128, "desc_act": false})",
       kLinear / 2 + kLinear / 128 * 2 + kLinear / 128 / 2 + kRest},
      {R"({"quant_method": "gptq", "bits": 4, "group_size": 128, "is_marlin_format": true})",
       kLinear / 2 + kLinear / 128 * 2 + kRest},
      // Where a list of what stays is given, it alone decides on the head: here none of it stays.
      {R"({"quant_method": "bitsandbytes", "load_in_4bit": true, "llm_int8_skip_modules": ["vision_tower"]})",
       (kLinear + kTable) / 2 + (kLinear + kTable) / 64 * 4 + 2 * kTable + kNorms},
      {R"({"quant_method": "bitsandbytes", "load_in_8bit": true, "llm_int8_skip_modules": null})",
       kLinear + 4 * kRows + kRest},
      {R"({"quant_method": "eetq", "weights": "int8"})", kLinear + 2 * kRows + kRest},
      {R"({"quant_method": "quanto", "weights": "int8"})", kLinear + 2 * kRows + kRest},
      {R"({"quant_method": "quanto", "weights": "float8", "modules_to_not_convert": ["lm_head"]})",
       kLinear + 2 * kRows + kRest},
      {R"({"quant_method": "quanto", "weights": "int4"})", kLinear / 2 + kLinear / 128 * 4 + kRest},
      {R"({"quant_method": "bitnet"})", kLinear / 4 + 7 * 2 + kRest},
      {R"({"quant_method": "bitnet", "quantization_mode": "online"})", 2 * kLinear + kRest},
      {R"({"quant_method": "torchao", "quant_type": {"default": {"_type": "Int8WeightOnlyConfig", "_data": {}}}})",
       kLinear + 5 * kRows + kRest},
      {R"({"quant_method": "torchao", "quant_type": {"default": {"_type": "FqnToConfig", "_data": {
             "fqn_to_config": {"_default": {"_type": "Float8WeightOnlyConfig", "_data": {}},
                               "model.layers.0.mlp.down_proj": null,
                               "re:.*self_attn.q_proj": {"_type": "Int4WeightOnlyConfig",
                                                         "_data": {"group_size": 128}}}}}}})",
       256 * 256 / 2 + 256 * 256 / 128 * 4 + 2 * 640 * 256 + (kLinear - 256 * 256 - 640 * 256) +
           4 * (kRows - 256 - 256) + kRest},
      {R"({"quant_method": "torchao", "include_input_output_embeddings": true,
           "quant_type": {"default": {"_type": "Float8WeightOnlyConfig", "_data": {}}}})",
       kLinear + 4 * kRows + 2 * (kTable + 4 * 1000) + kNorms},
      // As torchao 0.18's config_to_dict writes them.
      {R"({"quant_method": "torchao", "quant_type": {"default": {"_type": "Int8WeightOnlyConfig", "_version": 2,
           "_data": {"group_size": null, "granularity": {"_type": "PerRow", "_version": 1, "_data": {"dim": -1}}}}}})",
       kLinear + 5 * kRows + kRest},
      {R"({"quant_method": "torchao", "quant_type": {"default": {"_type":
           "Float8DynamicActivationFloat8WeightConfig", "_version": 2, "_data": {"granularity": [
             {"_type": "PerRow", "_version": 1, "_data": {}}, {"_type": "PerRow", "_version": 1, "_data": {}}]}}}})",
       kLinear + 4 * kRows + kRest},
      {R"({"quant_method": "torchao", "quant_type": {"default": {"_type":
           "Float8DynamicActivationFloat8WeightConfig", "_version": 2, "_data": {"granularity": [
             {"_type": "PerTensor", "_data": {}}, {"_type": "PerTensor", "_data": {}}]}}}})",
       kLinear + 7 * 4 + kRest},
      {R"({"quant_method": "torchao", "quant_type": {"default": {"_type": "IntxWeightOnlyConfig", "_version": 2,
           "_data": {"weight_dtype": {"_type": "torch.dtype", "_data": "int4"}, "granularity":
             {"_type": "PerGroup", "_version": 1, "_data": {"group_size": 32}},
             "intx_packing_format": {"_type": "IntxPackingFormat", "_data": "UNPACKED_TO_INT8"}}}}})",
       kLinear + kLinear / 32 * 3 + kRest},
      {R"({"quant_method": "torchao", "quant_type": {"default": {"_type": "Int4WeightOnlyConfig", "_version": 2,
           "_data": {"group_size": 32, "int4_packing_format": {"_type": "Int4PackingFormat", "_data": "PLAIN"}}}}})",
       kLinear / 2 + kLinear / 32 * 4 + kRest},
      {R"({"quant_method": "hqq", "quant_config": {"weight_quant_params": {"nbits": 3, "group_size": 64}}})",
       // Ten groups of 64 weights in 64 int32, the last units whole.
       4 * 103 * 256 + 3 * 256 * 256 + kLinear / 64 * 4 + kRest},
      {R"({"quant_method": "hqq", "skip_modules": ["lm_head"], "quant_config": {
             "self_attn.q_proj": {"weight_quant_params": {"nbits": 8, "group_size": 64}}}})",
       256 * 256 + 256 * 256 / 64 * 4 + 2 * (kLinear - 256 * 256) + kRest},
      {R"({"quant_method": "aqlm", "in_group_size": 8, "out_group_size": 1, "num_codebooks": 1,
           "nbits_per_codebook": 16, "linear_weights_not_to_quantize": ["model.embed_tokens.weight",
           "lm_head.weight"]})",
       kLinear / 8 * 2 + 2 * kRows + 7LL * 65536 * 8 * 2 + kRest},
      {R"({"quant_method": "aqlm", "in_group_size": 8, "num_codebooks": 2, "nbits_per_codebook": 8})",
       kLinear / 8 * 2 + 2 * kRows + 7LL * 2 * 256 * 8 * 2 + kRest},
      {R"({"quant_method": "higgs", "bits": 4, "group_size": 256, "p": 2})",
       kLinear / 2 + (4 * 256 + 640 + 640 + 256 * 3) * 2 + 7 * 2 * (16 + 512) + kRest +
           256 * (768 - 640) / 2},
      {R"({"quant_method": "quark", "global_quant_config": {"weight": {"dtype": "fp8_e4m3",
             "qscheme": "per_channel"}}, "exclude": ["lm_head"]})",
       kLinear + 4 * kRows + kRest},
  };
  for (const Layout& layout : all) {
    const Model model = small("quantization_config", layout.config);
    EXPECT_EQ(stored_bytes(model), layout.bytes) << layout.config;
    EXPECT_FALSE(model.approximate) << layout.config;
  }
}

// compressed-tensors' compressors: scales have the model's type.
TEST(QuantisedBytes, OfCompressedTensors) {
  struct Case {
    const char* format;
    const char* weights;
    std::int64_t bytes;
  };
  const std::vector<Case> all = {
      {"pack-quantized", R"("num_bits": 4, "type": "int", "strategy": "group", "group_size": 128)",
       kLinear / 2 + kLinear / 128 * 2},
      {"pack-quantized",
       R"("num_bits": 4, "type": "int", "strategy": "group", "group_size": 128, "symmetric": false)",
       kLinear / 2 + kLinear / 128 * 2 + kLinear / 128 / 2},
      {"pack-quantized", R"("num_bits": 8, "type": "int", "strategy": "channel")", kLinear + 2 * kRows},
      {"int-quantized", R"("num_bits": 4, "type": "int", "strategy": "group", "group_size": 128)",
       kLinear + kLinear / 128 * 2},
      {"int-quantized", R"("num_bits": 8, "type": "int", "strategy": "channel")", kLinear + 2 * kRows},
      {"int-quantized", R"("num_bits": 4, "type": "int", "strategy": "channel", "symmetric": false)",
       kLinear + 3 * kRows},
      {"naive-quantized", R"("num_bits": 4, "type": "int", "strategy": "tensor")", kLinear + 7 * 2},
      {"float-quantized", R"("num_bits": 8, "type": "float", "strategy": "tensor")", kLinear + 7 * 2},
      {"float-quantized", R"("num_bits": 8, "type": "float", "strategy": "channel")", kLinear + 2 * kRows},
      {"float-quantized",
       R"("num_bits": 8, "type": "float", "strategy": "block", "block_structure": [128, 128])",
       kLinear + 2 * kLinear / 16384},
      {"nvfp4-pack-quantized",
       R"("num_bits": 4, "type": "float", "strategy": "tensor_group", "group_size": 16)",
       kLinear / 2 + kLinear / 16 + 7 * 4},
      {"mxfp4-pack-quantized", R"("num_bits": 4, "type": "float", "strategy": "group", "group_size": 32)",
       kLinear / 2 + kLinear / 32},
      {"mxfp6-pack-quantized", R"("num_bits": 6, "type": "float", "strategy": "group", "group_size": 32)",
       kLinear / 4 * 3 + kLinear / 32},
      {"mxfp8-quantized", R"("num_bits": 8, "type": "float", "strategy": "group", "group_size": 32)",
       kLinear + kLinear / 32},
      {"marlin-24", R"("num_bits": 4, "type": "int", "strategy": "group", "group_size": 128)",
       kLinear / 8 * 3 + kLinear / 128 * 2},
      {"marlin-24", R"("num_bits": 8, "type": "int", "strategy": "channel")", kLinear / 8 * 5 + 2 * kRows},
  };
  for (const Case& c : all) {
    const std::string config = fmt::format(
        R"({{"quant_method": "compressed-tensors", "format": "{}", "ignore": ["lm_head"], "version": "0.20.1",
             "quantization_status": "compressed", "sparsity_config": {{}}, "transform_config": {{}},
             "config_groups": {{"group_0": {{"targets": ["Linear"], "weights": {{{}}}}}}}}})",
        c.format, c.weights);
    const Model model = small("quantization_config", config);
    EXPECT_EQ(stored_bytes(model), c.bytes + kRest) << config;
    EXPECT_FALSE(model.approximate) << config;
  }
  // Without a format: integers with integer activations lie one a byte, others are packed.
  const char* const kGroups =
      R"({{"quant_method": "compressed-tensors", "config_groups": {{"g": {{"targets": ["Linear"],
           "input_activations": {}, "weights": {{"num_bits": 4, "type": "int", "strategy": "group",
           "group_size": 128}}}}}}}})";
  EXPECT_EQ(stored_bytes(small("quantization_config", fmt::format(fmt::runtime(kGroups), "null"))),
            kLinear / 2 + kLinear / 128 * 2 + kRest);
  EXPECT_EQ(stored_bytes(small("quantization_config",
                               fmt::format(fmt::runtime(kGroups), R"({"num_bits": 8, "type": "int"})"))),
            kLinear + kLinear / 128 * 2 + kRest);
  // A group in the order of the activations' sizes has an int32 an input.
  for (const char* order :
       {R"("group")", R"("dynamic")", "true", R"("weight")", R"("static")", "false", "null"}) {
    const std::string config = fmt::format(
        R"({{"quant_method": "compressed-tensors", "format": "pack-quantized", "config_groups": {{"g": {{
             "targets": ["Linear"], "weights": {{"num_bits": 4, "type": "int", "strategy": "group",
             "group_size": 128, "actorder": {}}}}}}}}})",
        order);
    const bool index = std::string(order) == R"("group")" || std::string(order) == R"("dynamic")" ||
                       std::string(order) == "true";
    EXPECT_EQ(stored_bytes(small("quantization_config", config)),
              kLinear / 2 + kLinear / 128 * 2 + (index ? 4 * kColumns : 0) + kRest)
        << config;
  }
  // Presets: a name for the settings, and the targets alone.
  for (const Layout& layout : std::vector<Layout>{
           {R"("W4A16": ["Linear"])", kLinear / 2 + kLinear / 128 * 2},
           {R"("W4A16_ASYM": ["Linear"])", kLinear / 2 + kLinear / 128 * 2 + kLinear / 128 / 2},
           {R"("W8A16": ["Linear"])", kLinear + kLinear / 128 * 2},
           {R"("W4A8": ["Linear"])", kLinear + kLinear / 128 * 2},
           {R"("MXFP6A16": ["Linear"])", kLinear / 4 * 3 + kLinear / 32},
           {R"("W8A8": ["Linear"])", kLinear + 2 * kRows},
           {R"("FP8": ["Linear"])", kLinear + 7 * 2},
           {R"("FP8_DYNAMIC": ["Linear"])", kLinear + 2 * kRows},
           {R"("FP8_BLOCK": ["Linear"])", kLinear + 2 * kLinear / 16384},
           {R"("NVFP4": ["Linear"])", kLinear / 2 + kLinear / 16 + 7 * 4},
           {R"("MXFP4": ["Linear"])", kLinear / 2 + kLinear / 32},
           {R"("W8A8": ["Linear"], "UNQUANTIZED": ["re:.*q_proj"])", kLinear + 65536 + 2 * (kRows - 256)}}) {
    const Model model = small("quantization_config", fmt::format(R"({{"quant_method": "compressed-tensors",
        "config_groups": {{{}}}}})",
                                                                 layout.config));
    EXPECT_EQ(stored_bytes(model), layout.bytes + kRest) << layout.config;
    EXPECT_FALSE(model.approximate) << layout.config;
  }
  // 2:4 sparse, a bit a weight for where the half stand that is stored.
  EXPECT_EQ(stored_bytes(small("quantization_config", R"({"quant_method": "compressed-tensors",
      "sparsity_config": {"format": "sparse-24-bitmask", "ignore": ["lm_head"]}})")),
            kLinear + kLinear / 8 + kRest);
  EXPECT_EQ(stored_bytes(small("quantization_config", R"({"quant_method": "compressed-tensors",
      "format": "float-quantized", "sparsity_config": {"format": "sparse-24-bitmask"},
      "config_groups": {"g": {"targets": ["Linear"],
        "weights": {"num_bits": 8, "type": "float", "strategy": "channel"}}}})")),
            kLinear / 2 + kLinear / 8 + 2 * kRows + kRest);
}

// mlx-lm writes "quantization", and the same as "quantization_config".
TEST(QuantisedBytes, OfMlx) {
  constexpr std::int64_t kAll = kLinear + 2 * kTable;
  for (const char* key : {"quantization", "quantization_config"}) {
    EXPECT_EQ(stored_bytes(small(key, R"({"group_size": 64, "bits": 4})")),
              kAll / 2 + kAll / 64 * 4 + kNorms);
    EXPECT_EQ(stored_bytes(small(key, R"({"group_size": 32, "bits": 4, "mode": "mxfp4"})")),
              kAll / 2 + kAll / 32 + kNorms);
    EXPECT_EQ(stored_bytes(small(key, R"({"group_size": 16, "bits": 4, "mode": "nvfp4"})")),
              kAll / 2 + kAll / 16 + kNorms);
    EXPECT_EQ(stored_bytes(small(key, R"({"group_size": 32, "bits": 8, "mode": "mxfp8"})")),
              kAll + kAll / 32 + kNorms);
    EXPECT_EQ(stored_bytes(small(key, R"({"group_size": 64, "bits": 4, "mode": "affine",
                  "lm_head": {"group_size": 64, "bits": 6}, "model.embed_tokens": false,
                  "model.layers.0.self_attn.q_proj": {"group_size": 32, "bits": 8}})")),
              (kLinear - 65536) / 2 + (kLinear - 65536) / 64 * 4 + 65536 + 65536 / 32 * 4 + kTable * 6 / 8 +
                  kTable / 64 * 4 + 2 * kTable + kNorms);
  }
  // What an exception leaves out has affine's settings, whatever the rest's mode; `true` is as the rest.
  EXPECT_EQ(stored_bytes(small("quantization", R"({"group_size": 32, "bits": 4, "mode": "mxfp4",
                "lm_head": {"group_size": 64, "bits": 8}, "model.embed_tokens": {"bits": 8},
                "model.layers.0.self_attn.q_proj": {}, "model.layers.0.self_attn.k_proj": true})")),
            (kLinear - 65536) / 2 + (kLinear - 65536) / 32 + 65536 / 2 + 65536 / 64 * 4 +
                2 * (kTable + kTable / 64 * 4) + kNorms);
  // Rows that are no whole groups stay: 640 is 2.5 groups of 256.
  EXPECT_EQ(stored_bytes(small("quantization", R"({"group_size": 256, "bits": 4})")),
            (kAll - 640 * 256) / 2 + (kAll - 640 * 256) / 256 * 4 + 2 * 640 * 256 + kNorms);
  // What mlx wrote counts, whatever the model it was made from said.
  const Model both =
      model_from_config(json::parse("{" + kSmall + R"(, "quantization": {"group_size": 64, "bits": 8},
                  "quantization_config": {"quant_method": "fp8"}})",
                                    "x.json"),
                        "x");
  EXPECT_EQ(stored_bytes(both), kAll + kAll / 64 * 4 + kNorms);
}

// Before quantization_config there were keys at the top level.
TEST(QuantisedBytes, OfKeysAtTheTopLevel) {
  const auto with = [](const std::string& keys) {
    return model_from_config(json::parse("{" + kSmall + ", " + keys + "}", "x.json"), "x");
  };
  for (const Layout& layout : std::vector<Layout>{
           {R"("wbits": 8, "groupsize": 128)", kLinear + kLinear / 128 * 2 + kLinear / 128 + kRest},
           {R"("wbits": 4, "groupsize": 64)", kLinear / 2 + kLinear / 64 * 2 + kLinear / 64 / 2 + kRest},
           {R"("wbits": 16, "groupsize": -1)", 2 * kLinear + kRest},
           {R"("quantization_bit": 4)", kLinear / 2 + 2 * kRows + kRest},
           {R"("quantization_bit": 8)", kLinear + 2 * kRows + kRest},
           {R"("quantization_bit": 0)", 2 * kLinear + kRest},
           {R"("bits": 16, "use_fp8": false, "weight_dtype": "bfloat16")", 2 * kLinear + kRest},
       }) {
    const Model model = with(layout.config);
    EXPECT_EQ(stored_bytes(model), layout.bytes) << layout.config;
    EXPECT_FALSE(model.approximate) << layout.config;
  }
  for (const char* keys :
       {R"("bits": 4, "group_size": 128)", R"("w_bit": 4)", R"("weight_bits": 8)", R"("load_in_4bit": true)",
        R"("load_in_8bit": true)", R"("quant_method": "awq")", R"("quant_config": {"bits": 4})",
        R"("bnb_config": {"load_in_4bit": true})", R"("hqq_config": {"nbits": 4})",
        R"("weight_dtype": "int4")", R"("weight_dtype": "fp8")", R"("use_fp8": true)"}) {
    const Model model = with(keys);
    EXPECT_TRUE(model.approximate) << keys;
    ASSERT_FALSE(model.warnings.empty()) << keys;
    const std::string said = fmt::format("{}", fmt::join(model.warnings, "\n"));
    EXPECT_NE(said.find("tells of quantised weights"), std::string::npos) << keys << ": " << said;
  }
  EXPECT_EQ(error_of([&] { with(R"("quantization_bit": 3)"); }).rfind("x.json:", 0), 0U);
}

// What is not understood and says something is named, and makes the model approximate.
TEST(QuantisedBytes, DoubtsAreSaid) {
  struct Case {
    const char* config;
    const char* word;
  };
  for (const Case& c : std::vector<Case>{
           {R"({"quant_method": "fp8", "modules_to_convert": ["embed_tokens"]})", "modules_to_convert"},
           {R"({"quant_method": "awq", "bits": 4, "rank_of_residual": 16})", "rank_of_residual"},
           {R"({"quant_method": "gptq", "bits": 4, "checkpoint_format": "bitblas"})", "bitblas"},
           {R"({"quant_method": "compressed-tensors", "config_groups": {"g": {"targets": ["MyLinear"],
                "weights": {"num_bits": 8, "type": "float", "strategy": "channel"}}}})",
            "MyLinear"},
           {R"({"quant_method": "compressed-tensors", "config_groups": {"g": {"targets": ["re:.*wq_b"],
                "weights": {"num_bits": 8, "type": "float", "strategy": "channel"}}}})",
            "does not have"},
           {R"({"quant_method": "hqq", "quant_config": {"scale_quant_params": {"nbits": 8},
                "weight_quant_params": {"nbits": 4, "group_size": 64}}})",
            "in their turn"}}) {
    const Model model = small("quantization_config", c.config);
    EXPECT_TRUE(model.approximate) << c.config;
    ASSERT_FALSE(model.warnings.empty()) << c.config;
    EXPECT_NE(fmt::format("{}", fmt::join(model.warnings, "\n")).find(c.word), std::string::npos) << c.config;
  }
  // Of calibration and kernels, or null.
  const Model known = small("quantization_config", R"({"quant_method": "gptq", "bits": 4, "group_size": 128,
      "damp_percent": 0.01, "static_groups": false, "sym": true, "true_sequential": true, "dataset": null,
      "model_seqlen": 2048, "quantizer": ["optimum:1.2"], "meta": {"v2": true}, "act_bits": 16, "new_key": null})");
  EXPECT_FALSE(known.approximate);
  EXPECT_TRUE(known.warnings.empty());
}

}  // namespace
}  // namespace memwall
