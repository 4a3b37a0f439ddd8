// What a key is where a published config.json leaves it out: the defaults of the configuration classes of
// Hugging Face transformers 5.24 (models/NAME/configuration_NAME.py), those that bear on shapes. Defaults that
// a class derives from other keys are left to the common rules.
#include <algorithm>
#include <array>
#include <string_view>

#include "huggingface/family.h"

namespace memwall {
namespace {

struct ClassDefaults {
  std::string_view type;
  const char* json;
};

// In the order of their types.
// clang-format off
constexpr std::array kClassDefaults = {
    ClassDefaults{"afmoe",
        R"({"vocab_size": 200192, "num_attention_heads": 16, "head_dim": 128, "intermediate_size": 6144, )"
        R"("hidden_act": "silu", "attention_bias": false, "tie_word_embeddings": false, "sliding_window": )"
        R"(1024, "max_position_embeddings": 16384, "num_experts": 64, "num_experts_per_tok": 6, )"
        R"("moe_intermediate_size": 1408, "num_shared_experts": 2})"},
    ClassDefaults{"apertus",
        R"({"vocab_size": 131072, "num_attention_heads": 32, "intermediate_size": 14336, "hidden_act": )"
        R"("xielu", "attention_bias": false, "tie_word_embeddings": false, "max_position_embeddings": )"
        R"(65536})"},
    ClassDefaults{"apertus1p5_text",
        R"({"vocab_size": 266752, "num_attention_heads": 32, "intermediate_size": 14336, "hidden_act": )"
        R"("xielu", "attention_bias": false, "tie_word_embeddings": false, "max_position_embeddings": )"
        R"(65536})"},
    ClassDefaults{"arcee",
        R"({"vocab_size": 32000, "num_attention_heads": 32, "intermediate_size": 18432, "hidden_act": )"
        R"("relu2", "attention_bias": false, "mlp_bias": false, "tie_word_embeddings": false, )"
        R"("max_position_embeddings": 4096})"},
    ClassDefaults{"axk1",
        R"({"vocab_size": 163840, "num_attention_heads": 64, "num_key_value_heads": 64, "head_dim": 64, )"
        R"("intermediate_size": 18432, "hidden_act": "silu", "attention_bias": false, )"
        R"("tie_word_embeddings": false, "max_position_embeddings": 32768, "n_routed_experts": 192, )"
        R"("num_experts_per_tok": 8, "moe_intermediate_size": 2048, "n_shared_experts": 1, "q_lora_rank": )"
        R"(1536, "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128})"},
    ClassDefaults{"bailing_hybrid",
        R"({"vocab_size": 157184, "num_attention_heads": 32, "num_key_value_heads": 32, "head_dim": 64, )"
        R"("intermediate_size": 6144, "hidden_act": "silu", "attention_bias": false, "tie_word_embeddings": )"
        R"(false, "num_experts": 512, "moe_intermediate_size": 768, "first_k_dense_replace": 2, )"
        R"("kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128, )"
        R"("linear_conv_kernel_dim": 4, "num_shared_experts": 1})"},
    ClassDefaults{"bamba",
        R"({"vocab_size": 128000, "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": )"
        R"(14336, "hidden_act": "silu", "attention_bias": false, "mlp_bias": false, "tie_word_embeddings": )"
        R"(false, "max_position_embeddings": 262144, "mamba_d_state": 256, "mamba_d_conv": 4, )"
        R"("mamba_expand": 2, "mamba_conv_bias": true, "mamba_proj_bias": false, "mamba_n_heads": 128, )"
        R"("mamba_n_groups": 1})"},
    ClassDefaults{"biogpt",
        R"({"vocab_size": 42384, "num_attention_heads": 16, "intermediate_size": 4096, "hidden_act": )"
        R"("gelu", "tie_word_embeddings": true, "max_position_embeddings": 1024})"},
    ClassDefaults{"bitnet",
        R"({"vocab_size": 128256, "num_attention_heads": 20, "num_key_value_heads": 5, "intermediate_size": )"
        R"(6912, "hidden_act": "relu2", "attention_bias": false, "tie_word_embeddings": false, )"
        R"("max_position_embeddings": 2048})"},
    ClassDefaults{"bloom",
        R"({"vocab_size": 250880, "tie_word_embeddings": true})"},
    ClassDefaults{"codegen",
        R"({"vocab_size": 50400, "activation_function": "gelu_new", "tie_word_embeddings": false, )"
        R"("n_positions": 2048})"},
    ClassDefaults{"cohere",
        R"({"vocab_size": 256000, "num_attention_heads": 64, "intermediate_size": 22528, "hidden_act": )"
        R"("silu", "attention_bias": false, "tie_word_embeddings": true, "max_position_embeddings": 8192, )"
        R"("use_qk_norm": false})"},
    ClassDefaults{"cohere2",
        R"({"vocab_size": 256000, "num_attention_heads": 64, "intermediate_size": 22528, "hidden_act": )"
        R"("silu", "attention_bias": false, "tie_word_embeddings": true, "sliding_window": 4096, )"
        R"("max_position_embeddings": 8192})"},
    ClassDefaults{"cohere2_moe",
        R"({"vocab_size": 256000, "num_attention_heads": 64, "head_dim": 128, "intermediate_size": 22528, )"
        R"("hidden_act": "silu", "attention_bias": false, "tie_word_embeddings": true, "sliding_window": )"
        R"(4096, "sliding_window_pattern": 4, "max_position_embeddings": 8192, "num_experts": 8, )"
        R"("num_experts_per_tok": 2, "num_shared_experts": 0})"},
    ClassDefaults{"cwm",
        R"({"vocab_size": 128256, "num_attention_heads": 48, "num_key_value_heads": 8, "head_dim": 128, )"
        R"("intermediate_size": 21504, "hidden_act": "silu", "mlp_bias": false, "tie_word_embeddings": )"
        R"(false, "sliding_window": 8192, "max_position_embeddings": 131072})"},
    ClassDefaults{"dbrx",
        R"({"vocab_size": 32000, "num_key_value_heads": 1, "tie_word_embeddings": false})"},
    ClassDefaults{"deepseek_v2",
        R"({"vocab_size": 102400, "num_attention_heads": 32, "head_dim": 64, "intermediate_size": 11008, )"
        R"("hidden_act": "silu", "attention_bias": false, "mlp_bias": false, "tie_word_embeddings": false, )"
        R"("max_position_embeddings": 2048, "n_routed_experts": 64, "moe_intermediate_size": 1407, )"
        R"("n_shared_experts": 2, "first_k_dense_replace": 0, "q_lora_rank": 1536, "kv_lora_rank": 512, )"
        R"("qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128})"},
    ClassDefaults{"deepseek_v3",
        R"({"vocab_size": 129280, "num_attention_heads": 128, "num_key_value_heads": 128, "head_dim": 64, )"
        R"("intermediate_size": 18432, "hidden_act": "silu", "attention_bias": false, )"
        R"("tie_word_embeddings": false, "max_position_embeddings": 4096, "n_routed_experts": 256, )"
        R"("num_experts_per_tok": 8, "moe_intermediate_size": 2048, "n_shared_experts": 1, )"
        R"("first_k_dense_replace": 3, "q_lora_rank": 1536, "kv_lora_rank": 512, "qk_nope_head_dim": 128, )"
        R"("qk_rope_head_dim": 64, "v_head_dim": 128})"},
    ClassDefaults{"deepseek_v32",
        R"({"vocab_size": 129280, "num_attention_heads": 128, "num_key_value_heads": 128, "head_dim": 64, )"
        R"("intermediate_size": 18432, "hidden_act": "silu", "attention_bias": false, "mlp_bias": false, )"
        R"("tie_word_embeddings": false, "max_position_embeddings": 163840, "n_routed_experts": 256, )"
        R"("num_experts_per_tok": 8, "moe_intermediate_size": 2048, "n_shared_experts": 1, )"
        R"("first_k_dense_replace": 3, "q_lora_rank": 1536, "kv_lora_rank": 512, "qk_nope_head_dim": 128, )"
        R"("qk_rope_head_dim": 64, "v_head_dim": 128, "index_n_heads": 64, "index_head_dim": 128, )"
        R"("index_topk": 2048})"},
    ClassDefaults{"deepseek_v4",
        R"({"vocab_size": 129280, "num_attention_heads": 64, "num_key_value_heads": 1, "head_dim": 512, )"
        R"("hidden_act": "silu", "attention_bias": false, "mlp_bias": false, "tie_word_embeddings": false, )"
        R"("sliding_window": 128, "max_position_embeddings": 1048576, "n_routed_experts": 256, )"
        R"("num_experts_per_tok": 6, "moe_intermediate_size": 2048, "n_shared_experts": 1, "q_lora_rank": )"
        R"(1024, "qk_rope_head_dim": 64, "index_n_heads": 64, "index_head_dim": 128, "index_topk": 512, )"
        R"("hc_mult": 4, "o_groups": 8, "o_lora_rank": 1024})"},
    ClassDefaults{"diffllama",
        R"({"vocab_size": 32000, "num_attention_heads": 32, "intermediate_size": 8192, "hidden_act": )"
        R"("silu", "attention_bias": false, "tie_word_embeddings": false, "max_position_embeddings": 2048})"},
    ClassDefaults{"dots1",
        R"({"vocab_size": 152064, "num_attention_heads": 32, "num_key_value_heads": 32, )"
        R"("intermediate_size": 10944, "hidden_act": "silu", "attention_bias": false, )"
        R"("tie_word_embeddings": false, "sliding_window": 4096, "max_window_layers": 62, )"
        R"("max_position_embeddings": 2048, "moe_intermediate_size": 1408, "first_k_dense_replace": 0})"},
    ClassDefaults{"ernie4_5",
        R"({"vocab_size": 103424, "num_attention_heads": 16, "num_key_value_heads": 2, "head_dim": 128, )"
        R"("intermediate_size": 3072, "hidden_act": "silu", "tie_word_embeddings": true, )"
        R"("max_position_embeddings": 131072, "use_bias": false})"},
    ClassDefaults{"ernie4_5_moe",
        R"({"vocab_size": 103424, "num_attention_heads": 20, "num_key_value_heads": 4, "intermediate_size": )"
        R"(12288, "hidden_act": "silu", "tie_word_embeddings": true, "max_position_embeddings": 131072, )"
        R"("moe_intermediate_size": 1536, "use_bias": false, "moe_num_experts": 64, "moe_k": 6, )"
        R"("moe_num_shared_experts": 2, "moe_layer_start_index": 1, "moe_layer_interval": 1})"},
    ClassDefaults{"exaone4",
        R"({"vocab_size": 102400, "num_attention_heads": 32, "num_key_value_heads": 32, )"
        R"("intermediate_size": 16384, "hidden_act": "silu", "tie_word_embeddings": false, )"
        R"("sliding_window": 4096, "sliding_window_pattern": 4, "max_position_embeddings": 2048})"},
    ClassDefaults{"exaone_moe",
        R"({"vocab_size": 102400, "num_attention_heads": 32, "num_key_value_heads": 32, )"
        R"("intermediate_size": 16384, "hidden_act": "silu", "tie_word_embeddings": false, )"
        R"("sliding_window": 4096, "sliding_window_pattern": 4, "max_position_embeddings": 2048, )"
        R"("num_experts": 64, "num_experts_per_tok": 8, "moe_intermediate_size": 1024, )"
        R"("first_k_dense_replace": 1, "num_shared_experts": 1})"},
    ClassDefaults{"falcon",
        R"({"vocab_size": 65024, "num_attention_heads": 71, "tie_word_embeddings": true, )"
        R"("max_position_embeddings": 2048, "parallel_attn": true, "new_decoder_architecture": false, )"
        R"("multi_query": true, "bias": false})"},
    ClassDefaults{"falcon_h1",
        R"({"vocab_size": 128000, "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": )"
        R"(14336, "hidden_act": "silu", "attention_bias": false, "mlp_bias": false, "tie_word_embeddings": )"
        R"(false, "max_position_embeddings": 8192, "mamba_d_state": 256, "mamba_d_conv": 4, "mamba_expand": )"
        R"(2, "mamba_conv_bias": true, "mamba_proj_bias": false, "mamba_n_heads": 128, "mamba_d_head": 8, )"
        R"("mamba_n_groups": 1, "mamba_d_ssm": 1024})"},
    ClassDefaults{"falcon_mamba",
        R"({"vocab_size": 50280, "hidden_act": "silu", "tie_word_embeddings": true, "use_bias": false, )"
        R"("conv_kernel": 4, "state_size": 16, "expand": 2, "use_conv_bias": true})"},
    ClassDefaults{"flex_olmo",
        R"({"vocab_size": 100352, "num_attention_heads": 32, "intermediate_size": 11008, "hidden_act": )"
        R"("silu", "attention_bias": false, "tie_word_embeddings": false, "max_position_embeddings": 4096, )"
        R"("num_experts": 7, "num_experts_per_tok": 5})"},
    ClassDefaults{"gemma",
        R"({"vocab_size": 256000, "num_attention_heads": 16, "num_key_value_heads": 16, "head_dim": 256, )"
        R"("intermediate_size": 24576, "hidden_act": "gelu_pytorch_tanh", "attention_bias": false, )"
        R"("tie_word_embeddings": true, "max_position_embeddings": 8192})"},
    ClassDefaults{"gemma2",
        R"({"vocab_size": 256000, "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256, )"
        R"("intermediate_size": 9216, "hidden_activation": "gelu_pytorch_tanh", "attention_bias": false, )"
        R"("tie_word_embeddings": true, "sliding_window": 4096, "max_position_embeddings": 8192})"},
    ClassDefaults{"gemma3_text",
        R"({"vocab_size": 262208, "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256, )"
        R"("intermediate_size": 9216, "hidden_activation": "gelu_pytorch_tanh", "attention_bias": false, )"
        R"("tie_word_embeddings": true, "sliding_window": 4096, "max_position_embeddings": 131072})"},
    ClassDefaults{"gemma3n_text",
        R"({"vocab_size": 262400, "num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 256, )"
        R"("hidden_activation": "gelu_pytorch_tanh", "attention_bias": false, "tie_word_embeddings": true, )"
        R"("sliding_window": 512, "max_position_embeddings": 32768, "hidden_size_per_layer_input": 256, )"
        R"("vocab_size_per_layer_input": 262144, "num_kv_shared_layers": 15, "laurel_rank": 64, )"
        R"("altup_num_inputs": 4})"},
    ClassDefaults{"gemma4_text",
        R"({"vocab_size": 262144, "num_attention_heads": 8, "num_key_value_heads": 4, "intermediate_size": )"
        R"(9216, "hidden_activation": "gelu_pytorch_tanh", "attention_bias": false, "tie_word_embeddings": )"
        R"(true, "sliding_window": 512, "max_position_embeddings": 131072, "hidden_size_per_layer_input": )"
        R"(256, "vocab_size_per_layer_input": 262144, "num_kv_shared_layers": 0, "attention_k_eq_v": false, )"
        R"("use_double_wide_mlp": false, "enable_moe_block": false})"},
    ClassDefaults{"glm",
        R"({"vocab_size": 151552, "num_attention_heads": 32, "num_key_value_heads": 2, "head_dim": 128, )"
        R"("intermediate_size": 13696, "hidden_act": "silu", "attention_bias": true, "tie_word_embeddings": )"
        R"(false, "max_position_embeddings": 131072})"},
    ClassDefaults{"glm4",
        R"({"vocab_size": 151552, "num_attention_heads": 32, "num_key_value_heads": 2, "head_dim": 128, )"
        R"("intermediate_size": 13696, "hidden_act": "silu", "attention_bias": true, "tie_word_embeddings": )"
        R"(false, "max_position_embeddings": 131072})"},
    ClassDefaults{"glm4_moe",
        R"({"vocab_size": 151552, "num_attention_heads": 96, "num_key_value_heads": 8, "intermediate_size": )"
        R"(10944, "hidden_act": "silu", "attention_bias": false, "tie_word_embeddings": false, )"
        R"("max_position_embeddings": 131072, "n_routed_experts": 128, "num_experts_per_tok": 8, )"
        R"("moe_intermediate_size": 1408, "n_shared_experts": 1, "first_k_dense_replace": 1, "use_qk_norm": )"
        R"(false})"},
    ClassDefaults{"glm4_moe_lite",
        R"({"vocab_size": 154880, "num_attention_heads": 20, "num_key_value_heads": 20, )"
        R"("intermediate_size": 10240, "hidden_act": "silu", "attention_bias": false, )"
        R"("tie_word_embeddings": false, "max_position_embeddings": 202752, "n_routed_experts": 64, )"
        R"("num_experts_per_tok": 4, "moe_intermediate_size": 1536, "n_shared_experts": 1, "q_lora_rank": )"
        R"(768, "kv_lora_rank": 512, "qk_nope_head_dim": 192, "qk_rope_head_dim": 64, "v_head_dim": 256})"},
    ClassDefaults{"glm4v_moe_text",
        R"({"vocab_size": 151424, "num_attention_heads": 96, "num_key_value_heads": 8, "intermediate_size": )"
        R"(10944, "hidden_act": "silu", "attention_bias": true, "tie_word_embeddings": false, )"
        R"("max_position_embeddings": 65536, "n_routed_experts": 128, "num_experts_per_tok": 8, )"
        R"("moe_intermediate_size": 1408, "n_shared_experts": 1, "first_k_dense_replace": 1})"},
    ClassDefaults{"glm4v_text",
        R"({"vocab_size": 151552, "num_attention_heads": 32, "num_key_value_heads": 2, "intermediate_size": )"
        R"(13696, "hidden_act": "silu", "max_position_embeddings": 32768})"},
    ClassDefaults{"glm_moe_dsa",
        R"({"vocab_size": 154880, "num_attention_heads": 64, "num_key_value_heads": 64, "head_dim": 64, )"
        R"("intermediate_size": 12288, "hidden_act": "silu", "attention_bias": false, "mlp_bias": false, )"
        R"("tie_word_embeddings": false, "max_position_embeddings": 202752, "n_routed_experts": 256, )"
        R"("num_experts_per_tok": 8, "moe_intermediate_size": 2048, "n_shared_experts": 1, )"
        R"("first_k_dense_replace": 3, "q_lora_rank": 2048, "kv_lora_rank": 512, "qk_nope_head_dim": 192, )"
        R"("qk_rope_head_dim": 64, "v_head_dim": 256, "index_n_heads": 32, "index_head_dim": 128, )"
        R"("index_topk": 2048})"},
    ClassDefaults{"glm_ocr_text",
        R"({"vocab_size": 59392, "num_attention_heads": 16, "num_key_value_heads": 8, "intermediate_size": )"
        R"(4096, "hidden_act": "silu", "max_position_embeddings": 131072})"},
    ClassDefaults{"gpt-sw3",
        R"({"vocab_size": 50257, "activation_function": "gelu_new", "tie_word_embeddings": true, )"
        R"("n_positions": 1024})"},
    ClassDefaults{"gpt2",
        R"({"vocab_size": 50257, "activation_function": "gelu_new", "tie_word_embeddings": true, )"
        R"("n_positions": 1024})"},
    ClassDefaults{"gpt_bigcode",
        R"({"vocab_size": 50257, "num_key_value_heads": 1, "activation_function": "gelu_pytorch_tanh", )"
        R"("tie_word_embeddings": true, "n_positions": 1024, "multi_query": true})"},
    ClassDefaults{"gpt_neo",
        R"({"vocab_size": 50257, "activation_function": "gelu_new", "tie_word_embeddings": true, )"
        R"("max_position_embeddings": 2048})"},
    ClassDefaults{"gpt_neox",
        R"({"vocab_size": 50432, "num_attention_heads": 64, "intermediate_size": 24576, "hidden_act": )"
        R"("gelu", "attention_bias": true, "tie_word_embeddings": false, "max_position_embeddings": 2048, )"
        R"("use_parallel_residual": true})"},
    ClassDefaults{"gpt_oss",
        R"({"vocab_size": 201088, "num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 64, )"
        R"("intermediate_size": 2880, "hidden_act": "silu", "attention_bias": true, "tie_word_embeddings": )"
        R"(false, "sliding_window": 128, "max_position_embeddings": 131072, "num_local_experts": 128, )"
        R"("num_experts_per_tok": 4})"},
    ClassDefaults{"gptj",
        R"({"vocab_size": 50400, "activation_function": "gelu_new", "tie_word_embeddings": false, )"
        R"("n_positions": 2048})"},
    ClassDefaults{"granite",
        R"({"vocab_size": 32000, "num_attention_heads": 32, "intermediate_size": 11008, "hidden_act": )"
        R"("silu", "attention_bias": false, "mlp_bias": false, "tie_word_embeddings": false, )"
        R"("max_position_embeddings": 2048})"},
    ClassDefaults{"granitemoe",
        R"({"vocab_size": 32000, "num_attention_heads": 32, "intermediate_size": 11008, "hidden_act": )"
        R"("silu", "attention_bias": false, "tie_word_embeddings": false, "max_position_embeddings": 2048, )"
        R"("num_local_experts": 8, "num_experts_per_tok": 2})"},
    ClassDefaults{"granitemoehybrid",
        R"({"vocab_size": 32000, "num_attention_heads": 32, "intermediate_size": 11008, "hidden_act": )"
        R"("silu", "attention_bias": false, "tie_word_embeddings": false, "max_position_embeddings": 2048, )"
        R"("num_local_experts": 8, "num_experts_per_tok": 2, "mamba_d_state": 256, "mamba_d_conv": 4, )"
        R"("mamba_expand": 2, "mamba_conv_bias": true, "mamba_proj_bias": false, "mamba_n_heads": 128, )"
        R"("mamba_n_groups": 1})"},
    ClassDefaults{"granitemoeshared",
        R"({"vocab_size": 32000, "num_attention_heads": 32, "intermediate_size": 11008, "hidden_act": )"
        R"("silu", "attention_bias": false, "tie_word_embeddings": false, "max_position_embeddings": 2048, )"
        R"("num_local_experts": 8, "num_experts_per_tok": 2})"},
    ClassDefaults{"helium",
        R"({"vocab_size": 48000, "num_attention_heads": 20, "num_key_value_heads": 20, "head_dim": 128, )"
        R"("intermediate_size": 7040, "hidden_act": "silu", "attention_bias": false, "mlp_bias": false, )"
        R"("tie_word_embeddings": false, "max_position_embeddings": 4096})"},
    ClassDefaults{"hunyuan_v1_dense",
        R"({"vocab_size": 290943, "num_attention_heads": 32, "intermediate_size": 11008, "hidden_act": )"
        R"("silu", "attention_bias": false, "tie_word_embeddings": false, "max_position_embeddings": 2048})"},
    ClassDefaults{"hunyuan_v1_moe",
        R"({"vocab_size": 290943, "num_attention_heads": 32, "intermediate_size": 11008, "hidden_act": )"
        R"("silu", "attention_bias": false, "tie_word_embeddings": false, "max_position_embeddings": 2048, )"
        R"("num_experts": 1, "moe_topk": 1})"},
    ClassDefaults{"internlm3",
        R"({"vocab_size": 128512, "num_attention_heads": 32, "num_key_value_heads": 2, "head_dim": 128, )"
        R"("intermediate_size": 10240, "hidden_act": "silu", "attention_bias": false, "mlp_bias": false, )"
        R"("tie_word_embeddings": false, "max_position_embeddings": 32768})"},
    ClassDefaults{"iquestcoder",
        R"({"vocab_size": 76800, "num_attention_heads": 40, "num_key_value_heads": 8, "head_dim": 128, )"
        R"("intermediate_size": 27648, "hidden_act": "silu", "attention_bias": false, "mlp_bias": false, )"
        R"("tie_word_embeddings": false, "max_position_embeddings": 131072})"},
    ClassDefaults{"jamba",
        R"({"vocab_size": 65536, "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": )"
        R"(14336, "hidden_act": "silu", "tie_word_embeddings": false, "max_position_embeddings": 262144, )"
        R"("num_experts": 16, "num_experts_per_tok": 2, "mamba_d_state": 16, "mamba_d_conv": 4, )"
        R"("mamba_expand": 2, "mamba_conv_bias": true, "mamba_proj_bias": false, "attn_layer_period": 8, )"
        R"("attn_layer_offset": 4, "expert_layer_period": 2, "expert_layer_offset": 1})"},
    ClassDefaults{"jetmoe",
        R"({"vocab_size": 32000, "num_attention_heads": 32, "num_key_value_heads": 16, "intermediate_size": )"
        R"(5632, "activation_function": "silu", "tie_word_embeddings": true, "max_position_embeddings": )"
        R"(4096, "num_local_experts": 8, "num_experts_per_tok": 2, "kv_channels": 128})"},
    ClassDefaults{"kimi_linear",
        R"({"vocab_size": 163840, "num_attention_heads": 32, "num_key_value_heads": 32, "head_dim": 64, )"
        R"("intermediate_size": 9216, "hidden_act": "silu", "attention_bias": false, "tie_word_embeddings": )"
        R"(false, "num_experts": 256, "moe_intermediate_size": 1024, "kv_lora_rank": 512, )"
        R"("qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128, "linear_conv_kernel_dim": 4, )"
        R"("num_shared_experts": 1})"},
    ClassDefaults{"lfm2",
        R"({"vocab_size": 65536, "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": )"
        R"(12288, "tie_word_embeddings": true, "max_position_embeddings": 128000, "conv_L_cache": 3})"},
    ClassDefaults{"lfm2_moe",
        R"({"vocab_size": 65536, "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": )"
        R"(7168, "tie_word_embeddings": true, "max_position_embeddings": 128000, "num_experts": 32, )"
        R"("num_experts_per_tok": 4, "moe_intermediate_size": 1792, "conv_L_cache": 3})"},
    ClassDefaults{"llama",
        R"({"vocab_size": 32000, "num_attention_heads": 32, "intermediate_size": 11008, "hidden_act": )"
        R"("silu", "attention_bias": false, "mlp_bias": false, "tie_word_embeddings": false, )"
        R"("max_position_embeddings": 2048})"},
    ClassDefaults{"llama4_text",
        R"({"vocab_size": 202048, "num_attention_heads": 40, "num_key_value_heads": 8, "head_dim": 128, )"
        R"("intermediate_size": 8192, "hidden_act": "silu", "attention_bias": false, "tie_word_embeddings": )"
        R"(false, "max_position_embeddings": 131072, "num_local_experts": 16, "num_experts_per_tok": 1, )"
        R"("use_qk_norm": true, "attention_chunk_size": 8192, "interleave_moe_layer_step": 1, )"
        R"("intermediate_size_mlp": 16384})"},
    ClassDefaults{"longcat_flash",
        R"({"vocab_size": 131072, "num_attention_heads": 64, "head_dim": 64, "hidden_act": "silu", )"
        R"("attention_bias": false, "tie_word_embeddings": false, "max_position_embeddings": 131072, )"
        R"("n_routed_experts": 512, "q_lora_rank": 1536, "kv_lora_rank": 512, "qk_nope_head_dim": 128, )"
        R"("qk_rope_head_dim": 64, "v_head_dim": 128, "ffn_hidden_size": 12288, "zero_expert_num": 256, )"
        R"("expert_ffn_hidden_size": 2048, "moe_topk": 12})"},
    ClassDefaults{"mamba",
        R"({"vocab_size": 50280, "hidden_act": "silu", "tie_word_embeddings": true, "use_bias": false, )"
        R"("conv_kernel": 4, "state_size": 16, "expand": 2, "use_conv_bias": true})"},
    ClassDefaults{"mamba2",
        R"({"vocab_size": 32768, "head_dim": 64, "hidden_act": "silu", "tie_word_embeddings": false, )"
        R"("use_bias": false, "n_groups": 8, "conv_kernel": 4, "state_size": 128, "expand": 2, )"
        R"("time_step_rank": 256, "use_conv_bias": true, "num_heads": 128})"},
    ClassDefaults{"mimo_v2_flash",
        R"({"vocab_size": 152576, "num_attention_heads": 64, "num_key_value_heads": 4, "head_dim": 192, )"
        R"("intermediate_size": 16384, "hidden_act": "silu", "attention_bias": false, )"
        R"("tie_word_embeddings": false, "sliding_window": 129, "max_position_embeddings": 131072, )"
        R"("n_routed_experts": 256, "num_experts_per_tok": 8, "moe_intermediate_size": 2048, "v_head_dim": )"
        R"(128})"},
    ClassDefaults{"minicpm3",
        R"({"vocab_size": 73448, "num_attention_heads": 40, "num_key_value_heads": 40, "head_dim": 32, )"
        R"("intermediate_size": 6400, "hidden_act": "silu", "attention_bias": false, "mlp_bias": false, )"
        R"("tie_word_embeddings": true, "max_position_embeddings": 32768, "q_lora_rank": 768, )"
        R"("kv_lora_rank": 256, "qk_nope_head_dim": 64, "qk_rope_head_dim": 32})"},
    ClassDefaults{"minimax",
        R"({"vocab_size": 32000, "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": )"
        R"(14336, "hidden_act": "silu", "tie_word_embeddings": false, "max_position_embeddings": 131072, )"
        R"("num_local_experts": 8, "num_experts_per_tok": 2})"},
    ClassDefaults{"minimax_m2",
        R"({"vocab_size": 200064, "num_attention_heads": 48, "num_key_value_heads": 8, "head_dim": 128, )"
        R"("intermediate_size": 1536, "hidden_act": "silu", "tie_word_embeddings": false, )"
        R"("max_position_embeddings": 196608, "num_local_experts": 256, "num_experts_per_tok": 8})"},
    ClassDefaults{"minimax_m3_vl_text",
        R"({"vocab_size": 200064, "num_attention_heads": 64, "num_key_value_heads": 4, "head_dim": 128, )"
        R"("intermediate_size": 3072, "hidden_act": "silu", "tie_word_embeddings": false, )"
        R"("max_position_embeddings": 524288, "num_local_experts": 128, "num_experts_per_tok": 4, )"
        R"("index_n_heads": 4, "index_head_dim": 128})"},
    ClassDefaults{"ministral",
        R"({"vocab_size": 32000, "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": )"
        R"(14336, "hidden_act": "silu", "tie_word_embeddings": false, "sliding_window": 4096, )"
        R"("max_position_embeddings": 131072})"},
    ClassDefaults{"ministral3",
        R"({"vocab_size": 131072, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128, )"
        R"("intermediate_size": 14336, "hidden_act": "silu", "tie_word_embeddings": false, )"
        R"("max_position_embeddings": 262144})"},
    ClassDefaults{"mistral",
        R"({"vocab_size": 32000, "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": )"
        R"(14336, "hidden_act": "silu", "tie_word_embeddings": false, "sliding_window": 4096, )"
        R"("max_position_embeddings": 131072})"},
    ClassDefaults{"mixtral",
        R"({"vocab_size": 32000, "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": )"
        R"(14336, "hidden_act": "silu", "tie_word_embeddings": false, "max_position_embeddings": 131072, )"
        R"("num_local_experts": 8, "num_experts_per_tok": 2})"},
    ClassDefaults{"mllama",
        R"({})"},
    ClassDefaults{"mpt",
        R"({"vocab_size": 50368, "tie_word_embeddings": true, "expansion_ratio": 4})"},
    ClassDefaults{"muse_glimmer_text",
        R"({"vocab_size": 202048, "num_attention_heads": 32, "num_key_value_heads": 2, "head_dim": 128, )"
        R"("intermediate_size": 19968, "hidden_activation": "silu", "attention_bias": false, )"
        R"("tie_word_embeddings": false, "sliding_window": 2048, "max_position_embeddings": 131072})"},
    ClassDefaults{"nemotron",
        R"({"vocab_size": 256000, "num_attention_heads": 48, "intermediate_size": 24576, "hidden_act": )"
        R"("relu2", "attention_bias": false, "mlp_bias": false, "tie_word_embeddings": false, )"
        R"("max_position_embeddings": 4096})"},
    ClassDefaults{"nemotron_h",
        R"({"vocab_size": 131072, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128, )"
        R"("intermediate_size": 21504, "attention_bias": false, "mlp_bias": false, "tie_word_embeddings": )"
        R"(false, "max_position_embeddings": 4096, "n_routed_experts": 8, "num_experts_per_tok": 2, )"
        R"("moe_intermediate_size": 7688, "n_shared_experts": 1, "use_bias": false, "mamba_proj_bias": )"
        R"(false, "ssm_state_size": 128, "mamba_num_heads": 128, "mamba_head_dim": 64, "n_groups": 8, )"
        R"("conv_kernel": 4, "expand": 2, "use_conv_bias": true, "moe_shared_expert_intermediate_size": )"
        R"(7688, "mamba_hidden_act": "silu", "mlp_hidden_act": "relu2"})"},
    ClassDefaults{"olmo",
        R"({"vocab_size": 50304, "num_attention_heads": 32, "intermediate_size": 11008, "hidden_act": )"
        R"("silu", "attention_bias": false, "tie_word_embeddings": false, "max_position_embeddings": 2048})"},
    ClassDefaults{"olmo2",
        R"({"vocab_size": 50304, "num_attention_heads": 32, "intermediate_size": 11008, "hidden_act": )"
        R"("silu", "attention_bias": false, "tie_word_embeddings": false, "max_position_embeddings": 2048})"},
    ClassDefaults{"olmo3",
        R"({"vocab_size": 50304, "num_attention_heads": 32, "intermediate_size": 11008, "hidden_act": )"
        R"("silu", "attention_bias": false, "tie_word_embeddings": false, "sliding_window": 4096, )"
        R"("max_position_embeddings": 2048})"},
    ClassDefaults{"olmo_hybrid",
        R"({"vocab_size": 100352, "num_attention_heads": 30, "intermediate_size": 11008, "hidden_act": )"
        R"("silu", "attention_bias": false, "tie_word_embeddings": false, "max_position_embeddings": 65536, )"
        R"("linear_conv_kernel_dim": 4})"},
    ClassDefaults{"olmoe",
        R"({"vocab_size": 50304, "num_attention_heads": 16, "intermediate_size": 2048, "hidden_act": )"
        R"("silu", "attention_bias": false, "tie_word_embeddings": false, "max_position_embeddings": 4096, )"
        R"("num_experts": 64, "num_experts_per_tok": 8})"},
    ClassDefaults{"opt",
        R"({"vocab_size": 50272, "num_attention_heads": 12, "activation_function": "relu", )"
        R"("tie_word_embeddings": true, "max_position_embeddings": 2048, "ffn_dim": 3072, )"
        R"("do_layer_norm_before": true, "enable_bias": true})"},
    ClassDefaults{"persimmon",
        R"({"vocab_size": 262144, "num_attention_heads": 64, "intermediate_size": 16384, "hidden_act": )"
        R"("relu2", "tie_word_embeddings": false, "max_position_embeddings": 16384, "qk_layernorm": true})"},
    ClassDefaults{"phi",
        R"({"vocab_size": 51200, "num_attention_heads": 32, "intermediate_size": 8192, "hidden_act": )"
        R"("gelu_new", "tie_word_embeddings": false, "max_position_embeddings": 2048, "qk_layernorm": )"
        R"(false})"},
    ClassDefaults{"phi3",
        R"({"vocab_size": 32064, "num_attention_heads": 32, "intermediate_size": 8192, "hidden_act": )"
        R"("silu", "tie_word_embeddings": false, "max_position_embeddings": 4096})"},
    ClassDefaults{"phimoe",
        R"({"vocab_size": 32064, "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": )"
        R"(6400, "hidden_act": "silu", "attention_bias": false, "tie_word_embeddings": false, )"
        R"("max_position_embeddings": 131072, "num_local_experts": 16, "num_experts_per_tok": 2})"},
    ClassDefaults{"qwen2",
        R"({"vocab_size": 151936, "num_attention_heads": 32, "num_key_value_heads": 32, )"
        R"("intermediate_size": 22016, "hidden_act": "silu", "tie_word_embeddings": false, )"
        R"("use_sliding_window": false, "max_window_layers": 28, "max_position_embeddings": 32768})"},
    ClassDefaults{"qwen2_5_omni_text",
        R"({"vocab_size": 152064, "num_attention_heads": 28, "num_key_value_heads": 4, "intermediate_size": )"
        R"(18944, "hidden_act": "silu", "tie_word_embeddings": true, "use_sliding_window": false, )"
        R"("max_window_layers": 28, "max_position_embeddings": 32768})"},
    ClassDefaults{"qwen2_5_vl_text",
        R"({"vocab_size": 152064, "num_attention_heads": 64, "num_key_value_heads": 8, "intermediate_size": )"
        R"(29568, "hidden_act": "silu", "use_sliding_window": false, "max_window_layers": 80, )"
        R"("max_position_embeddings": 32768})"},
    ClassDefaults{"qwen2_moe",
        R"({"vocab_size": 151936, "num_attention_heads": 16, "num_key_value_heads": 16, )"
        R"("intermediate_size": 5632, "hidden_act": "silu", "tie_word_embeddings": false, "sliding_window": )"
        R"(0, "use_sliding_window": false, "max_window_layers": 28, "max_position_embeddings": 32768, )"
        R"("num_experts": 60, "num_experts_per_tok": 4, "moe_intermediate_size": 1408, )"
        R"("shared_expert_intermediate_size": 5632, "decoder_sparse_step": 1})"},
    ClassDefaults{"qwen2_vl_text",
        R"({"vocab_size": 152064, "num_attention_heads": 64, "num_key_value_heads": 8, "intermediate_size": )"
        R"(29568, "hidden_act": "silu", "use_sliding_window": false, "max_window_layers": 80, )"
        R"("max_position_embeddings": 32768})"},
    ClassDefaults{"qwen3",
        R"({"vocab_size": 151936, "num_attention_heads": 32, "num_key_value_heads": 32, "head_dim": 128, )"
        R"("intermediate_size": 22016, "hidden_act": "silu", "attention_bias": false, )"
        R"("tie_word_embeddings": false, "use_sliding_window": false, "max_window_layers": 28, )"
        R"("max_position_embeddings": 32768})"},
    ClassDefaults{"qwen3_5",
        R"({"tie_word_embeddings": false})"},
    ClassDefaults{"qwen3_5_moe",
        R"({"tie_word_embeddings": false})"},
    ClassDefaults{"qwen3_5_moe_text",
        R"({"vocab_size": 248320, "num_attention_heads": 16, "num_key_value_heads": 2, "head_dim": 256, )"
        R"("hidden_act": "silu", "attention_bias": false, "tie_word_embeddings": false, )"
        R"("max_position_embeddings": 32768, "num_experts": 256, "num_experts_per_tok": 8, )"
        R"("moe_intermediate_size": 512, "shared_expert_intermediate_size": 512, "linear_num_value_heads": )"
        R"(32, "linear_num_key_heads": 16, "linear_key_head_dim": 128, "linear_value_head_dim": 128, )"
        R"("linear_conv_kernel_dim": 4})"},
    ClassDefaults{"qwen3_5_text",
        R"({"vocab_size": 248320, "num_attention_heads": 16, "num_key_value_heads": 4, "head_dim": 256, )"
        R"("intermediate_size": 12288, "hidden_act": "silu", "attention_bias": false, )"
        R"("tie_word_embeddings": false, "max_position_embeddings": 32768, "linear_num_value_heads": 32, )"
        R"("linear_num_key_heads": 16, "linear_key_head_dim": 128, "linear_value_head_dim": 128, )"
        R"("linear_conv_kernel_dim": 4})"},
    ClassDefaults{"qwen3_moe",
        R"({"vocab_size": 151936, "num_attention_heads": 32, "num_key_value_heads": 4, "intermediate_size": )"
        R"(6144, "hidden_act": "silu", "attention_bias": false, "tie_word_embeddings": false, )"
        R"("use_sliding_window": false, "max_position_embeddings": 32768, "num_local_experts": 128, )"
        R"("num_experts_per_tok": 8, "moe_intermediate_size": 768, "decoder_sparse_step": 1})"},
    ClassDefaults{"qwen3_next",
        R"({"vocab_size": 151936, "num_attention_heads": 16, "num_key_value_heads": 2, "head_dim": 256, )"
        R"("intermediate_size": 5632, "hidden_act": "silu", "attention_bias": false, "tie_word_embeddings": )"
        R"(false, "max_position_embeddings": 32768, "num_experts": 512, "num_experts_per_tok": 10, )"
        R"("moe_intermediate_size": 512, "shared_expert_intermediate_size": 512, "decoder_sparse_step": 1, )"
        R"("linear_num_value_heads": 32, "linear_num_key_heads": 16, "linear_key_head_dim": 128, )"
        R"("linear_value_head_dim": 128, "linear_conv_kernel_dim": 4})"},
    ClassDefaults{"qwen3_omni_moe_text",
        R"({"vocab_size": 3584, "num_attention_heads": 28, "num_key_value_heads": 4, "intermediate_size": )"
        R"(18944, "hidden_act": "silu", "attention_bias": false, "max_position_embeddings": 32768, )"
        R"("num_experts": 128, "num_experts_per_tok": 8, "moe_intermediate_size": 768, )"
        R"("decoder_sparse_step": 1})"},
    ClassDefaults{"qwen3_vl_moe_text",
        R"({"vocab_size": 151936, "num_attention_heads": 16, "num_key_value_heads": 16, )"
        R"("intermediate_size": 5632, "hidden_act": "silu", "attention_bias": false, "tie_word_embeddings": )"
        R"(true, "max_position_embeddings": 128000, "num_local_experts": 60, "num_experts_per_tok": 4, )"
        R"("moe_intermediate_size": 1408, "decoder_sparse_step": 1})"},
    ClassDefaults{"qwen3_vl_text",
        R"({"vocab_size": 151936, "num_attention_heads": 32, "num_key_value_heads": 32, "head_dim": 128, )"
        R"("intermediate_size": 22016, "hidden_act": "silu", "attention_bias": false, )"
        R"("max_position_embeddings": 128000})"},
    ClassDefaults{"recurrent_gemma",
        R"({"vocab_size": 256000, "num_attention_heads": 10, "intermediate_size": 7680, )"
        R"("hidden_activation": "gelu_pytorch_tanh", "attention_bias": false, "tie_word_embeddings": true, )"
        R"("conv1d_width": 4})"},
    ClassDefaults{"rwkv",
        R"({"vocab_size": 50277, "tie_word_embeddings": false})"},
    ClassDefaults{"seed_oss",
        R"({"vocab_size": 155136, "num_attention_heads": 80, "num_key_value_heads": 8, "head_dim": 128, )"
        R"("intermediate_size": 27648, "hidden_act": "silu", "attention_bias": true, "mlp_bias": false, )"
        R"("tie_word_embeddings": false, "max_position_embeddings": 524288})"},
    ClassDefaults{"smollm3",
        R"({"vocab_size": 128256, "num_attention_heads": 16, "num_key_value_heads": 4, "intermediate_size": )"
        R"(11008, "hidden_act": "silu", "attention_bias": false, "mlp_bias": false, "tie_word_embeddings": )"
        R"(true, "use_sliding_window": false, "max_position_embeddings": 32768})"},
    ClassDefaults{"solar_open",
        R"({"vocab_size": 196608, "num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 128, )"
        R"("hidden_act": "silu", "attention_bias": false, "tie_word_embeddings": false, )"
        R"("max_position_embeddings": 131072, "n_routed_experts": 128, "num_experts_per_tok": 8, )"
        R"("moe_intermediate_size": 1280, "n_shared_experts": 1})"},
    ClassDefaults{"stablelm",
        R"({"vocab_size": 50304, "num_attention_heads": 32, "num_key_value_heads": 32, "intermediate_size": )"
        R"(6912, "hidden_act": "silu", "tie_word_embeddings": false, "max_position_embeddings": 4096, )"
        R"("use_parallel_residual": false, "use_qkv_bias": false, "qk_layernorm": false})"},
    ClassDefaults{"starcoder2",
        R"({"vocab_size": 49152, "num_attention_heads": 24, "num_key_value_heads": 2, "intermediate_size": )"
        R"(12288, "hidden_act": "gelu_pytorch_tanh", "tie_word_embeddings": true, )"
        R"("max_position_embeddings": 4096, "use_bias": true})"},
    ClassDefaults{"vaultgemma",
        R"({"vocab_size": 256000, "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256, )"
        R"("intermediate_size": 9216, "hidden_activation": "gelu_pytorch_tanh", "attention_bias": false, )"
        R"("tie_word_embeddings": true, "sliding_window": 4096, "max_position_embeddings": 8192})"},
    ClassDefaults{"xglm",
        R"({"vocab_size": 256008, "activation_function": "gelu", "tie_word_embeddings": true, )"
        R"("max_position_embeddings": 2048, "ffn_dim": 4096})"},
    ClassDefaults{"youtu",
        R"({"vocab_size": 128256, "num_attention_heads": 16, "num_key_value_heads": 16, "head_dim": 64, )"
        R"("intermediate_size": 6144, "hidden_act": "silu", "attention_bias": false, "tie_word_embeddings": )"
        R"(true, "max_position_embeddings": 131072, "q_lora_rank": 1536, "kv_lora_rank": 512, )"
        R"("qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128})"},
    ClassDefaults{"zamba",
        R"({"vocab_size": 32000, "num_attention_heads": 16, "num_key_value_heads": 16, "intermediate_size": )"
        R"(14848, "hidden_act": "gelu", "tie_word_embeddings": true, "max_position_embeddings": 4096, )"
        R"("mamba_d_state": 16, "mamba_d_conv": 4, "mamba_expand": 2, "mamba_conv_bias": true, )"
        R"("mamba_proj_bias": false, "attn_layer_period": 6, "attn_layer_offset": 4, "n_mamba_heads": 2})"},
    ClassDefaults{"zamba2",
        R"({"vocab_size": 32000, "num_attention_heads": 32, "hidden_act": "gelu", "tie_word_embeddings": )"
        R"(true, "max_position_embeddings": 4096, "mamba_d_state": 64, "mamba_d_conv": 4, "mamba_expand": )"
        R"(2, "use_conv_bias": true, "mamba_ngroups": 1, "n_mamba_heads": 8, "use_mem_rope": false, )"
        R"("adapter_rank": 128, "num_mem_blocks": 1, "use_shared_attention_adapter": false, )"
        R"("add_bias_linear": false})"},
};
// clang-format on

}  // namespace

const char* class_defaults(const std::string& model_type) {
  const auto it = std::find_if(kClassDefaults.begin(), kClassDefaults.end(),
                               [&](const ClassDefaults& row) { return row.type == model_type; });
  return it == kClassDefaults.end() ? "{}" : it->json;
}

}  // namespace memwall
