#include "load/gguf_required.h"

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <unordered_map>

namespace memwall {
namespace {

using Stems = std::initializer_list<const char*>;

class Requirements {
 public:
  explicit Requirements(const GgufSorted& sorted) : sorted_(sorted), source_(sorted.outside.source()) {
    for (const GgufTensors& layer : sorted.layers) {
      for (const auto& [name, tensor] : layer.rest()) {
        if (name.ends_with(".weight")) ++layers_with_[name.substr(0, name.size() - 7)];
      }
    }
  }

  void check() const {
    sorted_.outside.need("token_embd");
    for (const GgufTensors& layer : sorted_.layers) {
      if (layer.empty()) continue;  // which the builder of layers tells
      check_mixing(layer);
      check_experts(layer);
      check_dense(layer);
      check_norms(layer);
    }
    const GgufArchitecture& architecture = source_.architecture();
    if (!source_.is_known()) return;
    if (architecture.final_norm && !sorted_.outside.has("token_embd_norm"))
      sorted_.outside.need("output_norm");
    if (architecture.own_head) sorted_.outside.need("output");
  }

 private:
  static bool has_one(const GgufTensors& layer, Stems stems) {
    return std::any_of(stems.begin(), stems.end(), [&](const char* stem) { return layer.has(stem); });
  }

  bool is_in_some_layer(const std::string& stem) const { return layers_with_.contains(stem); }

  // In every layer but this one, and there are others.
  bool is_in_all_others(const std::string& stem) const {
    const auto found = layers_with_.find(stem);
    const std::size_t layers = sorted_.layers.size();
    return layers > 1 && found != layers_with_.end() && found->second + 1 == layers;
  }

  // Layers of DeciLM may have no attention, a linear in its place, or no MLP.
  bool is_deci() const { return source_.name() == "deci"; }

  void check_mixing(const GgufTensors& layer) const {
    for (const char* family : {"ssm_", "shortconv."}) {
      if (layer.has_any(family)) check_family(layer, family);
    }
    const bool recurrent = layer.has_any("ssm_") || layer.has_any("shortconv.") || layer.has_any("time_mix_");
    if (has_one(layer, {"attn_kv_a_mqa", "attn_kv_a_norm", "attn_kv_b", "attn_k_b", "attn_v_b"})) {
      layer.need("attn_kv_a_mqa");
      if (has_one(layer, {"attn_q_a", "attn_q_b", "attn_q_a_norm"})) {
        layer.need("attn_q_a");
        layer.need("attn_q_b");
      }
      return;
    }
    if (source_.has("attention.compress_ratios") &&
        has_one(layer, {"attn_kv", "attn_output_a", "attn_output_b"})) {
      layer.need("attn_kv");
      return;  // whose reader needs the others
    }
    if (recurrent || layer.has("attn_qkv") || layer.has("attn_q")) return;
    const bool projects = has_one(layer, {"attn_k", "attn_v", "attn_q_norm", "attn_k_norm"});
    const bool attends = layer.has("attn_output") || (layer.has("attn_norm") && layer.has("ffn_norm"));
    if (projects || (attends && !is_deci())) layer.need(is_in_some_layer("attn_qkv") ? "attn_qkv" : "attn_q");
  }

  // A layer with one tensor of a family has all that each other such layer has.
  void check_family(const GgufTensors& layer, const std::string& family) const {
    std::size_t most = 0;
    for (const auto& [stem, count] : layers_with_) {
      if (stem.starts_with(family)) most = std::max(most, count);
    }
    for (const auto& [stem, count] : layers_with_) {
      if (stem.starts_with(family) && count == most && most > 1) layer.need(stem);
    }
  }

  void check_mlp(const GgufTensors& layer, const std::string& suffix, bool gated) const {
    layer.need("ffn_down" + suffix);
    if (layer.has("ffn_gate_up" + suffix)) return;
    const StoredTensor& up = layer.need("ffn_up" + suffix);
    if (layer.has("ffn_gate" + suffix)) return;
    // Phi-3's and GLM-4's up is gate and up.
    const std::int64_t rows = up.shape.size() > 1 ? up.shape[up.shape.size() - 2] : 1;
    const bool fused = rows == 2 * columns_of(layer.need("ffn_down" + suffix));
    if (!fused && (gated || is_in_some_layer("ffn_gate" + suffix))) layer.need("ffn_gate" + suffix);
  }

  bool gated() const { return source_.is_known() && source_.architecture().gated; }

  void check_dense(const GgufTensors& layer) const {
    if (has_one(layer, {"ffn_gate", "ffn_up", "ffn_down", "ffn_gate_up"})) check_mlp(layer, "", gated());
  }

  void check_experts(const GgufTensors& layer) const {
    if (has_one(layer,
                {"ffn_gate_exps", "ffn_up_exps", "ffn_down_exps", "ffn_gate_up_exps", "ffn_gate_inp"}) &&
        !layer.has("ffn_down.0") && !layer.has("ffn_up.0")) {
      layer.need("ffn_gate_inp");
      check_mlp(layer, "_exps", gated());
    }
    if (has_one(layer, {"ffn_gate_shexp", "ffn_up_shexp", "ffn_down_shexp", "ffn_gate_up_shexp"}))
      check_mlp(layer, "_shexp", gated());
  }

  void check_norms(const GgufTensors& layer) const {
    const bool mixes = layer.has_any("attn_") || layer.has_any("ssm_") || layer.has_any("time_mix_");
    const bool feeds = layer.has_any("ffn_");
    if (mixes && is_in_all_others("attn_norm")) layer.need("attn_norm");
    // A layer that reads an earlier one's cache has no K to normalise, a recurrence no queries either.
    if (mixes && !layer.has_any("ssm_") && is_in_all_others("attn_q_norm")) layer.need("attn_q_norm");
    for (const char* stem :
         {"hc_attn_fn", "hc_ffn_fn", "hc_attn_down", "hc_ffn_down", "attn_res_score", "ffn_res_score"}) {
      if (is_in_all_others(stem)) layer.need(stem);
    }
    if (feeds && is_in_all_others("ffn_norm")) layer.need("ffn_norm");
    if (layer.has("attn_k") && is_in_all_others("attn_k_norm")) layer.need("attn_k_norm");
    if (source_.is_known() && source_.architecture().final_norm && layer.has("attn_output") && !is_deci() &&
        !has_one(layer,
                 {"attn_norm", "attn_norm_2", "attn_post_norm", "post_attention_norm", "attn_output_norm"})) {
      layer.need("attn_norm");
    }
  }

  const GgufSorted& sorted_;
  const GgufSource& source_;
  std::unordered_map<std::string, std::size_t> layers_with_;  // by stem, of weights
};

}  // namespace

void require_gguf_tensors(const GgufSorted& sorted) { Requirements(sorted).check(); }

}  // namespace memwall
