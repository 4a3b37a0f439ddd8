// Decoders with experts in place of some MLPs, and an attention like the dense ones'. Sources: the
// modelling code of Hugging Face transformers 5.24 (models/NAME/modeling_NAME.py) or, for a family that it
// lacks, the code in the model's repository.
#include <fmt/format.h>

#include <algorithm>

#include "format/checked.h"
#include "huggingface/families_parts.h"

namespace memwall {
namespace {

void dbrx(const Config& config, Plan& plan) {
  plan.attention.kv_heads = config.integer_or({"attn_config.kv_n_heads"}, 1);
  plan.moe.experts = config.integer_or({"ffn_config.moe_num_experts"}, 4);
  plan.moe.per_token = config.integer_or({"ffn_config.moe_top_k"}, 1);
  plan.moe.expert = plan.mlp;
  plan.moe.expert.intermediate = config.integer_or({"ffn_config.ffn_hidden_size"}, 3584);
  all_moe(plan);
}

void gpt_oss(const Config&, Plan& plan) {
  plan.moe.expert.bias = true;
  plan.moe.expert.fused_gate_up = true;
  plan.attention.sinks = true;
}

// The router's bias is a linear's; each expert's projections have theirs.
void phimoe(const Config& config, Plan& plan) { plan.head.bias = config.flag_or({"lm_head_bias"}, false); }

void minimax_m2(const Config& config, Plan& plan) {
  if (config.has({"use_qk_norm"}) && !config.flag_or({"use_qk_norm"}, true))
    plan.attention.qk_norm = QkNorm::none;
}

// The first and the last layer with experts; of vision models, a list's first is the text's.
void ernie_moe(const Config& config, Plan& plan) {
  if (config.has({"mlp_layer_types"})) return;
  const std::int64_t first = config.first_integer_or({"moe_layer_start_index"}, 1);
  const json::Value* end = config.find({"moe_layer_end_index"});
  const bool to_the_end = end == nullptr || (end->kind == json::Kind::number && end->text == "-1");
  std::int64_t last = plan.layers - 1;
  if (!to_the_end) last = config.first_integer_or({"moe_layer_end_index"}, last);
  const std::int64_t every = size_or(config, {"moe_layer_interval"}, 1);
  for (std::int32_t i = 0; i < plan.layers; ++i) {
    plan.moe_layers[static_cast<std::size_t>(i)] =
        plan.moe.experts > 0 && (i + 1) % every == 0 && i >= first && i <= last;
  }
}

// Experts for image tokens stand beside the text's: stored, but not read by a text token.
std::vector<Block> ernie_vl_feed_forward(const Config& config, const Plan& plan, const LayerPlan& layer) {
  if (!layer.moe) return common_feed_forward(plan, layer);
  Block block = moe_block(plan.common, plan.moe);
  MoeSpec vision = plan.moe;
  vision.shared_intermediate = 0;
  vision.expert.norm = NormPlace::none;
  vision.experts = size_or(config, {"vision_moe_num_experts"}, plan.moe.experts);
  if (config.is_list({"moe_intermediate_size"})) {
    const std::vector<std::int64_t> widths = config.integers({"moe_intermediate_size"});
    if (widths.size() > 1) vision.expert.intermediate = widths[1];
  }
  for (Tensor tensor : moe_block(plan.common, vision).tensors) {
    tensor.name = "vision_moe." + tensor.name;
    tensor.read = Read::never;
    block.tensors.push_back(tensor);
  }
  return {block};
}

void hunyuan_moe(const Config& config, Plan& plan) {
  // Lists give each layer its own; releases repeat one number.
  plan.moe.per_token = config.uniform_integer_or({"moe_topk"}, 1);
  plan.moe.expert.intermediate = config.uniform_integer_or({"moe_intermediate_size"}, plan.mlp.intermediate);
  if (config.flag_or({"use_mixed_mlp_moe"}, true))
    plan.moe.shared_intermediate =
        checked_mul(config.uniform_integer_or({"num_shared_expert"}, 1), plan.mlp.intermediate);
}

void cohere2_moe(const Config& config, Plan& plan) {
  plan.moe.shared_intermediate =
      checked_mul(config.integer_or({"num_shared_experts"}, 0), plan.moe.expert.intermediate);
  plan.mlp.intermediate = size_or(config, {"prefix_dense_intermediate_size"}, plan.mlp.intermediate);
}

void afmoe(const Config& config, Plan& plan) {
  const std::int64_t dense = config.integer_or({"num_dense_layers"}, 1);
  for (std::int32_t i = 0; i < plan.layers; ++i) plan.moe_layers[static_cast<std::size_t>(i)] = i >= dense;
  plan.attention.gate = OutputGate::full;
}

void arctic(const Config& config, Plan& plan) {
  const std::int64_t every = size_or(config, {"moe_layer_frequency"}, 2);
  for (std::int32_t i = 0; i < plan.layers; ++i)
    plan.moe_layers[static_cast<std::size_t>(i)] = (i + 1) % every == 0;
}

// A dense MLP of the hidden size beside the experts, with a norm of its own (Snowflake Arctic).
std::vector<Block> arctic_feed_forward(const Config& config, const Plan& plan, const LayerPlan& layer) {
  if (!layer.moe) return {mlp_block(plan.common, layer.mlp)};
  std::vector<Block> blocks;
  if (config.flag_or({"use_residual"}, true)) {
    MlpSpec dense = layer.mlp;
    dense.intermediate = plan.common.hidden_size;
    blocks.push_back(mlp_block(plan.common, dense));
  }
  blocks.push_back(moe_block(plan.common, plan.moe));
  return blocks;
}

void granitemoe_swa(const Config&, Plan& plan) {
  plan.attention.sinks = true;
  type_layers(
      plan, [](std::int32_t i) { return i % 4 == 0; }, "sliding_attention");
}

void kolibri1(const Config&, Plan& plan) {
  type_layers(
      plan, [](std::int32_t i) { return (i + 1) % 5 == 0; }, "sliding_attention");
}

void flint(const Config&, Plan& plan) {
  plan.attention.sinks = true;
  type_layers(
      plan, [&](std::int32_t i) { return i < 2 || i % 4 == 1 || i == plan.layers - 1; }, "sliding_attention");
}

}  // namespace

const std::vector<Family>& moe_families() {
  static const std::vector<Family> families = {
      {.types = {"mixtral"}, .sliding = Sliding::all},
      {.types = {"qwen2_moe"},
       .qkv_bias = {"qkv_bias", true},
       .o_bias = kNever,
       .sliding = Sliding::by_switch,
       .shared_gate = true},
      {.types = {"qwen3_moe", "qwen3_vl_moe", "qwen3_vl_moe_text", "qwen3_omni_moe", "qwen3_omni_moe_text"},
       .qk_norm = QkNorm::head,
       .sliding = Sliding::by_switch},
      {.types = {"olmoe"}, .qk_norm = QkNorm::full},
      {.types = {"flex_olmo"}, .norm_place = NormPlace::post, .qk_norm = QkNorm::full},
      {.types = {"granitemoe", "granitemoeshared"}},
      {.types = {"phimoe"}, .norm = NormKind::layer, .sliding = Sliding::all, .adjust = phimoe},
      {.types = {"dbrx"}, .norm = NormKind::layer_no_bias, .fused_qkv = true, .adjust = dbrx},
      {.types = {"gpt_oss"},
       .qkv_bias = {"attention_bias", true},
       .o_bias = {"attention_bias", true},
       .sliding = Sliding::pattern,
       .sliding_pattern = 2,
       .router_bias = kAlways,
       .adjust = gpt_oss},
      {.types = {"glm4_moe", "glm4v_moe", "glm4v_moe_text"},
       .o_bias = kNever,
       .qk_norm = QkNorm::head,
       .qk_norm_if = {"use_qk_norm", false},
       .router_bias = kAlways},
      {.types = {"dots1"}, .qk_norm = QkNorm::head, .router_bias = kAlways},
      {.types = {"solar_open"}, .o_bias = kNever, .router_bias = kAlways},
      {.types = {"minimax_m2"},
       .qk_norm = QkNorm::full,
       .router_bias = {"use_routing_bias", true},
       .adjust = minimax_m2},
      {.types = {"ernie4_5_moe"},
       .tied = true,
       .qkv_bias = {"use_bias", false},
       .o_bias = {"use_bias", false},
       .mlp_bias = {"use_bias", false},
       .router_bias = kAlways,
       .adjust = ernie_moe},
      {.types = {"hunyuan_v1_moe", "hunyuan"},
       .qk_norm = QkNorm::head,
       .qk_norm_if = {"use_qk_norm", true},
       .adjust = hunyuan_moe},
      {.types = {"exaone_moe"},
       .qk_norm = QkNorm::head,
       .sliding = Sliding::pattern,
       .sliding_pattern = 4,
       .router_bias = kAlways},
      {.types = {"cohere2_moe"},
       .norm = NormKind::layer_no_bias,
       .tied = true,
       .parallel = kAlways,
       .sliding = Sliding::pattern,
       .sliding_pattern = 4,
       .adjust = cohere2_moe},
      {.types = {"afmoe"},
       .norm_place = NormPlace::both,
       .qk_norm = QkNorm::head,
       .sliding = Sliding::pattern,
       .sliding_pattern = 4,
       .router_bias = kAlways,
       .adjust = afmoe},
      {.types = {"arctic"}, .adjust = arctic, .feed_forward = arctic_feed_forward},
      {.types = {"ernie4_5_vl_moe", "ernie4_5_vl_moe_text", "ernie4_5_moe_vl"},
       .tied = true,
       .qkv_bias = {"use_bias", false},
       .o_bias = {"use_bias", false},
       .mlp_bias = {"use_bias", false},
       .router_bias = kAlways,
       .lists_modalities = true,
       .adjust = ernie_moe,
       .feed_forward = ernie_vl_feed_forward},
      {.types = {"deepseek"}},
      {.types = {"grok-1"}, .norm_place = NormPlace::both},
      {.types = {"bailing_moe"},
       .qkv_bias = {"use_qkv_bias", false},
       .o_bias = {"use_bias", false},
       .fused_qkv = true},
      {.types = {"bailing_moe_v2"},
       .qkv_bias = {"use_qkv_bias", false},
       .o_bias = {"use_bias", false},
       .fused_qkv = true,
       .qk_norm = QkNorm::head,
       .qk_norm_if = {"use_qk_norm", true},
       .router_bias = {"moe_router_enable_expert_bias", true}},
      {.types = {"hy_v3"}, .qk_norm = QkNorm::head, .router_bias = kAlways},
      {.types = {"sarvam_moe"},
       .o_bias = kNever,
       .qk_norm = QkNorm::head,
       .qk_norm_if = {"use_qk_norm", true},
       .router_bias = kAlways},
      {.types = {"mellum"}, .qk_norm = QkNorm::head},
      {.types = {"granitemoe_swa"}, .adjust = granitemoe_swa},
      {.types = {"kolibri1"},
       .norm_place = NormPlace::both,
       .qk_norm = QkNorm::head,
       .router_bias = kAlways,
       .adjust = kolibri1},
      {.types = {"flint"}, .qk_norm = QkNorm::head, .adjust = flint},
  };
  return families;
}

}  // namespace memwall
