#include "huggingface/families_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "format/checked.h"
#include "huggingface/plan.h"

namespace memwall {
namespace {

constexpr std::int64_t kMostSize = std::int64_t{1} << 31;

std::int64_t checked_size(const Config& config, Names names, std::int64_t value, std::int64_t least) {
  return config.checked_size(names, value, least, kMostSize);
}

}  // namespace

std::int64_t size_at(const Config& config, Names names) {
  return checked_size(config, names, config.integer(names), 1);
}

std::int64_t size_or(const Config& config, Names names, std::int64_t fallback) {
  return checked_size(config, names, config.integer_or(names, fallback), 1);
}

std::int64_t size_or_none(const Config& config, Names names, std::int64_t fallback) {
  return checked_size(config, names, config.integer_or(names, fallback), 0);
}

std::int64_t size_or_auto(const Config& config, Names names, std::int64_t automatic) {
  const json::Value* value = config.find(names);
  const bool stated = value != nullptr && (value->kind != json::Kind::text || value->text != "auto");
  return stated ? size_or(config, names, automatic) : checked_size(config, names, automatic, 1);
}

std::int64_t scaled(const Config& config, const char* name, double factor, std::int64_t whole) {
  if (!(factor > 0 && factor <= 1000))
    config.fail_about({name}, fmt::format("{} must be above 0, up to 1000", name));
  return static_cast<std::int64_t>(factor * static_cast<double>(whole));
}

std::int64_t layer_override(const Config& config, std::int32_t layer, const char* key,
                            std::int64_t fallback) {
  const json::Value* all = config.find({"per_layer_config"});
  if (all == nullptr) return fallback;
  if (all->kind != json::Kind::object) config.fail_at(*all, "per_layer_config must be an object of layers");
  // The keys are padded to the width of the last layer's.
  for (const std::string& name :
       {fmt::format("{}", layer), fmt::format("{:02}", layer), fmt::format("{:03}", layer)}) {
    const json::Value* own = all->find(name);
    if (own == nullptr) continue;
    if (own->kind != json::Kind::object)
      config.fail_at(*own, fmt::format("per_layer_config of layer {} must be an object", layer));
    const json::Value* value = own->find(key);
    if (value == nullptr || value->kind == json::Kind::null) return fallback;
    return json::as_integer(config.file(), *value, key, {1, kMostSize});
  }
  return fallback;
}

bool is_full_attention(const std::string& type) {
  return type == "attention" || type == "full_attention" || type == "*";
}

void type_layers(Plan& plan, const std::function<bool(std::int32_t)>& full, const char* other) {
  if (!plan.types.empty()) return;
  for (std::int32_t i = 0; i < plan.layers; ++i) plan.types.emplace_back(full(i) ? "full_attention" : other);
}

std::vector<bool> named_layers(const Config& config, Names names, const Plan& plan, std::int64_t first) {
  std::vector<bool> named(static_cast<std::size_t>(plan.layers), false);
  for (const std::int64_t index : config.integers(names)) {
    const std::int64_t layer = index - first;
    // Multi-token-prediction layers are counted on.
    if (layer < 0 || layer >= plan.layers + draft_layers(config)) {
      config.fail_about(names, fmt::format("{} names layer {}, but there are {}, counted from {}",
                                           *names.begin(), index, plan.layers, first));
    }
    if (layer < plan.layers) named[static_cast<std::size_t>(layer)] = true;
  }
  return named;
}

void all_biases(Plan& plan, bool on) {
  plan.attention.bias_q = plan.attention.bias_k = plan.attention.bias_v = plan.attention.bias_o = on;
  plan.mlp.bias = on;
}

void bias_by(const Config& config, Plan& plan, const char* key, bool fallback) {
  all_biases(plan, config.flag_or({key}, fallback));
}

void add_embedding_norm(Plan& plan) {
  Block part;
  add_norm(part, plan.common, "embed_norm", plan.common.hidden_size);
  plan.embedding_parts = part.tensors;
}

void all_moe(Plan& plan) { plan.moe_layers.assign(static_cast<std::size_t>(plan.layers), true); }

void check_heads(const Config& config, const AttentionSpec& spec) {
  if (spec.heads < 1 || spec.kv_heads < 1 || spec.heads % spec.kv_heads != 0) {
    config.fail_about({"num_key_value_heads", "num_attention_heads"},
                      fmt::format("a layer's {} heads must be a multiple of its {} key-value heads",
                                  spec.heads, spec.kv_heads));
  }
}

std::vector<Block> nothing(const Config&, const Plan&, const LayerPlan&) { return {}; }

void remove_tensor(Block& block, const std::string& name) {
  const auto it = std::find_if(block.tensors.begin(), block.tensors.end(),
                               [&](const Tensor& tensor) { return tensor.name == name; });
  if (it == block.tensors.end()) return;
  const auto at = static_cast<std::size_t>(it - block.tensors.begin());
  block.tensors.erase(it);
  for (Block::Placed& placed : block.states) placed.before -= placed.before > at ? 1 : 0;
}

void insert_after_states(Block& block, const std::vector<Tensor>& tensors) {
  const auto at = static_cast<std::ptrdiff_t>(block.states.back().before);
  block.tensors.insert(block.tensors.begin() + at, tensors.begin(), tensors.end());
}

void mark_tied(Block& block) {
  for (Tensor& tensor : block.tensors) tensor.tied = true;
}

std::int64_t state_width(const Config& config) {
  const std::string type = config.text_or({"mamba_ssm_cache_dtype", "mamba_ssm_dtype"}, "float32");
  return type == "float32" || type == "auto" ? 4 : 2;
}

MambaSpec read_mamba(const Config& config, const Plan& plan) {
  MambaSpec spec;
  spec.state = size_or(config, {"state_size", "mamba_d_state"}, 16);
  spec.conv = size_or(config, {"conv_kernel", "mamba_d_conv"}, 4);
  spec.dt_rank =
      size_or_auto(config, {"time_step_rank", "mamba_dt_rank"}, div_up(plan.common.hidden_size, 16));
  spec.bias = config.flag_or({"use_bias", "mamba_proj_bias"}, false);
  spec.conv_bias = config.flag_or({"use_conv_bias", "mamba_conv_bias"}, true);
  spec.element_bytes = state_width(config);
  return spec;
}

Mamba2Spec read_mamba2(const Config& config, const Plan& plan) {
  Mamba2Spec spec;
  const std::int64_t expand = size_or(config, {"expand", "mamba_expand", "expansion_factor"}, 2);
  const std::int64_t inner = size_or(config, {"mamba_d_ssm"}, checked_mul(plan.common.hidden_size, expand));
  const Names heads = {"mamba_num_heads", "mamba_n_heads", "n_mamba_heads", "num_heads"};
  spec.heads = size_or(config, heads, 128);
  // The first releases of Zamba2 state a head's width, from which their count follows.
  if (!config.states(heads) && config.states({"mamba_headdim"})) {
    const std::int64_t width = size_at(config, {"mamba_headdim"});
    if (inner % width != 0) {
      config.fail_about({"mamba_headdim"},
                        fmt::format("mamba_headdim {} does not divide the inner width {}", width, inner));
    }
    spec.heads = inner / width;
  }
  spec.head_dim =
      size_or_auto(config, {"mamba_head_dim", "mamba_d_head", "mamba_headdim"}, inner / spec.heads);
  spec.state = size_or(config, {"ssm_state_size", "mamba_d_state", "state_size"}, 128);
  spec.groups = size_or(config, {"n_groups", "mamba_n_groups", "mamba_ngroups"}, 1);
  spec.conv = size_or(config, {"conv_kernel", "mamba_d_conv", "conv_dimension"}, 4);
  spec.bias = config.flag_or({"mamba_proj_bias", "use_bias", "add_bias_linear"}, false);
  spec.conv_bias = config.flag_or({"use_conv_bias", "mamba_conv_bias"}, true);
  spec.element_bytes = state_width(config);
  return spec;
}

MlaSpec read_mla(const Config& config, const Plan& plan) {
  MlaSpec spec;
  spec.heads = plan.attention.heads;
  spec.q_lora_rank = size_or_none(config, {"q_lora_rank"});
  spec.kv_lora_rank = size_at(config, {"kv_lora_rank"});
  spec.qk_nope_head_dim = size_or_none(config, {"qk_nope_head_dim"});
  spec.qk_rope_head_dim = size_or_none(config, {"qk_rope_head_dim"});
  spec.v_head_dim = size_at(config, {"v_head_dim"});
  spec.bias = config.flag_or({"attention_bias"}, false);
  spec.norm = plan.attention.norm;
  if (spec.heads < 1 || spec.qk_nope_head_dim + spec.qk_rope_head_dim < 1) {
    config.fail_about(
        {"qk_nope_head_dim", "num_attention_heads"},
        "latent attention needs num_attention_heads, kv_lora_rank, qk_nope_head_dim and v_head_dim above 0");
  }
  return spec;
}

Block kimi_delta_block(const Config& config, const Plan& plan, bool low_rank_decay, bool low_rank_gate) {
  constexpr std::int64_t kFlops = 7;  // an element of the state, as the gated delta net's
  const Common& common = plan.common;
  const std::int64_t hidden = common.hidden_size;
  const std::int64_t heads =
      size_or(config, {"linear_attn_config.num_heads", "linear_num_heads"}, plan.attention.heads);
  const std::int64_t width =
      size_or(config, {"linear_attn_config.head_dim", "linear_head_dim", "head_dim"}, 128);
  const std::int64_t taps = size_or(
      config,
      {"linear_attn_config.short_conv_kernel_size", "linear_conv_kernel_dim", "short_conv_kernel_size"}, 4);
  const std::int64_t inner = checked_mul(heads, width);
  const std::int64_t channels = checked_mul(3, inner);
  const std::int64_t elements = checked_mul(inner, width);
  Block block{.kind = BlockKind::mixer, .name = "kimi_delta_attention"};
  add_norm(block, common, "mixer_norm", hidden);
  for (const char* name : {"q_proj", "k_proj", "v_proj"}) add_linear(block, common, name, inner, hidden);
  add_linear(block, common, "b_proj", heads, hidden);
  for (const auto& [name, low_rank] : {std::pair{"f", low_rank_decay}, std::pair{"g", low_rank_gate}}) {
    if (low_rank) {
      add_linear(block, common, fmt::format("{}_a_proj", name), width, hidden);
      add_linear(block, common, fmt::format("{}_b_proj", name), inner, width);
    } else {
      add_linear(block, common, fmt::format("{}_proj", name), inner, hidden);
    }
  }
  add_parameter(block, common, "conv1d", checked_mul(channels, taps));
  add_parameter(block, common, "dt_bias", inner);
  add_parameter(block, common, "A_log", heads);
  block.place(
      RecurrentState{.elements = elements,
                     .conv_elements = checked_mul(channels, taps - 1),
                     .flops = checked_add(checked_mul(kFlops, elements), conv_flops(channels, taps))});
  add_norm(block, common, "o_norm", width, heads, NormKind::rms);
  add_linear(block, common, "o_proj", hidden, inner);
  return block;
}

std::vector<Tensor> hyper_connection(const Config& config, const Plan& plan, const std::string& name,
                                     bool combines) {
  const std::int64_t copies = size_or(config, {"hc_mult"}, 4);
  Block part;
  const std::int64_t mixes = checked_mul((combines ? copies : 0) + 2, copies);
  add_linear(part, plan.common, name + ".fn", mixes, checked_mul(copies, plan.common.hidden_size));
  add_parameter(part, plan.common, name + ".base", mixes);
  add_parameter(part, plan.common, name + ".scale", combines ? 3 : 2);
  return part.tensors;
}

void add_hyper_head(const Config& config, Plan& plan) {
  const std::int64_t copies = size_or(config, {"hc_mult"}, 4);
  Block part;
  add_linear(part, plan.common, "hc_head.fn", copies, checked_mul(copies, plan.common.hidden_size));
  add_parameter(part, plan.common, "hc_head.base", copies);
  add_parameter(part, plan.common, "hc_head.scale", 1);
  plan.head_parts = part.tensors;
}

}  // namespace memwall
