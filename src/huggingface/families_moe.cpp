// Decoders with experts in place of some MLPs. Sources: the modelling code of Hugging Face transformers 5.24
// (models/NAME/modeling_NAME.py) or, for a family that it lacks, the code in the model's repository.
#include <fmt/format.h>

#include <algorithm>

#include "format/checked.h"
#include "huggingface/family.h"

namespace memwall {
namespace {

constexpr Switch kAlways{nullptr, true};
constexpr Switch kNever{nullptr, false};

void dbrx(const Config& config, Plan& plan) {
  plan.attention.kv_heads = config.integer_or({"attn_config.kv_n_heads"}, 1);
  plan.moe.experts = config.integer_or({"ffn_config.moe_num_experts"}, 4);
  plan.moe.per_token = config.integer_or({"ffn_config.moe_top_k"}, 1);
  plan.moe.expert = plan.mlp;
  plan.moe.expert.intermediate = config.integer_or({"ffn_config.ffn_hidden_size"}, 3584);
  plan.moe_layers.assign(static_cast<std::size_t>(plan.layers), true);
  if (plan.moe.per_token < 1 || plan.moe.per_token > plan.moe.experts)
    config.fail(fmt::format("moe_top_k is {}; it must be from 1 to the {} experts", plan.moe.per_token,
                            plan.moe.experts));
}

void gpt_oss(const Config&, Plan& plan) {
  plan.moe.expert.bias = true;
  plan.moe.expert.fused_gate_up = true;
  plan.attention.sinks = true;
}

// The router's bias is a linear's; each expert's projections have theirs.
void phimoe(const Config& config, Plan& plan) {
  plan.head.bias = config.flag_or({"lm_head_bias"}, true);
}

void minimax_m2(const Config& config, Plan& plan) {
  if (config.has({"use_qk_norm"}) && !config.flag_or({"use_qk_norm"}, true))
    plan.attention.qk_norm = QkNorm::none;
}

void minimax_m3(const Config& config, Plan& plan) {
  plan.mlp.intermediate = config.integer_or({"dense_intermediate_size"}, plan.mlp.intermediate);
  if (plan.moe.experts > 0 && plan.moe.shared_intermediate == 0)
    plan.moe.shared_intermediate = plan.moe.expert.intermediate;
}

// Blocks of keys are chosen by an indexer; the layers that do so are named one by one.
std::vector<Block> minimax_m3_mixer(const Config& config, const Plan& plan, const LayerPlan& layer) {
  const bool sparse =
      layer.type == "minimax_m3_sparse" ||
      config.layer_integer_or({"sparse_attention_config.sparse_attention_freq"}, layer.index, 0) != 0;
  AttentionSpec spec = layer.attention;
  const std::int64_t heads = config.integer_or({"sparse_attention_config.sparse_num_index_heads", "index_n_heads"}, 4);
  const std::int64_t width = config.integer_or({"sparse_attention_config.sparse_index_dim", "index_head_dim"}, 128);
  if (!sparse) return {attention_block(plan.common, spec)};
  const std::int64_t blocks = config.integer_or({"sparse_attention_config.sparse_topk_blocks", "index_topk_blocks"}, 16);
  const std::int64_t block_size = config.integer_or({"sparse_attention_config.sparse_block_size", "index_block_size"}, 128);
  spec.top_k = checked_mul(blocks, block_size);
  Block block = attention_block(plan.common, spec);
  Block indexer;
  add_linear(indexer, plan.common, "indexer.q_proj", checked_mul(heads, width), plan.common.hidden_size);
  add_linear(indexer, plan.common, "indexer.k_proj", width, plan.common.hidden_size);
  add_norm(indexer, plan.common, "indexer.q_norm", width, heads);
  add_norm(indexer, plan.common, "indexer.k_norm", width);
  insert_before_state(block, indexer.tensors);
  block.states.insert(block.states.begin(),
                      {IndexerState{.heads = heads, .width = width}, block.states.front().before});
  return {block};
}

void llama4(const Config& config, Plan& plan) {
  // Dense layers have an MLP of their own width; experts use intermediate_size.
  const std::int64_t expert = plan.mlp.intermediate;
  plan.mlp.intermediate = config.integer_or({"intermediate_size_mlp"}, 16384);
  plan.moe.expert.intermediate = expert;
  plan.moe.expert.fused_gate_up = true;
  plan.moe.shared_intermediate = expert;
  const std::vector<std::int64_t> named = config.integers({"moe_layers"});
  const std::int64_t step = std::max<std::int64_t>(1, config.integer_or({"interleave_moe_layer_step"}, 1));
  for (std::int32_t i = 0; i < plan.layers; ++i) {
    plan.moe_layers[static_cast<std::size_t>(i)] =
        named.empty() ? (i + 1) % step == 0 : std::find(named.begin(), named.end(), i) != named.end();
  }
}

// Chunked attention where there is rotary embedding; every fourth layer has none and sees everything.
std::vector<Block> llama4_mixer(const Config& config, const Plan& plan, const LayerPlan& layer) {
  AttentionSpec spec = layer.attention;
  const std::vector<std::int64_t> rope = config.integers({"no_rope_layers"});
  const std::int64_t interval = std::max<std::int64_t>(1, config.integer_or({"no_rope_layer_interval"}, 4));
  const auto index = static_cast<std::size_t>(layer.index);
  spec.rotary = rope.empty() ? (layer.index + 1) % interval != 0 : index < rope.size() && rope[index] != 0;
  const bool chunked = layer.type.empty() ? spec.rotary : layer.type == "chunked_attention";
  spec.chunk = chunked ? config.integer_or({"attention_chunk_size"}, 8192) : 0;
  return {attention_block(plan.common, spec)};
}

void mimo_v2(const Config& config, Plan& plan) {
  plan.attention.v_head_dim = config.integer_or({"v_head_dim"}, plan.attention.head_dim);
}

// Sliding layers have heads of their own, and sinks.
std::vector<Block> mimo_v2_mixer(const Config& config, const Plan& plan, const LayerPlan& layer) {
  AttentionSpec spec = layer.attention;
  const bool sliding = layer.type.empty()
                           ? config.layer_integer_or({"hybrid_layer_pattern"}, layer.index, 0) != 0
                           : layer.type == "sliding_attention";
  if (sliding) {
    spec.heads = config.integer_or({"swa_num_attention_heads"}, spec.heads);
    spec.kv_heads = config.integer_or({"swa_num_key_value_heads"}, 8);
    spec.head_dim = config.integer_or({"swa_head_dim"}, spec.head_dim);
    spec.v_head_dim = config.integer_or({"swa_v_head_dim"}, spec.v_head_dim);
    spec.window = config.integer_or({"sliding_window", "sliding_window_size"}, 128);
    spec.sinks = config.flag_or({"add_swa_attention_sink_bias"}, true);
  } else {
    spec.sinks = config.flag_or({"add_full_attention_sink_bias"}, false);
  }
  if (spec.heads < 1 || spec.kv_heads < 1 || spec.heads % spec.kv_heads != 0)
    config.fail("swa_num_attention_heads must be a multiple of swa_num_key_value_heads");
  return {attention_block(plan.common, spec)};
}

void step3(const Config& config, Plan& plan) {
  if (plan.moe.experts == 0) return;
  if (plan.moe.shared_intermediate == 0)
    plan.moe.shared_intermediate = config.integer_or({"share_expert_dim", "share_expert_dims"}, 0);
  const bool named = config.has({"moe_layers_enum"}) || config.has({"mlp_layer_types"});
  if (!named && !config.has({"first_k_dense_replace"})) {
    for (std::size_t i = 0; i < 3 && i < plan.moe_layers.size(); ++i) plan.moe_layers[i] = false;
  }
}

std::vector<Block> step3_mixer(const Config& config, const Plan& plan, const LayerPlan& layer) {
  AttentionSpec spec = layer.attention;
  if (layer.type == "sliding_attention") {
    spec.heads = config.integer_or(
        {"num_sliding_attention_heads", "attention_other_setting.num_attention_heads"}, spec.heads);
    spec.kv_heads =
        config.integer_or({"attention_other_setting.num_attention_groups"}, spec.kv_heads);
  }
  if (spec.heads < 1 || spec.kv_heads < 1 || spec.heads % spec.kv_heads != 0)
    config.fail("num_attention_heads must be a multiple of num_attention_groups");
  spec.gate = config.text_or({"gating"}, "") == "per-element" ? OutputGate::full : OutputGate::head;
  return {attention_block(plan.common, spec)};
}

void ernie_moe(const Config& config, Plan& plan) {
  const std::int64_t first = config.integer_or({"moe_layer_start_index"}, 1);
  const std::int64_t last_key = config.maybe_integer({"moe_layer_end_index"}).value_or(plan.layers - 1);
  const std::int64_t every = std::max<std::int64_t>(1, config.integer_or({"moe_layer_interval"}, 1));
  for (std::int32_t i = 0; i < plan.layers; ++i) {
    plan.moe_layers[static_cast<std::size_t>(i)] =
        plan.moe.experts > 0 && (i + 1) % every == 0 && i >= first && i <= last_key;
  }
}

void hunyuan_moe(const Config& config, Plan& plan) {
  // Lists give each layer its own; releases repeat one number.
  plan.moe.per_token = config.layer_integer_or({"moe_topk"}, 0, 1);
  plan.moe.expert.intermediate =
      config.layer_integer_or({"moe_intermediate_size"}, 0, plan.mlp.intermediate);
  if (config.flag_or({"use_mixed_mlp_moe"}, true))
    plan.moe.shared_intermediate =
        checked_mul(config.layer_integer_or({"num_shared_expert"}, 0, 1), plan.mlp.intermediate);
}

void cohere2_moe(const Config& config, Plan& plan) {
  plan.moe.shared_intermediate =
      checked_mul(config.integer_or({"num_shared_experts"}, 0), plan.moe.expert.intermediate);
}

void afmoe(const Config& config, Plan& plan) {
  const std::int64_t dense = config.integer_or({"num_dense_layers"}, 1);
  for (std::int32_t i = 0; i < plan.layers; ++i) plan.moe_layers[static_cast<std::size_t>(i)] = i >= dense;
  plan.attention.gate = OutputGate::full;
}

void arctic(const Config& config, Plan& plan) {
  const std::int64_t every = std::max<std::int64_t>(1, config.integer_or({"moe_layer_frequency"}, 2));
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
      {.types = {"minimax_m2"}, .qk_norm = QkNorm::full, .router_bias = kAlways, .adjust = minimax_m2},
      {.types = {"minimax_m3", "minimax_m3_vl", "minimax_m3_vl_text"},
       .qk_norm = QkNorm::head,
       .router_bias = kAlways,
       .adjust = minimax_m3,
       .mixer = minimax_m3_mixer},
      {.types = {"llama4", "llama4_text"}, .adjust = llama4, .mixer = llama4_mixer},
      {.types = {"mimo_v2_flash"}, .router_bias = kAlways, .adjust = mimo_v2, .mixer = mimo_v2_mixer},
      {.types = {"step3p5", "step3p7"},
       .qk_norm = QkNorm::head,
       .router_bias = kAlways,
       .adjust = step3,
       .mixer = step3_mixer},
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
  };
  return families;
}

}  // namespace memwall
