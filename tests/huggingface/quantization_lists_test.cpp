// Which modules a list means: anchored as the methods' own libraries anchor them.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "huggingface/read_config.h"
#include "input/json.h"

namespace memwall {
namespace {

const std::string kSizes =
    R"("hidden_size": 256, "intermediate_size": 512, "num_hidden_layers": 2, "num_attention_heads": 4,
       "num_key_value_heads": 2, "vocab_size": 1000, "torch_dtype": "bfloat16")";

Model load(const std::string& keys, const std::string& quantization) {
  return model_from_config(
      json::parse("{" + keys + ", \"quantization_config\": " + quantization + "}", "x.json"), "x");
}

// The format of a tensor in layer 0, or outside the layers.
std::string format_of(const Model& model, const std::string& tensor) {
  for (const Block& block : model.blocks) {
    if (!block.layers.empty() && block.layers.front() != 0) continue;
    if (const Tensor* found = block.find(tensor)) return format_name(found->format);
  }
  return "no such tensor";
}

struct Listed {
  const char* name;
  const char* tensor;
  bool kept;
};

void expect_lists(const std::string& keys, const char* method, const std::vector<Listed>& all) {
  for (const Listed& listed : all) {
    std::string name = listed.name;
    for (std::size_t at = 0; (at = name.find('\\', at)) != std::string::npos; at += 2) name.insert(at, "\\");
    const Model model = load(keys, fmt::format(fmt::runtime(method), name));
    EXPECT_EQ(format_of(model, listed.tensor) == "bf16", listed.kept)
        << listed.name << " " << listed.tensor << " " << format_of(model, listed.tensor);
  }
}

// transformers' should_convert_module: the name's begin up to a dot, a regular expression from the begin, or
// the name's end.
TEST(QuantizationLists, AreAnchoredAsTransformersAnchorsThem) {
  expect_lists("\"model_type\": \"llama\", " + kSizes,
               R"({{"quant_method": "bitsandbytes", "load_in_4bit": true, "llm_int8_skip_modules": ["{}"]}})",
               {{"model.layers.0", "q_proj", true},
                {"model.layers.0.", "q_proj", true},
                {"model.layers.0.self_attn", "down_proj", false},
                {"model.layers", "q_proj", true},
                {"model", "q_proj", true},
                {"model", "lm_head", false},
                {"model.q_proj", "q_proj", false},
                {"model.down_proj", "down_proj", false},
                {"proj", "q_proj", true},
                {"lm_head", "lm_head", true},
                {"vision_tower", "lm_head", false},
                {".*self_attn", "q_proj", true},
                {"model\\.layers\\.\\d+\\.mlp", "down_proj", true},
                {"model\\.layers\\.[1-9]+\\.mlp", "down_proj", false}});
}

// allenai's Molmo and OLMo call the head as they call each MLP's second matrix.
TEST(QuantizationLists, ThePathOfTheHeadIsNotThatOfALayer) {
  expect_lists(R"("model_type": "molmo", "qkv_bias": true, )" + kSizes,
               R"({{"quant_method": "bitsandbytes", "load_in_4bit": true, "llm_int8_skip_modules": ["{}"]}})",
               {{"model.transformer.ff_out", "down_proj", false},
                {"model.transformer.ff_out", "lm_head", true},
                {"ff_out", "down_proj", true},
                {"model.transformer.blocks.0.ff_out", "down_proj", true},
                {"model.transformer.blocks.0.ff_out", "lm_head", false},
                {"model.vision_backbone", "down_proj", false}});
}

// compressed-tensors' re.match, on names that the model has: not on those of other families.
TEST(QuantizationLists, PatternsMeetTheModelsOwnNames) {
  const char* const kMethod =
      R"({{"quant_method": "compressed-tensors", "ignore": ["{}"], "config_groups": {{"g": {{"targets": ["Linear"],
           "weights": {{"num_bits": 8, "type": "float", "strategy": "channel"}}}}}}}})";
  expect_lists("\"model_type\": \"llama\", " + kSizes, kMethod,
               {{"re:b", "q_proj", false},
                {"re:backbone.*", "q_proj", false},
                {"re:t", "q_proj", false},
                {"re:language_model.*", "q_proj", false},
                {"re:m", "q_proj", true},
                {"re:model.layers.0", "q_proj", true},
                {"re:^(model.)?layers.0.mlp.down", "down_proj", true},
                {"re:.*down_proj$", "down_proj", true},
                {"re:.*down_proj$", "up_proj", false}});
  expect_lists(R"("model_type": "mistral3", "text_config": {"model_type": "mistral", )" + kSizes + "}",
               kMethod,
               {{"re:language_model.*", "q_proj", true},
                {"re:.*language_model.*", "q_proj", true},
                {"re:vision.*", "q_proj", false}});
}

// AutoAWQ's exclude_layers_to_not_quantize: whatever name holds the text, to the end of a component.
TEST(QuantizationLists, AreTextsInsideNamesForAwq) {
  expect_lists("\"model_type\": \"llama\", " + kSizes,
               R"({{"quant_method": "awq", "bits": 4, "group_size": 128, "modules_to_not_convert": ["{}"]}})",
               {{"layers.0.", "q_proj", true},
                {"model.layers.0.", "q_proj", true},
                {"model.layers.1.", "q_proj", false},
                {"down_proj", "down_proj", true},
                {"mlp.gate", "gate_proj", false},
                {"attn.q_proj", "q_proj", true},
                {"visual", "q_proj", false}});
}

// Published AWQ files of MoE models: the router's name is no expert's.
TEST(QuantizationLists, RoutersAreNotGates) {
  const std::string keys = R"("model_type": "qwen3_moe", "num_experts": 8, "num_experts_per_tok": 2,
      "moe_intermediate_size": 128, "head_dim": 64, )" +
                           kSizes;
  const Model model = load(keys, R"({"quant_method": "awq", "bits": 4, "group_size": 128,
      "modules_to_not_convert": ["mlp.gate", "self_attn", "lm_head", "model.layers.1."]})");
  EXPECT_EQ(format_of(model, "experts.gate_proj"), "int4-g128-zp");
  EXPECT_EQ(format_of(model, "q_proj"), "bf16");
  // MLX keeps a layer's experts in one module.
  const Model mlx = load(keys, R"({"group_size": 64, "bits": 4,
      "model.layers.0.mlp.switch_mlp.down_proj": {"group_size": 64, "bits": 8}})");
  EXPECT_EQ(format_of(mlx, "experts.down_proj"), "int8-g64-zp16");
  EXPECT_EQ(format_of(mlx, "experts.up_proj"), "int4-g64-zp16");
}

// Gemma 4's experts lie beside the dense MLP, as its router does.
TEST(QuantizationLists, Gemma4sExpertsAreNotInItsMlp) {
  const std::string keys =
      R"("model_type": "gemma4", "text_config": {"model_type": "gemma4_text", "enable_moe_block": true,
         "head_dim": 64, "global_head_dim": 64, "num_experts": 8, "top_k_experts": 2,
         "moe_intermediate_size": 128, "layer_types": ["sliding_attention", "full_attention"],
         "sliding_window": 128, "hidden_size_per_layer_input": 0, )" +
      kSizes + "}";
  const Model model = load(keys, R"({"quant_method": "modelopt", "quant_algo": "NVFP4", "ignore": ["lm_head",
      "model.language_model.layers.0.mlp*", "model.language_model.layers.0.router*",
      "model.language_model.layers.0.self_attn*"]})");
  EXPECT_EQ(format_of(model, "experts.up_proj"), "nvfp4");
  EXPECT_EQ(format_of(model, "down_proj"), "bf16");
  EXPECT_EQ(format_of(model, "router"), "bf16");
  EXPECT_EQ(format_of(model, "q_proj"), "bf16");
}

// ModelOpt on an fp8 checkpoint: what its list leaves out stays fp8 (DeepSeek-V4 with its experts in NVFP4).
TEST(QuantizationLists, ModelOptOverFp8LeavesFp8) {
  const std::string keys =
      R"("model_type": "deepseek_v3", "n_routed_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 128,
         "n_shared_experts": 1, "first_k_dense_replace": 0, "q_lora_rank": 128, "kv_lora_rank": 128,
         "qk_nope_head_dim": 64, "qk_rope_head_dim": 64, "v_head_dim": 64, )" +
      kSizes;
  for (const char* settings :
       {R"("quantized_layers": {"model.layers.0.mlp.experts": {"quant_algo": "NVFP4", "group_size": 16},
                                "model.layers.1.mlp.experts": {"quant_algo": "NVFP4", "group_size": 16}})",
        R"("config_groups": {"group_0": {"targets": ["Linear"],
             "weights": {"num_bits": 4, "type": "float", "group_size": 16}}})",
        R"("moe_quant_algo": "NVFP4")"}) {
    const Model model =
        load(keys, fmt::format(R"({{"quant_method": "fp8", "weight_block_size": [128, 128], "quant_algo":
                "MIXED_PRECISION", {}, "ignore": ["*.self_attn.*", "*.shared_experts.*", "lm_head"]}})",
                               settings));
    EXPECT_EQ(format_of(model, "experts.up_proj"), "nvfp4") << settings;
    EXPECT_EQ(format_of(model, "o_proj"), "f8_e4m3-b128") << settings;
    EXPECT_EQ(format_of(model, "shared_expert.up_proj"), "f8_e4m3-b128") << settings;
    EXPECT_EQ(format_of(model, "lm_head"), "bf16") << settings;
    EXPECT_FALSE(model.approximate) << settings;
  }
}

// GPTQModel's dynamic_get: the first pattern that matches counts.
TEST(QuantizationLists, TheFirstOfGptqsPatternsCounts) {
  const Model model = load("\"model_type\": \"llama\", " + kSizes,
                           R"({"quant_method": "gptq", "bits": 4, "group_size": 128, "dynamic": {
      "-:.*down_proj": {}, "+:.*down_proj": {"bits": 8}, ".*q_proj": {"bits": 8}, ".*": {"bits": 3}}})");
  EXPECT_EQ(format_of(model, "down_proj"), "bf16");
  EXPECT_EQ(format_of(model, "q_proj"), "int8-g128-zp");
  EXPECT_EQ(format_of(model, "o_proj"), "int3-g128-zp");
}

}  // namespace
}  // namespace memwall
