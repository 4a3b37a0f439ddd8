// Decoders with layers whose state does not grow: state spaces, gated delta nets, linear attention, short
// convolutions. Sources: the modelling code of Hugging Face transformers 5.24
// (models/NAME/modeling_NAME.py) or, for a family that it lacks, the code in the model's repository.
#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "format/checked.h"
#include "huggingface/family.h"
#include "model/recurrent_blocks.h"

namespace memwall {
namespace {

constexpr Switch kAlways{nullptr, true};

bool is_full_attention(const std::string& type) {
  return type == "attention" || type == "full_attention" || type == "*";
}

// The recurrence keeps f32 unless the config says otherwise.
std::int64_t state_width(const Config& config) {
  const std::string type = config.text_or({"mamba_ssm_cache_dtype", "mamba_ssm_dtype"}, "float32");
  return type == "float32" || type == "auto" ? 4 : 2;
}

std::int64_t positive(const Config& config, const char* what, std::int64_t value) {
  if (value < 1) config.fail(fmt::format("{} is {}; it must be above 0", what, value));
  return value;
}

// A number, or "auto" (or nothing) for what follows from the others.
std::int64_t number_or_auto(const Config& config, Names names, std::int64_t automatic) {
  const json::Value* value = config.find(names);
  if (value == nullptr || value->kind == json::Kind::text) return automatic;
  return config.integer_or(names, automatic);
}

MambaSpec read_mamba(const Config& config, const Plan& plan) {
  const std::int64_t hidden = plan.common.hidden_size;
  MambaSpec spec;
  spec.state = positive(config, "state_size", config.integer_or({"state_size", "mamba_d_state"}, 16));
  spec.conv = positive(config, "conv_kernel", config.integer_or({"conv_kernel", "mamba_d_conv"}, 4));
  spec.dt_rank = number_or_auto(config, {"time_step_rank", "mamba_dt_rank"}, div_up(hidden, 16));
  spec.bias = config.flag_or({"use_bias", "mamba_proj_bias"}, false);
  spec.conv_bias = config.flag_or({"use_conv_bias", "mamba_conv_bias"}, true);
  spec.element_bytes = state_width(config);
  return spec;
}

// Mamba and Falcon-Mamba: nothing but Mamba layers.
std::vector<Block> mamba_mixer(const Config& config, const Plan& plan, const LayerPlan&) {
  MambaSpec spec = read_mamba(config, plan);
  spec.inner = config.integer_or({"intermediate_size", "d_inner"}, 0);
  if (spec.inner == 0)
    spec.inner = checked_mul(plan.common.hidden_size, config.integer_or({"expand"}, 2));
  return {mamba_block(plan.common, spec)};
}

std::vector<Block> nothing(const Config&, const Plan&, const LayerPlan&) { return {}; }

Mamba2Spec read_mamba2(const Config& config, const Plan& plan) {
  Mamba2Spec spec;
  const std::int64_t expand = config.integer_or({"expand", "mamba_expand"}, 2);
  spec.heads = positive(config, "mamba_num_heads",
                        config.integer_or({"mamba_num_heads", "mamba_n_heads", "n_mamba_heads", "num_heads"}, 128));
  const std::int64_t inner =
      config.integer_or({"mamba_d_ssm"}, checked_mul(plan.common.hidden_size, expand));
  spec.head_dim = positive(config, "mamba_head_dim",
                           number_or_auto(config, {"mamba_head_dim", "mamba_d_head", "mamba_headdim"},
                                          inner / spec.heads));
  spec.state = positive(config, "ssm_state_size",
                        config.integer_or({"ssm_state_size", "mamba_d_state", "state_size"}, 128));
  spec.groups = positive(config, "n_groups",
                         config.integer_or({"n_groups", "mamba_n_groups", "mamba_ngroups"}, 1));
  spec.conv = positive(config, "conv_kernel", config.integer_or({"conv_kernel", "mamba_d_conv"}, 4));
  spec.bias = config.flag_or({"mamba_proj_bias", "use_bias", "add_bias_linear"}, false);
  spec.conv_bias = config.flag_or({"use_conv_bias", "mamba_conv_bias"}, true);
  spec.element_bytes = state_width(config);
  return spec;
}

std::vector<Block> mamba2_mixer(const Config& config, const Plan& plan, const LayerPlan&) {
  Mamba2Spec spec = read_mamba2(config, plan);
  spec.head_dim = positive(config, "head_dim", config.integer_or({"head_dim"}, 64));
  return {mamba2_block(plan.common, spec)};
}

void jamba(const Config& config, Plan& plan) {
  const std::int64_t every = std::max<std::int64_t>(1, config.integer_or({"expert_layer_period"}, 2));
  const std::int64_t first = config.integer_or({"expert_layer_offset"}, 1);
  for (std::int32_t i = 0; i < plan.layers; ++i)
    plan.moe_layers[static_cast<std::size_t>(i)] = plan.moe.experts > 1 && i % every == first;
}

std::vector<Block> jamba_mixer(const Config& config, const Plan& plan, const LayerPlan& layer) {
  const std::int64_t every = std::max<std::int64_t>(1, config.integer_or({"attn_layer_period"}, 8));
  const bool attention = layer.type.empty() ? layer.index % every == config.integer_or({"attn_layer_offset"}, 4)
                                            : is_full_attention(layer.type);
  if (attention) return {common_attention(plan, layer)};
  MambaSpec spec = read_mamba(config, plan);
  spec.inner = checked_mul(plan.common.hidden_size, positive(config, "mamba_expand", config.integer_or({"mamba_expand"}, 2)));
  spec.inner_norms = true;
  return {mamba_block(plan.common, spec)};
}

// Mamba-2 in most layers and attention in a few: Bamba, Granite 4.
std::vector<Block> mamba2_hybrid_mixer(const Config& config, const Plan& plan, const LayerPlan& layer) {
  const std::vector<std::int64_t> indices = config.integers({"attn_layer_indices"});
  const bool attention = is_full_attention(layer.type) ||
                         std::find(indices.begin(), indices.end(), layer.index) != indices.end();
  if (attention) return {common_attention(plan, layer)};
  return {mamba2_block(plan.common, read_mamba2(config, plan))};
}

void granite_hybrid(const Config& config, Plan& plan) {
  // Without experts the shared MLP is all there is.
  if (plan.moe.experts == 0)
    plan.mlp.intermediate = config.integer_or({"shared_intermediate_size"}, 1024);
  else
    plan.moe.shared_intermediate = config.integer_or({"shared_intermediate_size"}, 1024);
  plan.attention.rotary = config.text_or({"position_embedding_type"}, "") != "nope";
}

// Attention and Mamba-2 side by side over one normed input.
std::vector<Block> falcon_h1_mixer(const Config& config, const Plan& plan, const LayerPlan& layer) {
  Mamba2Spec spec = read_mamba2(config, plan);
  spec.norm = config.flag_or({"mamba_rms_norm"}, false);
  return {common_attention(plan, layer), mamba2_block(plan.common, spec, NormPlace::none)};
}

// Nemotron-H: a layer is one thing: M (Mamba-2), * (attention), - (MLP) or E (experts).
std::string nemotron_type(const Config& config, const LayerPlan& layer) {
  const std::string pattern = config.text_or({"hybrid_override_pattern"}, "");
  if (layer.type.empty() && static_cast<std::size_t>(layer.index) >= pattern.size())
    config.fail(fmt::format("hybrid_override_pattern has no layer {}", layer.index));
  const std::string type =
      layer.type.empty() ? std::string(1, pattern[static_cast<std::size_t>(layer.index)]) : layer.type;
  if (type == "M" || type == "mamba" || type == "linear_attention" || type == "mamba2") return "mamba";
  if (is_full_attention(type)) return "attention";
  if (type == "-" || type == "mlp") return "mlp";
  if (type == "E" || type == "moe") return "moe";
  config.fail(fmt::format("layer {} is of type '{}'; Nemotron-H has M, *, - and E", layer.index,
                          json::printable(type)));
}

void nemotron_h(const Config& config, Plan& plan) {
  const std::string activation = config.text_or({"mlp_hidden_act"}, "relu2");
  plan.mlp.activation = activation.find("relu") != std::string::npos ? ActivationKind::relu : ActivationKind::silu;
  plan.moe.expert.activation = plan.mlp.activation;
  plan.moe.latent = config.integer_or({"moe_latent_size"}, 0);
  const bool bias = config.flag_or({"mlp_bias"}, false);
  plan.mlp.bias = plan.moe.expert.bias = bias;
  plan.attention.rotary = false;
}

std::vector<Block> nemotron_h_mixer(const Config& config, const Plan& plan, const LayerPlan& layer) {
  const std::string type = nemotron_type(config, layer);
  if (type == "mlp") return {mlp_block(plan.common, layer.mlp)};
  if (type == "attention") return {common_attention(plan, layer)};
  if (type == "mamba") return {mamba2_block(plan.common, read_mamba2(config, plan))};
  if (plan.moe.experts == 0) config.fail("a layer has experts, but there is no n_routed_experts");
  return {moe_block(plan.common, plan.moe)};
}

// Qwen3-Next and Qwen3.5: gated delta nets, and every fourth layer an attention whose output is gated.
DeltaNetSpec read_delta_net(const Config& config) {
  DeltaNetSpec spec;
  spec.key_heads = positive(config, "linear_num_key_heads", config.integer_or({"linear_num_key_heads"}, 16));
  spec.value_heads = positive(config, "linear_num_value_heads", config.integer_or({"linear_num_value_heads"}, 32));
  spec.key_dim = positive(config, "linear_key_head_dim", config.integer_or({"linear_key_head_dim"}, 128));
  spec.value_dim = positive(config, "linear_value_head_dim", config.integer_or({"linear_value_head_dim"}, 128));
  spec.conv = positive(config, "linear_conv_kernel_dim", config.integer_or({"linear_conv_kernel_dim"}, 4));
  spec.element_bytes = state_width(config);
  return spec;
}

std::vector<Block> qwen_next_layer(const Config& config, const Plan& plan, const LayerPlan& layer, bool fused) {
  const std::int64_t every = std::max<std::int64_t>(1, config.integer_or({"full_attention_interval"}, 4));
  const bool attention =
      layer.type.empty() ? (layer.index + 1) % every == 0 : is_full_attention(layer.type);
  if (attention) {
    AttentionSpec spec = layer.attention;
    if (config.flag_or({"attn_output_gate"}, true)) spec.gate = OutputGate::in_q_proj;
    return {attention_block(plan.common, spec)};
  }
  DeltaNetSpec spec = read_delta_net(config);
  spec.fused = fused;
  return {delta_net_block(plan.common, spec)};
}

std::vector<Block> qwen3_next_mixer(const Config& config, const Plan& plan, const LayerPlan& layer) {
  return qwen_next_layer(config, plan, layer, true);
}

std::vector<Block> qwen3_5_mixer(const Config& config, const Plan& plan, const LayerPlan& layer) {
  return qwen_next_layer(config, plan, layer, false);
}

// MiniMax-01: lightning attention (arXiv 2501.08313), a linear attention with a fixed decay a head.
std::vector<Block> minimax_mixer(const Config& config, const Plan& plan, const LayerPlan& layer) {
  bool full = is_full_attention(layer.type);
  if (layer.type.empty()) {
    full = config.has({"attn_type_list"}) ? config.layer_integer_or({"attn_type_list"}, layer.index, 0) != 0
                                          : layer.index % 2 == 0;
  }
  if (full) return {common_attention(plan, layer)};
  constexpr std::int64_t kFlops = 5;  // decay, k·v (2), q·S (2)
  const AttentionSpec& spec = layer.attention;
  const std::int64_t hidden = plan.common.hidden_size;
  const std::int64_t width = checked_mul(spec.heads, spec.head_dim);
  const std::int64_t elements = checked_mul(width, spec.head_dim);
  Block block{.kind = BlockKind::mixer, .name = "lightning_attention"};
  add_norm(block, plan.common, "mixer_norm", hidden);
  add_linear(block, plan.common, "qkv_proj", checked_mul(3, width), hidden);
  add_linear(block, plan.common, "output_gate", width, hidden);
  block.place(RecurrentState{.elements = elements,
                             .element_bytes = state_width(config),
                             .flops = checked_mul(kFlops, elements)});
  add_norm(block, plan.common, "gated_norm", width);
  add_linear(block, plan.common, "out_proj", hidden, width);
  return {block};
}

// Kimi Linear (arXiv 2510.26692): delta attention with a decay a channel; every fourth layer latent attention
// without positions.
std::vector<Block> kimi_linear_mixer(const Config& config, const Plan& plan, const LayerPlan& layer) {
  const std::vector<std::int64_t> full = config.integers({"linear_attn_config.full_attn_layers"});
  const bool attention = layer.type.empty()
                             ? std::find(full.begin(), full.end(), layer.index + 1) != full.end()
                             : is_full_attention(layer.type);
  const Common& common = plan.common;
  const std::int64_t hidden = common.hidden_size;
  if (attention) {
    MlaSpec spec;
    spec.heads = plan.attention.heads;
    spec.q_lora_rank = config.integer_or({"q_lora_rank"}, 0);
    spec.kv_lora_rank = config.integer({"kv_lora_rank"});
    spec.qk_nope_head_dim = config.integer({"qk_nope_head_dim"});
    spec.qk_rope_head_dim = config.integer({"qk_rope_head_dim"});
    spec.v_head_dim = config.integer({"v_head_dim"});
    return {mla_block(common, spec)};
  }
  constexpr std::int64_t kFlops = 7;
  const std::int64_t heads = positive(config, "num_heads", config.integer_or({"linear_attn_config.num_heads", "linear_num_heads"}, plan.attention.heads));
  const std::int64_t width = positive(config, "head_dim", config.integer_or({"linear_attn_config.head_dim", "linear_head_dim"}, 128));
  const std::int64_t taps = positive(config, "short_conv_kernel_size", config.integer_or({"linear_attn_config.short_conv_kernel_size", "linear_conv_kernel_dim"}, 4));
  const std::int64_t inner = checked_mul(heads, width);
  const std::int64_t channels = checked_mul(3, inner);
  const std::int64_t elements = checked_mul(inner, width);
  Block block{.kind = BlockKind::mixer, .name = "kimi_delta_attention"};
  add_norm(block, common, "mixer_norm", hidden);
  for (const char* name : {"q_proj", "k_proj", "v_proj"}) add_linear(block, common, name, inner, hidden);
  add_linear(block, common, "b_proj", heads, hidden);
  add_linear(block, common, "f_a_proj", width, hidden);
  add_linear(block, common, "g_a_proj", width, hidden);
  add_linear(block, common, "f_b_proj", inner, width);
  add_linear(block, common, "g_b_proj", inner, width);
  add_parameter(block, common, "conv1d", checked_mul(channels, taps));
  add_parameter(block, common, "dt_bias", inner);
  add_parameter(block, common, "A_log", heads);
  block.place(RecurrentState{.elements = elements,
                             .conv_elements = checked_mul(channels, taps - 1),
                             .flops = checked_add(checked_mul(kFlops, elements), conv_flops(channels, taps))});
  add_norm(block, common, "o_norm", width, heads);
  add_linear(block, common, "o_proj", hidden, inner);
  return {block};
}

void lfm2(const Config& config, Plan& plan) {
  std::int64_t width = config.integer_or({"block_ff_dim", "intermediate_size"}, plan.mlp.intermediate);
  if (config.flag_or({"block_auto_adjust_ff_dim"}, true)) {
    const double factor = config.number_or({"block_ffn_dim_multiplier"}, 1.0);
    const std::int64_t multiple = std::max<std::int64_t>(1, config.integer_or({"block_multiple_of"}, 256));
    if (!(factor > 0 && factor < 1000)) config.fail("block_ffn_dim_multiplier must be from 0 to 1000");
    width = static_cast<std::int64_t>(factor * static_cast<double>(2 * width / 3));
    width = div_up(width, multiple) * multiple;
  }
  plan.mlp.intermediate = width;
  if (const json::Value* tied = config.find({"tie_embedding"}))
    plan.head.tied = json::as_bool(config.file(), *tied, "tie_embedding");
}

std::vector<Block> lfm2_mixer(const Config& config, const Plan& plan, const LayerPlan& layer) {
  const std::vector<std::int64_t> full = config.integers({"full_attn_idxs"});
  const bool attention = layer.type.empty()
                             ? full.empty() || std::find(full.begin(), full.end(), layer.index) != full.end()
                             : is_full_attention(layer.type);
  if (attention) return {common_attention(plan, layer)};
  return {short_conv_block(plan.common, config.integer_or({"conv_dim"}, plan.common.hidden_size),
                           positive(config, "conv_L_cache", config.integer_or({"conv_L_cache"}, 3)),
                           config.flag_or({"conv_bias"}, false))};
}

// Griffin (arXiv 2402.19427): a gated linear recurrence, and every third layer local attention.
void recurrent_gemma(const Config& config, Plan& plan) {
  plan.mlp.bias = plan.attention.bias_o = true;
  plan.mlp.intermediate /= 2;  // it counts both halves of the gated projection
  plan.attention.kv_heads = config.integer_or({"num_key_value_heads"}, 1);
}

std::vector<Block> recurrent_gemma_mixer(const Config& config, const Plan& plan, const LayerPlan& layer) {
  const std::vector<std::string> pattern = config.texts({"block_types", "_block_types"});
  bool attention = (layer.index + 1) % 3 == 0;
  if (!layer.type.empty()) {
    attention = layer.type != "recurrent" && layer.type != "linear_attention";
  } else if (!pattern.empty()) {
    attention = pattern[static_cast<std::size_t>(layer.index) % pattern.size()] == "attention";
  }
  const Common& common = plan.common;
  if (attention) {
    AttentionSpec spec = layer.attention;
    spec.window = config.integer_or({"attention_window_size", "sliding_window"}, 2048);
    return {attention_block(common, spec)};
  }
  const std::int64_t hidden = common.hidden_size;
  const std::int64_t width = positive(config, "lru_width", config.integer_or({"lru_width"}, hidden));
  const std::int64_t heads = plan.attention.heads;
  const std::int64_t taps = positive(config, "conv1d_width", config.integer_or({"conv1d_width"}, 4));
  constexpr std::int64_t kFlops = 12;  // two gates, a power, a root, the input's and the state's products
  Block block{.kind = BlockKind::mixer, .name = "rg_lru"};
  add_norm(block, common, "mixer_norm", hidden);
  add_linear(block, common, "linear_y", width, hidden, true);
  add_linear(block, common, "linear_x", width, hidden, true);
  // Block-diagonal: a head's gate reads the head's channels.
  add_linear(block, common, "input_gate", width, positive(config, "lru_width / heads", width / heads), true);
  add_linear(block, common, "recurrent_gate", width, width / heads, true);
  add_parameter(block, common, "conv1d", checked_mul(width, taps));
  add_parameter(block, common, "conv1d_bias", width);
  add_parameter(block, common, "recurrent_param", width);
  block.place(RecurrentState{.elements = width,
                             .conv_elements = checked_mul(width, taps - 1),
                             .flops = checked_add(checked_mul(kFlops, width), conv_flops(width, taps))});
  add_linear(block, common, "linear_out", hidden, width, true);
  return {block};
}

}  // namespace

const std::vector<Family>& recurrent_families() {
  static const std::vector<Family> families = {
      {.types = {"mamba", "falcon_mamba"}, .tied = true, .mixer = mamba_mixer, .feed_forward = nothing},
      {.types = {"mamba2"}, .mixer = mamba2_mixer, .feed_forward = nothing},
      {.types = {"jamba"}, .rotary = false, .adjust = jamba, .mixer = jamba_mixer},
      {.types = {"bamba"}, .mixer = mamba2_hybrid_mixer},
      {.types = {"granitemoehybrid"}, .adjust = granite_hybrid, .mixer = mamba2_hybrid_mixer},
      {.types = {"falcon_h1"}, .mixer = falcon_h1_mixer},
      {.types = {"nemotron_h"},
       .rotary = false,
       .gated = false,
       .router_bias = kAlways,
       .adjust = nemotron_h,
       .mixer = nemotron_h_mixer,
       .feed_forward = nothing},
      {.types = {"qwen3_next"}, .qk_norm = QkNorm::head, .shared_gate = true, .mixer = qwen3_next_mixer},
      {.types = {"qwen3_5", "qwen3_5_text", "qwen3_5_moe", "qwen3_5_moe_text"},
       .qk_norm = QkNorm::head,
       .shared_gate = true,
       .mixer = qwen3_5_mixer},
      {.types = {"minimax", "minimax_text_01", "MiniMaxText01"}, .mixer = minimax_mixer},
      {.types = {"kimi_linear"}, .router_bias = kAlways, .mixer = kimi_linear_mixer},
      {.types = {"lfm2"}, .tied = true, .qk_norm = QkNorm::head, .adjust = lfm2, .mixer = lfm2_mixer},
      {.types = {"lfm2_moe"},
       .tied = true,
       .qk_norm = QkNorm::head,
       .router_bias = {"use_expert_bias", true},
       .mixer = lfm2_mixer},
      {.types = {"recurrent_gemma"}, .tied = true, .adjust = recurrent_gemma, .mixer = recurrent_gemma_mixer},
  };
  return families;
}

}  // namespace memwall
