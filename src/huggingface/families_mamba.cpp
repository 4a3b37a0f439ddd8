// State spaces: Mamba (arXiv 2312.00752), Mamba-2 (arXiv 2405.21060) and hybrids of them and attention.
// Sources: the modelling code of Hugging Face transformers 5.24 (models/NAME/modeling_NAME.py) or, for a
// family that it lacks, the code in the model's repository.
#include <fmt/format.h>

#include <algorithm>

#include "format/checked.h"
#include "huggingface/families_parts.h"
#include "huggingface/plan.h"

namespace memwall {
namespace {

const std::vector<const char*> kMambaKinds = {"mamba", "linear_attention", "attention", "full_attention"};

// Mamba and Falcon-Mamba: nothing but Mamba layers.
std::vector<Block> mamba_mixer(const Config& config, const Plan& plan, const LayerPlan&) {
  MambaSpec spec = read_mamba(config, plan);
  spec.inner = size_or_none(config, {"intermediate_size", "d_inner"});
  if (spec.inner == 0) spec.inner = checked_mul(plan.common.hidden_size, size_or(config, {"expand"}, 2));
  return {mamba_block(plan.common, spec)};
}

// The first releases (state-spaces/mamba-130m) name no model_type; their vocabulary is padded.
void mamba_ssm(const Config& config, Plan& plan) {
  const std::int64_t multiple = size_or(config, {"pad_vocab_size_multiple"}, 8);
  plan.head.vocab_size = checked_mul(div_up(plan.head.vocab_size, multiple), multiple);
  if (!config.flag_or({"rms_norm"}, true)) plan.common.norm = NormKind::layer;
  if (!config.integers({"attn_layer_idx"}).empty() || config.integer_or({"d_intermediate"}, 0) != 0)
    config.fail_about(
        {"attn_layer_idx", "d_intermediate"},
        "of Mamba models with attention or MLPs between the layers, only Hugging Face's are read");
}

std::vector<Block> mamba_ssm_mixer(const Config& config, const Plan& plan, const LayerPlan&) {
  const std::int64_t hidden = plan.common.hidden_size;
  const std::int64_t inner = checked_mul(hidden, size_or(config, {"ssm_cfg.expand"}, 2));
  if (config.text_or({"ssm_cfg.layer"}, "Mamba1") != "Mamba2") {
    MambaSpec spec;
    spec.inner = inner;
    spec.state = size_or(config, {"ssm_cfg.d_state"}, 16);
    spec.conv = size_or(config, {"ssm_cfg.d_conv"}, 4);
    spec.dt_rank = size_or_auto(config, {"ssm_cfg.dt_rank"}, div_up(hidden, 16));
    return {mamba_block(plan.common, spec)};
  }
  Mamba2Spec spec;
  spec.head_dim = size_or(config, {"ssm_cfg.headdim"}, 64);
  spec.heads = inner / spec.head_dim;
  if (spec.heads < 1) config.fail_about({"ssm_cfg.headdim"}, "ssm_cfg.headdim is wider than all channels");
  spec.state = size_or(config, {"ssm_cfg.d_state"}, 128);
  spec.groups = size_or(config, {"ssm_cfg.ngroups"}, 1);
  spec.conv = size_or(config, {"ssm_cfg.d_conv"}, 4);
  return {mamba2_block(plan.common, spec)};
}

std::vector<Block> mamba2_mixer(const Config& config, const Plan& plan, const LayerPlan&) {
  Mamba2Spec spec = read_mamba2(config, plan);
  spec.head_dim = size_or(config, {"head_dim"}, 64);
  return {mamba2_block(plan.common, spec)};
}

void jamba(const Config& config, Plan& plan) {
  const std::int64_t every = size_or(config, {"expert_layer_period"}, 2);
  const std::int64_t first = config.integer_or({"expert_layer_offset"}, 1);
  if (plan.moe.experts == 1) plan.moe.experts = 0;
  for (std::int32_t i = 0; i < plan.layers; ++i)
    plan.moe_layers[static_cast<std::size_t>(i)] = plan.moe.experts > 0 && i % every == first;
  const std::int64_t period = size_or(config, {"attn_layer_period"}, 8);
  const std::int64_t offset = config.integer_or({"attn_layer_offset"}, 4);
  type_layers(plan, [&](std::int32_t i) { return i % period == offset; });
}

std::vector<Block> jamba_mixer(const Config& config, const Plan& plan, const LayerPlan& layer) {
  if (is_full_attention(layer.type)) return {common_attention(plan, layer)};
  MambaSpec spec = read_mamba(config, plan);
  spec.inner = checked_mul(plan.common.hidden_size, size_or(config, {"mamba_expand"}, 2));
  spec.inner_norms = true;
  return {mamba_block(plan.common, spec)};
}

// Mamba-2 in most layers and attention in a few: Bamba, Granite 4.
void mamba2_hybrid(const Config& config, Plan& plan) {
  const std::vector<bool> attention = named_layers(config, {"attn_layer_indices"}, plan);
  type_layers(plan, [&](std::int32_t i) { return attention[static_cast<std::size_t>(i)]; });
}

std::vector<Block> mamba2_hybrid_mixer(const Config& config, const Plan& plan, const LayerPlan& layer) {
  if (is_full_attention(layer.type)) return {common_attention(plan, layer)};
  return {mamba2_block(plan.common, read_mamba2(config, plan))};
}

void granite_hybrid(const Config& config, Plan& plan) {
  // Without experts the shared MLP is all there is.
  const std::int64_t shared = size_or(config, {"shared_intermediate_size"}, 1024);
  (plan.moe.experts == 0 ? plan.mlp.intermediate : plan.moe.shared_intermediate) = shared;
  plan.attention.rotary = config.text_or({"position_embedding_type"}, "") != "nope";
  mamba2_hybrid(config, plan);
}

// Attention and Mamba-2 side by side over one normed input.
std::vector<Block> falcon_h1_mixer(const Config& config, const Plan& plan, const LayerPlan& layer) {
  Mamba2Spec spec = read_mamba2(config, plan);
  spec.norm = config.flag_or({"mamba_rms_norm"}, false);
  return {common_attention(plan, layer), mamba2_block(plan.common, spec, NormPlace::none)};
}

// Nemotron-H: a layer is one thing: M (Mamba-2), * (attention), - (MLP) or E (experts).
std::string nemotron_type(const Config& config, const Plan& plan, const LayerPlan& layer) {
  const std::string pattern = config.text_or({"hybrid_override_pattern"}, "");
  const auto letters = static_cast<std::int64_t>(pattern.size());
  if (layer.type.empty() && letters != plan.layers && letters != plan.layers + draft_layers(config))
    config.fail_about({"hybrid_override_pattern"},
                      fmt::format("hybrid_override_pattern lists {} layers of {}", letters, plan.layers));
  const std::string type =
      layer.type.empty() ? std::string(1, pattern[static_cast<std::size_t>(layer.index)]) : layer.type;
  if (type == "M" || type == "mamba" || type == "linear_attention" || type == "mamba2") return "mamba";
  if (is_full_attention(type)) return "attention";
  if (type == "-" || type == "mlp") return "mlp";
  if (type == "E" || type == "moe") return "moe";
  config.fail_about(
      {"hybrid_override_pattern"},
      fmt::format("layer {} is of type '{}'; Nemotron-H has M, *, - and E", layer.index, excerpt(type)));
}

void nemotron_h(const Config& config, Plan& plan) {
  const std::string activation = config.text_or({"mlp_hidden_act"}, "relu2");
  plan.mlp.activation =
      activation.find("relu") != std::string::npos ? ActivationKind::relu : ActivationKind::silu;
  plan.moe.expert.activation = plan.mlp.activation;
  plan.moe.latent = size_or_none(config, {"moe_latent_size"});
  plan.mlp.bias = plan.moe.expert.bias = config.flag_or({"mlp_bias"}, false);
  plan.head.tied = false;  // whatever the config says: its lm_head is stored
}

std::vector<Block> nemotron_h_mixer(const Config& config, const Plan& plan, const LayerPlan& layer) {
  const std::string type = nemotron_type(config, plan, layer);
  if (type == "mlp") return {mlp_block(plan.common, layer.mlp)};
  if (type == "attention") return {common_attention(plan, layer)};
  if (type == "mamba") {
    Mamba2Spec spec = read_mamba2(config, plan);
    spec.bias = config.flag_or({"use_bias", "mamba_proj_bias"}, false);
    return {mamba2_block(plan.common, spec)};
  }
  if (plan.moe.experts == 0)
    config.fail_about(kExperts, "a layer has experts, but there is no n_routed_experts");
  // Only the shared expert has the biases.
  Block block = moe_block(plan.common, plan.moe);
  for (const char* name : {"experts.up_proj.bias", "experts.down_proj.bias"}) remove_tensor(block, name);
  return {block};
}

}  // namespace

const std::vector<Family>& mamba_families() {
  static const std::vector<Family> families = {
      {.types = {"mamba", "falcon_mamba"}, .tied = true, .mixer = mamba_mixer, .feed_forward = nothing},
      {.types = {"mamba_ssm"},
       .tied = true,
       .adjust = mamba_ssm,
       .mixer = mamba_ssm_mixer,
       .feed_forward = nothing},
      {.types = {"mamba2"}, .mixer = mamba2_mixer, .feed_forward = nothing},
      {.types = {"jamba"},
       .rotary = false,
       .layer_kinds = kMambaKinds,
       .adjust = jamba,
       .mixer = jamba_mixer},
      {.types = {"bamba"}, .layer_kinds = kMambaKinds, .adjust = mamba2_hybrid, .mixer = mamba2_hybrid_mixer},
      {.types = {"granitemoehybrid"},
       .layer_kinds = kMambaKinds,
       .adjust = granite_hybrid,
       .mixer = mamba2_hybrid_mixer},
      {.types = {"falcon_h1"}, .mixer = falcon_h1_mixer},
      {.types = {"nemotron_h"},
       .rotary = false,
       .gated = false,
       .router_bias = kAlways,
       .layer_kinds = {"mamba", "mamba2", "linear_attention", "attention", "full_attention", "mlp", "moe",
                       "M", "*", "-", "E"},
       .adjust = nemotron_h,
       .mixer = nemotron_h_mixer,
       .feed_forward = nothing},
  };
  return families;
}

}  // namespace memwall
