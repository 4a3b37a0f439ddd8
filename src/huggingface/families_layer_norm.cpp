// Later decoders with LayerNorm. Sources: the modelling code of Hugging Face transformers 5.24
// (models/NAME/modeling_NAME.py) or, for a family that it lacks, the code in the model's repository.
#include "format/checked.h"
#include "huggingface/families_parts.h"

namespace memwall {
namespace {

void mpt(const Config& config, Plan& plan) {
  all_biases(plan, !config.flag_or({"no_bias"}, true));
  plan.mlp.intermediate = checked_mul(plan.common.hidden_size, config.integer_or({"expansion_ratio"}, 4));
  if (config.flag_or({"attn_config.qk_ln"}, false)) plan.attention.qk_norm = QkNorm::full;
  plan.positions = config.flag_or({"attn_config.alibi"}, true)
                       ? 0
                       : config.integer_or({"max_seq_len", "max_sequence_length"}, 0);
}

void falcon(const Config& config, Plan& plan) {
  bias_by(config, plan, "bias", false);
  const bool grouped = config.flag_or({"new_decoder_architecture"}, config.has({"n_head_kv"}));
  if (!grouped) plan.attention.kv_heads = config.flag_or({"multi_query"}, true) ? 1 : plan.attention.heads;
  plan.attention.rotary = !config.flag_or({"alibi"}, false);
  // One norm feeds attention and MLP in parallel, two where the architecture is the grouped one.
  const bool parallel = config.flag_or({"parallel_attn"}, true);
  const std::int64_t parallel_norms = config.integer_or({"num_ln_in_parallel_attn"}, 2);
  const bool two_norms = !parallel || (grouped && parallel_norms == 2);
  plan.mlp.norm = two_norms ? NormPlace::pre : NormPlace::none;
}

void stablelm(const Config& config, Plan& plan) {
  plan.attention.bias_q = plan.attention.bias_k = plan.attention.bias_v =
      config.flag_or({"use_qkv_bias"}, false);
  plan.attention.bias_o = false;
  if (config.flag_or({"use_parallel_residual"}, false)) plan.mlp.norm = NormPlace::none;
}

// StableLM's norms of Q and K have weights of their own for each head, and no biases.
std::vector<Block> stablelm_mixer(const Config& config, const Plan& plan, const LayerPlan& layer) {
  Block block = common_attention(plan, layer);
  if (config.flag_or({"qk_layernorm"}, false)) {
    Common common = plan.common;
    common.norm = NormKind::layer_no_bias;
    Block norms;
    add_norm(norms, common, "q_norm", layer.attention.head_dim * layer.attention.heads);
    add_norm(norms, common, "k_norm", layer.attention.head_dim * layer.attention.kv_heads);
    insert_before_state(block, norms.tensors);
  }
  return {block};
}

void starcoder2(const Config& config, Plan& plan) { bias_by(config, plan, "use_bias", true); }

void modernbert(const Config& config, Plan& plan) {
  if (config.flag_or({"norm_bias"}, false)) plan.common.norm = NormKind::layer;
  add_embedding_norm(plan);
  Block head;
  add_linear(head, plan.common, "head.dense", plan.common.hidden_size, plan.common.hidden_size,
             config.flag_or({"classifier_bias"}, false));
  add_norm(head, plan.common, "head.norm", plan.common.hidden_size);
  plan.output_parts = head.tensors;
  plan.head.bias = config.flag_or({"decoder_bias"}, true);
  const std::int64_t every = size_or(config, {"global_attn_every_n_layers"}, 3);
  type_layers(
      plan, [&](std::int32_t i) { return i % every == 0; }, "sliding_attention");
}

// The embedding's norm stands for the first layer's.
std::vector<Block> modernbert_mixer(const Config& config, const Plan& plan, const LayerPlan& layer) {
  AttentionSpec spec = layer.attention;
  if (layer.index == 0) spec.norm = NormPlace::none;
  if (layer.type == "sliding_attention")
    spec.window = config.integer_or({"sliding_window"}, config.integer_or({"local_attention"}, 128) / 2);
  return {attention_block(plan.common, spec)};
}

}  // namespace

const std::vector<Family>& layer_norm_families() {
  static const std::vector<Family> families = {
      {.types = {"mpt"},
       .norm = NormKind::layer_no_bias,
       .tied = true,
       .rotary = false,
       .gated = false,
       .fused_qkv = true,
       .adjust = mpt},
      {.types = {"falcon", "RefinedWeb", "RefinedWebModel"},
       .norm = NormKind::layer,
       .tied = true,
       .gated = false,
       .fused_qkv = true,
       .adjust = falcon},
      {.types = {"stablelm", "stablelm_epoch"},
       .norm = NormKind::layer,
       .adjust = stablelm,
       .mixer = stablelm_mixer},
      {.types = {"starcoder2"},
       .norm = NormKind::layer,
       .tied = true,
       .gated = false,
       .sliding = Sliding::all,
       .adjust = starcoder2},
      {.types = {"nemotron"}, .norm = NormKind::layer, .gated = false},
      {.types = {"jais2"},
       .norm = NormKind::layer,
       .qkv_bias = {"attention_bias", true},
       .o_bias = {"attention_bias", true},
       .mlp_bias = {"mlp_bias", true},
       .gated = false},
      {.types = {"modernbert-decoder"},
       .norm = NormKind::layer_no_bias,
       .tied = true,
       .fused_gate_up = true,
       .adjust = modernbert,
       .mixer = modernbert_mixer},
  };
  return families;
}

}  // namespace memwall
