// Linear attention and gated delta nets, with full or latent attention in every few layers. Sources: the
// modelling code of Hugging Face transformers 5.24 (models/NAME/modeling_NAME.py) or, for a family that it
// lacks, the code in the model's repository.
#include <fmt/format.h>

#include <algorithm>

#include "format/checked.h"
#include "huggingface/families_parts.h"

namespace memwall {
namespace {

const std::vector<const char*> kLinearKinds = {"full_attention", "attention", "linear_attention"};

// Qwen3-Next and Qwen3.5: gated delta nets, and every fourth layer an attention whose output is gated.
DeltaNetSpec read_delta_net(const Config& config, std::int64_t key_heads, std::int64_t value_heads,
                            std::int64_t key_dim, std::int64_t value_dim) {
  DeltaNetSpec spec;
  spec.key_heads = size_or(config, {"linear_num_key_heads"}, key_heads);
  spec.value_heads = size_or(config, {"linear_num_value_heads"}, value_heads);
  spec.key_dim = size_or(config, {"linear_key_head_dim"}, key_dim);
  spec.value_dim = size_or(config, {"linear_value_head_dim"}, value_dim);
  spec.conv = size_or(config, {"linear_conv_kernel_dim"}, 4);
  spec.element_bytes = state_width(config);
  return spec;
}

void qwen_next(const Config& config, Plan& plan) {
  const std::int64_t every = size_or(config, {"full_attention_interval"}, 4);
  type_layers(plan, [&](std::int32_t i) { return (i + 1) % every == 0; });
  if (config.flag_or({"attn_output_gate"}, true)) plan.attention.gate = OutputGate::in_q_proj;
}

std::vector<Block> qwen_next_layer(const Config& config, const Plan& plan, const LayerPlan& layer,
                                   bool fused) {
  if (layer.type != "linear_attention") return {common_attention(plan, layer)};
  DeltaNetSpec spec = read_delta_net(config, 16, 32, 128, 128);
  spec.fused = fused;
  return {delta_net_block(plan.common, spec)};
}

std::vector<Block> qwen3_next_mixer(const Config& config, const Plan& plan, const LayerPlan& layer) {
  return qwen_next_layer(config, plan, layer, true);
}

std::vector<Block> qwen3_5_mixer(const Config& config, const Plan& plan, const LayerPlan& layer) {
  return qwen_next_layer(config, plan, layer, false);
}

// Lara mini: the same, between sliding layers.
void lara_mini(const Config&, Plan& plan) {
  if (!plan.types.empty()) return;
  for (std::int32_t i = 0; i < plan.layers; ++i) {
    const std::int32_t place = i % 5;
    plan.types.emplace_back(place == 3                 ? "full_attention"
                            : place == 0 || place == 2 ? "linear_attention"
                                                       : "sliding_attention");
  }
}

// Olmo Hybrid: norms before the blocks of linear layers and behind those of full ones.
void olmo_hybrid(const Config&, Plan& plan) {
  type_layers(plan, [](std::int32_t i) { return i % 4 == 3; });
}

std::vector<Block> olmo_hybrid_mixer(const Config& config, const Plan& plan, const LayerPlan& layer) {
  if (is_full_attention(layer.type)) return {common_attention(plan, layer)};
  const std::int64_t heads = plan.attention.heads;
  const std::int64_t key_heads = size_or(config, {"linear_num_key_heads"}, heads);
  const std::int64_t key_dim = size_or(config, {"linear_key_head_dim"},
                                       checked_mul(3, plan.common.hidden_size) / checked_mul(4, key_heads));
  DeltaNetSpec spec = read_delta_net(config, heads, heads, key_dim, checked_mul(2, key_dim));
  spec.fused = false;
  return {delta_net_block(plan.common, spec)};
}

std::vector<Block> olmo_hybrid_feed_forward(const Config&, const Plan& plan, const LayerPlan& layer) {
  MlpSpec spec = layer.mlp;
  if (!is_full_attention(layer.type)) spec.norm = NormPlace::pre;
  return {mlp_block(plan.common, spec)};
}

void minimax(const Config& config, Plan& plan) {
  if (!config.has({"attn_type_list"})) {
    type_layers(plan, [](std::int32_t i) { return i % 2 == 0; });
  } else {
    type_layers(plan,
                [&](std::int32_t i) { return config.listed_integer_or({"attn_type_list"}, i, 0) != 0; });
  }
}

// MiniMax-01: lightning attention (arXiv 2501.08313), a linear attention with a fixed decay a head.
std::vector<Block> minimax_mixer(const Config& config, const Plan& plan, const LayerPlan& layer) {
  if (is_full_attention(layer.type)) return {common_attention(plan, layer)};
  constexpr std::int64_t kFlops = 5;  // decay, k·v (2), q·S (2)
  const AttentionSpec& spec = layer.attention;
  const std::int64_t hidden = plan.common.hidden_size;
  const std::int64_t width = checked_mul(spec.heads, spec.head_dim);
  const std::int64_t elements = checked_mul(width, spec.head_dim);
  Block block{.kind = BlockKind::mixer, .name = "lightning_attention"};
  add_norm(block, plan.common, "mixer_norm", hidden);
  add_linear(block, plan.common, "qkv_proj", checked_mul(3, width), hidden);
  add_linear(block, plan.common, "output_gate", width, hidden);
  block.place(RecurrentState{
      .elements = elements, .element_bytes = state_width(config), .flops = checked_mul(kFlops, elements)});
  add_norm(block, plan.common, "gated_norm", width);
  add_linear(block, plan.common, "out_proj", hidden, width);
  return {block};
}

// Attention over the depth (arXiv 2607.24653, section 2.2): a block's input is a weighted sum of what blocks
// of attn_res_block_size layers gave before, by a norm of each and a learned query.
void add_depth_attention(const Config& config, const Plan& plan, std::vector<Tensor>& tensors) {
  if (size_or_none(config, {"attn_res_block_size"}) == 0) return;
  Block part;
  add_norm(part, plan.common, "depth_attention_norm", plan.common.hidden_size);
  add_parameter(part, plan.common, "depth_attention_query", plan.common.hidden_size);
  tensors.insert(tensors.begin(), part.tensors.begin(), part.tensors.end());
}

void add_depth_attention(const Config& config, const Plan& plan, Block& block) {
  const std::size_t before = block.tensors.size();
  add_depth_attention(config, plan, block.tensors);
  for (Block::Placed& placed : block.states) placed.before += block.tensors.size() - before;
}

// Kimi Linear (arXiv 2510.26692): delta attention with a decay a channel; every fourth layer latent attention
// without positions. Kimi K3 adds gates on both, experts in a narrower space, and attention over the depth.
void kimi_linear(const Config& config, Plan& plan) {
  plan.moe.latent = size_or_none(config, {"routed_expert_hidden_size"});
  add_depth_attention(config, plan, plan.head_parts);
  if (config.has({"linear_attn_config.full_attn_layers"})) {
    const std::vector<bool> full = named_layers(config, {"linear_attn_config.full_attn_layers"}, plan, 1);
    if (config.has({"linear_attn_config.kda_layers"})) {
      const std::vector<bool> delta = named_layers(config, {"linear_attn_config.kda_layers"}, plan, 1);
      for (std::size_t i = 0; i < full.size(); ++i) {
        if (full[i] == delta[i])
          config.fail_about(
              {"linear_attn_config.kda_layers"},
              fmt::format("layer {} must stand in one of kda_layers and full_attn_layers", i + 1));
      }
    }
    type_layers(plan, [&](std::int32_t i) { return full[static_cast<std::size_t>(i)]; });
  } else {
    type_layers(plan, [](std::int32_t i) { return i > 0 && i % 4 == 0; });
  }
}

std::vector<Block> kimi_linear_mixer(const Config& config, const Plan& plan, const LayerPlan& layer) {
  Block block;
  if (is_full_attention(layer.type)) {
    const MlaSpec spec = read_mla(config, plan);
    block = mla_block(plan.common, spec);
    if (config.flag_or({"mla_use_output_gate"}, false)) {
      Block gate;
      add_linear(gate, plan.common, "g_proj", checked_mul(spec.heads, spec.v_head_dim),
                 plan.common.hidden_size);
      insert_after_states(block, gate.tensors);
    }
  } else {
    const bool full_gate = config.flag_or({"linear_attn_config.use_full_rank_gate"}, false);
    block = kimi_delta_block(config, plan, true, !full_gate);
  }
  add_depth_attention(config, plan, block);
  return {block};
}

std::vector<Block> kimi_linear_feed_forward(const Config& config, const Plan& plan, const LayerPlan& layer) {
  Block block = common_feed_forward(plan, layer).front();
  if (layer.moe && plan.moe.latent > 0 && config.flag_or({"latent_moe_use_norm"}, false)) {
    Block norm;
    add_norm(norm, plan.common, "latent_norm", plan.moe.latent);
    const auto at = std::find_if(block.tensors.begin(), block.tensors.end(),
                                 [](const Tensor& tensor) { return tensor.name == "latent_out_proj"; });
    block.tensors.insert(at, norm.tensors.front());
  }
  add_depth_attention(config, plan, block);
  return {block};
}

// Ling 2.5: the same with full projections for decay and gate, and a gate a head on the latent attention.
void bailing_hybrid(const Config& config, Plan& plan) {
  const std::int64_t every = size_or(config, {"layer_group_size"}, 6);
  type_layers(plan, [&](std::int32_t i) { return (i + 1) % every == 0; });
}

std::vector<Block> bailing_hybrid_mixer(const Config& config, const Plan& plan, const LayerPlan& layer) {
  if (!is_full_attention(layer.type)) return {kimi_delta_block(config, plan, false, false)};
  Block block = mla_block(plan.common, read_mla(config, plan));
  Block gate;
  add_linear(gate, plan.common, "g_proj", plan.attention.heads, plan.common.hidden_size);
  insert_after_states(block, gate.tensors);
  return {block};
}

}  // namespace

const std::vector<Family>& linear_families() {
  static const std::vector<Family> families = {
      {.types = {"qwen3_next"},
       .qk_norm = QkNorm::head,
       .shared_gate = true,
       .layer_kinds = kLinearKinds,
       .adjust = qwen_next,
       .mixer = qwen3_next_mixer},
      {.types = {"qwen3_5", "qwen3_5_text", "qwen3_5_moe", "qwen3_5_moe_text"},
       .qk_norm = QkNorm::head,
       .shared_gate = true,
       .layer_kinds = kLinearKinds,
       .adjust = qwen_next,
       .mixer = qwen3_5_mixer},
      {.types = {"lara_mini"},
       .tied = true,
       .qk_norm = QkNorm::head,
       .layer_kinds = {"full_attention", "sliding_attention", "linear_attention"},
       .adjust = lara_mini,
       .mixer = qwen3_5_mixer},
      {.types = {"olmo_hybrid"},
       .norm_place = NormPlace::post,
       .qk_norm = QkNorm::full,
       .layer_kinds = kLinearKinds,
       .adjust = olmo_hybrid,
       .mixer = olmo_hybrid_mixer,
       .feed_forward = olmo_hybrid_feed_forward},
      {.types = {"minimax", "minimax_text_01", "minimax_m1", "MiniMaxText01"},
       .layer_kinds = kLinearKinds,
       .adjust = minimax,
       .mixer = minimax_mixer},
      {.types = {"kimi_linear"},
       .router_bias = kAlways,
       .layer_kinds = kLinearKinds,
       .adjust = kimi_linear,
       .mixer = kimi_linear_mixer,
       .feed_forward = kimi_linear_feed_forward},
      {.types = {"bailing_hybrid"},
       .router_bias = kAlways,
       .layer_kinds = kLinearKinds,
       .adjust = bailing_hybrid,
       .mixer = bailing_hybrid_mixer},
  };
  return families;
}

}  // namespace memwall
