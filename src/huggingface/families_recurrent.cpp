// Short convolutions and gated linear recurrences with attention between. Sources: the modelling code of
// Hugging Face transformers 5.24 (models/NAME/modeling_NAME.py) or, for a family that it lacks, the code in
// the model's repository.
#include <fmt/format.h>

#include <algorithm>

#include "format/checked.h"
#include "huggingface/families_parts.h"

namespace memwall {
namespace {

const std::vector<const char*> kConvKinds = {"full_attention", "conv"};

// LFM2.
void lfm2_layers(const Config& config, Plan& plan) {
  const std::vector<bool> full = named_layers(config, {"full_attn_idxs"}, plan);
  const bool all = !config.has({"full_attn_idxs"});
  type_layers(
      plan, [&](std::int32_t i) { return all || full[static_cast<std::size_t>(i)]; }, "conv");
}

void lfm2(const Config& config, Plan& plan) {
  std::int64_t width = config.integer_or({"block_ff_dim", "intermediate_size"}, plan.mlp.intermediate);
  if (config.flag_or({"block_auto_adjust_ff_dim"}, true)) {
    const double factor = config.number_or({"block_ffn_dim_multiplier"}, 1.0);
    const std::int64_t multiple = std::max<std::int64_t>(1, config.integer_or({"block_multiple_of"}, 256));
    width = scaled(config, "block_ffn_dim_multiplier", factor, checked_mul(2, width) / 3);
    width = checked_mul(div_up(width, multiple), multiple);
  }
  plan.mlp.intermediate = width;
  lfm2_layers(config, plan);
  plan.head.tied = config.flag_or({"tie_embedding"}, plan.head.tied);
}

Block lfm_conv(const Config& config, const Plan& plan) {
  return short_conv_block(plan.common, size_or(config, {"conv_dim"}, plan.common.hidden_size),
                          size_or(config, {"conv_L_cache"}, 3), config.flag_or({"conv_bias"}, false));
}

std::vector<Block> lfm2_mixer(const Config& config, const Plan& plan, const LayerPlan& layer) {
  if (is_full_attention(layer.type)) return {common_attention(plan, layer)};
  return {lfm_conv(config, plan)};
}

// LFM3: norms behind the blocks too, and a gate a head.
void lfm3(const Config& config, Plan& plan) {
  if (plan.types.empty()) {
    for (std::int32_t i = 0; i < plan.layers; ++i)
      plan.types.emplace_back(i % 4 == 2            ? "full_attention"
                              : i % 4 == 0 && i > 0 ? "sliding_attention"
                                                    : "conv");
  }
  if (!config.flag_or({"use_sandwich_norm"}, true)) plan.attention.norm = plan.mlp.norm = NormPlace::pre;
  if (config.flag_or({"use_attention_gate"}, true)) plan.attention.gate = OutputGate::head;
}

std::vector<Block> lfm3_mixer(const Config& config, const Plan& plan, const LayerPlan& layer) {
  if (layer.type != "conv") return {common_attention(plan, layer)};
  Block block = lfm_conv(config, plan);
  if (plan.attention.norm == NormPlace::both)
    add_norm(block, plan.common, "post_operator_norm", plan.common.hidden_size);
  return {block};
}

// Griffin (arXiv 2402.19427): a gated linear recurrence, and every third layer local attention.
void recurrent_gemma(const Config& config, Plan& plan) {
  plan.mlp.bias = plan.attention.bias_o = true;
  plan.mlp.intermediate /= 2;  // it counts both halves of the gated projection
  plan.attention.kv_heads = config.integer_or({"num_key_value_heads"}, plan.attention.heads);
  const std::vector<std::string> pattern = config.texts({"block_types", "_block_types"});
  for (const std::string& kind : pattern) {
    if (kind != "attention" && kind != "recurrent")
      config.fail_about(
          {"block_types", "_block_types"},
          fmt::format("block_types holds '{}'; known are attention and recurrent", excerpt(kind)));
  }
  type_layers(
      plan,
      [&](std::int32_t i) {
        const auto index = static_cast<std::size_t>(i);
        return pattern.empty() ? (i + 1) % 3 == 0 : pattern[index % pattern.size()] == "attention";
      },
      "recurrent");
}

std::vector<Block> recurrent_gemma_mixer(const Config& config, const Plan& plan, const LayerPlan& layer) {
  const Common& common = plan.common;
  if (layer.type != "recurrent" && layer.type != "linear_attention") {
    AttentionSpec spec = layer.attention;
    spec.window = config.integer_or({"attention_window_size", "sliding_window"}, 2048);
    return {attention_block(common, spec)};
  }
  const std::int64_t hidden = common.hidden_size;
  const std::int64_t width = size_or(config, {"lru_width"}, hidden);
  const std::int64_t heads = plan.attention.heads;
  const std::int64_t taps = size_or(config, {"conv1d_width"}, 4);
  constexpr std::int64_t kFlops = 12;  // two gates, a power, a root, the input's and the state's products
  Block block{.kind = BlockKind::mixer, .name = "rg_lru"};
  add_norm(block, common, "mixer_norm", hidden);
  add_linear(block, common, "linear_y", width, hidden, true);
  add_linear(block, common, "linear_x", width, hidden, true);
  // Block-diagonal: a head's gate reads the head's channels.
  if (heads < 1 || width < heads)
    config.fail_about({"lru_width", "num_attention_heads"},
                      "lru_width must be at least num_attention_heads, above 0");
  add_linear(block, common, "input_gate", width, width / heads, true);
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
      {.types = {"lfm2"},
       .tied = true,
       .qk_norm = QkNorm::head,
       .layer_kinds = kConvKinds,
       .adjust = lfm2,
       .mixer = lfm2_mixer},
      {.types = {"lfm2_moe"},
       .tied = true,
       .qk_norm = QkNorm::head,
       .router_bias = {"use_expert_bias", true},
       .layer_kinds = kConvKinds,
       .adjust = lfm2_layers,
       .mixer = lfm2_mixer},
      {.types = {"lfm3"},
       .norm_place = NormPlace::both,
       .tied = true,
       .qk_norm = QkNorm::head,
       .layer_kinds = {"full_attention", "sliding_attention", "conv"},
       .adjust = lfm3,
       .mixer = lfm3_mixer},
      {.types = {"recurrent_gemma"},
       .tied = true,
       .layer_kinds = {"recurrent", "linear_attention", "attention", "sliding_attention"},
       .adjust = recurrent_gemma,
       .mixer = recurrent_gemma_mixer},
  };
  return families;
}

}  // namespace memwall
