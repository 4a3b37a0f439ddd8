// Sources: what the configuration classes of Hugging Face transformers 5.24 annotate without None (and check
// when they are made), where the modelling code computes with the value unasked.
#include "huggingface/null_keys.h"

#include <algorithm>
#include <array>

namespace memwall {
namespace {

// Of every decoder that has them.
constexpr auto kNeverNull = std::to_array<std::string_view>({"adapter_rank",
                                                             "altup_num_inputs",
                                                             "attention_k_eq_v",
                                                             "attn_layer_offset",
                                                             "attn_layer_period",
                                                             "block_configs",
                                                             "conv_L_cache",
                                                             "conv_kernel",
                                                             "decoder_sparse_step",
                                                             "dense_intermediate_size",
                                                             "do_layer_norm_before",
                                                             "enable_moe_block",
                                                             "expert_layer_offset",
                                                             "expert_layer_period",
                                                             "ffn_proj_factor",
                                                             "hc_mult",
                                                             "hidden_size",
                                                             "hidden_size_per_layer_input",
                                                             "index_head_dim",
                                                             "index_n_heads",
                                                             "index_topk",
                                                             "interleave_moe_layer_step",
                                                             "intermediate_size_mlp",
                                                             "is_moe",
                                                             "laurel_rank",
                                                             "layer_group_size",
                                                             "linear_conv_kernel_dim",
                                                             "mamba_head_dim",
                                                             "mamba_num_heads",
                                                             "moe_hidden_size",
                                                             "moe_layer_freq",
                                                             "moe_layer_frequency",
                                                             "moe_shared_expert_intermediate_size",
                                                             "moe_topk",
                                                             "n_embd",
                                                             "n_head",
                                                             "n_layer",
                                                             "n_mamba_heads",
                                                             "n_positions",
                                                             "num_attention_heads",
                                                             "num_hidden_layers",
                                                             "num_kv_shared_layers",
                                                             "num_layers",
                                                             "num_mem_blocks",
                                                             "o_groups",
                                                             "o_lora_rank",
                                                             "qk_dim_factor",
                                                             "qk_nope_head_dim",
                                                             "qk_rope_head_dim",
                                                             "shared_expert_intermediate_size",
                                                             "shared_intermediate_size",
                                                             "ssm_state_size",
                                                             "state_size",
                                                             "swa_head_dim",
                                                             "swa_num_attention_heads",
                                                             "swa_num_key_value_heads",
                                                             "use_conv_bias",
                                                             "v_dim_factor",
                                                             "vocab_size"});

// Of some decoders: the types, separated by blanks.
struct NeverNullOf {
  std::string_view key;
  std::string_view types;
};

constexpr auto kNeverNullOf = std::to_array<NeverNullOf>({
    {"head_dim",
     "axk2 bailing_hybrid beam cohere2_moe cwm deepseek_v32 deepseek_v4 dots3_note_text flint "
     "gemma gemma2 gemma3_text gemma3n_text gemma4_text gemma4_unified_text glm4 gpt_oss helium "
     "hy_v3 kolibri1 laguna lara_mini lfm3 llama4_text mamba2 mellum mimo_v2_flash minimax_m2 "
     "minimax_m3_vl_text ministral3 molmo2_text muse_glimmer_text muse_spark_text nemotron_h qwen3 "
     "qwen3_5_moe_text qwen3_5_text qwen3_next qwen3_vl_text sarvam_moe solar_open step3p5 "
     "vaultgemma"},
    {"sliding_window",
     "cwm exaone_moe flint gemma3n_text gemma4_text gemma4_unified_text laguna lara_mini "
     "mimo_v2_flash"},
    {"v_head_dim",
     "axk1 axk2 bailing_hybrid deepseek_v2 deepseek_v32 dots3_note_text glm4_moe_lite "
     "glm5_next_text glm_moe_dsa hy_v4 longcat_flash mimo_v2_flash mistral_large4_text"},
    {"moe_intermediate_size",
     "afmoe axk1 axk2 bailing_hybrid beam deepseek_v2 deepseek_v3 deepseek_v32 deepseek_v4 dots1 "
     "dots3_note_text ernie4_5_moe exaone_moe flint glm4_moe glm4_moe_lite glm4v_moe_text "
     "glm5_next_text glm_moe_dsa hy_v3 hy_v4 hy_v4_vl_text kimi_k2 kimi_linear kolibri1 laguna "
     "lara_mini lfm2_moe mellum mimo_v2_flash mistral4 mistral_large4_text muse_spark_text "
     "nemotron_h qwen2_moe qwen3_5_moe_text qwen3_moe qwen3_next qwen3_omni_moe_text "
     "qwen3_vl_moe_text sarvam_mla sarvam_moe solar_open step3p5 step3p7"},
    {"n_shared_experts",
     "axk1 axk2 bailing_hybrid deepseek_v2 deepseek_v3 deepseek_v32 dots3_note_text glm4_moe "
     "glm4_moe_lite glm4v_moe_text glm5_next_text glm_moe_dsa hy_v4 hy_v4_vl_text kimi_k2 "
     "kimi_linear mistral4 mistral_large4_text nemotron_h sarvam_mla sarvam_moe solar_open"},
    {"first_k_dense_replace",
     "bailing_hybrid deepseek_v2 deepseek_v3 deepseek_v32 exaone_moe glm4_moe glm4_moe_lite "
     "glm4v_moe_text glm_moe_dsa kimi_k2 mistral_large4_text sarvam_moe"},
    {"q_lora_rank",
     "axk1 axk2 deepseek_v32 deepseek_v4 glm5_next_text glm_moe_dsa hy_v4 hy_v4_vl_text "
     "longcat_flash"},
    {"linear_num_value_heads", "lara_mini qwen3_5_moe_text qwen3_5_text qwen3_next"},
    {"linear_num_key_heads", "lara_mini qwen3_5_moe_text qwen3_5_text qwen3_next"},
    {"linear_key_head_dim", "lara_mini qwen3_5_moe_text qwen3_5_text qwen3_next"},
    {"linear_value_head_dim", "lara_mini qwen3_5_moe_text qwen3_5_text qwen3_next"},
    {"n_groups", "mamba2 nemotron_h"},
    {"mamba_d_state", "jamba zamba zamba2"},
    {"mamba_d_conv", "jamba zamba zamba2"},
    {"mamba_expand", "jamba zamba zamba2"},
    {"num_experts",
     "beam cohere2_moe exaone_moe flex_olmo flint hunyuan_v1_moe jamba kolibri1 laguna lara_mini "
     "lfm2_moe mellum olmoe qwen2_moe qwen3_5_moe_text qwen3_moe qwen3_next qwen3_omni_moe_text "
     "qwen3_vl_moe_text"},
    {"num_local_experts", "gpt_oss jetmoe llama4_text minimax minimax_m2 mixtral phimoe"},
});

bool lists(std::string_view types, std::string_view type) {
  for (std::size_t at = 0; at < types.size();) {
    const std::size_t end = std::min(types.find(' ', at), types.size());
    if (types.substr(at, end - at) == type) return true;
    at = end + 1;
  }
  return false;
}

}  // namespace

bool takes_null(std::string_view model_type, std::string_view key) {
  if (std::find(kNeverNull.begin(), kNeverNull.end(), key) != kNeverNull.end()) return false;
  return std::none_of(kNeverNullOf.begin(), kNeverNullOf.end(),
                      [&](const NeverNullOf& row) { return row.key == key && lists(row.types, model_type); });
}

}  // namespace memwall
