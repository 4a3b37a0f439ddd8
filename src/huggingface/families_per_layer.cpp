// Decoders whose layers differ by lists. Sources: the code in the models' repositories.
#include <fmt/format.h>

#include <algorithm>

#include "format/checked.h"
#include "huggingface/families_parts.h"

namespace memwall {
namespace {

// Llama-Nemotron: an architecture search left layers without attention, with another grouping, with a linear
// in place of either, and with MLPs of other widths.
constexpr const char* kNasBlocks = "block_configs";

const json::Value& nas_part(const Config& config, const LayerPlan& layer, const char* part) {
  const json::Value& block = *config.layer_item({kNasBlocks}, layer.index);
  const json::Value* value = block.find(part);
  if (value == nullptr) config.fail_at(block, fmt::format("layer {} has no {}", layer.index, part));
  return *value;
}

bool nas_flag(const Config& config, const json::Value& part, const char* key) {
  const json::Value* value = part.find(key);
  return value != nullptr && value->kind != json::Kind::null && json::as_bool(config.file(), *value, key);
}

Block nas_linear(const Plan& plan, const char* norm, const char* name) {
  Block block{.kind = BlockKind::mixer, .name = "linear"};
  add_norm(block, plan.common, norm, plan.common.hidden_size);
  add_linear(block, plan.common, name, plan.common.hidden_size, plan.common.hidden_size);
  return block;
}

std::vector<Block> nas_mixer(const Config& config, const Plan& plan, const LayerPlan& layer) {
  if (!config.has({kNasBlocks})) return {common_attention(plan, layer)};  // DeciLM: lists of numbers
  const json::Value& part = nas_part(config, layer, "attention");
  if (nas_flag(config, part, "no_op")) return {};
  if (nas_flag(config, part, "replace_with_linear")) return {nas_linear(plan, "attn_norm", "linear_attn")};
  AttentionSpec spec = layer.attention;
  const json::Value* group = part.find("n_heads_in_group");
  if (group == nullptr || group->kind == json::Kind::null)
    config.fail_at(part, fmt::format("layer {} has no n_heads_in_group", layer.index));
  const std::int64_t in_group = json::as_integer(config.file(), *group, "n_heads_in_group", {1, spec.heads});
  if (spec.heads % in_group != 0) config.fail_at(*group, "n_heads_in_group does not divide the heads");
  spec.kv_heads = spec.heads / in_group;
  if (const json::Value* window = part.find("window_length");
      window != nullptr && window->kind != json::Kind::null)
    spec.window = json::as_integer(config.file(), *window, "window_length", {0, 1 << 30});
  return {attention_block(plan.common, spec)};
}

std::vector<Block> nas_feed_forward(const Config& config, const Plan& plan, const LayerPlan& layer) {
  if (!config.has({kNasBlocks})) return common_feed_forward(plan, layer);
  const json::Value& part = nas_part(config, layer, "ffn");
  if (nas_flag(config, part, "no_op")) return {};
  if (nas_flag(config, part, "replace_with_linear")) return {nas_linear(plan, "mlp_norm", "linear_mlp")};
  MlpSpec spec = layer.mlp;
  const json::Value* width = part.find("intermediate_size");
  if (width != nullptr && width->kind != json::Kind::null) {
    spec.intermediate = json::as_integer(config.file(), *width, "intermediate_size", {1, 1 << 30});
  } else {
    const json::Value* mult = part.find("ffn_mult");
    if (mult == nullptr) config.fail_at(part, fmt::format("layer {} has no ffn_mult", layer.index));
    const double factor = json::as_number(config.file(), *mult, "ffn_mult");
    if (!(factor > 0 && factor < 1000)) config.fail_at(*mult, "ffn_mult must be from 0 to 1000");
    // Two thirds for the gate, rounded up to 256 (DeciLM's ffn_mult_to_intermediate_size).
    const auto width_of =
        static_cast<std::int64_t>(2 * factor * static_cast<double>(plan.common.hidden_size) / 3);
    spec.intermediate = div_up(width_of, 256) * 256;
  }
  return {mlp_block(plan.common, spec)};
}

// OpenELM (arXiv 2404.14619): heads and widths grow with depth.
void openelm(const Config& config, Plan& plan) {
  plan.attention.head_dim = plan.attention.v_head_dim = size_or(config, {"head_dim"}, 64);
  if (config.flag_or({"normalize_qk_projections"}, false)) plan.attention.qk_norm = QkNorm::head;
  plan.mlp.gated = config.flag_or({"ffn_with_glu"}, true);
  plan.head.tied = config.flag_or({"share_input_output_layers"}, true);
}

std::vector<Block> openelm_feed_forward(const Config& config, const Plan& plan, const LayerPlan& layer) {
  const json::Value* item = config.layer_item({"ffn_multipliers"}, layer.index);
  if (item == nullptr) config.fail("no ffn_multipliers");
  const double factor = json::as_number(config.file(), *item, "ffn_multipliers");
  const std::int64_t divisor = size_or(config, {"ffn_dim_divisor"}, 256);
  const std::int64_t width = scaled(config, "ffn_multipliers", factor, plan.common.hidden_size);
  MlpSpec spec = layer.mlp;
  spec.intermediate = std::max(divisor, (width + divisor / 2) / divisor * divisor);
  return {mlp_block(plan.common, spec)};
}

}  // namespace

const std::vector<Family>& per_layer_families() {
  static const std::vector<Family> families = {
      {.types = {"nemotron-nas", "nemotron_nas", "deci"},
       .mixer = nas_mixer,
       .feed_forward = nas_feed_forward},
      {.types = {"openelm"},
       .tied = true,
       .fused_qkv = true,
       .fused_gate_up = true,
       .adjust = openelm,
       .feed_forward = openelm_feed_forward},
  };
  return families;
}

}  // namespace memwall
