// The defaults (class_defaults.cpp) of the families with experts.
#include "huggingface/class_defaults.h"

namespace memwall {
namespace {

// clang-format off
constexpr ClassDefaults kDefaults[] = {
    {"afmoe",
     R"({"hidden_size": 2048, "num_hidden_layers": 32, "vocab_size": 200192, "num_attention_heads": 16, )"
     R"("head_dim": 128, "intermediate_size": 6144, "sliding_window": 1024, "max_position_embeddings": )"
     R"(16384, "num_experts": 64, "num_experts_per_tok": 6, "moe_intermediate_size": 1408, )"
     R"("num_shared_experts": 2})"},
    {"axk1",
     R"({"hidden_size": 7168, "num_hidden_layers": 61, "vocab_size": 163840, "num_attention_heads": 64, )"
     R"("intermediate_size": 18432, "max_position_embeddings": 32768, "n_routed_experts": 192, )"
     R"("num_experts_per_tok": 8, "moe_intermediate_size": 2048, "n_shared_experts": 1, "q_lora_rank": )"
     R"(1536, "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128, )"
     R"("first_k_dense_replace": 1})"},
    {"axk2",
     R"({"hidden_size": 2048, "num_hidden_layers": 48, "vocab_size": 163840, "num_attention_heads": 32, )"
     R"("intermediate_size": 5120, "max_position_embeddings": 131072, "n_routed_experts": 128, )"
     R"("num_experts_per_tok": 8, "moe_intermediate_size": 512, "n_shared_experts": 1, "q_lora_rank": 384, )"
     R"("kv_lora_rank": 128, "qk_nope_head_dim": 64, "qk_rope_head_dim": 32, "v_head_dim": 64, )"
     R"("index_n_heads": 16, "index_head_dim": 128, "first_k_dense_replace": 1})"},
    {"bailing_hybrid",
     R"({"hidden_size": 2560, "num_hidden_layers": 42, "vocab_size": 157184, "num_attention_heads": 32, )"
     R"("intermediate_size": 6144, "num_experts": 512, "moe_intermediate_size": 768, )"
     R"("first_k_dense_replace": 2, "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, )"
     R"("v_head_dim": 128, "num_shared_experts": 1, "num_experts_per_token": 8})"},
    {"beam",
     R"({"hidden_size": 5120, "num_hidden_layers": 52, "vocab_size": 151936, "num_attention_heads": 48, )"
     R"("num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 20480, "sliding_window": 512, )"
     R"("max_position_embeddings": 8192, "num_experts": 256, "num_experts_per_tok": 8, )"
     R"("moe_intermediate_size": 2560, "first_k_dense_replace": 3})"},
    {"cohere2_moe",
     R"({"hidden_size": 8192, "num_hidden_layers": 40, "vocab_size": 256000, "num_attention_heads": 64, )"
     R"("head_dim": 128, "intermediate_size": 22528, "sliding_window": 4096, "sliding_window_pattern": 4, )"
     R"("max_position_embeddings": 8192, "num_experts": 8, "num_experts_per_tok": 2, "num_shared_experts": )"
     R"(0})"},
    {"deepseek_v2",
     R"({"hidden_size": 4096, "num_hidden_layers": 32, "vocab_size": 102400, "num_attention_heads": 32, )"
     R"("intermediate_size": 11008, "max_position_embeddings": 2048, "n_routed_experts": 64, )"
     R"("moe_intermediate_size": 1407, "n_shared_experts": 2, "first_k_dense_replace": 0, "q_lora_rank": )"
     R"(1536, "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128})"},
    {"deepseek_v3",
     R"({"hidden_size": 7168, "num_hidden_layers": 61, "vocab_size": 129280, "num_attention_heads": 128, )"
     R"("intermediate_size": 18432, "max_position_embeddings": 4096, "n_routed_experts": 256, )"
     R"("num_experts_per_tok": 8, "moe_intermediate_size": 2048, "n_shared_experts": 1, )"
     R"("first_k_dense_replace": 3, "q_lora_rank": 1536, "kv_lora_rank": 512, "qk_nope_head_dim": 128, )"
     R"("qk_rope_head_dim": 64, "v_head_dim": 128})"},
    {"deepseek_v32",
     R"({"hidden_size": 7168, "num_hidden_layers": 61, "vocab_size": 129280, "num_attention_heads": 128, )"
     R"("intermediate_size": 18432, "max_position_embeddings": 163840, "n_routed_experts": 256, )"
     R"("num_experts_per_tok": 8, "moe_intermediate_size": 2048, "n_shared_experts": 1, )"
     R"("first_k_dense_replace": 3, "q_lora_rank": 1536, "kv_lora_rank": 512, "qk_nope_head_dim": 128, )"
     R"("qk_rope_head_dim": 64, "v_head_dim": 128, "index_n_heads": 64, "index_head_dim": 128})"},
    {"deepseek_v4",
     R"({"hidden_size": 4096, "num_hidden_layers": 43, "vocab_size": 129280, "num_attention_heads": 64, )"
     R"("num_key_value_heads": 1, "head_dim": 512, "sliding_window": 128, "max_position_embeddings": )"
     R"(1048576, "n_routed_experts": 256, "num_experts_per_tok": 6, "moe_intermediate_size": 2048, )"
     R"("n_shared_experts": 1, "q_lora_rank": 1024, "qk_rope_head_dim": 64, "index_n_heads": 64, )"
     R"("index_head_dim": 128, "index_topk": 512, "o_groups": 8, "o_lora_rank": 1024})"},
    {"doge",
     R"({"hidden_size": 1024, "num_hidden_layers": 32, "vocab_size": 32768, "num_attention_heads": 8, )"
     R"("intermediate_size": 2048, "max_position_embeddings": 2048, "num_experts": 16384, )"
     R"("num_experts_per_tok": 64})"},
    {"dots3_note_text",
     R"({"hidden_size": 5120, "num_hidden_layers": 46, "vocab_size": 152064, "intermediate_size": 13824, )"
     R"("sliding_window": 512, "max_position_embeddings": 524288, "n_routed_experts": 256, )"
     R"("num_experts_per_tok": 8, "moe_intermediate_size": 1536, "n_shared_experts": 1, "q_lora_rank": )"
     R"(1024, "qk_rope_head_dim": 64, "v_head_dim": 128, "index_n_heads": 64, "index_head_dim": 128, )"
     R"("first_k_dense_replace": 1, "num_attention_heads": 128, "kv_lora_rank": 512, "qk_nope_head_dim": )"
     R"(128})"},
    {"ernie4_5_moe",
     R"({"hidden_size": 2560, "num_hidden_layers": 28, "vocab_size": 103424, "num_attention_heads": 20, )"
     R"("num_key_value_heads": 4, "intermediate_size": 12288, "max_position_embeddings": 131072, )"
     R"("moe_intermediate_size": 1536, "moe_num_experts": 64, "moe_k": 6, "moe_num_shared_experts": 2, )"
     R"("moe_layer_start_index": 1, "moe_layer_interval": 1})"},
    {"ernie4_5_vl_moe_text",
     R"({"hidden_size": 2560, "num_hidden_layers": 28, "vocab_size": 103424, "num_attention_heads": 20, )"
     R"("num_key_value_heads": 4, "intermediate_size": 12288, "max_position_embeddings": 131072, )"
     R"("moe_num_experts": 64, "moe_k": 6, "moe_num_shared_experts": 2, "moe_intermediate_size": [1536, )"
     R"(512]})"},
    {"exaone_moe",
     R"({"hidden_size": 4096, "num_hidden_layers": 32, "vocab_size": 102400, "num_attention_heads": 32, )"
     R"("num_key_value_heads": 32, "intermediate_size": 16384, "sliding_window": 4096, )"
     R"("sliding_window_pattern": 4, "max_position_embeddings": 2048, "num_experts": 64, )"
     R"("num_experts_per_tok": 8, "moe_intermediate_size": 1024, "first_k_dense_replace": 1, )"
     R"("num_shared_experts": 1})"},
    {"flex_olmo",
     R"({"hidden_size": 4096, "num_hidden_layers": 32, "vocab_size": 100352, "num_attention_heads": 32, )"
     R"("intermediate_size": 11008, "max_position_embeddings": 4096, "num_experts": 7, )"
     R"("num_experts_per_tok": 5})"},
    {"flint",
     R"({"hidden_size": 2048, "num_hidden_layers": 49, "vocab_size": 150144, "num_attention_heads": 32, )"
     R"("num_key_value_heads": 4, "head_dim": 128, "intermediate_size": 6144, "sliding_window": 513, )"
     R"("max_position_embeddings": 262144, "num_experts": 256, "num_experts_per_tok": 6, )"
     R"("moe_intermediate_size": 512, "shared_expert_intermediate_size": 1024, "mlp_only_layers": [0, 1]})"},
    {"glm4_moe",
     R"({"hidden_size": 4096, "num_hidden_layers": 46, "vocab_size": 151552, "num_attention_heads": 96, )"
     R"("num_key_value_heads": 8, "intermediate_size": 10944, "max_position_embeddings": 131072, )"
     R"("n_routed_experts": 128, "num_experts_per_tok": 8, "moe_intermediate_size": 1408, )"
     R"("n_shared_experts": 1, "first_k_dense_replace": 1, "use_qk_norm": false})"},
    {"glm4_moe_lite",
     R"({"hidden_size": 2048, "num_hidden_layers": 47, "vocab_size": 154880, "num_attention_heads": 20, )"
     R"("intermediate_size": 10240, "max_position_embeddings": 202752, "n_routed_experts": 64, )"
     R"("num_experts_per_tok": 4, "moe_intermediate_size": 1536, "n_shared_experts": 1, "q_lora_rank": )"
     R"(768, "kv_lora_rank": 512, "qk_nope_head_dim": 192, "qk_rope_head_dim": 64, "v_head_dim": 256, )"
     R"("first_k_dense_replace": 1})"},
    {"glm4v_moe_text",
     R"({"hidden_size": 4096, "num_hidden_layers": 46, "vocab_size": 151424, "num_attention_heads": 96, )"
     R"("num_key_value_heads": 8, "intermediate_size": 10944, "attention_bias": true, )"
     R"("max_position_embeddings": 65536, "n_routed_experts": 128, "num_experts_per_tok": 8, )"
     R"("moe_intermediate_size": 1408, "n_shared_experts": 1, "first_k_dense_replace": 1})"},
    {"glm5_next_text",
     R"({"hidden_size": 4096, "num_hidden_layers": 45, "vocab_size": 154880, "num_attention_heads": 64, )"
     R"("intermediate_size": 12288, "max_position_embeddings": 1048576, "n_routed_experts": 288, )"
     R"("num_experts_per_tok": 8, "moe_intermediate_size": 2048, "n_shared_experts": 1, "q_lora_rank": )"
     R"(1536, "kv_lora_rank": 512, "qk_nope_head_dim": 256, "qk_rope_head_dim": 0, "v_head_dim": 256, )"
     R"("index_n_heads": 32, "index_head_dim": 128, "first_k_dense_replace": 3})"},
    {"glm_moe_dsa",
     R"({"hidden_size": 6144, "num_hidden_layers": 78, "vocab_size": 154880, "num_attention_heads": 64, )"
     R"("intermediate_size": 12288, "max_position_embeddings": 202752, "n_routed_experts": 256, )"
     R"("num_experts_per_tok": 8, "moe_intermediate_size": 2048, "n_shared_experts": 1, )"
     R"("first_k_dense_replace": 3, "q_lora_rank": 2048, "kv_lora_rank": 512, "qk_nope_head_dim": 192, )"
     R"("qk_rope_head_dim": 64, "v_head_dim": 256, "index_n_heads": 32, "index_head_dim": 128})"},
    {"gpt_oss",
     R"({"hidden_size": 2880, "num_hidden_layers": 36, "vocab_size": 201088, "num_attention_heads": 64, )"
     R"("num_key_value_heads": 8, "head_dim": 64, "intermediate_size": 2880, "attention_bias": true, )"
     R"("sliding_window": 128, "max_position_embeddings": 131072, "num_local_experts": 128, )"
     R"("num_experts_per_tok": 4})"},
    {"granitemoe",
     R"({"hidden_size": 4096, "num_hidden_layers": 32, "vocab_size": 32000, "num_attention_heads": 32, )"
     R"("intermediate_size": 11008, "max_position_embeddings": 2048, "num_local_experts": 8, )"
     R"("num_experts_per_tok": 2})"},
    {"granitemoe_swa",
     R"({"hidden_size": 4096, "num_hidden_layers": 32, "vocab_size": 32000, "num_attention_heads": 32, )"
     R"("intermediate_size": 11008, "sliding_window": 128, "max_position_embeddings": 2048, )"
     R"("num_local_experts": 8, "num_experts_per_tok": 2})"},
    {"granitemoehybrid",
     R"({"hidden_size": 4096, "num_hidden_layers": 32, "vocab_size": 32000, "num_attention_heads": 32, )"
     R"("intermediate_size": 11008, "max_position_embeddings": 2048, "num_local_experts": 8, )"
     R"("num_experts_per_tok": 2, "mamba_d_state": 256, "mamba_n_heads": 128, "mamba_n_groups": 1})"},
    {"granitemoeshared",
     R"({"hidden_size": 4096, "num_hidden_layers": 32, "vocab_size": 32000, "num_attention_heads": 32, )"
     R"("intermediate_size": 11008, "max_position_embeddings": 2048, "num_local_experts": 8, )"
     R"("num_experts_per_tok": 2})"},
    {"hunyuan_v1_moe",
     R"({"hidden_size": 4096, "num_hidden_layers": 32, "vocab_size": 290943, "num_attention_heads": 32, )"
     R"("intermediate_size": 11008, "max_position_embeddings": 2048, "num_experts": 1, "moe_topk": 1})"},
    {"hy_v3",
     R"({"hidden_size": 4096, "num_hidden_layers": 80, "vocab_size": 120832, "num_attention_heads": 64, )"
     R"("num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 13312, "max_position_embeddings": )"
     R"(131072, "num_experts": 192, "num_experts_per_tok": 8, "moe_intermediate_size": 1536, )"
     R"("num_shared_experts": 1, "first_k_dense_replace": 1})"},
    {"hy_v4",
     R"({"hidden_size": 2816, "num_hidden_layers": 34, "vocab_size": 120832, "num_attention_heads": 32, )"
     R"("intermediate_size": 6912, "max_position_embeddings": 262144, "n_routed_experts": 256, )"
     R"("num_experts_per_tok": 8, "moe_intermediate_size": 768, "n_shared_experts": 1, "q_lora_rank": )"
     R"(1536, "kv_lora_rank": 512, "qk_nope_head_dim": 192, "qk_rope_head_dim": 64, "v_head_dim": 256, )"
     R"("index_n_heads": 16, "index_head_dim": 128})"},
    {"hy_v4_vl_text",
     R"({"hidden_size": 6144, "num_hidden_layers": 78, "vocab_size": 120832, "num_attention_heads": 64, )"
     R"("intermediate_size": 18432, "max_position_embeddings": 262144, "n_routed_experts": 256, )"
     R"("num_experts_per_tok": 8, "moe_intermediate_size": 2048, "n_shared_experts": 1, "q_lora_rank": )"
     R"(2048, "kv_lora_rank": 512, "qk_nope_head_dim": 192, "qk_rope_head_dim": 64, "v_head_dim": 256, )"
     R"("index_n_heads": 32, "index_head_dim": 128})"},
    {"jamba",
     R"({"hidden_size": 4096, "num_hidden_layers": 32, "vocab_size": 65536, "num_attention_heads": 32, )"
     R"("num_key_value_heads": 8, "intermediate_size": 14336, "max_position_embeddings": 262144, )"
     R"("num_experts": 16, "num_experts_per_tok": 2, "mamba_d_state": 16, "attn_layer_period": 8, )"
     R"("attn_layer_offset": 4, "expert_layer_period": 2, "expert_layer_offset": 1})"},
    {"jetmoe",
     R"({"hidden_size": 2048, "num_hidden_layers": 12, "vocab_size": 32000, "num_attention_heads": 32, )"
     R"("num_key_value_heads": 16, "intermediate_size": 5632, "max_position_embeddings": 4096, )"
     R"("num_local_experts": 8, "num_experts_per_tok": 2, "kv_channels": 128})"},
    {"kimi_linear",
     R"({"hidden_size": 2304, "num_hidden_layers": 27, "vocab_size": 163840, "num_attention_heads": 32, )"
     R"("intermediate_size": 9216, "num_experts": 256, "moe_intermediate_size": 1024, "kv_lora_rank": 512, )"
     R"("qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128, "num_shared_experts": 1, )"
     R"("first_k_dense_replace": 1, "num_experts_per_token": 8})"},
    {"kolibri1",
     R"({"hidden_size": 2560, "num_hidden_layers": 50, "vocab_size": 128000, "num_attention_heads": 48, )"
     R"("num_key_value_heads": 4, "head_dim": 128, "sliding_window": 513, "max_position_embeddings": )"
     R"(262144, "num_local_experts": 384, "num_experts_per_tok": 6, "moe_intermediate_size": 512, )"
     R"("shared_expert_intermediate_size": 512})"},
    {"laguna",
     R"({"hidden_size": 2048, "num_hidden_layers": 40, "vocab_size": 100352, "num_attention_heads": 48, )"
     R"("num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 8192, "sliding_window": 512, )"
     R"("max_position_embeddings": 131072, "num_experts": 256, "num_experts_per_tok": 8, )"
     R"("moe_intermediate_size": 512, "shared_expert_intermediate_size": 512, "first_k_dense_replace": 1})"},
    {"lara_mini",
     R"({"hidden_size": 1024, "num_hidden_layers": 34, "vocab_size": 151936, "num_attention_heads": 16, )"
     R"("num_key_value_heads": 4, "head_dim": 128, "sliding_window": 512, "max_position_embeddings": )"
     R"(131072, "num_experts": 128, "num_experts_per_tok": 4, "moe_intermediate_size": 512, )"
     R"("shared_expert_intermediate_size": 512, "linear_num_value_heads": 16, "linear_num_key_heads": 8, )"
     R"("linear_key_head_dim": 128, "linear_value_head_dim": 128})"},
    {"lfm2_moe",
     R"({"hidden_size": 2048, "num_hidden_layers": 32, "vocab_size": 65536, "num_attention_heads": 32, )"
     R"("num_key_value_heads": 8, "intermediate_size": 7168, "max_position_embeddings": 128000, )"
     R"("num_experts": 32, "num_experts_per_tok": 4, "moe_intermediate_size": 1792, "conv_L_cache": 3})"},
    {"llama4_text",
     R"({"hidden_size": 5120, "num_hidden_layers": 48, "vocab_size": 202048, "num_attention_heads": 40, )"
     R"("num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 8192, "max_position_embeddings": )"
     R"(131072, "num_local_experts": 16, "num_experts_per_tok": 1, "use_qk_norm": true, )"
     R"("attention_chunk_size": 8192, "interleave_moe_layer_step": 1, "intermediate_size_mlp": 16384})"},
    {"longcat_flash",
     R"({"hidden_size": 6144, "num_hidden_layers": 28, "vocab_size": 131072, "num_attention_heads": 64, )"
     R"("max_position_embeddings": 131072, "n_routed_experts": 512, "q_lora_rank": 1536, "kv_lora_rank": )"
     R"(512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128, "ffn_hidden_size": 12288, )"
     R"("zero_expert_num": 256, "expert_ffn_hidden_size": 2048, "moe_topk": 12})"},
    {"mellum",
     R"({"hidden_size": 2304, "num_hidden_layers": 28, "vocab_size": 98304, "num_attention_heads": 32, )"
     R"("num_key_value_heads": 4, "head_dim": 128, "intermediate_size": 7168, "sliding_window": 1024, )"
     R"("max_position_embeddings": 131072, "num_local_experts": 64, "num_experts_per_tok": 8, )"
     R"("moe_intermediate_size": 896})"},
    {"mimo_v2_flash",
     R"({"hidden_size": 4096, "num_hidden_layers": 48, "vocab_size": 152576, "num_attention_heads": 64, )"
     R"("num_key_value_heads": 4, "head_dim": 192, "intermediate_size": 16384, "sliding_window": 129, )"
     R"("max_position_embeddings": 131072, "n_routed_experts": 256, "num_experts_per_tok": 8, )"
     R"("moe_intermediate_size": 2048, "v_head_dim": 128, "first_k_dense_replace": 1})"},
    {"minimax",
     R"({"hidden_size": 4096, "num_hidden_layers": 32, "vocab_size": 32000, "num_attention_heads": 32, )"
     R"("num_key_value_heads": 8, "intermediate_size": 14336, "max_position_embeddings": 131072, )"
     R"("num_local_experts": 8, "num_experts_per_tok": 2})"},
    {"minimax_m2",
     R"({"hidden_size": 3072, "num_hidden_layers": 62, "vocab_size": 200064, "num_attention_heads": 48, )"
     R"("num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 1536, "max_position_embeddings": )"
     R"(196608, "num_local_experts": 256, "num_experts_per_tok": 8})"},
    {"minimax_m3_vl_text",
     R"({"hidden_size": 6144, "num_hidden_layers": 60, "vocab_size": 200064, "num_attention_heads": 64, )"
     R"("num_key_value_heads": 4, "head_dim": 128, "intermediate_size": 3072, "max_position_embeddings": )"
     R"(524288, "num_local_experts": 128, "num_experts_per_tok": 4, "index_n_heads": 4, "index_head_dim": )"
     R"(128})"},
    {"mistral_large4_text",
     R"({"hidden_size": 6144, "num_hidden_layers": 72, "vocab_size": 204800, "num_attention_heads": 64, )"
     R"("intermediate_size": 24576, "max_position_embeddings": 1048576, "n_routed_experts": 128, )"
     R"("num_experts_per_tok": 4, "moe_intermediate_size": 6144, "n_shared_experts": 1, )"
     R"("first_k_dense_replace": 1, "kv_lora_rank": 512, "qk_nope_head_dim": 64, "qk_rope_head_dim": 64, )"
     R"("v_head_dim": 128, "index_n_heads": 32, "index_head_dim": 128})"},
    {"mixtral",
     R"({"hidden_size": 4096, "num_hidden_layers": 32, "vocab_size": 32000, "num_attention_heads": 32, )"
     R"("num_key_value_heads": 8, "intermediate_size": 14336, "max_position_embeddings": 131072, )"
     R"("num_local_experts": 8, "num_experts_per_tok": 2})"},
    {"muse_spark_text",
     R"({"hidden_size": 8192, "num_hidden_layers": 62, "vocab_size": 202048, "num_attention_heads": 128, )"
     R"("num_key_value_heads": 16, "head_dim": 64, "intermediate_size": 16384, "sliding_window": 2048, )"
     R"("max_position_embeddings": 1048576, "num_local_experts": 256, "num_experts_per_tok": 8, )"
     R"("moe_intermediate_size": 4096})"},
    {"nemotron_h",
     R"({"hidden_size": 4096, "num_hidden_layers": 4, "vocab_size": 131072, "num_attention_heads": 32, )"
     R"("num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 21504, "max_position_embeddings": )"
     R"(4096, "n_routed_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 7688, )"
     R"("n_shared_experts": 1, "ssm_state_size": 128, "mamba_num_heads": 128, "mamba_head_dim": 64, )"
     R"("n_groups": 8, "moe_shared_expert_intermediate_size": 7688, "mlp_hidden_act": "relu2"})"},
    {"olmoe",
     R"({"hidden_size": 2048, "num_hidden_layers": 16, "vocab_size": 50304, "num_attention_heads": 16, )"
     R"("intermediate_size": 2048, "max_position_embeddings": 4096, "num_experts": 64, )"
     R"("num_experts_per_tok": 8})"},
    {"phimoe",
     R"({"hidden_size": 4096, "num_hidden_layers": 32, "vocab_size": 32064, "num_attention_heads": 32, )"
     R"("num_key_value_heads": 8, "intermediate_size": 6400, "max_position_embeddings": 131072, )"
     R"("num_local_experts": 16, "num_experts_per_tok": 2})"},
    {"qwen2_moe",
     R"({"hidden_size": 2048, "num_hidden_layers": 24, "vocab_size": 151936, "num_attention_heads": 16, )"
     R"("num_key_value_heads": 16, "intermediate_size": 5632, "sliding_window": 0, "max_window_layers": )"
     R"(28, "max_position_embeddings": 32768, "num_experts": 60, "num_experts_per_tok": 4, )"
     R"("moe_intermediate_size": 1408, "shared_expert_intermediate_size": 5632})"},
    {"qwen3_5_moe_text",
     R"({"hidden_size": 2048, "num_hidden_layers": 40, "vocab_size": 248320, "num_attention_heads": 16, )"
     R"("num_key_value_heads": 2, "head_dim": 256, "max_position_embeddings": 32768, "num_experts": 256, )"
     R"("num_experts_per_tok": 8, "moe_intermediate_size": 512, "shared_expert_intermediate_size": 512, )"
     R"("linear_num_value_heads": 32, "linear_num_key_heads": 16, "linear_key_head_dim": 128, )"
     R"("linear_value_head_dim": 128})"},
    {"qwen3_moe",
     R"({"hidden_size": 2048, "num_hidden_layers": 24, "vocab_size": 151936, "num_attention_heads": 32, )"
     R"("num_key_value_heads": 4, "intermediate_size": 6144, "max_position_embeddings": 32768, )"
     R"("num_local_experts": 128, "num_experts_per_tok": 8, "moe_intermediate_size": 768})"},
    {"qwen3_next",
     R"({"hidden_size": 2048, "num_hidden_layers": 48, "vocab_size": 151936, "num_attention_heads": 16, )"
     R"("num_key_value_heads": 2, "head_dim": 256, "intermediate_size": 5632, "max_position_embeddings": )"
     R"(32768, "num_experts": 512, "num_experts_per_tok": 10, "moe_intermediate_size": 512, )"
     R"("shared_expert_intermediate_size": 512, "linear_num_value_heads": 32, "linear_num_key_heads": 16, )"
     R"("linear_key_head_dim": 128, "linear_value_head_dim": 128})"},
    {"qwen3_omni_moe_text",
     R"({"hidden_size": 2048, "num_hidden_layers": 28, "vocab_size": 3584, "num_attention_heads": 28, )"
     R"("num_key_value_heads": 4, "intermediate_size": 18944, "max_position_embeddings": 32768, )"
     R"("num_experts": 128, "num_experts_per_tok": 8, "moe_intermediate_size": 768})"},
    {"qwen3_vl_moe_text",
     R"({"hidden_size": 2048, "num_hidden_layers": 24, "vocab_size": 151936, "num_attention_heads": 16, )"
     R"("num_key_value_heads": 16, "intermediate_size": 5632, "tie_word_embeddings": true, )"
     R"("max_position_embeddings": 128000, "num_local_experts": 60, "num_experts_per_tok": 4, )"
     R"("moe_intermediate_size": 1408})"},
    {"sarvam_mla",
     R"({"hidden_size": 4096, "num_hidden_layers": 32, "vocab_size": 262144, "num_attention_heads": 64, )"
     R"("intermediate_size": 16384, "max_position_embeddings": 4096, "n_routed_experts": 128, )"
     R"("num_experts_per_tok": 8, "moe_intermediate_size": 2048, "n_shared_experts": 1, )"
     R"("first_k_dense_replace": 1, "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, )"
     R"("v_head_dim": 128})"},
    {"sarvam_moe",
     R"({"hidden_size": 4096, "num_hidden_layers": 19, "vocab_size": 262144, "num_attention_heads": 64, )"
     R"("num_key_value_heads": 4, "head_dim": 64, "intermediate_size": 8192, "max_position_embeddings": )"
     R"(131072, "n_routed_experts": 128, "num_experts_per_tok": 6, "moe_intermediate_size": 1024, )"
     R"("n_shared_experts": 1, "first_k_dense_replace": 1, "use_qk_norm": true})"},
    {"solar_open",
     R"({"hidden_size": 4096, "num_hidden_layers": 48, "vocab_size": 196608, "num_attention_heads": 64, )"
     R"("num_key_value_heads": 8, "head_dim": 128, "max_position_embeddings": 131072, "n_routed_experts": )"
     R"(128, "num_experts_per_tok": 8, "moe_intermediate_size": 1280, "n_shared_experts": 1})"},
};
// clang-format on

}  // namespace

std::span<const ClassDefaults> moe_class_defaults() { return kDefaults; }

}  // namespace memwall
