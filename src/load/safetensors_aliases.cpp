#include "load/safetensors_aliases.h"

namespace memwall {
namespace {

// The names of a stored module, and what it may be, the likeliest first.
struct Alias {
  std::vector<const char*> stored;
  std::vector<const char*> names;
};
using Aliases = std::vector<Alias>;

// What is directly in the layer: norms of the hidden state, mostly.
const Aliases kInLayerItself = {
    {{"input_layernorm", "ln1", "ln", "ln_attn", "attention_norm", "operator_norm", "attn_norm", "norm",
      "temporal_pre_norm", "norm1", "norm_1", "attention_layernorm", "layernorm1", "input_layernorm.norm"},
     {"attn_norm", "mixer_norm", "mlp_norm", "ln1"}},
    {{"pre_feedforward_layernorm", "pre_mlp_layernorm", "pre_ff_layernorm", "ffn_norm", "ln2", "ln_mlp",
      "norm2", "norm_2", "channel_pre_norm", "ff_norm", "feedforward_layernorm", "mlp_norm",
      "residual_layernorm", "layernorm2", "norm_ffn", "pre_feedforward_layernorm_2",
      "post_attention_layernorm.norm"},
     {"mlp_norm", "ln2"}},
    {{"post_attention_layernorm"}, {"mlp_norm", "attn_post_norm", "mixer_post_norm"}},
    // OPT's and GPT's first sizes normalise behind each block.
    {{"self_attn_layer_norm", "ln_1"}, {"attn_norm", "attn_post_norm"}},
    {{"final_layer_norm", "ln_2"}, {"mlp_norm", "mlp_post_norm"}},
    {{"post_self_attn_layernorm", "post_attention_norm", "attn_post_norm", "post_attn_norm", "post_norm1",
      "post_operator_norm"},
     {"attn_post_norm", "mixer_post_norm"}},
    {{"post_feedforward_layernorm", "post_mlp_layernorm", "post_ffn_norm", "post_ffw_norm", "post_moe_norm",
      "post_norm2", "post_feedforward_layernorm_1", "post_feedforward_layernorm_2"},
     {"mlp_post_norm"}},
    {{"input_layernorm.mlp.fc1"}, {"attn_norm_gate.fc1"}},
    {{"input_layernorm.mlp.fc2"}, {"attn_norm_gate.fc2"}},
    {{"post_attention_layernorm.mlp.fc1"}, {"mlp_norm_gate.fc1"}},
    {{"post_attention_layernorm.mlp.fc2"}, {"mlp_norm_gate.fc2"}},
    {{"post_attention_residual_gate.gate", "post_feedforward_residual_gate.gate"}, {"residual_gate"}},
    {{"mlp"}, {"experts"}},
    {{"pre_norm"}, {"pre_ln"}},
    // Both sides of a layer, where they have no parent: OPT, Molmo.
    {{"att_proj"}, {"qkv_proj"}},
    {{"attn_out"}, {"o_proj"}},
    {{"ff_proj"}, {"gate_up_proj", "up_proj"}},
    {{"ff_out"}, {"down_proj"}},
    {{"hc_attn_fn", "hc_pre.hc_attn_layer.hc_fn"}, {"attn_hc.fn"}},
    {{"hc_attn_base", "hc_pre.hc_attn_layer.hc_base"}, {"attn_hc.base"}},
    {{"hc_attn_scale", "hc_pre.hc_attn_layer.hc_scale"}, {"attn_hc.scale"}},
    {{"hc_ffn_fn", "hc_pre.hc_mlp_layer.hc_fn"}, {"ffn_hc.fn"}},
    {{"hc_ffn_base", "hc_pre.hc_mlp_layer.hc_base"}, {"ffn_hc.base"}},
    {{"hc_ffn_scale", "hc_pre.hc_mlp_layer.hc_scale"}, {"ffn_hc.scale"}},
};

const Aliases kMixing = {
    {{"query", "wq", "q", "Wq"}, {"q_proj"}},
    {{"key", "wk", "k", "Wk"}, {"k_proj"}},
    {{"value", "wv", "v", "Wv"}, {"v_proj"}},
    {{"query_key_value", "W_pack", "Wqkv", "wqkv", "c_attn", "qkv", "att_proj"}, {"qkv_proj"}},
    {{"r_proj"}, {"receptance"}},
    {{"k_proj"}, {"key"}},
    {{"v_proj"}, {"value"}},
    {{"out_proj", "dense", "c_proj", "wo", "Wo", "attn_out", "o_proj"},
     {"o_proj", "out_proj", "linear_out", "output"}},
    {{"g_proj", "gate_proj", "gate", "linear_gate"}, {"attn_gate", "output_gate", "in_proj_z"}},
    {{"q_layernorm", "q_ln", "query_layernorm", "q_layernorm.norms.#", "q_norm"}, {"q_norm", "q_a_norm"}},
    {{"k_layernorm", "k_ln", "key_layernorm", "k_layernorm.norms.#"}, {"k_norm"}},
    {{"attention_sink_bias", "attn_sink", "sink", "learnable_sink_param"}, {"sinks"}},
    {{"inner_attn_ln"}, {"attn_sub_norm"}},
    {{"q_gate_proj"}, {"q_b_proj"}},
    {{"a_proj"}, {"in_proj_a"}},
    {{"b_proj"}, {"in_proj_b"}},
    {{"o_norm"}, {"gated_norm"}},
    {{"dense_bias"}, {"o_proj.bias"}},
    {{"input_linear"}, {"q_proj"}},
    {{"output_linear"}, {"o_proj"}},
    {{"x_proj_weight"}, {"x_proj"}},
    {{"dt_proj_weight"}, {"dt_proj"}},
    {{"dt_proj_bias"}, {"dt_proj.bias"}},
    {{"norm"}, {"gated_norm", "o_norm", "kv_norm"}},
    {{"conv", "conv_1d"}, {"conv1d"}},
    {{"wq_a"}, {"q_a_proj"}},
    {{"wq_b"}, {"q_b_proj"}},
    {{"wkv"}, {"kv_proj"}},
    {{"wo_a"}, {"o_a_proj"}},
    {{"wo_b"}, {"o_b_proj"}},
    {{"kv_a_norm"}, {"kv_a_layernorm"}},
    {{"ape"}, {"position_bias"}},
    {{"wgate"}, {"gate_proj"}},
    {{"indexers_proj"}, {"indexer.weights_proj"}},
    {{"rg_lru.input_gate_weight"}, {"input_gate"}},
    {{"rg_lru.input_gate_bias"}, {"input_gate.bias"}},
    {{"rg_lru.recurrent_gate_weight"}, {"recurrent_gate"}},
    {{"rg_lru.recurrent_gate_bias"}, {"recurrent_gate.bias"}},
    {{"fc1_latent_proj"}, {"latent_in_proj"}},
    {{"fc2_latent_proj"}, {"latent_out_proj"}},
};

const Aliases kFeeding = {
    {{"w1", "proj_up_gate"}, {"gate_proj", "up_proj"}},
    {{"c_fc_0", "linear_gate"}, {"gate_proj"}},
    {{"w3", "v1", "c_fc", "c_fc_1", "fc1", "fc_in", "proj_up", "0"}, {"up_proj"}},
    {{"dense_h_to_4h", "ff_proj", "w13", "input_linear", "gate_up", "Wi"}, {"gate_up_proj", "up_proj"}},
    // Qwen's first generation gates with w2.
    {{"w2"}, {"down_proj", "gate_proj", "up_proj"}},
    {{"c_proj", "fc2", "fc_out", "dense_4h_to_h", "ff_out", "output_linear", "Wo", "proj_down", "2"},
     {"down_proj"}},
    {{"ffn_sub_norm", "ffn_layernorm"}, {"sub_norm"}},
    {{"gate", "gate.wg", "router.layer", "router.classifier", "router.gate"}, {"router"}},
    {{"gate.e_score_correction_bias", "e_score_correction_bias", "expert_bias", "router.expert_bias",
      "router_bias", "moe_statics.e_score_correction_bias", "router.e_score_correction_bias",
      "gate.expert_bias"},
     {"router.bias"}},
    {{"shared_expert_gate"}, {"shared_expert.gate"}},
    {{"post_mlp_layernorm"}, {"mlp_post_norm"}},
    {{"pre_expert_proj"}, {"latent_in_proj"}},
    {{"post_expert_proj"}, {"latent_out_proj"}},
    {{"pre_expert_norm"}, {"latent_in_proj_norm"}},
    {{"post_expert_norm"}, {"down_proj_norm"}},
    {{"fc1_latent_proj"}, {"latent_in_proj"}},
    {{"fc2_latent_proj"}, {"latent_out_proj"}},
    {{"act_fn.alpha_p"}, {"xielu.alpha_p"}},
    {{"act_fn.alpha_n"}, {"xielu.alpha_n"}},
    {{"act_fn.beta"}, {"xielu.beta"}},
    {{"act_fn.eps"}, {"xielu.eps"}},
};

const Aliases kOutside = {
    {{"wte", "word_embeddings", "embed_in", "embeddings", "tok_embeddings", "embedding.word_embeddings",
      "embedding", "wte.embedding", "embeddings.word_embeddings", "embeddings.tok_embeddings", "embd.wte",
      "embed", "tokens_embed", "w"},
     {"embed_tokens"}},
    {{"wpe", "position_embeddings", "embeddings.position_embeddings", "positions_embed"},
     {"embed_positions"}},
    {{"word_embeddings_layernorm", "embeddings.norm", "embedding_layernorm"}, {"embed_norm"}},
    {{"norm", "ln_f", "final_layer_norm", "final_layernorm", "norm_f", "ln_out", "embedding_norm",
      "layer_norm", "norm_out", "lm_head.ln", "layernorm", "out_norm"},
     {"final_norm"}},
    {{"output", "embed_out", "head", "output_layer", "lm_head.linear", "ff_out", "decoder"}, {"lm_head"}},
    {{"lm_head.dense"}, {"head.dense"}},
    {{"lm_head.norm"}, {"head.norm"}},
    {{"hc_head_fn", "hc_head.hc_fn", "hc_pre.hc_head.hc_head_fn"}, {"hc_head.fn"}},
    {{"hc_head_base", "hc_head.hc_base", "hc_pre.hc_head.hc_head_base"}, {"hc_head.base"}},
    {{"hc_head_scale", "hc_head.hc_scale", "hc_pre.hc_head.hc_head_scale"}, {"hc_head.scale"}},
};

AliasIndex index_of(const Aliases& aliases) {
  AliasIndex index;
  for (const Alias& alias : aliases) {
    for (const char* stored : alias.stored) index[stored] = alias.names;
  }
  return index;
}

}  // namespace

const AliasIndex& layer_aliases() {
  static const AliasIndex index = index_of(kInLayerItself);
  return index;
}

const AliasIndex& mixing_aliases() {
  static const AliasIndex index = index_of(kMixing);
  return index;
}

const AliasIndex& feeding_aliases() {
  static const AliasIndex index = index_of(kFeeding);
  return index;
}

const AliasIndex& outside_aliases() {
  static const AliasIndex index = index_of(kOutside);
  return index;
}

}  // namespace memwall
