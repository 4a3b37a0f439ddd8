// Decoders after GPT-2: LayerNorm, biases, two linears in an MLP, and their relatives. Sources: the modelling
// code of Hugging Face transformers 5.24 (models/NAME/modeling_NAME.py) or, for a family that it lacks, the
// code in the model's repository.
#include <fmt/format.h>

#include "format/checked.h"
#include "huggingface/families_parts.h"

namespace memwall {
namespace {

void phi3small(const Config& config, Plan& plan) {
  plan.mlp.intermediate = config.integer_or({"ff_intermediate_size"}, plan.mlp.intermediate);
}

void gpt_bigcode(const Config& config, Plan& plan) {
  plan.attention.kv_heads = config.flag_or({"multi_query"}, true) ? 1 : plan.attention.heads;
}

void gpt_neo(const Config& config, Plan& plan) {
  // attention_types is [[["global", "local"], 12]]: kinds and how often they repeat.
  const json::Value* groups = config.find({"attention_types"});
  plan.types.clear();
  if (groups == nullptr) return;
  std::int64_t listed = 0;
  if (groups->kind != json::Kind::array) config.fail_at(*groups, "attention_types must be a list");
  for (const json::Value& group : groups->items) {
    if (group.items.size() != 2) config.fail_at(group, "attention_types holds pairs of kinds and a count");
    const std::int64_t repeat =
        json::as_integer(config.file(), group.items[1], "attention_types", {1, 10'000});
    if (group.items[0].items.empty())
      config.fail_at(group, "attention_types holds pairs of kinds and a count");
    for (const json::Value& kind : group.items[0].items) {
      if (kind.text != "local" && kind.text != "global")
        config.fail_at(kind, "attention_types holds the kinds 'global' and 'local'");
    }
    listed = checked_add(listed, checked_mul(repeat, static_cast<std::int64_t>(group.items[0].items.size())));
    for (std::int64_t i = 0; i < repeat && plan.types.size() < static_cast<std::size_t>(plan.layers); ++i) {
      for (const json::Value& kind : group.items[0].items)
        plan.types.push_back(kind.text == "local" ? "sliding_attention" : "full_attention");
    }
  }
  if (listed != plan.layers)
    config.fail_at(*groups, fmt::format("attention_types lists {} layers of {}", listed, plan.layers));
}

void opt(const Config& config, Plan& plan) {
  bias_by(config, plan, "enable_bias", true);
  if (!config.flag_or({"layer_norm_elementwise_affine"}, true)) plan.common.norm = NormKind::none;
  const bool pre = config.flag_or({"do_layer_norm_before"}, true);
  plan.attention.norm = plan.mlp.norm = pre ? NormPlace::pre : NormPlace::post;
  plan.head.final_norm = pre && !config.flag_or({"_remove_final_layer_norm"}, false);
  // OPT-350m embeds in a narrower space, with a projection at each end.
  const std::int64_t width = config.integer_or({"word_embed_proj_dim"}, plan.common.hidden_size);
  if (width != plan.common.hidden_size) plan.head.width = size_or(config, {"word_embed_proj_dim"}, width);
}

void bloom(const Config&, Plan& plan) { add_embedding_norm(plan); }

// GPT-1 normalises behind each block, and nothing at the end.
void openai_gpt(const Config&, Plan& plan) { plan.head.final_norm = false; }

void jais(const Config& config, Plan& plan) {
  plan.mlp.gated = config.text_or({"activation_function"}, "swiglu") == "swiglu";
  if (config.text_or({"position_embedding_type"}, "alibi") != "learned") plan.positions = 0;
}

// One bias in all: of the last layer's o_proj.
void gpt_neox_japanese(const Config& config, Plan& plan) {
  plan.mlp.intermediate =
      checked_mul(plan.common.hidden_size, size_or(config, {"intermediate_multiple_size"}, 4));
}

std::vector<Block> gpt_neox_japanese_mixer(const Config&, const Plan& plan, const LayerPlan& layer) {
  AttentionSpec spec = layer.attention;
  spec.bias_o = layer.index == plan.layers - 1;
  return {attention_block(plan.common, spec)};
}

// LayerNorm, a bias on every linear, an MLP without a gate.
Family biased(Family family) {
  family.norm = NormKind::layer;
  family.qkv_bias = family.o_bias = family.mlp_bias = kAlways;
  family.gated = false;
  return family;
}

}  // namespace

const std::vector<Family>& gpt_families() {
  static const std::vector<Family> families = {
      biased({.types = {"gpt2", "gpt-sw3"},
              .tied = true,
              .rotary = false,
              .fused_qkv = true,
              .positions = "n_positions"}),
      biased({.types = {"openai-gpt"},
              .norm_place = NormPlace::post,
              .tied = true,
              .rotary = false,
              .fused_qkv = true,
              .positions = "n_positions",
              .adjust = openai_gpt}),
      biased({.types = {"jais"},
              .tied = true,
              .rotary = false,
              .fused_qkv = true,
              .positions = "n_positions",
              .adjust = jais}),
      biased({.types = {"ctrl"}, .tied = true, .lm_head_bias = true, .rotary = false}),
      biased({.types = {"gpt_bigcode"},
              .tied = true,
              .rotary = false,
              .fused_qkv = true,
              .positions = "n_positions",
              .adjust = gpt_bigcode}),
      biased({.types = {"biogpt"},
              .tied = true,
              .rotary = false,
              .positions = "max_position_embeddings",
              .extra_positions = 2}),
      biased({.types = {"xglm"}, .tied = true, .rotary = false}),
      biased({.types = {"bloom"}, .tied = true, .rotary = false, .fused_qkv = true, .adjust = bloom}),
      biased({.types = {"phi", "phi-msft", "mixformer-sequential"},
              .lm_head_bias = true,
              .parallel = kAlways,
              .qk_norm = QkNorm::head,
              .qk_norm_if = {"qk_layernorm", false}}),
      biased({.types = {"persimmon"},
              .fused_qkv = true,
              .qk_norm = QkNorm::head,
              .qk_norm_if = {"qk_layernorm", false}}),
      {.types = {"phi3small"},
       .norm = NormKind::layer,
       .tied = true,
       .qkv_bias = kAlways,
       .o_bias = kAlways,
       .mlp_bias = kAlways,
       .fused_qkv = true,
       .fused_gate_up = true,
       .adjust = phi3small},
      {.types = {"gpt_neo"},
       .norm = NormKind::layer,
       .tied = true,
       .qkv_bias = kNever,
       .o_bias = kAlways,
       .mlp_bias = kAlways,
       .rotary = false,
       .gated = false,
       .positions = "max_position_embeddings",
       .adjust = gpt_neo},
      {.types = {"gptj"},
       .norm = NormKind::layer,
       .qkv_bias = kNever,
       .o_bias = kNever,
       .mlp_bias = kAlways,
       .lm_head_bias = true,
       .gated = false,
       .parallel = kAlways},
      {.types = {"codegen", "moss"},
       .norm = NormKind::layer,
       .qkv_bias = kNever,
       .o_bias = kNever,
       .mlp_bias = kAlways,
       .lm_head_bias = true,
       .gated = false,
       .fused_qkv = true,
       .parallel = kAlways},
      {.types = {"gpt_neox", "gpt_neox_reward_model"},
       .norm = NormKind::layer,
       .qkv_bias = {"attention_bias", true},
       .o_bias = {"attention_bias", true},
       .mlp_bias = kAlways,
       .gated = false,
       .fused_qkv = true},
      {.types = {"gpt_neox_japanese"},
       .norm = NormKind::layer,
       .tied = true,
       .qkv_bias = kNever,
       .o_bias = kNever,
       .mlp_bias = kNever,
       .gated = false,
       .fused_qkv = true,
       .adjust = gpt_neox_japanese,
       .mixer = gpt_neox_japanese_mixer},
      {.types = {"opt"},
       .norm = NormKind::layer,
       .tied = true,
       .rotary = false,
       .gated = false,
       .positions = "max_position_embeddings",
       .extra_positions = 2,
       .adjust = opt},
  };
  return families;
}

}  // namespace memwall
