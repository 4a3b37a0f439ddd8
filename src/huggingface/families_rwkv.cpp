// RWKV and xLSTM: no attention at all, one matrix a head as state. Sources: arXiv 2305.13048 (RWKV-4),
// 2404.05892 (5 and 6), 2503.14456 (7), 2405.04517 (xLSTM); the modelling code of Hugging Face transformers
// 5.24 (rwkv, xlstm), of the checkpoints' repositories (rwkv5, rwkv6) and of flash-linear-attention (rwkv7).
#include <fmt/format.h>

#include <string_view>

#include "format/checked.h"
#include "huggingface/families_parts.h"

namespace memwall {
namespace {

// FLOPs a channel of RWKV-4: two maxima, four exponentials, six products, three sums, a division.
constexpr std::int64_t kVectorFlops = 16;
// FLOPs an element of a matrix state: decay, k·v (2), r·S (2); RWKV-7 moves it along its own products too
// (4).
constexpr std::int64_t kMatrixFlops = 5;
constexpr std::int64_t kDeltaFlops = 9;

// Both blocks of a layer mix each input with the one before it, which they keep.
Block token_shift_block(const Plan& plan, const LayerPlan& layer, const char* name, const char* norm) {
  Block block{.kind = BlockKind::mixer, .name = name};
  if (layer.index == 0 && std::string_view(norm) == "ln1")
    add_norm(block, plan.common, "pre_ln", plan.common.hidden_size);
  add_norm(block, plan.common, norm, plan.common.hidden_size);
  return block;
}

RecurrentState matrix_state(const Plan& plan, std::int64_t heads, std::int64_t width, std::int64_t flops) {
  const std::int64_t elements = checked_mul(checked_mul(heads, width), width);
  return {
      .elements = elements, .conv_elements = plan.common.hidden_size, .flops = checked_mul(flops, elements)};
}

std::int64_t attention_width(const Config& config, const Plan& plan) {
  return size_or(config, {"attention_hidden_size"}, plan.common.hidden_size);
}

std::int64_t head_count(const Config& config, std::int64_t inner, std::int64_t width) {
  if (inner % width != 0)
    config.fail_about({"head_size", "head_dim"},
                      fmt::format("heads {} wide do not divide {} channels", width, inner));
  return inner / width;
}

void rwkv4(const Config& config, Plan& plan) {
  if (!config.has({"intermediate_size"})) plan.mlp.intermediate = checked_mul(4, plan.common.hidden_size);
}

void rwkv5(const Config& config, Plan& plan) {
  if (!config.has({"intermediate_size"})) {
    plan.mlp.intermediate =
        scaled(config, "intermediate_size", 3.5, plan.common.hidden_size) / 32 * 32;  // the code's default
  }
  plan.head.tied = false;  // whatever the config says: its head is stored
}

// The feed-forward: a gate by the token shift beside two linears.
Block channel_mix(const Plan& plan, const LayerPlan& layer, std::int64_t shifts, bool gated) {
  const Common& common = plan.common;
  const std::int64_t hidden = common.hidden_size;
  Block block = token_shift_block(plan, layer, "channel_mix", "ln2");
  add_parameter(block, common, "ffn.time_mix", checked_mul(shifts, hidden));
  block.place(RecurrentState{.conv_elements = hidden, .flops = checked_mul(3 * shifts, hidden)});
  add_linear(block, common, "ffn.key", layer.mlp.intermediate, hidden);
  if (gated) add_linear(block, common, "ffn.receptance", hidden, hidden);
  add_linear(block, common, "ffn.value", hidden, layer.mlp.intermediate);
  return block;
}

std::vector<Block> rwkv4_mixer(const Config& config, const Plan& plan, const LayerPlan& layer) {
  const Common& common = plan.common;
  const std::int64_t hidden = common.hidden_size;
  const std::int64_t inner = attention_width(config, plan);
  Block block = token_shift_block(plan, layer, "rwkv4", "ln1");
  for (const char* name : {"key", "value", "receptance"}) add_linear(block, common, name, inner, hidden);
  add_parameter(block, common, "time_mix", checked_mul(3, hidden));
  add_parameter(block, common, "time_decay", inner);
  add_parameter(block, common, "time_first", inner);
  // Numerator, denominator and maximum of a softmax over all tokens before.
  block.place(RecurrentState{
      .elements = checked_mul(3, inner), .conv_elements = hidden, .flops = checked_mul(kVectorFlops, inner)});
  add_linear(block, common, "output", hidden, inner);
  return {block, channel_mix(plan, layer, 2, true)};
}

std::vector<Block> rwkv5_mixer(const Config& config, const Plan& plan, const LayerPlan& layer) {
  const Common& common = plan.common;
  const std::int64_t hidden = common.hidden_size;
  const std::int64_t inner = attention_width(config, plan);
  const std::int64_t width = size_or(config, {"head_size"}, 64);
  Block block = token_shift_block(plan, layer, "rwkv5", "ln1");
  for (const char* name : {"key", "value", "receptance", "gate"})
    add_linear(block, common, name, inner, hidden);
  add_parameter(block, common, "time_mix", checked_mul(4, hidden));
  add_parameter(block, common, "time_decay", inner);
  add_parameter(block, common, "time_faaaa", inner);
  block.place(matrix_state(plan, head_count(config, inner, width), width, kMatrixFlops));
  add_norm(block, common, "ln_x", inner);
  add_linear(block, common, "output", hidden, inner);
  return {block, channel_mix(plan, layer, 2, true)};
}

// RWKV-6: the token shift and the decay follow from the input, by low-rank linears whose ranks the code
// fixes.
std::vector<Block> rwkv6_mixer(const Config& config, const Plan& plan, const LayerPlan& layer) {
  const Common& common = plan.common;
  const std::int64_t hidden = common.hidden_size;
  const std::int64_t inner = attention_width(config, plan);
  const std::int64_t width = size_or(config, {"head_size"}, 64);
  const bool wide = hidden == 4096;
  const std::int64_t mix_rank = wide ? 64 : 32;
  const std::int64_t decay_rank = wide ? 128 : 64;
  Block block = token_shift_block(plan, layer, "rwkv6", "ln1");
  add_linear(block, common, "time_maa_w1", 5 * mix_rank, hidden);
  add_linear(block, common, "time_maa_w2", hidden, 5 * mix_rank);
  for (const char* name : {"key", "value", "receptance", "gate"})
    add_linear(block, common, name, inner, hidden);
  add_linear(block, common, "time_decay_w1", decay_rank, hidden);
  add_linear(block, common, "time_decay_w2", inner, decay_rank);
  add_parameter(block, common, "time_maa", checked_mul(6, hidden));
  add_parameter(block, common, "time_decay", inner);
  add_parameter(block, common, "time_faaaa", inner);
  block.place(matrix_state(plan, head_count(config, inner, width), width, kMatrixFlops));
  add_norm(block, common, "ln_x", inner);
  add_linear(block, common, "output", hidden, inner);
  return {block, channel_mix(plan, layer, 2, true)};
}

void rwkv7(const Config& config, Plan& plan) {
  if (!config.flag_or({"norm_bias"}, true)) plan.common.norm = NormKind::layer_no_bias;
  if (config.has({"attn"}))
    config.fail_about({"attn"}, "of RWKV-7, models with attention layers are not read");
  if (config.has({"value_dim"})) {
    for (std::int32_t i = 0; i < plan.layers; ++i) {
      if (config.layer_integer_or({"value_dim"}, i, 0) != plan.common.hidden_size)
        config.fail_about({"value_dim"}, "of RWKV-7, only models with values of the hidden size are read");
    }
  }
}

std::vector<Block> rwkv7_mixer(const Config& config, const Plan& plan, const LayerPlan& layer) {
  const Common& common = plan.common;
  const std::int64_t hidden = common.hidden_size;
  const std::int64_t width = size_or(config, {"head_dim"}, 64);
  Block block = token_shift_block(plan, layer, "rwkv7", "ln1");
  for (const char* name : {"receptance", "key", "value"}) add_linear(block, common, name, hidden, hidden);
  const auto low_rank = [&](const char* name, std::int64_t rank, bool bias) {
    add_linear(block, common, fmt::format("{}_lora.0", name), rank, hidden);
    add_linear(block, common, fmt::format("{}_lora.2", name), hidden, rank, bias);
  };
  low_rank("w", size_at(config, {"decay_low_rank_dim"}), true);
  low_rank("a", size_at(config, {"a_low_rank_dim"}), true);
  if (layer.index > 0) low_rank("v", size_at(config, {"v_low_rank_dim"}), true);  // mixes in layer 0's values
  low_rank("g", size_at(config, {"gate_low_rank_dim"}), false);
  add_parameter(block, common, "x_mix", checked_mul(6, hidden));
  for (const char* name : {"k_k", "k_a", "r_k"}) add_parameter(block, common, name, hidden);
  block.place(matrix_state(plan, head_count(config, hidden, width), width, kDeltaFlops));
  add_norm(block, common, "g_norm", hidden);
  add_linear(block, common, "output", hidden, hidden);
  return {block, channel_mix(plan, layer, 1, false)};
}

// xLSTM-7B: matrix memories with scalar gates.
void xlstm(const Config& config, Plan& plan) {
  const std::int64_t multiple = size_or(config, {"ffn_round_up_to_multiple_of"}, 64);
  const std::int64_t width = scaled(config, "ffn_proj_factor", config.number_or({"ffn_proj_factor"}, 2.667),
                                    plan.common.hidden_size);
  plan.mlp.intermediate = checked_mul(div_up(width, multiple), multiple);
  plan.mlp.bias = config.flag_or({"use_bias"}, false);
  plan.head.final_norm = config.flag_or({"add_out_norm"}, true);
}

std::vector<Block> xlstm_mixer(const Config& config, const Plan& plan, const LayerPlan&) {
  const Common& common = plan.common;
  const std::int64_t hidden = common.hidden_size;
  const std::int64_t heads = size_or(config, {"num_heads"}, 8);
  const std::int64_t keys = scaled(config, "qk_dim_factor", config.number_or({"qk_dim_factor"}, 0.5), hidden);
  const std::int64_t values = scaled(config, "v_dim_factor", config.number_or({"v_dim_factor"}, 1.0), hidden);
  const std::int64_t key_width = keys / heads;
  if (key_width < 1 || values < heads)
    config.fail_about({"num_heads"}, "num_heads are more than qk_dim_factor leaves channels for");
  const bool bias = config.flag_or({"use_bias"}, false);
  const std::int64_t elements = checked_mul(key_width, values);
  Block block{.kind = BlockKind::mixer, .name = "mlstm"};
  add_norm(block, common, "norm_mlstm", hidden);
  add_linear(block, common, "q", keys, hidden, bias);
  add_linear(block, common, "k", keys, hidden, bias);
  add_linear(block, common, "v", values, hidden, bias);
  add_linear(block, common, "ogate_preact", values, hidden, bias);
  for (const char* gate : {"igate_preact", "fgate_preact"})
    add_linear(block, common, gate, heads, hidden, true);
  // The memory, what normalises it (a key's width a head) and a maximum a head.
  block.place(RecurrentState{.elements = checked_add(elements, checked_add(keys, heads)),
                             .flops = checked_mul(kMatrixFlops, elements)});
  add_norm(block, common, "multihead_norm", values);
  add_linear(block, common, "out_proj", hidden, values, bias);
  return {block};
}

}  // namespace

const std::vector<Family>& rwkv_families() {
  static const std::vector<Family> families = {
      {.types = {"rwkv"},
       .norm = NormKind::layer,
       .adjust = rwkv4,
       .mixer = rwkv4_mixer,
       .feed_forward = nothing},
      {.types = {"rwkv5"},
       .norm = NormKind::layer,
       .adjust = rwkv5,
       .mixer = rwkv5_mixer,
       .feed_forward = nothing},
      {.types = {"rwkv6"},
       .norm = NormKind::layer,
       .adjust = rwkv5,
       .mixer = rwkv6_mixer,
       .feed_forward = nothing},
      {.types = {"rwkv7"},
       .norm = NormKind::layer,
       .adjust = rwkv7,
       .mixer = rwkv7_mixer,
       .feed_forward = nothing},
      {.types = {"xlstm"}, .adjust = xlstm, .mixer = xlstm_mixer},
  };
  return families;
}

}  // namespace memwall
