#include "huggingface/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace memwall {
namespace {

constexpr std::int64_t kMostLayers = 10'000;
constexpr std::int64_t kMostSize = std::int64_t{1} << 31;

constexpr Names kHiddenSize = {"hidden_size", "n_embd", "n_embed", "d_model", "model_dim"};
constexpr Names kLayerCount = {"num_hidden_layers", "n_layer", "n_layers", "num_layers",
                               "num_transformer_layers"};
constexpr Names kVocabSize = {"vocab_size", "padded_vocab_size", "n_vocab"};
constexpr Names kWidths = {"intermediate_size", "n_inner", "ffn_dim", "ffn_hidden_size", "d_ff", "dff",
                           "mlp_hidden_size"};
constexpr Names kLayerTypes = {"layer_types", "layers_block_type"};
constexpr Names kSlidingPattern = {"sliding_window_pattern", "_sliding_window_pattern",
                                   "global_attn_every_n_layers"};

// Kinds of layers that every decoder's attention can be.
constexpr std::array kAttentions = {
    "full_attention", "sliding_attention", "chunked_attention", "attention", "full", "sliding", "global"};

constexpr const char* kHeadsOfLayers = "num_attention_heads_per_layer";
constexpr const char* kKvHeadsOfLayers = "num_key_value_heads_per_layer";

// Where it is not stated, an MLP without a gate is of GPT-2's line and has GELU (BLOOM, Falcon, MPT).
ActivationKind read_activation(const Config& config, bool gated) {
  const std::string name =
      config.text_or({"hidden_act", "hidden_activation", "activation_function", "activation", "afn"},
                     gated ? "silu" : "gelu");
  if (name.find("relu") != std::string::npos || name.find("xielu") != std::string::npos)
    return ActivationKind::relu;
  return name.find("gelu") != std::string::npos ? ActivationKind::gelu : ActivationKind::silu;
}

// A size that is used must be one.
std::int64_t size_of(const Config& config, Names names, std::int64_t value) {
  return config.checked_size(names, value, 1, kMostSize);
}

// Wrappers whose class ties the head where the language model's own configuration says so, whatever the whole
// checkpoint's says: older releases saved it there (configuration_NAME.py of transformers 5.24).
constexpr std::array<std::string_view, 16> kForwardTies = {
    "colqwen2",   "fast_vlm",         "glm4v",           "glm4v_moe",     "glm_ocr",      "hunyuan_vl",
    "llava",      "llava_next_video", "llava_onevision", "minimax_m3_vl", "paddleocr_vl", "perception_lm",
    "qwen2_5_vl", "qwen2_vl",         "shieldgemma2",    "video_llama_3"};

// The whole checkpoint's word counts, then the language model's own, then the family's.
bool read_tied(const Config& config, const Family& family) {
  const Names names = {"tie_word_embeddings", "tie_embeddings", "tie_embedding"};
  const bool inner = config.flag_or(names, family.tied);
  const std::optional<bool> outer = config.outer_flag("tie_word_embeddings");
  if (!outer) return inner;
  const bool forwards =
      std::find(kForwardTies.begin(), kForwardTies.end(), config.outer_type()) != kForwardTies.end();
  return *outer || (forwards && config.nested() && config.states(names) && inner);
}

AttentionSpec read_attention(const Config& config, const Family& family, std::int64_t hidden) {
  AttentionSpec spec;
  // A list gives every layer its own: the first stands for the model, plan_layer reads the others.
  const auto first = [&](Names names, std::int64_t fallback) {
    return config.layer_integer_or(names, 0, fallback);
  };
  spec.heads = first({"num_attention_heads", "n_head", "n_heads", "num_heads", "attention_heads",
                      "num_query_heads", kHeadsOfLayers},
                     0);
  if (spec.heads == 0) return spec;  // no attention, or the family's mixer knows
  if (!config.is_list({"num_key_value_heads"}) && config.maybe_integer({"num_key_value_heads"}) == 0)
    config.fail_about({"num_key_value_heads"},
                      "num_key_value_heads is 0; leave it out where it equals num_attention_heads");
  spec.kv_heads =
      first({"num_key_value_heads", "n_head_kv", "num_kv_heads", "multi_query_group_num", "num_query_groups",
             "num_attention_groups", "attn_config.kv_n_heads", kKvHeadsOfLayers},
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
  spec.intermediate = config.layer_integer_or(kWidths, 0, 0);
  // Of an unknown family, neither a width nor the number of linears may be guessed.
  if (family.types.empty() && spec.intermediate == 0 && !config.has({"moe_intermediate_size"}))
    size_of(config, kWidths, spec.intermediate);
  // GPT-2 and its descendants take four times the hidden size; a gated MLP has no such rule, and its family
  // may state the width elsewhere.
  if (spec.intermediate == 0 && !family.gated) spec.intermediate = 4 * hidden;
  spec.gated = family.gated;
  spec.activation = read_activation(config, family.gated);
  spec.bias = is_on(config, family.mlp_bias);
  spec.fused_gate_up = family.fused_gate_up;
  spec.norm = is_on(config, family.parallel) ? NormPlace::none : family.norm_place;
  return spec;
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
  const json::Value* key = config.find(kSlidingPattern);
  if (key != nullptr && key->kind == json::Kind::text) {  // "LLLG": local, global
    const std::string& letters = key->text;
    if (letters.empty() || letters.find_first_not_of("LG") != std::string::npos)
      config.fail_at(*key, "sliding_window_pattern must be a number, or letters L (local) and G (global)");
    return letters[static_cast<std::size_t>(index) % letters.size()] == 'L' ? window : 0;
  }
  const std::int64_t every = config.integer_or(kSlidingPattern, family.sliding_pattern);
  return every > 0 && (index + 1) % every == 0 ? 0 : window;
}

// After the family has had its say.
void check_plan(const Config& config, const Family& family, const Plan& plan) {
  if (plan.attention.heads > 0) {
    size_of(config, {"num_attention_heads", "n_head", "n_heads", "num_heads"}, plan.attention.heads);
    size_of(config, {"num_key_value_heads", "num_kv_heads", "n_head_kv"}, plan.attention.kv_heads);
    size_of(config, {"head_dim", "attention_head_dim", "kv_channels"}, plan.attention.head_dim);
    size_of(config, {"v_head_dim", "head_dim"}, plan.attention.v_head_dim);
    // As transformers' LlamaConfig does (validate_architecture). A mixer of its own may have other widths.
    const std::int64_t hidden = plan.common.hidden_size;
    if (family.mixer == nullptr && hidden % plan.attention.heads != 0 &&
        plan.attention.head_dim == hidden / plan.attention.heads &&
        config.integer_or({"head_dim", "attention_head_dim", "kv_channels"}, 0) == 0) {
      config.fail_about(
          kHiddenSize, fmt::format("hidden_size ({}) must be a multiple of num_attention_heads ({}) where no "
                                   "head_dim is stated",
                                   hidden, plan.attention.heads));
    }
    if (plan.attention.heads % plan.attention.kv_heads != 0) {
      config.fail_about({"num_key_value_heads", "num_kv_heads", "n_head_kv", "num_attention_heads", "n_head"},
                        fmt::format("num_attention_heads ({}) must be a multiple of num_key_value_heads ({})",
                                    plan.attention.heads, plan.attention.kv_heads));
    }
  } else if (family.mixer == nullptr) {
    if (config.maybe_integer({"num_attention_heads", "n_head", "n_heads", "num_heads"}) == 0) {
      config.fail_about({"num_attention_heads", "n_head", "n_heads", "num_heads"},
                        "num_attention_heads is 0; it must be at least 1");
    }
    config.fail("no num_attention_heads (also called n_head, n_heads, num_heads)");
  }
  const bool dense =
      std::find(plan.moe_layers.begin(), plan.moe_layers.end(), false) != plan.moe_layers.end();
  if (dense && family.feed_forward == nullptr) size_of(config, kWidths, plan.mlp.intermediate);
  size_of(config, kVocabSize, plan.head.vocab_size);
  if (family.positions != nullptr)
    size_of(config, {family.positions, "max_position_embeddings"}, plan.positions + 1);
  if (plan.moe.experts == 0) return;
  size_of(config, {"moe_intermediate_size", "moe_ffn_hidden_size", "expert_ffn_hidden_size"},
          plan.moe.expert.intermediate);
  if (plan.moe.per_token == 0 && !config.has(kExpertsPerToken))
    config.fail("no num_experts_per_tok (also called experts_per_token, moe_top_k, moe_topk, moe_k)");
  if (plan.moe.per_token < 1 || plan.moe.per_token > plan.moe.experts) {
    config.fail_about(kExpertsPerToken,
                      fmt::format("num_experts_per_tok is {}; it must be from 1 to the {} experts",
                                  plan.moe.per_token, plan.moe.experts));
  }
}

}  // namespace

std::int64_t read_hidden_size(const Config& config) {
  if (!config.states(kHiddenSize)) config.refuse_sizes_elsewhere(kHiddenSize, kLayerCount);
  return size_of(config, kHiddenSize, config.integer(kHiddenSize));
}

std::int64_t read_layer_count(const Config& config) {
  const Names names = kLayerCount;
  std::int64_t count = config.integer_or(names, 0);
  if (!config.states(names)) {  // a list tells more than the class's default
    const json::Value* types = config.layer_list(kLayerTypes);
    const std::int64_t listed =
        types != nullptr ? static_cast<std::int64_t>(types->items.size())
                         : static_cast<std::int64_t>(config.text_or({"hybrid_override_pattern"}, "").size());
    if (listed > 0) count = listed;
    if (count == 0) return config.integer(names);
  }
  return config.checked_size(names, count, 1, kMostLayers);
}

std::int64_t draft_layers(const Config& config) {
  return config.integer_or(
      {"num_nextn_predict_layers", "num_mtp_modules", "mtp_num_hidden_layers", "num_mtp_layers"}, 0);
}

bool is_on(const Config& config, const Switch& property) {
  return property.key == nullptr ? property.fallback : config.flag_or({property.key}, property.fallback);
}

Plan read_plan(const Config& config, const Family& family, Format dtype) {
  Plan plan;
  const std::int64_t hidden = read_hidden_size(config);
  if (!config.states(kHiddenSize)) {
    plan.notes.push_back(fmt::format("no hidden_size is stated: {}, its class's default, is taken", hidden));
  }
  plan.layers = static_cast<std::int32_t>(read_layer_count(config));
  plan.common.hidden_size = hidden;
  plan.common.norm = family.norm;
  plan.common.weights = plan.common.head = plan.common.small = dtype;
  plan.head.vocab_size = size_of(config, kVocabSize, config.integer(kVocabSize));
  plan.head.tied = read_tied(config, family);
  plan.head.bias = family.lm_head_bias;
  if (family.positions != nullptr && config.is_null({family.positions, "max_position_embeddings"}))
    config.fail_about({family.positions, "max_position_embeddings"},
                      fmt::format("{} must be a value, not null", family.positions));
  if (family.positions != nullptr)
    plan.positions =
        config.integer_or({family.positions, "max_position_embeddings"}, 0) + family.extra_positions;
  plan.attention = read_attention(config, family, hidden);
  plan.mlp = read_mlp(config, family, hidden);
  plan.moe = read_moe(config, family, plan.mlp);
  plan.types =
      config.layer_texts(kLayerTypes, family.layer_kinds.empty() ? Known(kAttentions) : family.layer_kinds);
  plan.moe_layers = read_moe_layers(config, plan);
  if (family.adjust != nullptr) family.adjust(config, plan);
  replace_head(config, plan);
  if (plan.moe.experts == 0) plan.moe_layers.assign(plan.moe_layers.size(), false);
  check_plan(config, family, plan);
  return plan;
}

LayerPlan plan_layer(const Config& config, const Family& family, const Plan& plan, std::int32_t index) {
  LayerPlan layer{.index = index, .attention = plan.attention, .mlp = plan.mlp};
  layer.moe = plan.moe_layers[static_cast<std::size_t>(index)];
  if (!plan.types.empty()) {
    layer.type = plan.types[static_cast<std::size_t>(index)];
    if (layer.type == "sliding_attention" || layer.type == "sliding")
      layer.attention.window = config.integer_or({"sliding_window", "sliding_window_size", "window_size"}, 0);
    if (layer.type == "chunked_attention")
      layer.attention.chunk = config.integer_or({"attention_chunk_size"}, 0);
  } else {
    layer.attention.window = window_of(config, family, index);
  }
  // One number stands for all layers; a list gives each its own.
  const auto own = [&](Names names, std::int64_t& size) {
    if (config.is_list(names)) size = size_of(config, names, config.layer_integer_or(names, index, size));
  };
  own(kWidths, layer.mlp.intermediate);
  AttentionSpec& attention = layer.attention;
  if (attention.heads == 0) return layer;
  own({kHeadsOfLayers, "num_attention_heads", "num_query_heads"}, attention.heads);
  own({kKvHeadsOfLayers, "num_key_value_heads", "num_kv_heads"}, attention.kv_heads);
  if (attention.heads % attention.kv_heads != 0) {
    config.fail_about({kHeadsOfLayers, "num_attention_heads", "num_query_heads"},
                      fmt::format("layer {}: its {} heads must be a multiple of its {} key-value heads",
                                  index, attention.heads, attention.kv_heads));
  }
  return layer;
}

void insert_before_state(Block& block, const std::vector<Tensor>& tensors) {
  const std::size_t at = block.states.front().before;
  block.tensors.insert(block.tensors.begin() + static_cast<std::ptrdiff_t>(at), tensors.begin(),
                       tensors.end());
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
