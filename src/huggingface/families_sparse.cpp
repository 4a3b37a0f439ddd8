// Decoders with experts and an attention of their own. Sources: the modelling code of Hugging Face
// transformers 5.24 (models/NAME/modeling_NAME.py) or, for a family that it lacks, the code in the
// model's repository.
#include <fmt/format.h>

#include <algorithm>

#include "format/checked.h"
#include "huggingface/families_parts.h"
#include "huggingface/plan.h"

namespace memwall {
namespace {

void minimax_m3(const Config& config, Plan& plan) {
  config.layer_list({"moe_layer_freq"});  // of this family it is no number
  plan.mlp.intermediate = config.integer_or({"dense_intermediate_size"}, plan.mlp.intermediate);
  if (plan.moe.experts > 0 && plan.moe.shared_intermediate == 0)
    plan.moe.shared_intermediate = plan.moe.expert.intermediate;
}

// Blocks of keys are chosen by an indexer; the layers that do so are named one by one.
std::vector<Block> minimax_m3_mixer(const Config& config, const Plan& plan, const LayerPlan& layer) {
  const bool sparse =
      layer.type == "minimax_m3_sparse" ||
      config.listed_integer_or({"sparse_attention_config.sparse_attention_freq"}, layer.index, 0) != 0;
  AttentionSpec spec = layer.attention;
  const std::int64_t heads =
      size_or(config, {"sparse_attention_config.sparse_num_index_heads", "index_n_heads"}, 4);
  const std::int64_t width =
      size_or(config, {"sparse_attention_config.sparse_index_dim", "index_head_dim"}, 128);
  if (!sparse) return {attention_block(plan.common, spec)};
  const std::int64_t blocks =
      size_or(config, {"sparse_attention_config.sparse_topk_blocks", "index_topk_blocks"}, 16);
  const std::int64_t block_size =
      size_or(config, {"sparse_attention_config.sparse_block_size", "index_block_size"}, 128);
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
  const std::int64_t step = size_or(config, {"interleave_moe_layer_step"}, 1);
  if (config.has({"moe_layers"})) return;
  for (std::int32_t i = 0; i < plan.layers; ++i)
    plan.moe_layers[static_cast<std::size_t>(i)] = (i + 1) % step == 0;
}

// Chunked attention where there is rotary embedding; every fourth layer has none and sees everything.
std::vector<Block> llama4_mixer(const Config& config, const Plan& plan, const LayerPlan& layer) {
  AttentionSpec spec = layer.attention;
  const std::int64_t interval = size_or(config, {"no_rope_layer_interval"}, 4);
  const json::Value* rope = config.find({"no_rope_layers"});
  const bool listed = rope != nullptr && !(rope->kind == json::Kind::array && rope->items.empty());
  spec.rotary = listed ? config.listed_integer_or({"no_rope_layers"}, layer.index, 0) != 0
                       : (layer.index + 1) % interval != 0;
  const bool chunked = layer.type.empty() ? spec.rotary : layer.type == "chunked_attention";
  spec.chunk = chunked ? size_or(config, {"attention_chunk_size"}, 8192) : 0;
  return {attention_block(plan.common, spec)};
}

void mimo_v2(const Config& config, Plan& plan) {
  config.layer_list({"moe_layer_freq"});  // of this family it is no number
  plan.attention.v_head_dim = config.integer_or({"v_head_dim"}, plan.attention.head_dim);
  if (config.has({"hybrid_layer_pattern"})) return;
  type_layers(
      plan, [](std::int32_t i) { return i == 0 || i % 6 == 5; }, "sliding_attention");
}

// Sliding layers have heads of their own, and sinks.
std::vector<Block> mimo_v2_mixer(const Config& config, const Plan& plan, const LayerPlan& layer) {
  AttentionSpec spec = layer.attention;
  const bool sliding = layer.type.empty()
                           ? config.listed_integer_or({"hybrid_layer_pattern"}, layer.index, 0) != 0
                           : layer.type == "sliding_attention";
  if (sliding) {
    spec.heads = size_or(config, {"swa_num_attention_heads"}, spec.heads);
    spec.kv_heads = size_or(config, {"swa_num_key_value_heads"}, 8);
    spec.head_dim = size_or(config, {"swa_head_dim"}, spec.head_dim);
    spec.v_head_dim = size_or(config, {"swa_v_head_dim"}, spec.v_head_dim);
    spec.window = size_or(config, {"sliding_window", "sliding_window_size"}, 128);
    spec.sinks = config.flag_or({"add_swa_attention_sink_bias"}, true);
  } else {
    spec.sinks = config.flag_or({"add_full_attention_sink_bias"}, false);
  }
  check_heads(config, spec);
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
    spec.heads = size_or(
        config, {"num_sliding_attention_heads", "attention_other_setting.num_attention_heads"}, spec.heads);
    spec.kv_heads = size_or(config, {"attention_other_setting.num_attention_groups"}, spec.kv_heads);
  }
  check_heads(config, spec);
  spec.gate = config.text_or({"gating"}, "") == "per-element" ? OutputGate::full : OutputGate::head;
  return {attention_block(plan.common, spec)};
}

// Laguna: a gate on the attention's output, a value a head or an element.
void laguna(const Config& config, Plan& plan) {
  const json::Value* gating = config.find({"gating"});
  const bool full = gating != nullptr && gating->kind == json::Kind::text && gating->text != "per-head";
  if (gating != nullptr && gating->kind != json::Kind::text && gating->kind != json::Kind::boolean)
    config.fail_at(*gating, "gating must be true, \"per-head\" or \"per-element\"");
  plan.attention.gate = full ? OutputGate::full : OutputGate::head;
}

void beam(const Config&, Plan& plan) {
  type_layers(
      plan, [&](std::int32_t i) { return (i + 1) % 6 == 0 || i == plan.layers - 1; }, "sliding_attention");
  plan.attention.gate = OutputGate::full;
}

std::vector<Block> beam_mixer(const Config&, const Plan& plan, const LayerPlan& layer) {
  Block block = common_attention(plan, layer);
  Block bias;
  add_parameter(bias, plan.common, "gate_bias", layer.attention.heads);
  insert_before_state(block, bias.tensors);
  return {block};
}

// Muse Spark: the experts work in a narrower space, with norms at both ends; gates on both residuals.
void muse_spark(const Config& config, Plan& plan) {
  plan.attention.gate = OutputGate::full;
  plan.moe.latent = size_or(config, {"moe_hidden_size"}, 4096);
  plan.moe.expert.norm = NormPlace::both;
}

std::vector<Block> muse_spark_mixer(const Config&, const Plan& plan, const LayerPlan& layer) {
  Block block = common_attention(plan, layer);
  add_parameter(block, plan.common, "residual_gate", plan.common.hidden_size);
  return {block};
}

std::vector<Block> muse_spark_feed_forward(const Config&, const Plan& plan, const LayerPlan& layer) {
  if (!layer.moe) return common_feed_forward(plan, layer);
  Block block = moe_block(plan.common, plan.moe);
  for (const char* projection : {"latent_in_proj", "experts.down_proj"}) {
    Block norm;
    add_norm(norm, plan.common, std::string(projection) + "_norm", plan.moe.latent);
    const auto at = std::find_if(block.tensors.begin(), block.tensors.end(),
                                 [&](const Tensor& tensor) { return tensor.name == projection; });
    block.tensors.insert(at + 1, norm.tensors.front());
  }
  add_parameter(block, plan.common, "residual_gate", plan.common.hidden_size);
  return {block};
}

// JetMoE (arXiv 2404.07413): experts for the queries and the output, too; all share keys and values.
void jetmoe(const Config& config, Plan& plan) {
  if (plan.moe.experts == 0) config.fail_about(kExperts, "no num_local_experts");
  plan.attention.head_dim = plan.attention.v_head_dim = size_or(config, {"kv_channels"}, 128);
  plan.attention.heads = checked_mul(plan.attention.kv_heads, plan.moe.per_token);
  plan.moe.expert.fused_gate_up = true;
}

std::vector<Block> jetmoe_mixer(const Config&, const Plan& plan, const LayerPlan& layer) {
  const Common& common = plan.common;
  const AttentionSpec& spec = layer.attention;
  const std::int64_t hidden = common.hidden_size;
  const std::int64_t width = checked_mul(spec.kv_heads, spec.head_dim);
  Block block{
      .kind = BlockKind::mixer, .name = "mixture_of_attention", .experts_per_token = plan.moe.per_token};
  const auto expert = [&](const char* name, std::int64_t out, std::int64_t in) {
    block.tensors.push_back({.name = name,
                             .role = Role::expert,
                             .out = out,
                             .in = in,
                             .copies = plan.moe.experts,
                             .format = common.weights,
                             .read = Read::per_expert});
  };
  add_norm(block, common, "attn_norm", hidden);
  block.tensors.push_back({.name = "router",
                           .role = Role::router,
                           .out = plan.moe.experts,
                           .in = hidden,
                           .format = common.small});
  add_linear(block, common, "kv_proj", checked_mul(2, width), hidden);
  expert("experts.q_proj", width, hidden);
  block.place(KvState{.heads = spec.heads,
                      .kv_heads = spec.kv_heads,
                      .d_k = spec.head_dim,
                      .d_v = spec.v_head_dim,
                      .rotary = true});
  expert("experts.o_proj", hidden, width);
  add_parameter(block, common, "experts.bias", hidden);
  return {block};
}

std::vector<Block> jetmoe_feed_forward(const Config&, const Plan& plan, const LayerPlan&) {
  Block block = moe_block(plan.common, plan.moe);
  add_parameter(block, plan.common, "experts.bias", plan.common.hidden_size);
  return {block};
}

// Doge: a dynamic mask by the values, learned residual weights, and maybe a table of retrieved experts one
// hidden state wide.
void doge(const Config& config, Plan& plan) {
  if (!config.flag_or({"is_moe"}, false)) plan.moe.experts = 0;
}

std::vector<Block> doge_mixer(const Config&, const Plan& plan, const LayerPlan& layer) {
  const AttentionSpec& spec = layer.attention;
  Block block = common_attention(plan, layer);
  Block mask;
  add_linear(mask, plan.common, "dt_proj", spec.kv_heads, checked_mul(spec.kv_heads, spec.head_dim));
  add_parameter(mask, plan.common, "A", spec.kv_heads);
  insert_before_state(block, mask.tensors);
  add_parameter(block, plan.common, "input_residual", plan.common.hidden_size);
  return {block};
}

std::vector<Block> doge_feed_forward(const Config&, const Plan& plan, const LayerPlan& layer) {
  const std::int64_t hidden = plan.common.hidden_size;
  Block block = mlp_block(plan.common, layer.mlp);
  if (plan.moe.experts > 0) {
    // Chosen by the product of two halves' keys.
    std::int64_t keys = 1;
    while ((keys + 1) * (keys + 1) <= plan.moe.experts) ++keys;
    block.experts_per_token = plan.moe.per_token;
    add_linear(block, plan.common, "router_gate", 2 * keys, hidden);
    for (const char* name : {"experts.down_embed", "experts.up_embed"}) {
      block.tensors.push_back({.name = name,
                               .role = Role::expert,
                               .out = 1,
                               .in = hidden,
                               .copies = plan.moe.experts,
                               .format = plan.common.weights,
                               .read = Read::per_expert});
    }
  }
  add_parameter(block, plan.common, "post_attention_residual", hidden);
  return {block};
}

}  // namespace

const std::vector<Family>& sparse_families() {
  static const std::vector<Family> families = {
      {.types = {"minimax_m3", "minimax_m3_vl", "minimax_m3_vl_text"},
       .qk_norm = QkNorm::head,
       .qk_norm_if = {"use_qk_norm", true},
       .router_bias = {"use_routing_bias", true},
       .layer_kinds = {"full_attention", "minimax_m3_sparse"},
       .adjust = minimax_m3,
       .mixer = minimax_m3_mixer},
      {.types = {"llama4", "llama4_text"}, .adjust = llama4, .mixer = llama4_mixer},
      {.types = {"mimo_v2_flash"}, .router_bias = kAlways, .adjust = mimo_v2, .mixer = mimo_v2_mixer},
      {.types = {"step3p5", "step3p7"},
       .qk_norm = QkNorm::head,
       .router_bias = {"use_moe_router_bias", true},
       .adjust = step3,
       .mixer = step3_mixer},
      {.types = {"laguna"}, .qk_norm = QkNorm::head, .router_bias = kAlways, .adjust = laguna},
      {.types = {"beam"},
       .norm_place = NormPlace::both,
       .qk_norm = QkNorm::head,
       .router_bias = kAlways,
       .adjust = beam,
       .mixer = beam_mixer},
      {.types = {"muse_spark", "muse_spark_text"},
       .router_bias = kAlways,
       .adjust = muse_spark,
       .mixer = muse_spark_mixer,
       .feed_forward = muse_spark_feed_forward},
      {.types = {"jetmoe"},
       .tied = true,
       .adjust = jetmoe,
       .mixer = jetmoe_mixer,
       .feed_forward = jetmoe_feed_forward},
      {.types = {"doge"},
       .qk_norm = QkNorm::head,
       .adjust = doge,
       .mixer = doge_mixer,
       .feed_forward = doge_feed_forward},
  };
  return families;
}

}  // namespace memwall
