#include "huggingface/quantization.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <string>
#include <vector>

#include "huggingface/read_config.h"
#include "paths.h"
#include "tests/support.h"

namespace memwall {
namespace {

using ::testing::Test;

const std::string kDense =
    R"("model_type": "llama", "hidden_size": 256, "intermediate_size": 512, "num_hidden_layers": 4,
       "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 1000, "torch_dtype": "bfloat16")";
const std::string kMoe =
    R"("model_type": "qwen2_moe", "hidden_size": 256, "intermediate_size": 512, "num_hidden_layers": 4,
       "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 1000, "num_experts": 8,
       "num_experts_per_tok": 2, "moe_intermediate_size": 128, "shared_expert_intermediate_size": 128,
       "decoder_sparse_step": 1, "torch_dtype": "bfloat16")";

Model load(const std::string& base, const std::string& quantization) {
  return model_from_config(
      json::parse("{" + base + ", \"quantization_config\": " + quantization + "}", "x.json"), "x");
}

Model dense(const std::string& quantization) { return load(kDense, quantization); }
Model moe(const std::string& quantization) { return load(kMoe, quantization); }

// The format of a tensor in a layer (-1: before or behind the layers).
std::string format_of(const Model& model, const std::string& tensor, std::int32_t layer = 0) {
  for (const Block& block : model.blocks) {
    const bool in = std::find(block.layers.begin(), block.layers.end(), layer) != block.layers.end();
    if (block.layers.empty() ? layer >= 0 : !in) continue;
    if (const Tensor* found = block.find(tensor)) return format_name(found->format);
  }
  return "no such tensor";
}

std::string head_of(const Model& model) { return format_of(model, "lm_head", -1); }

TEST(Quantization, LeavesModelsWithoutOne) {
  const Model model = model_from_config(json::parse("{" + kDense + "}", "x.json"), "x");
  EXPECT_EQ(format_name(model.weights), "bf16");
  EXPECT_EQ(format_of(model, "q_proj"), "bf16");
  const Model null = dense("null");
  EXPECT_EQ(null.blocks, model.blocks);
}

TEST(Quantization, LeavesTablesNormsAndRouters) {
  const Model model = moe(R"({"quant_method": "fp8", "weight_block_size": [128, 128]})");
  for (const char* name :
       {"q_proj", "o_proj", "experts.gate_proj", "experts.down_proj", "shared_expert.up_proj"})
    EXPECT_EQ(format_of(model, name), "f8_e4m3-b128") << name;
  for (const char* name : {"router", "shared_expert.gate", "attn_norm", "q_proj.bias"})
    EXPECT_EQ(format_of(model, name), "bf16") << name;
  EXPECT_EQ(head_of(model), "bf16");
  EXPECT_EQ(format_of(model, "embed_tokens", -1), "bf16");
  EXPECT_EQ(format_name(model.weights), "f8_e4m3-b128");
  EXPECT_EQ(format_name(model.head), "bf16");
  EXPECT_EQ(kv_format_name(model.kv), "bf16");
}

struct Case {
  const char* config;
  const char* format;
};

TEST(Quantization, FormatsByMethod) {
  const std::vector<Case> cases = {
      {R"({"quant_method": "fp8"})", "f8_e4m3"},
      {R"({"quant_method": "fp8", "weight_block_size": null})", "f8_e4m3"},
      {R"({"quant_method": "fp8", "weight_block_size": [128, 128], "scale_fmt": "ue8m0"})",
       "f8_e4m3-b128-e8"},
      {R"({"quant_method": "fbgemm_fp8", "activation_scale_ub": 1200.0})", "f8_e4m3-c"},
      {R"({"quant_method": "gptq", "bits": 4, "group_size": 128, "sym": true})", "int4-g128-zp"},
      {R"({"quant_method": "gptq", "bits": 3, "group_size": 64, "sym": false})", "int3-g64-zp"},
      {R"({"quant_method": "gptq", "bits": 8, "group_size": -1})", "int8-c-zp"},
      {R"({"bits": 2, "group_size": 32, "desc_act": true})", "int2-g32-zp"},
      {R"({"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": true})", "int4-g128-zp"},
      {R"({"w_bit": 4, "q_group_size": 64, "zero_point": false})", "int4-g64"},
      {R"({"quant_method": "auto-round", "bits": 2, "group_size": 64, "sym": false})", "int2-g64-zp"},
      {R"({"quant_method": "auto-round", "bits": 4, "data_type": "mx_fp"})", "mxfp4"},
      {R"({"quant_method": "bitsandbytes", "load_in_8bit": true})", "int8-c"},
      {R"({"quant_method": "bitsandbytes", "load_in_4bit": true, "bnb_4bit_quant_type": "fp4"})", "nf4"},
      {R"({"load_in_4bit": true, "bnb_4bit_use_double_quant": true})", "nf4-dq"},
      {R"({"quant_method": "hqq", "quant_config": {"weight_quant_params": {"nbits": 4, "group_size": 64}}})",
       "int4-g64-zp16"},
      {R"({"quant_method": "eetq", "weights": "int8"})", "int8-c"},
      {R"({"quant_method": "aqlm", "nbits_per_codebook": 16, "in_group_size": 8})", "int2-c"},
      {R"({"quant_method": "higgs", "bits": 3, "group_size": 256})", "int3-g256"},
      {R"({"quant_method": "fp_quant", "forward_dtype": "mxfp4"})", "mxfp4"},
      {R"({"quant_method": "fouroversix"})", "nvfp4"},
      {R"({"quant_method": "metal", "bits": 8, "group_size": 32})", "int8-g32-zp16"},
      {R"({"quant_method": "quanto", "weights": "int4"})", "int4-g128-zp16"},
      {R"({"quant_method": "quanto", "weights": "float8"})", "f8_e4m3-c"},
      {R"({"quant_method": "torchao", "quant_type": "int4_weight_only",
             "quant_type_kwargs": {"group_size": 32}})",
       "int4-g32-zp16"},
      {R"({"quant_method": "torchao", "quant_type": {"default": {
             "_type": "Int8WeightOnlyConfig", "_data": {}}}})",
       "int8-c"},
      {R"({"quant_method": "torchao", "quant_type": {"default": {
             "_type": "Float8DynamicActivationFloat8WeightConfig",
             "_data": {"granularity": {"_type": "PerRow"}}}}})",
       "f8_e4m3-c"},
      {R"({"quant_method": "bitnet"})", "int2-c"},
      {R"({"quant_method": "modelopt", "quant_algo": "FP8"})", "f8_e4m3"},
      {R"({"quant_algo": "NVFP4", "group_size": 16})", "nvfp4"},
      {R"({"quant_method": "modelopt", "quant_algo": "W4A8_AWQ"})", "int4-g128"},
      {R"({"quant_method": "modelopt", "quant_algo": "MXFP8"})", "mxfp8"},
      {R"({"quant_method": "quark", "global_quant_config": {"weight": {"dtype": "fp4", "qscheme": "per_group",
             "group_size": 32}}})",
       "mxfp4"},
      {R"({"quant_method": "quark", "global_quant_config": {"weight": {"dtype": "uint4",
             "qscheme": "per_group", "group_size": 128}}})",
       "int4-g128-zp"},
  };
  for (const Case& c : cases) {
    const Model model = dense(c.config);
    EXPECT_EQ(format_of(model, "q_proj"), c.format) << c.config;
    EXPECT_EQ(format_of(model, "down_proj", 3), c.format) << c.config;
    EXPECT_EQ(format_name(model.weights), c.format) << c.config;
    EXPECT_EQ(head_of(model), "bf16") << c.config;
    EXPECT_EQ(model.blocks.size(), 4U) << c.config;
  }
}

TEST(Quantization, CompressedTensors) {
  const std::vector<Case> cases = {
      {R"("num_bits": 4, "type": "int", "strategy": "group", "group_size": 32, "symmetric": true)",
       "int4-g32"},
      {R"("num_bits": 4, "type": "int", "strategy": "group", "group_size": 128, "symmetric": false)",
       "int4-g128-zp"},
      {R"("num_bits": 4, "type": "int", "strategy": "channel")", "int4-c"},
      {R"("num_bits": 8, "type": "int", "strategy": "channel", "group_size": null)", "int8-c"},
      {R"("num_bits": 8, "type": "int", "strategy": "group", "group_size": 128)", "int8-g128"},
      {R"("num_bits": 8, "type": "float", "strategy": "channel")", "f8_e4m3-c"},
      {R"("num_bits": 8, "type": "float", "strategy": "tensor")", "f8_e4m3"},
      {R"("num_bits": 8, "type": "float", "strategy": "block", "block_structure": [128, 128])",
       "f8_e4m3-b128"},
      {R"("num_bits": 8, "type": "float", "strategy": "group", "group_size": 32)", "mxfp8"},
      {R"("num_bits": 4, "type": "float", "strategy": "tensor_group", "group_size": 16)", "nvfp4"},
      {R"("num_bits": 4, "type": "float", "strategy": "group", "group_size": 32)", "mxfp4"},
  };
  for (const Case& c : cases) {
    const Model model = dense(fmt::format(R"({{"quant_method": "compressed-tensors", "ignore": ["lm_head"],
        "config_groups": {{"group_0": {{"targets": ["Linear"], "weights": {{{}}}}}}}}})",
                                          c.config));
    EXPECT_EQ(format_of(model, "gate_proj"), c.format) << c.config;
    EXPECT_EQ(head_of(model), "bf16");
  }
}

TEST(Quantization, GroupsByNameOverruleClasses) {
  const Model model = moe(R"({"quant_method": "compressed-tensors",
    "kv_cache_scheme": {"num_bits": 8, "type": "float"},
    "config_groups": {
      "named": {"targets": ["re:.*(gate|up)_proj$", "model.layers.2.self_attn.q_proj", "lm_head"],
                "weights": {"num_bits": 4, "type": "float", "strategy": "tensor_group", "group_size": 16}},
      "rest": {"targets": ["Linear"], "weights": {"num_bits": 8, "type": "float", "strategy": "channel"}}},
    "ignore": ["re:.*mlp.gate$", "re:.*shared_expert.*", "model.layers.1.self_attn.o_proj"]})");
  EXPECT_EQ(format_of(model, "experts.up_proj"), "nvfp4");
  EXPECT_EQ(format_of(model, "experts.down_proj"), "f8_e4m3-c");
  EXPECT_EQ(format_of(model, "shared_expert.up_proj"), "bf16");
  EXPECT_EQ(format_of(model, "router"), "bf16");
  EXPECT_EQ(format_of(model, "q_proj", 1), "f8_e4m3-c");
  EXPECT_EQ(format_of(model, "q_proj", 2), "nvfp4");
  EXPECT_EQ(format_of(model, "o_proj", 1), "bf16");
  EXPECT_EQ(format_of(model, "o_proj", 2), "f8_e4m3-c");
  EXPECT_EQ(head_of(model), "nvfp4");
  EXPECT_EQ(format_name(model.head), "nvfp4");
  EXPECT_EQ(kv_format_name(model.kv), "f8_e4m3");
}

TEST(Quantization, SplitsBlocksWhereLayersDiffer) {
  const Model model = dense(R"({"quant_method": "fp8", "modules_to_not_convert": [
      "model.layers.1.self_attn", "model.layers.3.mlp.down_proj", "model.layers.1.mlp.down_proj",
      "lm_head"]})");
  std::vector<std::pair<BlockKind, std::vector<std::int32_t>>> blocks;
  for (const Block& block : model.blocks) blocks.emplace_back(block.kind, block.layers);
  const std::vector<std::pair<BlockKind, std::vector<std::int32_t>>> expected = {
      {BlockKind::embedding, {}}, {BlockKind::attention, {0, 2, 3}}, {BlockKind::attention, {1}},
      {BlockKind::mlp, {0, 2}},   {BlockKind::mlp, {1, 3}},          {BlockKind::head, {}},
  };
  EXPECT_EQ(blocks, expected);
  EXPECT_EQ(format_of(model, "q_proj", 0), "f8_e4m3");
  EXPECT_EQ(format_of(model, "q_proj", 1), "bf16");
  EXPECT_EQ(format_of(model, "down_proj", 3), "bf16");
  EXPECT_EQ(format_of(model, "gate_proj", 3), "f8_e4m3");
  const Model plain = model_from_config(json::parse("{" + kDense + "}", "x.json"), "x");
  EXPECT_EQ(count_parameters(model).total, count_parameters(plain).total);
}

TEST(Quantization, ListsNameModulesInManyWays) {
  struct Listed {
    const char* name;
    const char* tensor;
    bool kept;
  };
  const std::vector<Listed> all = {
      {"model.layers.0.self_attn.q_proj", "q_proj", true},
      {"layers.0.self_attn", "q_proj", true},
      {"model.layers.0", "q_proj", true},
      {"model.layers.00.x", "q_proj", false},
      {"model.language_model.layers.0.self_attn.q_proj.weight", "q_proj", true},
      {"language_model.model.layers.0.self_attn.q_proj", "q_proj", true},
      {"vision_model.model.layers.0.self_attn.q_proj", "q_proj", false},
      {"mtp.layers.0.self_attn.q_proj", "q_proj", false},
      {"model.layers.1.self_attn.q_proj", "q_proj", false},
      {"self_attn", "q_proj", true},
      {"self_attn.q", "q_proj", true},  // an alias
      {"q_proj", "q_proj", true},
      {"q_pro", "q_proj", false},
      {"linear_attn", "q_proj", false},
      {"*.self_attn.*", "q_proj", true},
      {"*self_attn", "q_proj", true},
      {"model.layers.*.self_attn", "q_proj", true},
      {"model.layers.0.self_attn*", "q_proj", true},
      {"model.layers.0*", "experts.up_proj", true},
      {"model.layers.0.*", "experts.up_proj", true},
      {"model.layers.1*", "experts.up_proj", false},
      {"backbone.layers.0.mlp.experts", "experts.up_proj", true},
      {"experts", "experts.up_proj", true},
      {"model.layers.0.mlp.experts.0.up_proj", "experts.up_proj", true},
      {"model.layers.0.mlp.experts.*.up_proj", "experts.up_proj", true},
      {"model.layers.0.mlp.experts.*.up_proj", "experts.down_proj", false},
      {"model.layers.0.block_sparse_moe.experts.0.w3", "experts.up_proj", true},
      {"mlp.shared_experts", "shared_expert.up_proj", true},
      {"gate", "experts.gate_proj", false},
      {"re:.*layers\\.[0-2]\\.self_attn", "q_proj", true},
      {"re:.*layers\\.[1-2]\\.self_attn", "q_proj", false},
      {"re:model.layers.0.mlp.experts.\\d+.up_proj$", "experts.up_proj", true},
      {"re:^(language_model.)?model.layers", "q_proj", true},
      {"re:self_attn", "q_proj", false},
      {"re:.*up_proj", "experts.up_proj", true},
  };
  for (const Listed& listed : all) {
    std::string name = listed.name;
    for (std::size_t at = 0; (at = name.find('\\', at)) != std::string::npos; at += 2) name.insert(at, "\\");
    const Model model =
        moe(fmt::format(R"({{"quant_method": "fp8", "modules_to_not_convert": ["{}"]}})", name));
    EXPECT_EQ(format_of(model, listed.tensor), listed.kept ? "bf16" : "f8_e4m3")
        << listed.name << " " << listed.tensor;
  }
}

TEST(Quantization, TheHeadIsQuantisedWhereTheConfigSaysSo) {
  EXPECT_EQ(head_of(dense(R"({"quant_method": "gptq", "bits": 4, "group_size": 128, "lm_head": true})")),
            "int4-g128-zp");
  EXPECT_EQ(head_of(dense(R"({"quant_method": "auto-round", "bits": 4, "group_size": 128,
                             "extra_config": {"lm_head": {"bits": 8}, "model.layers.0.self_attn.q_proj":
                             {"bits": 16}}})")),
            "int8-g128-zp");
  // A tied head is the embedding's table: no list can store it apart.
  const Model tied = load(kDense + R"(, "tie_word_embeddings": true)",
                          R"({"quant_method": "gptq", "bits": 4, "group_size": 128, "lm_head": true})");
  EXPECT_EQ(head_of(tied), "bf16");
}

TEST(Quantization, MlxQuantisesTablesToo) {
  const Model model = load(kMoe + R"(, "tie_word_embeddings": true)",
                           R"({"group_size": 64, "bits": 4, "model.layers.1.mlp.gate": {"bits": 8},
                               "model.layers.0.self_attn.q_proj": false})");
  EXPECT_EQ(format_of(model, "embed_tokens", -1), "int4-g64-zp16");
  EXPECT_EQ(head_of(model), "int4-g64-zp16");
  EXPECT_EQ(format_of(model, "router", 0), "int4-g64-zp16");
  EXPECT_EQ(format_of(model, "router", 1), "int8-g64-zp16");
  EXPECT_EQ(format_of(model, "q_proj", 0), "bf16");
  EXPECT_EQ(format_of(model, "q_proj", 1), "int4-g64-zp16");
  EXPECT_EQ(format_of(model, "attn_norm"), "bf16");
}

TEST(Quantization, Mxfp4IsTheExpertsAlone) {
  const Model model =
      moe(R"({"quant_method": "mxfp4", "modules_to_not_convert": ["model.layers.*.self_attn"]})");
  EXPECT_EQ(format_of(model, "experts.down_proj"), "mxfp4");
  EXPECT_EQ(format_of(model, "q_proj"), "bf16");
  EXPECT_EQ(format_of(model, "shared_expert.up_proj"), "bf16");
}

TEST(Quantization, MixedPrecisionByModule) {
  const Model model =
      moe(R"({"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION", "kv_cache_quant_algo": "FP8",
    "quantized_layers": {"model.layers.0.mlp.experts": {"quant_algo": "NVFP4", "group_size": 16},
                         "model.layers.0.self_attn.q_proj": {"quant_algo": "FP8"},
                         "lm_head": {"quant_algo": "FP8"}}})");
  EXPECT_EQ(format_of(model, "experts.up_proj", 0), "nvfp4");
  EXPECT_EQ(format_of(model, "experts.up_proj", 1), "bf16");
  EXPECT_EQ(format_of(model, "q_proj", 0), "f8_e4m3");
  EXPECT_EQ(head_of(model), "f8_e4m3");
  EXPECT_EQ(kv_format_name(model.kv), "f8_e4m3");
}

TEST(Quantization, GptqMakesExceptions) {
  const Model model = dense(R"({"quant_method": "gptq", "bits": 4, "group_size": 128, "dynamic": {
      "-:.*\\.layers\\.1\\..*": {}, "+:.*\\.layers\\.2\\..*down.*": {"bits": 8, "group_size": 32}}})");
  EXPECT_EQ(format_of(model, "down_proj", 0), "int4-g128-zp");
  EXPECT_EQ(format_of(model, "down_proj", 1), "bf16");
  EXPECT_EQ(format_of(model, "down_proj", 2), "int8-g32-zp");
  const Model some = dense(R"({"quant_method": "gptq", "bits": 4, "group_size": 128,
      "modules_in_block_to_quantize": [["self_attn.q_proj"], ["mlp.down_proj"]]})");
  EXPECT_EQ(format_of(some, "q_proj"), "int4-g128-zp");
  EXPECT_EQ(format_of(some, "k_proj"), "bf16");
}

TEST(Quantization, FromAFileBesideTheConfig) {
  Model model = model_from_config(json::parse("{" + kDense + "}", "x.json"), "x");
  apply_quantization(json::parse(R"({"producer": {"name": "modelopt"}, "quantization": {"quant_algo": "FP8",
                                    "kv_cache_quant_algo": "FP8", "exclude_modules": ["lm_head"]}})",
                                 "hf_quant_config.json"),
                     model);
  EXPECT_EQ(format_name(model.weights), "f8_e4m3");
  EXPECT_EQ(kv_format_name(model.kv), "f8_e4m3");
}

TEST(Quantization, SaysWhatItDoesNotKnow) {
  const auto error = [](const std::string& config) { return error_of([&] { dense(config); }); };
  EXPECT_NE(error(R"({"quant_method": "ptq9", "bits": 16})")
                .find("quant_method 'ptq9' is not supported; supported are fp8, fbgemm_fp8"),
            std::string::npos);
  EXPECT_NE(error("{}").find("no quant_method is stated"), std::string::npos);
  for (
      const char* config :
      {R"([4])",
       R"("fp8")",
       R"({"quant_method": 4})",
       R"({"quant_method": "gptq", "bits": 7})",
       R"({"quant_method": "gptq", "bits": 4, "group_size": 100})",
       R"({"quant_method": "fp8", "weight_block_size": [64]})",
       R"({"quant_method": "fp8", "weight_block_size": [0, 128]})",
       R"({"quant_method": "fp8", "weight_block_size": "128"})",
       R"({"quant_method": "fp8", "modules_to_not_convert": "lm_head"})",
       R"({"quant_method": "fp8", "modules_to_not_convert": [3]})",
       R"x({"quant_method": "fp8", "ignore": ["re:(?!x)"]})x",
       R"({"quant_method": "bitsandbytes"})",
       R"({"quant_method": "compressed-tensors"})",
       R"({"quant_method": "compressed-tensors", "config_groups": {"a": {"targets": ["Linear"],
               "weights": {"num_bits": 6, "type": "float"}}}})",
       R"({"quant_method": "compressed-tensors", "sparsity_config": {"format": "sparse-bitmask"},
               "config_groups": {}})",
       R"({"quant_method": "gptq", "bits": 4, "group_size": 0})",
       R"({"quant_method": "awq", "bits": 4, "group_size": 0})",
       R"({"quant_method": "fp8", "fmt": "zzz"})",
       R"({"quant_method": "bitsandbytes", "load_in_4bit": true, "bnb_4bit_quant_type": "zzz"})",
       R"({"quant_method": "compressed-tensors", "format": "foo", "config_groups": {}})",
       R"({"quant_method": "compressed-tensors", "config_groups": {"W9A16": ["Linear"]}})",
       R"({"quant_method": "compressed-tensors", "config_groups": {"W4A16": "Linear"}})",
       R"({"quant_method": "compressed-tensors", "config_groups": {"a": {"targets": ["Linear"],
               "weights": {"num_bits": 4, "type": "intt", "strategy": "group", "group_size": 128}}}})",
       R"({"quant_method": "compressed-tensors", "config_groups": {"a": {"targets": ["Linear"],
               "weights": {"num_bits": 4, "type": "int", "strategy": "group", "group_size": 128,
                           "actorder": "grop"}}}})",
       R"({"quant_method": "spqr", "bits": 3})",
       R"({"quant_method": "torchao", "quant_type": {"default": {"_type": "FPXWeightOnlyConfig", "_data": {}}}})",
       R"({"quant_method": "hqq", "quant_config": {"self_attn.q_proj": {"weight_quant_params": {"nbits": 1}}}})",
       R"({"quant_method": "auto-round", "bits": 4, "data_type": "int_asym_dq", "super_bits": 6})",
       R"({"quant_method": "modelopt", "quant_algo": "FP3"})",
       R"({"quant_method": "modelopt"})",
       R"({"quant_method": "quark"})",
       R"({"quant_method": "hqq"})",
       R"({"quant_method": "quanto", "weights": "int3"})",
       R"({"quant_method": "torchao"})"}) {
    EXPECT_EQ(error(config).rfind("x.json:", 0), 0U) << config << ": " << error(config);
  }
}

// A list that a hostile file fills: what takes too long is refused, the rest is quick.
TEST(Quantization, LongListsTakeLittleTime) {
  std::string wide = kDense;
  wide.replace(wide.find("\"num_hidden_layers\": 4"), 22, "\"num_hidden_layers\": 10000");
  for (const char* form : {"model.layers.{}.mlp.down_proj", "model.layers.{}.self_attn*", "*.{}.mlp.x", "x{}",
                           "re:.*(a+)+{}b"}) {
    std::string names;
    for (int i = 0; i < 100'000; ++i) {
      names += fmt::format("{}\"{}\"", i == 0 ? "" : ",", fmt::format(fmt::runtime(form), i));
    }
    const std::clock_t begin = std::clock();  // other tests may hold the processor meanwhile
    try {
      load(wide, R"({"quant_method": "fp8", "modules_to_not_convert": [)" + names + "]}");
    } catch (const InputError& error) {
      EXPECT_NE(std::string(error.what()).find("more patterns"), std::string::npos) << error.what();
    }
    const double took_s = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
    EXPECT_LT(took_s, 60) << form;  // far less where it is optimised
    RecordProperty(form, fmt::format("{:.2f} s", took_s));
  }
}

// Scales of `bytes` each of the tensors that have them for blocks or rows.
std::int64_t scales_of(const Model& model, std::int64_t bytes = 4) {
  std::int64_t scales = 0;
  for (const Block& block : model.blocks) {
    for (const Tensor& tensor : block.tensors) {
      const FormatKind kind = tensor.format.kind;
      if (kind != FormatKind::f8_e4m3_b128 && kind != FormatKind::f8_e4m3_channel) continue;
      scales += static_cast<std::int64_t>(block.layers.size()) * (tensor.bytes() - tensor.elements()) / bytes;
    }
  }
  return scales;
}

class RealQuantization : public Test {
 protected:
  Model config(const std::string& name) { return load_config((kFolder + "/configs/hf/" + name + ".json")); }
  void SetUp() override {
    if (!std::filesystem::exists(kFolder)) GTEST_SKIP() << kFolder << " is not here";
  }
  const std::string kFolder = MEMWALL_SOURCE_DIR "/../shared/data";
};

// What the checkpoints' safetensors hold above the parameters (configs/expected.csv has both totals).
TEST_F(RealQuantization, ScalesAreThoseOfTheCheckpoints) {
  // 228703644928 - 228689764864
  EXPECT_EQ(scales_of(config("MiniMaxAI__MiniMax-M2.7")), 13'880'064);
  // 108659340800 less the 16-bit checkpoint's 108641793536
  EXPECT_EQ(scales_of(config("RedHatAI__Llama-4-Scout-17B-16E-Instruct-FP8-dynamic"), 2), 17'547'264);
  // 1026470731056 - 1026408235864: of Kimi-K2-Base with and without its scales
  EXPECT_EQ(scales_of(config("moonshotai__Kimi-K2-Instruct")), 62'495'192);
  // 41555600 f32 values less 59 layers' 256 routing biases, less the multi-token-prediction layer's scales:
  // 11448 of its attention, 257 experts of 3 * 896.
  EXPECT_EQ(scales_of(config("deepseek-ai__DeepSeek-V3.1")), 41'555'600 - 59 * 256 - 11'448 - 257 * 3 * 896);
  // 753910024032 - 753864139008, less the same of its multi-token-prediction layer.
  EXPECT_EQ(scales_of(config("zai-org__GLM-5-FP8")),
            45'885'024 - 257 * 3 * 768 - (768 + 2048 + 240 + 896 + 6144 + 48 + 512));
}

// The metadata of the checkpoints' index files: total_size.
TEST_F(RealQuantization, BytesAreThoseOfTheCheckpoints) {
  EXPECT_EQ(stored_bytes(config("GPT_OSS_20B")), 13'761'264'768);
  EXPECT_EQ(stored_bytes(config("GPT_OSS_120B")), 65'248'815'744);
}

TEST_F(RealQuantization, ListsOfRealCheckpoints) {
  const Model qwen = config("nvidia__Qwen3.6-35B-A3B-NVFP4");
  EXPECT_EQ(head_of(qwen), "nvfp4");
  EXPECT_EQ(format_of(qwen, "experts.up_proj", 39), "nvfp4");
  EXPECT_EQ(format_of(qwen, "in_proj_qkv", 0), "f8_e4m3");
  EXPECT_EQ(format_of(qwen, "in_proj_a", 0), "bf16");
  EXPECT_EQ(format_of(qwen, "q_proj", 3), "f8_e4m3");
  const Model kimi = config("nvidia__Kimi-K2.6-NVFP4");
  EXPECT_EQ(format_of(kimi, "gate_proj", 0), "bf16");
  EXPECT_EQ(format_of(kimi, "experts.gate_proj", 60), "nvfp4");
  EXPECT_EQ(format_of(kimi, "shared_expert.gate_proj", 60), "bf16");
  EXPECT_EQ(format_of(kimi, "kv_b_proj", 5), "bf16");
  EXPECT_EQ(kv_format_name(kimi.kv), "f8_e4m3");
  const Model v4 = config("deepseek-ai__DeepSeek-V4-Flash");
  EXPECT_EQ(format_of(v4, "experts.up_proj", 5), "mxfp4");
  EXPECT_EQ(format_of(v4, "q_b_proj", 5), "f8_e4m3-b128-e8");
  EXPECT_EQ(format_of(v4, "attn_hc.fn", 5), "bf16");
  const Model red = config("RedHatAI__DeepSeek-V4-Flash-NVFP4-FP8");
  EXPECT_EQ(format_of(red, "shared_expert.up_proj", 5), "nvfp4");
  EXPECT_EQ(format_of(red, "kv_proj", 5), "f8_e4m3-b128");
  EXPECT_EQ(format_of(red, "compressor.kv_proj", 5), "bf16");
  const Model nemotron = config("nvidia__NVIDIA-Nemotron-3-Super-120B-A12B.levynoam");
  EXPECT_EQ(format_of(nemotron, "latent_in_proj", 1), "bf16");
  EXPECT_EQ(format_of(nemotron, "experts.up_proj", 1), "f8_e4m3");
  EXPECT_EQ(format_of(nemotron, "in_proj", 0), "f8_e4m3");
  const Model minicpm = config("openbmb__MiniCPM-V-4_6-AWQ");
  EXPECT_EQ(format_of(minicpm, "in_proj_b", 0), "bf16");
  EXPECT_EQ(format_of(minicpm, "in_proj_z", 0), "int4-g128-zp");
}

TEST_F(RealQuantization, FilesBesideConfigs) {
  Model llama = config("LLAMA3.1_70B");
  apply_quantization_file(kFolder + "/files/quant/nvidia--Llama-3.1-70B-Instruct-FP8_hf_quant_config.json",
                          llama);
  EXPECT_EQ(format_name(llama.weights), "f8_e4m3");
  EXPECT_EQ(format_name(llama.head), "bf16");
  EXPECT_EQ(kv_format_name(llama.kv), "f8_e4m3");
  Model qwen = config("QWEN3_235B");
  apply_quantization_file(kFolder + "/files/quant/nvidia--Qwen3-235B-A22B-NVFP4_hf_quant_config.json", qwen);
  EXPECT_EQ(format_of(qwen, "experts.up_proj", 93), "nvfp4");
  EXPECT_EQ(format_of(qwen, "router", 93), "bf16");
  Model gptq = config("LLAMA2_7B");
  apply_quantization_file(kFolder + "/files/quant/TheBloke__Llama-2-13B-chat-GPTQ_quantize_config.json",
                          gptq);
  EXPECT_EQ(format_name(gptq.weights), "int4-g128-zp");
}

TEST(Quantization, ALeftOutModelIsSaid) {
  const Model model = model_from_config(
      json::parse(
          R"({"model_type": "llama", "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2,
        "intermediate_size": 8, "vocab_size": 10, "torch_dtype": "bfloat16",
        "quantization_config": {"quant_method": "mxfp4"}})",
          "config.json"),
      "m");
  EXPECT_EQ(format_name(model.weights), "bf16");
  ASSERT_EQ(model.warnings.size(), 1U);
  EXPECT_NE(model.warnings[0].find("quantises no linear"), std::string::npos) << model.warnings[0];
}

}  // namespace
}  // namespace memwall
