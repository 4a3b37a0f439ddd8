#include "load/safetensors_names.h"

#include <algorithm>
#include <array>

#include "load/safetensors_aliases.h"

namespace memwall {
namespace {

constexpr std::array<std::string_view, 6> kAttention = {
    "self_attn", "attn", "attention", "self_attention", "cross_attn", "multi_head_attention"};
constexpr std::array<std::string_view, 7> kRecurrence = {
    "temporal_block", "linear_attn", "mamba", "conv", "short_conv", "mamba2", "mlstm_layer"};
// What holds a layer's parts, norms included.
constexpr std::array<std::string_view, 4> kInLayer = {"norm_attn_norm", "mamba_decoder", "shared_transf",
                                                      "shared_transformer"};
constexpr std::array<std::string_view, 8> kMlp = {"mlp", "mlps",         "feed_forward", "ffn",
                                                  "moe", "residual_mlp", "mlp_block",    "block_sparse_moe"};
constexpr std::array<std::string_view, 4> kShared = {"shared_expert", "shared_experts", "share_expert",
                                                     "shared_mlp"};

template <std::size_t count>
bool is_one_of(const std::array<std::string_view, count>& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

class Search {
 public:
  explicit Search(std::string_view path) : rest_(path) {}

  Candidates outside() {
    look_up(outside_aliases(), rest_);
    add(rest_);
    return std::move(result_);
  }

  Candidates inside() {
    if (rest_ == "self_attention.experts.router.layer") result_.names.emplace_back("router");  // JetMoE's
    walk_parents();
    result_.attention_itself = is_one_of(kAttention, rest_);
    if (is_one_of(kMlp, rest_)) result_.side = Side::feeding;
    constexpr int kMostDepth = 4;
    std::string_view name = rest_;
    for (int depth = 0; depth < kMostDepth && !name.empty(); ++depth) {
      add(name);
      if (!has_parent_) look_up(layer_aliases(), name);
      if (result_.side != Side::feeding) look_up(mixing_aliases(), name);
      if (result_.side != Side::mixing) look_up(feeding_aliases(), name);
      constexpr std::string_view kLora = "_lora.lora.";  // RWKV-7's
      if (const std::size_t at = name.find(kLora); at != std::string_view::npos)
        add(std::string(name.substr(0, at + 6)) + std::string(name.substr(at + kLora.size())));
      // "norm.scale" of old; and what is inside of a wrapper that is not known.
      constexpr std::string_view kScale = ".scale";
      if (name.ends_with(kScale)) {
        name.remove_suffix(kScale.size());
        continue;
      }
      const std::size_t dot = name.find('.');
      name = dot == std::string_view::npos ? std::string_view() : name.substr(dot + 1);
    }
    return std::move(result_);
  }

 private:
  // Takes off what the module is inside of.
  void walk_parents() {
    for (std::size_t dot = rest_.find('.'); dot != std::string_view::npos; dot = rest_.find('.')) {
      const std::string_view parent = rest_.substr(0, dot);
      if (is_one_of(kAttention, parent) || is_one_of(kRecurrence, parent)) {
        result_.side = Side::mixing;
      } else if (is_one_of(kMlp, parent)) {
        result_.side = Side::feeding;
      } else if (parent == "text_moe" || parent == "vision_moe") {
        if (parent == "vision_moe") scope_ = "vision_moe.";
      } else if (parent == "experts" && !scope_.ends_with("experts.")) {
        scope_ += "experts.";
      } else if (is_one_of(kShared, parent)) {
        scope_ = "shared_expert.";
        result_.side = Side::feeding;
      } else if (parent == "indexer") {
        scope_ = "indexer.";
      } else if (parent == "compressor") {
        if (scope_.empty()) scope_ = "compressor.";
      } else if (parent != "mixer" && !is_one_of(kInLayer, parent) && !(parent == "#" && !scope_.empty())) {
        break;
      }
      has_parent_ = has_parent_ || !is_one_of(kInLayer, parent);
      rest_.remove_prefix(dot + 1);
    }
  }

  void look_up(const AliasIndex& index, std::string_view name) {
    const auto found = index.find(name);
    if (found == index.end()) return;
    for (const char* one : found->second) add(one);
  }

  void add(std::string_view name) {
    add_once(scope_ + std::string(name));
    // The first layers' dense MLP is called shared in some families; experts in one tensor need no list.
    if (scope_ == "shared_expert.") add_once(std::string(name));
    if (scope_.empty() && result_.side == Side::feeding) {
      add_once("ffn." + std::string(name));  // RWKV's
      add_once("experts." + std::string(name));
    }
  }

  void add_once(std::string name) {
    if (std::find(result_.names.begin(), result_.names.end(), name) == result_.names.end())
      result_.names.push_back(std::move(name));
  }

  std::string_view rest_;
  std::string scope_;
  bool has_parent_ = false;
  Candidates result_;
};

}  // namespace

const Candidates& CandidateTable::of(const std::string& path, bool outside) {
  auto& known = outside ? outside_ : inside_;
  const auto found = known.find(path);
  if (found != known.end()) return found->second;
  return known.emplace(path, outside ? Search(path).outside() : Search(path).inside()).first->second;
}

const std::vector<Fusion>& fusions() {
  static const std::vector<Fusion> all = {
      {"qkv_proj", {"q_proj", "k_proj", "v_proj"}},
      {"gate_up_proj", {"gate_proj", "up_proj"}},
      {"in_proj_qkvz", {"in_proj_qkv", "in_proj_z"}},
      {"in_proj_ba", {"in_proj_b", "in_proj_a"}},
      {"in_proj_qkv", {"q_proj", "k_proj", "v_proj"}},
      {"conv1d", {"q_conv1d", "k_conv1d", "v_conv1d"}},
      {"xielu", {"xielu.alpha_p", "xielu.alpha_n", "xielu.beta", "xielu.eps"}},
      {"fused_wqa_wkv", {"q_a_proj", "kv_proj"}},
      {"fused_qkv_a_proj_with_mqa", {"q_a_proj", "kv_a_proj_with_mqa"}},
      {"kv_b_proj", {"k_b_proj", "v_b_proj"}},
      {"gates", {"cross_attn_attn_gate", "cross_attn_mlp_gate"}},
      // RWKV mixes each input with the one before it by vectors of their own.
      {"time_mix", {"time_mix_key", "time_mix_value", "time_mix_receptance", "time_mix_gate"}},
      {"time_mix", {"time_mix_key", "time_mix_value", "time_mix_receptance"}},
      {"time_maa", {"time_maa_x", "time_maa_w", "time_maa_k", "time_maa_v", "time_maa_r", "time_maa_g"}},
      {"x_mix", {"x_r", "x_w", "x_k", "x_v", "x_a", "x_g"}},
      {"ffn.time_mix", {"ffn.time_mix_key", "ffn.time_mix_receptance"}},
      {"ffn.time_mix", {"ffn.time_maa_k", "ffn.time_maa_r"}},
      {"ffn.time_mix", {"ffn.x_k"}},
  };
  return all;
}

const std::vector<std::string>& fusion_prefixes() {
  static const std::vector<std::string> all = {"", "experts.", "shared_expert.", "vision_moe.experts."};
  return all;
}

}  // namespace memwall
