// Gemma. Sources: the modelling code of Hugging Face transformers 5.24 (models/NAME/modeling_NAME.py).
#include <fmt/format.h>

#include "format/checked.h"
#include "huggingface/families_parts.h"

namespace memwall {
namespace {

// Gemma 3n and 4 E2B, E4B: a second table gives every layer an input of its own, of which a token reads its
// row.
void add_per_layer_inputs(const Config& config, Plan& plan, std::int64_t width) {
  if (width == 0) return;
  const std::int64_t all = checked_mul(width, plan.layers);
  Block part;
  part.tensors.push_back({.name = "embed_tokens_per_layer",
                          .role = Role::embedding,
                          .out = size_or(config, {"vocab_size_per_layer_input"}, 262144),
                          .in = all,
                          .format = plan.common.head,
                          .read = Read::gathered});
  add_linear(part, plan.common, "per_layer_model_projection", all, plan.common.hidden_size);
  add_norm(part, plan.common, "per_layer_projection_norm", width, plan.layers);
  plan.embedding_parts.insert(plan.embedding_parts.end(), part.tensors.begin(), part.tensors.end());
}

void use_per_layer_input(Block& block, const Plan& plan, std::int64_t width) {
  const std::int64_t hidden = plan.common.hidden_size;
  add_linear(block, plan.common, "per_layer_input_gate", width, hidden);
  add_linear(block, plan.common, "per_layer_projection", hidden, width);
  add_norm(block, plan.common, "post_per_layer_input_norm", hidden);
}

// The last layers read the cache of an earlier one of their kind.
bool shares_kv(const Config& config, const Plan& plan, std::int32_t layer) {
  const std::int64_t shared = size_or_none(config, {"num_kv_shared_layers"});
  return layer >= plan.layers - shared;
}

std::int64_t per_layer_width(const Config& config, std::int64_t fallback) {
  return size_or_none(config, {"hidden_size_per_layer_input"}, fallback);
}

// AltUp (arXiv 2301.13310): several copies of the residual stream, one of which a layer runs on.
void gemma3n(const Config& config, Plan& plan) {
  type_layers(
      plan, [](std::int32_t i) { return (i + 1) % 5 == 0; }, "sliding_attention");
  add_per_layer_inputs(config, plan, per_layer_width(config, 256));
  const std::int64_t hidden = plan.common.hidden_size;
  const std::int64_t copies = size_or(config, {"altup_num_inputs"}, 4);
  if (copies > 64)
    config.fail_about({"altup_num_inputs"},
                      fmt::format("altup_num_inputs is {}; at most 64 make sense", copies));
  Block in;
  Block out;
  for (std::int64_t i = 0; i + 1 < copies; ++i) {
    add_linear(in, plan.common, fmt::format("altup_projections.{}", i), hidden, hidden);
    add_linear(out, plan.common, fmt::format("altup_unembed_projections.{}", i), hidden, hidden);
  }
  plan.embedding_parts.insert(plan.embedding_parts.end(), in.tensors.begin(), in.tensors.end());
  plan.head_parts = out.tensors;
}

std::vector<Block> gemma3n_mixer(const Config& config, const Plan& plan, const LayerPlan& layer) {
  AttentionSpec spec = layer.attention;
  spec.shared_kv = shares_kv(config, plan, layer.index);
  return {attention_block(plan.common, spec)};
}

// Beside attention LAuReL's (arXiv 2411.07501) low-rank residual; around all of it AltUp's mixing.
std::vector<Block> gemma3n_feed_forward(const Config& config, const Plan& plan, const LayerPlan& layer) {
  const Common& common = plan.common;
  const std::int64_t hidden = common.hidden_size;
  const std::int64_t copies = size_or(config, {"altup_num_inputs"}, 4);
  const std::int64_t rank = size_or(config, {"laurel_rank"}, 64);
  Block extra{.kind = BlockKind::mixer, .name = "altup"};
  add_norm(extra, common, "altup.router_norm", hidden);
  add_linear(extra, common, "altup.modality_router", copies, hidden);
  add_linear(extra, common, "altup.prediction_coefs", checked_mul(copies, copies), copies);
  add_linear(extra, common, "altup.correction_coefs", copies, copies);
  add_parameter(extra, common, "altup.correct_output_scale", hidden);
  add_linear(extra, common, "laurel.linear_left", rank, hidden);
  add_linear(extra, common, "laurel.linear_right", hidden, rank);
  add_norm(extra, common, "laurel.post_laurel_norm", hidden);
  use_per_layer_input(extra, plan, per_layer_width(config, 256));
  return {mlp_block(common, layer.mlp), extra};
}

void gemma4(const Config& config, Plan& plan) {
  type_layers(
      plan, [](std::int32_t i) { return (i + 1) % 6 == 0; }, "sliding_attention");
  plan.types[static_cast<std::size_t>(plan.layers - 1)] = "full_attention";  // whatever the list says
  if (!config.flag_or({"enable_moe_block"}, false)) plan.moe.experts = 0;
  add_per_layer_inputs(config, plan, per_layer_width(config, 0));
}

// Full layers have wider heads, maybe fewer; where K serves as V too, they have no v_proj.
std::vector<Block> gemma4_mixer(const Config& config, const Plan& plan, const LayerPlan& layer) {
  AttentionSpec spec = layer.attention;
  spec.shared_kv = shares_kv(config, plan, layer.index);
  const bool full = is_full_attention(layer.type);
  const bool k_is_v = full && config.flag_or({"attention_k_eq_v"}, false);
  if (config.has({"per_layer_config"})) {
    spec.head_dim = layer_override(config, layer.index, "head_dim", spec.head_dim);
    spec.kv_heads = layer_override(config, layer.index, "num_key_value_heads", spec.kv_heads);
  } else if (full) {
    spec.head_dim = size_or(config, {"global_head_dim"}, 512);
    if (k_is_v || !config.has({"attention_k_eq_v"}))
      spec.kv_heads = size_or(config, {"num_global_key_value_heads"}, spec.kv_heads);
  }
  spec.v_head_dim = spec.head_dim;
  check_heads(config, spec);
  Block block = attention_block(plan.common, spec);
  if (k_is_v) remove_tensor(block, "v_proj");
  return {block};
}

// Experts stand beside the dense MLP, each with norms of its own, and one norm behind both.
std::vector<Block> gemma4_feed_forward(const Config& config, const Plan& plan, const LayerPlan& layer) {
  const Common& common = plan.common;
  const std::int64_t hidden = common.hidden_size;
  MlpSpec dense = layer.mlp;
  if (config.flag_or({"use_double_wide_mlp"}, false) && shares_kv(config, plan, layer.index))
    dense.intermediate = checked_mul(2, dense.intermediate);
  std::vector<Block> blocks = {mlp_block(common, dense)};
  Block last{.kind = BlockKind::mixer, .name = "layer_output"};
  if (plan.moe.experts > 0) {
    Block moe = moe_block(common, plan.moe);
    Block router;
    add_parameter(router, common, "router.scale", hidden);
    add_parameter(router, common, "router.per_expert_scale", plan.moe.experts);
    moe.tensors.insert(moe.tensors.begin() + 1, router.tensors.begin(), router.tensors.end());
    blocks.push_back(moe);
    add_norm(last, common, "post_feedforward_layernorm", hidden);
  }
  const std::int64_t width = per_layer_width(config, 0);
  if (width > 0) use_per_layer_input(last, plan, width);
  add_parameter(last, common, "layer_scalar", 1);
  blocks.push_back(last);
  return blocks;
}

}  // namespace

const std::vector<Family>& gemma_families() {
  static const std::vector<Family> families = {
      {.types = {"gemma"}, .tied = true},
      {.types = {"gemma2"},
       .norm_place = NormPlace::both,
       .tied = true,
       .sliding = Sliding::pattern,
       .sliding_pattern = 2},
      {.types = {"vaultgemma"}, .tied = true, .sliding = Sliding::pattern, .sliding_pattern = 2},
      {.types = {"gemma3", "gemma3_text"},
       .norm_place = NormPlace::both,
       .tied = true,
       .qk_norm = QkNorm::head,
       .sliding = Sliding::pattern,
       .sliding_pattern = 6},
      {.types = {"gemma3n", "gemma3n_text"},
       .norm_place = NormPlace::both,
       .tied = true,
       .qk_norm = QkNorm::head,
       .adjust = gemma3n,
       .mixer = gemma3n_mixer,
       .feed_forward = gemma3n_feed_forward},
      {.types = {"gemma4", "gemma4_text", "gemma4_unified", "gemma4_unified_text"},
       .norm_place = NormPlace::both,
       .tied = true,
       .qk_norm = QkNorm::head,
       .adjust = gemma4,
       .mixer = gemma4_mixer,
       .feed_forward = gemma4_feed_forward},
  };
  return families;
}

}  // namespace memwall
