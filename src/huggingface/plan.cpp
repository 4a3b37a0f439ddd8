#include "huggingface/plan.h"

#include <fmt/format.h>

#include <algorithm>

namespace memwall {
namespace {

constexpr std::int64_t kMostLayers = 10'000;
constexpr std::int64_t kMostExperts = 1 << 20;
constexpr std::int64_t kMostSize = std::int64_t{1} << 31;

bool is_on(const Config& config, const Switch& property) {
  return property.key == nullptr ? property.fallback : config.flag_or({property.key}, property.fallback);
}

ActivationKind read_activation(const Config& config) {
  const std::string name =
      config.text_or({"hidden_act", "hidden_activation", "activation_function", "activation"}, "silu");
  if (name.find("relu") != std::string::npos || name.find("xielu") != std::string::npos)
    return ActivationKind::relu;
  return name.find("gelu") != std::string::npos ? ActivationKind::gelu : ActivationKind::silu;
}

// A size that is used must be one.
std::int64_t size_of(const Config& config, const char* what, std::int64_t value) {
  if (value < 1 || value > kMostSize)
    config.fail(fmt::format("{} is {}; it must be from 1 to {}", what, value, kMostSize));
  return value;
}

AttentionSpec read_attention(const Config& config, const Family& family, std::int64_t hidden) {
  AttentionSpec spec;
  // A list gives every layer its own: the first stands for the model, plan_layer reads the others.
  const auto first = [&](Names names, std::int64_t fallback) {
    return config.layer_integer_or(names, 0, fallback);
  };
  spec.heads = first({"num_attention_heads", "n_head", "n_heads", "num_heads", "attention_heads"}, 0);
  if (spec.heads == 0) return spec;  // no attention, or the family's mixer knows
  spec.kv_heads = first({"num_key_value_heads", "n_head_kv", "num_kv_heads", "multi_query_group_num",
                         "num_query_groups", "num_attention_groups", "attn_config.kv_n_heads"},
                        spec.heads);
  if (spec.kv_heads == 0) spec.kv_heads = spec.heads;
  spec.head_dim = config.integer_or({"head_dim", "attention_head_dim", "kv_channels"}, 0);
  if (spec.head_dim == 0) spec.head_dim = hidden / spec.heads;
  spec.v_head_dim = spec.head_dim;
  spec.bias_q = spec.bias_k = spec.bias_v = is_on(config, family.qkv_bias);
  spec.bias_o = is_on(config, family.o_bias);
  spec.rotary = family.rotary;
  spec.fused_qkv = family.fused_qkv;
  spec.qk_norm = family.qk_norm;
  if (!is_on(config, family.qk_norm_if)) spec.qk_norm = QkNorm::none;
  spec.norm = family.norm_place;
  return spec;
}

MlpSpec read_mlp(const Config& config, const Family& family, std::int64_t hidden) {
  MlpSpec spec;
  spec.intermediate = config.layer_integer_or(
      {"intermediate_size", "n_inner", "ffn_dim", "ffn_hidden_size", "d_ff", "mlp_hidden_size"}, 0, 0);
  if (spec.intermediate == 0) spec.intermediate = 4 * hidden;  // GPT-2 and its descendants
  spec.gated = family.gated;
  spec.activation = read_activation(config);
  spec.bias = is_on(config, family.mlp_bias);
  spec.fused_gate_up = family.fused_gate_up;
  spec.norm = is_on(config, family.parallel) ? NormPlace::none : family.norm_place;
  return spec;
}

MoeSpec read_moe(const Config& config, const Family& family, const MlpSpec& mlp) {
  MoeSpec spec;
  spec.experts = config.integer_or(
      {"num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts", "num_routed_experts"}, 0);
  if (spec.experts == 0) return spec;
  if (spec.experts > kMostExperts) config.fail(fmt::format("{} experts are more than {}", spec.experts, kMostExperts));
  spec.per_token = config.layer_integer_or({"num_experts_per_tok", "num_experts_per_token", "moe_top_k",
                                            "moe_topk", "moe_k", "top_k_experts", "num_selected_experts"},
                                           0, 0);
  if (spec.per_token < 1 || spec.per_token > spec.experts) {
    config.fail(fmt::format("num_experts_per_tok is {}; it must be from 1 to the {} experts", spec.per_token,
                            spec.experts));
  }
  spec.expert = mlp;
  spec.expert.intermediate =
      config.layer_integer_or({"moe_intermediate_size", "moe_ffn_hidden_size", "expert_ffn_hidden_size"}, 0, 0);
  if (spec.expert.intermediate == 0) spec.expert.intermediate = mlp.intermediate;
  spec.router_bias = is_on(config, family.router_bias);
  spec.shared_gate = family.shared_gate;
  spec.shared_intermediate = config.integer_or(
      {"shared_expert_intermediate_size", "moe_shared_expert_intermediate_size", "shared_intermediate_size",
       "share_expert_dim"},
      0);
  const std::int64_t shared =
      config.integer_or({"n_shared_experts", "num_shared_experts", "moe_num_shared_experts"}, 0);
  if (spec.shared_intermediate == 0 && shared > 0) {
    if (shared > kMostExperts) config.fail(fmt::format("{} shared experts are too many", shared));
    spec.shared_intermediate = shared * spec.expert.intermediate;
  }
  return spec;
}

// Which layers have experts.
std::vector<bool> read_moe_layers(const Config& config, const Plan& plan) {
  const auto layers = static_cast<std::size_t>(plan.layers);
  std::vector<bool> moe(layers, plan.moe.experts > 0);
  if (plan.moe.experts == 0) return moe;
  const std::vector<std::string> types = config.texts({"mlp_layer_types"});
  if (!types.empty()) {
    for (std::size_t i = 0; i < layers; ++i) moe[i] = i < types.size() && types[i] != "dense";
    return moe;
  }
  const std::vector<std::int64_t> named = config.integers({"moe_layers_enum", "moe_layers"});
  if (!named.empty()) {
    moe.assign(layers, false);
    for (const std::int64_t i : named) {
      if (static_cast<std::size_t>(i) < layers) moe[static_cast<std::size_t>(i)] = true;
    }
    return moe;
  }
  const json::Value* frequency = config.find({"moe_layer_freq", "decoder_sparse_step", "moe_layer_interval"});
  if (frequency != nullptr && frequency->kind != json::Kind::number) {
    const std::vector<std::int64_t> by_layer = config.integers({"moe_layer_freq"});
    for (std::size_t i = 0; i < layers; ++i) moe[i] = i < by_layer.size() && by_layer[i] != 0;
    return moe;
  }
  const std::int64_t every =
      std::max<std::int64_t>(1, config.integer_or({"moe_layer_freq", "decoder_sparse_step"}, 1));
  // Qwen counts layers from one here, DeepSeek from zero.
  const bool from_one = config.has({"decoder_sparse_step"});
  const std::int64_t dense = config.integer_or({"first_k_dense_replace", "num_dense_layers"}, 0);
  const std::vector<std::int64_t> dense_ones = config.integers({"mlp_only_layers"});
  for (std::size_t i = 0; i < layers; ++i) {
    const auto layer = static_cast<std::int64_t>(i);
    moe[i] = layer >= dense && (layer + (from_one ? 1 : 0)) % every == 0 &&
             std::find(dense_ones.begin(), dense_ones.end(), layer) == dense_ones.end();
  }
  return moe;
}

// Stated, or as many as a pattern lists.
std::int64_t read_layer_count(const Config& config) {
  const Names names = {"num_hidden_layers", "n_layer", "n_layers", "num_layers"};
  if (const std::optional<std::int64_t> count = config.maybe_integer(names)) return *count;
  const std::vector<std::string> types = config.texts({"layer_types", "layers_block_type"});
  if (!types.empty()) return static_cast<std::int64_t>(types.size());
  const std::string pattern = config.text_or({"hybrid_override_pattern"}, "");
  return pattern.empty() ? config.integer(names) : static_cast<std::int64_t>(pattern.size());
}

// The window of layer `index`, 0 where it sees everything.
std::int64_t window_of(const Config& config, const Family& family, std::int32_t index) {
  const std::int64_t window = config.integer_or({"sliding_window", "sliding_window_size", "window_size"}, 0);
  switch (family.sliding) {
    case Sliding::ignored:
      return 0;
    case Sliding::all:
      return window;
    case Sliding::by_switch:
      return config.flag_or({"use_sliding_window"}, false) &&
                     index >= config.integer_or({"max_window_layers"}, 0)
                 ? window
                 : 0;
    case Sliding::pattern:
      break;
  }
  const json::Value* key = config.find({"sliding_window_pattern", "_sliding_window_pattern"});
  if (key != nullptr && key->kind == json::Kind::text) {  // "LLLG": local, global
    const std::string& letters = key->text;
    return !letters.empty() && letters[static_cast<std::size_t>(index) % letters.size()] == 'L' ? window : 0;
  }
  const std::int64_t every =
      config.integer_or({"sliding_window_pattern", "_sliding_window_pattern"}, family.sliding_pattern);
  return every > 0 && (index + 1) % every == 0 ? 0 : window;
}

}  // namespace

Plan read_plan(const Config& config, const Family& family) {
  Plan plan;
  const std::int64_t hidden =
      size_of(config, "hidden_size", config.integer({"hidden_size", "n_embd", "d_model", "model_dim"}));
  const std::int64_t layers = read_layer_count(config);
  if (layers < 1 || layers > kMostLayers)
    config.fail(fmt::format("num_hidden_layers is {}; it must be from 1 to {}", layers, kMostLayers));
  plan.layers = static_cast<std::int32_t>(layers);
  plan.common.hidden_size = hidden;
  plan.common.norm = family.norm;
  plan.head.vocab_size =
      size_of(config, "vocab_size", config.integer({"vocab_size", "padded_vocab_size", "n_vocab"}));
  const std::optional<bool> tied = config.outer_flag("tie_word_embeddings");
  plan.head.tied = tied ? *tied : config.flag_or({"tie_word_embeddings", "tie_embeddings"}, family.tied);
  plan.head.bias = family.lm_head_bias;
  if (family.positions != nullptr)
    plan.positions = config.integer_or({family.positions, "max_position_embeddings"}, 0) + family.extra_positions;
  plan.attention = read_attention(config, family, hidden);
  plan.mlp = read_mlp(config, family, hidden);
  plan.moe = read_moe(config, family, plan.mlp);
  const json::Value* types = config.find({"layer_types", "layers_block_type"});
  if (types != nullptr && !types->items.empty() && types->items.front().kind == json::Kind::text)
    plan.types = config.texts({"layer_types", "layers_block_type"});
  if (!plan.types.empty() && plan.types.size() < static_cast<std::size_t>(layers)) {
    config.fail(fmt::format("layer_types lists {} layers of {}", plan.types.size(), layers));
  }
  plan.moe_layers = read_moe_layers(config, plan);
  if (family.adjust != nullptr) family.adjust(config, plan);
  if (plan.attention.heads > 0) {
    size_of(config, "num_attention_heads", plan.attention.heads);
    size_of(config, "num_key_value_heads", plan.attention.kv_heads);
    size_of(config, "head_dim", plan.attention.head_dim);
    if (plan.attention.heads % plan.attention.kv_heads != 0) {
      config.fail(fmt::format("num_attention_heads ({}) must be a multiple of num_key_value_heads ({})",
                              plan.attention.heads, plan.attention.kv_heads));
    }
  } else if (family.mixer == nullptr) {
    config.fail("no num_attention_heads (also called n_head, n_heads, num_heads)");
  }
  size_of(config, "intermediate_size", plan.mlp.intermediate);
  return plan;
}

LayerPlan plan_layer(const Config& config, const Family& family, const Plan& plan, std::int32_t index) {
  LayerPlan layer{.index = index, .attention = plan.attention, .mlp = plan.mlp};
  layer.moe = plan.moe_layers[static_cast<std::size_t>(index)];
  if (!plan.types.empty()) {
    layer.type = plan.types[static_cast<std::size_t>(index)];
    if (layer.type == "sliding_attention" || layer.type == "sliding")
      layer.attention.window = config.integer_or({"sliding_window", "sliding_window_size"}, 0);
    if (layer.type == "chunked_attention") layer.attention.chunk = config.integer_or({"attention_chunk_size"}, 0);
  } else {
    layer.attention.window = window_of(config, family, index);
  }
  const json::Value* widths = config.find({"intermediate_size", "ffn_dim"});
  if (widths != nullptr && widths->kind == json::Kind::array)
    layer.mlp.intermediate = config.layer_integer_or({"intermediate_size", "ffn_dim"}, index, 0);
  const json::Value* kv_heads = config.find({"num_key_value_heads", "num_kv_heads"});
  if (kv_heads != nullptr && kv_heads->kind == json::Kind::array) {
    layer.attention.kv_heads =
        config.layer_integer_or({"num_key_value_heads", "num_kv_heads"}, index, layer.attention.heads);
  }
  const json::Value* heads = config.find({"num_attention_heads"});
  if (heads != nullptr && heads->kind == json::Kind::array)
    layer.attention.heads = config.layer_integer_or({"num_attention_heads"}, index, layer.attention.heads);
  if (layer.attention.heads > 0 &&
      (layer.attention.kv_heads < 1 || layer.attention.heads % layer.attention.kv_heads != 0)) {
    config.fail(fmt::format("layer {}: its {} heads must be a multiple of its {} key-value heads", index,
                            layer.attention.heads, layer.attention.kv_heads));
  }
  return layer;
}

void insert_before_state(Block& block, const std::vector<Tensor>& tensors) {
  const std::size_t at = block.states.front().before;
  block.tensors.insert(block.tensors.begin() + static_cast<std::ptrdiff_t>(at), tensors.begin(), tensors.end());
  for (Block::Placed& placed : block.states) placed.before += tensors.size();
}

Block common_attention(const Plan& plan, const LayerPlan& layer) {
  return attention_block(plan.common, layer.attention);
}

std::vector<Block> common_feed_forward(const Plan& plan, const LayerPlan& layer) {
  if (layer.moe) return {moe_block(plan.common, plan.moe)};
  return {mlp_block(plan.common, layer.mlp)};
}

}  // namespace memwall
