// What a key is where a published config.json leaves it out: the defaults of the configuration classes of
// Hugging Face transformers 5.24 (models/NAME/configuration_NAME.py), those that bear on shapes. Defaults
// that a class derives from other keys, or that are the common rules' anyway, are left to the common rules.
#include "huggingface/class_defaults.h"

#include "huggingface/family.h"

namespace memwall {
namespace {

// In the order of their types. clang-format would break the texts at every quote.
// clang-format off
constexpr ClassDefaults kDefaults[] = {
    {"apertus",
     R"({"hidden_size": 4096, "num_hidden_layers": 32, "vocab_size": 131072, "num_attention_heads": 32, )"
     R"("intermediate_size": 14336, "hidden_act": "xielu", "max_position_embeddings": 65536})"},
    {"apertus1p5_text",
     R"({"hidden_size": 4096, "num_hidden_layers": 32, "vocab_size": 266752, "num_attention_heads": 32, )"
     R"("intermediate_size": 14336, "hidden_act": "xielu", "max_position_embeddings": 65536})"},
    {"arcee",
     R"({"hidden_size": 2560, "num_hidden_layers": 32, "vocab_size": 32000, "num_attention_heads": 32, )"
     R"("intermediate_size": 18432, "hidden_act": "relu2", "max_position_embeddings": 4096})"},
    {"bamba",
     R"({"hidden_size": 4096, "num_hidden_layers": 32, "vocab_size": 128000, "num_attention_heads": 32, )"
     R"("num_key_value_heads": 8, "intermediate_size": 14336, "max_position_embeddings": 262144, )"
     R"("mamba_d_state": 256, "mamba_n_heads": 128, "mamba_n_groups": 1})"},
    {"biogpt",
     R"({"hidden_size": 1024, "num_hidden_layers": 24, "vocab_size": 42384, "num_attention_heads": 16, )"
     R"("intermediate_size": 4096, "hidden_act": "gelu", "max_position_embeddings": 1024})"},
    {"bitnet",
     R"({"hidden_size": 2560, "num_hidden_layers": 30, "vocab_size": 128256, "num_attention_heads": 20, )"
     R"("num_key_value_heads": 5, "intermediate_size": 6912, "hidden_act": "relu2", )"
     R"("max_position_embeddings": 2048})"},
    {"bloom",
     R"({"num_attention_heads": 8, "hidden_size": 64, "num_hidden_layers": 2, "vocab_size": 250880})"},
    {"codegen",
     R"({"num_attention_heads": 16, "hidden_size": 4096, "num_hidden_layers": 28, "vocab_size": 50400, )"
     R"("activation_function": "gelu_new", "n_positions": 2048})"},
    {"cohere",
     R"({"hidden_size": 8192, "num_hidden_layers": 40, "vocab_size": 256000, "num_attention_heads": 64, )"
     R"("intermediate_size": 22528, "max_position_embeddings": 8192, "use_qk_norm": false})"},
    {"cohere2",
     R"({"hidden_size": 8192, "num_hidden_layers": 40, "vocab_size": 256000, "num_attention_heads": 64, )"
     R"("intermediate_size": 22528, "sliding_window": 4096, "max_position_embeddings": 8192})"},
    {"ctrl",
     R"({"num_attention_heads": 16, "hidden_size": 1280, "num_hidden_layers": 48, "vocab_size": 246534, )"
     R"("dff": 8192, "n_positions": 256})"},
    {"cwm",
     R"({"hidden_size": 6144, "num_hidden_layers": 64, "vocab_size": 128256, "num_attention_heads": 48, )"
     R"("num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 21504, "sliding_window": 8192, )"
     R"("max_position_embeddings": 131072})"},
    {"dbrx",
     R"({"num_attention_heads": 16, "hidden_size": 2048, "num_hidden_layers": 24, "vocab_size": 32000, )"
     R"("num_key_value_heads": 1})"},
    {"diffllama",
     R"({"hidden_size": 2048, "num_hidden_layers": 16, "vocab_size": 32000, "num_attention_heads": 32, )"
     R"("intermediate_size": 8192, "max_position_embeddings": 2048})"},
    {"dots1",
     R"({"hidden_size": 4608, "num_hidden_layers": 62, "vocab_size": 152064, "num_attention_heads": 32, )"
     R"("num_key_value_heads": 32, "intermediate_size": 10944, "sliding_window": 4096, )"
     R"("max_window_layers": 62, "max_position_embeddings": 2048, "moe_intermediate_size": 1408, )"
     R"("first_k_dense_replace": 0})"},
    {"ernie4_5",
     R"({"hidden_size": 1024, "num_hidden_layers": 18, "vocab_size": 103424, "num_attention_heads": 16, )"
     R"("num_key_value_heads": 2, "head_dim": 128, "intermediate_size": 3072, "max_position_embeddings": )"
     R"(131072})"},
    {"exaone",
     R"({"hidden_size": 4096, "num_hidden_layers": 32, "vocab_size": 102400, "num_attention_heads": 32, )"
     R"("num_key_value_heads": 8, "intermediate_size": 14336, "max_position_embeddings": 4096})"},
    {"exaone4",
     R"({"hidden_size": 4096, "num_hidden_layers": 32, "vocab_size": 102400, "num_attention_heads": 32, )"
     R"("num_key_value_heads": 32, "intermediate_size": 16384, "sliding_window": 4096, )"
     R"("sliding_window_pattern": 4, "max_position_embeddings": 2048})"},
    {"falcon",
     R"({"hidden_size": 4544, "num_hidden_layers": 32, "vocab_size": 65024, "num_attention_heads": 71, )"
     R"("max_position_embeddings": 2048, "parallel_attn": true, "new_decoder_architecture": false, )"
     R"("multi_query": true, "bias": false})"},
    {"falcon_h1",
     R"({"hidden_size": 4096, "num_hidden_layers": 32, "vocab_size": 128000, "num_attention_heads": 32, )"
     R"("num_key_value_heads": 8, "intermediate_size": 14336, "max_position_embeddings": 8192, )"
     R"("mamba_d_state": 256, "mamba_n_heads": 128, "mamba_d_head": 8, "mamba_n_groups": 1, "mamba_d_ssm": )"
     R"(1024})"},
    {"falcon_mamba",
     R"({"hidden_size": 768, "num_hidden_layers": 32, "vocab_size": 50280, "state_size": 16})"},
    {"gemma",
     R"({"hidden_size": 3072, "num_hidden_layers": 28, "vocab_size": 256000, "num_attention_heads": 16, )"
     R"("num_key_value_heads": 16, "head_dim": 256, "intermediate_size": 24576, "hidden_act": )"
     R"("gelu_pytorch_tanh", "max_position_embeddings": 8192})"},
    {"gemma2",
     R"({"hidden_size": 2304, "num_hidden_layers": 26, "vocab_size": 256000, "num_attention_heads": 8, )"
     R"("num_key_value_heads": 4, "head_dim": 256, "intermediate_size": 9216, "hidden_activation": )"
     R"("gelu_pytorch_tanh", "sliding_window": 4096, "max_position_embeddings": 8192})"},
    {"gemma3_text",
     R"({"hidden_size": 2304, "num_hidden_layers": 26, "vocab_size": 262208, "num_attention_heads": 8, )"
     R"("num_key_value_heads": 4, "head_dim": 256, "intermediate_size": 9216, "hidden_activation": )"
     R"("gelu_pytorch_tanh", "sliding_window": 4096, "max_position_embeddings": 131072})"},
    {"gemma3n_text",
     R"({"hidden_size": 2048, "num_hidden_layers": 35, "vocab_size": 262400, "num_attention_heads": 8, )"
     R"("num_key_value_heads": 2, "head_dim": 256, "hidden_activation": "gelu_pytorch_tanh", )"
     R"("sliding_window": 512, "max_position_embeddings": 32768, "hidden_size_per_layer_input": 256, )"
     R"("vocab_size_per_layer_input": 262144, "num_kv_shared_layers": 15, "laurel_rank": 64, )"
     R"("altup_num_inputs": 4, "intermediate_size": 16384})"},
    {"gemma4_text",
     R"({"hidden_size": 2304, "num_hidden_layers": 30, "vocab_size": 262144, "num_attention_heads": 8, )"
     R"("num_key_value_heads": 4, "intermediate_size": 9216, "hidden_activation": "gelu_pytorch_tanh", )"
     R"("sliding_window": 512, "max_position_embeddings": 131072, "hidden_size_per_layer_input": 256, )"
     R"("vocab_size_per_layer_input": 262144, "head_dim": 256})"},
    {"gemma4_unified_text",
     R"({"hidden_size": 2304, "num_hidden_layers": 30, "vocab_size": 262144, "num_attention_heads": 8, )"
     R"("num_key_value_heads": 4, "intermediate_size": 9216, "hidden_activation": "gelu_pytorch_tanh", )"
     R"("sliding_window": 1024, "max_position_embeddings": 262144, "head_dim": 256})"},
    {"glm",
     R"({"hidden_size": 4096, "num_hidden_layers": 40, "vocab_size": 151552, "num_attention_heads": 32, )"
     R"("num_key_value_heads": 2, "head_dim": 128, "intermediate_size": 13696, "attention_bias": true, )"
     R"("max_position_embeddings": 131072})"},
    {"glm4",
     R"({"hidden_size": 4096, "num_hidden_layers": 40, "vocab_size": 151552, "num_attention_heads": 32, )"
     R"("num_key_value_heads": 2, "head_dim": 128, "intermediate_size": 13696, "attention_bias": true, )"
     R"("max_position_embeddings": 131072})"},
    {"glm4v_text",
     R"({"hidden_size": 4096, "num_hidden_layers": 40, "vocab_size": 151552, "num_attention_heads": 32, )"
     R"("num_key_value_heads": 2, "intermediate_size": 13696, "max_position_embeddings": 32768})"},
    {"glm_ocr_text",
     R"({"hidden_size": 1024, "num_hidden_layers": 16, "vocab_size": 59392, "num_attention_heads": 16, )"
     R"("num_key_value_heads": 8, "intermediate_size": 4096, "max_position_embeddings": 131072})"},
    {"gpt-sw3",
     R"({"num_attention_heads": 12, "hidden_size": 768, "num_hidden_layers": 12, "vocab_size": 50257, )"
     R"("activation_function": "gelu_new", "n_positions": 1024})"},
    {"gpt2",
     R"({"num_attention_heads": 12, "hidden_size": 768, "num_hidden_layers": 12, "vocab_size": 50257, )"
     R"("activation_function": "gelu_new", "n_positions": 1024})"},
    {"gpt_bigcode",
     R"({"num_attention_heads": 12, "hidden_size": 768, "num_hidden_layers": 12, "vocab_size": 50257, )"
     R"("num_key_value_heads": 1, "activation_function": "gelu_pytorch_tanh", "n_positions": 1024, )"
     R"("multi_query": true})"},
    {"gpt_neo",
     R"({"num_attention_heads": 16, "hidden_size": 2048, "num_hidden_layers": 24, "vocab_size": 50257, )"
     R"("activation_function": "gelu_new", "max_position_embeddings": 2048})"},
    {"gpt_neox",
     R"({"hidden_size": 6144, "num_hidden_layers": 44, "vocab_size": 50432, "num_attention_heads": 64, )"
     R"("intermediate_size": 24576, "hidden_act": "gelu", "attention_bias": true, )"
     R"("max_position_embeddings": 2048, "use_parallel_residual": true})"},
    {"gpt_neox_japanese",
     R"({"hidden_size": 2560, "num_hidden_layers": 32, "vocab_size": 32000, "num_attention_heads": 32, )"
     R"("hidden_act": "gelu", "max_position_embeddings": 2048})"},
    {"gptj",
     R"({"num_attention_heads": 16, "hidden_size": 4096, "num_hidden_layers": 28, "vocab_size": 50400, )"
     R"("activation_function": "gelu_new", "n_positions": 2048})"},
    {"granite",
     R"({"hidden_size": 4096, "num_hidden_layers": 32, "vocab_size": 32000, "num_attention_heads": 32, )"
     R"("intermediate_size": 11008, "max_position_embeddings": 2048})"},
    {"granite_swa",
     R"({"hidden_size": 2560, "num_hidden_layers": 24, "vocab_size": 100352, "num_attention_heads": 20, )"
     R"("num_key_value_heads": 4, "intermediate_size": 8192, "sliding_window": 128, )"
     R"("max_position_embeddings": 8192})"},
    {"helium",
     R"({"hidden_size": 2560, "num_hidden_layers": 24, "vocab_size": 48000, "num_attention_heads": 20, )"
     R"("num_key_value_heads": 20, "head_dim": 128, "intermediate_size": 7040, "max_position_embeddings": )"
     R"(4096})"},
    {"hunyuan_v1_dense",
     R"({"hidden_size": 4096, "num_hidden_layers": 32, "vocab_size": 290943, "num_attention_heads": 32, )"
     R"("intermediate_size": 11008, "max_position_embeddings": 2048})"},
    {"hunyuan_vl_text",
     R"({"hidden_size": 4096, "num_hidden_layers": 32, "vocab_size": 290943, "num_attention_heads": 32, )"
     R"("intermediate_size": 11008, "tie_word_embeddings": true, "max_position_embeddings": 2048})"},
    {"hyperclovax",
     R"({"hidden_size": 4096, "num_hidden_layers": 32, "vocab_size": 32000, "num_attention_heads": 32, )"
     R"("intermediate_size": 11008, "max_position_embeddings": 2048})"},
    {"internlm3",
     R"({"hidden_size": 4096, "num_hidden_layers": 48, "vocab_size": 128512, "num_attention_heads": 32, )"
     R"("num_key_value_heads": 2, "head_dim": 128, "intermediate_size": 10240, "max_position_embeddings": )"
     R"(32768})"},
    {"iquestcoder",
     R"({"hidden_size": 5120, "num_hidden_layers": 80, "vocab_size": 76800, "num_attention_heads": 40, )"
     R"("num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 27648, "max_position_embeddings": )"
     R"(131072})"},
    {"jais2",
     R"({"hidden_size": 3328, "num_hidden_layers": 32, "vocab_size": 150272, "num_attention_heads": 26, )"
     R"("intermediate_size": 26624, "hidden_act": "relu2", "attention_bias": true, "mlp_bias": true, )"
     R"("max_position_embeddings": 8192})"},
    {"lfm2",
     R"({"hidden_size": 2560, "num_hidden_layers": 32, "vocab_size": 65536, "num_attention_heads": 32, )"
     R"("num_key_value_heads": 8, "intermediate_size": 12288, "max_position_embeddings": 128000, )"
     R"("conv_L_cache": 3})"},
    {"lfm3",
     R"({"hidden_size": 2048, "num_hidden_layers": 24, "vocab_size": 128000, "num_attention_heads": 16, )"
     R"("num_key_value_heads": 4, "head_dim": 128, "intermediate_size": 7680, "sliding_window": 256, )"
     R"("max_position_embeddings": 128000, "conv_L_cache": 7})"},
    {"llama",
     R"({"hidden_size": 4096, "num_hidden_layers": 32, "vocab_size": 32000, "num_attention_heads": 32, )"
     R"("intermediate_size": 11008, "max_position_embeddings": 2048})"},
    {"mamba", R"({"hidden_size": 768, "num_hidden_layers": 32, "vocab_size": 50280, "state_size": 16})"},
    {"mamba2",
     R"({"hidden_size": 4096, "num_hidden_layers": 64, "vocab_size": 32768, "head_dim": 64, "n_groups": 8, )"
     R"("state_size": 128, "time_step_rank": 256, "num_heads": 128})"},
    {"minicpm3",
     R"({"hidden_size": 2560, "num_hidden_layers": 62, "vocab_size": 73448, "num_attention_heads": 40, )"
     R"("intermediate_size": 6400, "max_position_embeddings": 32768, "q_lora_rank": 768, "kv_lora_rank": )"
     R"(256, "qk_nope_head_dim": 64, "qk_rope_head_dim": 32, "v_head_dim": 64})"},
    {"ministral",
     R"({"hidden_size": 4096, "num_hidden_layers": 32, "vocab_size": 32000, "num_attention_heads": 32, )"
     R"("num_key_value_heads": 8, "intermediate_size": 14336, "sliding_window": 4096, )"
     R"("max_position_embeddings": 131072})"},
    {"ministral3",
     R"({"hidden_size": 4096, "num_hidden_layers": 34, "vocab_size": 131072, "num_attention_heads": 32, )"
     R"("num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 14336, "max_position_embeddings": )"
     R"(262144})"},
    {"mistral",
     R"({"hidden_size": 4096, "num_hidden_layers": 32, "vocab_size": 32000, "num_attention_heads": 32, )"
     R"("num_key_value_heads": 8, "intermediate_size": 14336, "sliding_window": 4096, )"
     R"("max_position_embeddings": 131072})"},
    {"mllama_text_model",
     R"({"hidden_size": 4096, "num_hidden_layers": 40, "vocab_size": 128256, "num_attention_heads": 32, )"
     R"("num_key_value_heads": 8, "intermediate_size": 14336, "max_position_embeddings": 131072, )"
     R"("cross_attention_layers": [3, 8, 13, 18, 23, 28, 33, 38]})"},
    {"modernbert-decoder",
     R"({"hidden_size": 768, "num_hidden_layers": 22, "vocab_size": 50368, "num_attention_heads": 12, )"
     R"("intermediate_size": 1152, "hidden_activation": "gelu", "sliding_window": 64, )"
     R"("max_position_embeddings": 8192})"},
    {"molmo2_text",
     R"({"hidden_size": 4096, "num_hidden_layers": 36, "vocab_size": 151936, "num_attention_heads": 32, )"
     R"("num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 12288, "max_position_embeddings": )"
     R"(36864})"},
    {"moshi",
     R"({"hidden_size": 4096, "num_hidden_layers": 32, "vocab_size": 32000, "num_attention_heads": 32, )"
     R"("head_dim": 128, "ffn_dim": 22528, "sliding_window": 3000, "max_position_embeddings": 3000})"},
    {"mpt",
     R"({"num_attention_heads": 16, "hidden_size": 2048, "num_hidden_layers": 24, "vocab_size": 50368, )"
     R"("expansion_ratio": 4})"},
    {"muse_glimmer_text",
     R"({"hidden_size": 6656, "num_hidden_layers": 52, "vocab_size": 202048, "num_attention_heads": 32, )"
     R"("num_key_value_heads": 2, "head_dim": 128, "intermediate_size": 19968, "sliding_window": 2048, )"
     R"("max_position_embeddings": 131072})"},
    {"nanochat",
     R"({"hidden_size": 768, "num_hidden_layers": 12, "vocab_size": 50304, "num_attention_heads": 6, )"
     R"("intermediate_size": 8192, "hidden_act": "relu2", "max_position_embeddings": 2048})"},
    {"nemotron",
     R"({"hidden_size": 6144, "num_hidden_layers": 32, "vocab_size": 256000, "num_attention_heads": 48, )"
     R"("intermediate_size": 24576, "hidden_act": "relu2", "max_position_embeddings": 4096})"},
    {"olmo",
     R"({"hidden_size": 4096, "num_hidden_layers": 32, "vocab_size": 50304, "num_attention_heads": 32, )"
     R"("intermediate_size": 11008, "max_position_embeddings": 2048})"},
    {"olmo2",
     R"({"hidden_size": 4096, "num_hidden_layers": 32, "vocab_size": 50304, "num_attention_heads": 32, )"
     R"("intermediate_size": 11008, "max_position_embeddings": 2048})"},
    {"olmo3",
     R"({"hidden_size": 4096, "num_hidden_layers": 32, "vocab_size": 50304, "num_attention_heads": 32, )"
     R"("intermediate_size": 11008, "sliding_window": 4096, "max_position_embeddings": 2048})"},
    {"olmo_hybrid",
     R"({"hidden_size": 3840, "num_hidden_layers": 32, "vocab_size": 100352, "num_attention_heads": 30, )"
     R"("intermediate_size": 11008, "max_position_embeddings": 65536})"},
    {"openai-gpt",
     R"({"num_attention_heads": 12, "hidden_size": 768, "num_hidden_layers": 12, "vocab_size": 40478, )"
     R"("n_positions": 512})"},
    {"opt",
     R"({"hidden_size": 768, "num_hidden_layers": 12, "vocab_size": 50272, "num_attention_heads": 12, )"
     R"("activation_function": "relu", "max_position_embeddings": 2048, "ffn_dim": 3072, "enable_bias": )"
     R"(true})"},
    {"persimmon",
     R"({"hidden_size": 4096, "num_hidden_layers": 36, "vocab_size": 262144, "num_attention_heads": 64, )"
     R"("intermediate_size": 16384, "hidden_act": "relu2", "max_position_embeddings": 16384, )"
     R"("qk_layernorm": true})"},
    {"phi",
     R"({"hidden_size": 2048, "num_hidden_layers": 24, "vocab_size": 51200, "num_attention_heads": 32, )"
     R"("intermediate_size": 8192, "hidden_act": "gelu_new", "max_position_embeddings": 2048})"},
    {"phi3",
     R"({"hidden_size": 3072, "num_hidden_layers": 32, "vocab_size": 32064, "num_attention_heads": 32, )"
     R"("intermediate_size": 8192, "max_position_embeddings": 4096})"},
    {"phi4_multimodal",
     R"({"hidden_size": 3072, "num_hidden_layers": 32, "vocab_size": 200064, "num_attention_heads": 32, )"
     R"("num_key_value_heads": 8, "intermediate_size": 8192, "max_position_embeddings": 131072})"},
    {"qwen2",
     R"({"hidden_size": 4096, "num_hidden_layers": 32, "vocab_size": 151936, "num_attention_heads": 32, )"
     R"("num_key_value_heads": 32, "intermediate_size": 22016, "max_window_layers": 28, )"
     R"("max_position_embeddings": 32768})"},
    {"qwen2_5_omni_text",
     R"({"hidden_size": 3584, "num_hidden_layers": 28, "vocab_size": 152064, "num_attention_heads": 28, )"
     R"("num_key_value_heads": 4, "intermediate_size": 18944, "tie_word_embeddings": true, )"
     R"("max_window_layers": 28, "max_position_embeddings": 32768})"},
    {"qwen2_5_vl_text",
     R"({"hidden_size": 8192, "num_hidden_layers": 80, "vocab_size": 152064, "num_attention_heads": 64, )"
     R"("num_key_value_heads": 8, "intermediate_size": 29568, "max_window_layers": 80, )"
     R"("max_position_embeddings": 32768})"},
    {"qwen2_vl_text",
     R"({"hidden_size": 8192, "num_hidden_layers": 80, "vocab_size": 152064, "num_attention_heads": 64, )"
     R"("num_key_value_heads": 8, "intermediate_size": 29568, "max_window_layers": 80, )"
     R"("max_position_embeddings": 32768})"},
    {"qwen3",
     R"({"hidden_size": 4096, "num_hidden_layers": 32, "vocab_size": 151936, "num_attention_heads": 32, )"
     R"("num_key_value_heads": 32, "head_dim": 128, "intermediate_size": 22016, "max_window_layers": 28, )"
     R"("max_position_embeddings": 32768})"},
    {"qwen3_5_text",
     R"({"hidden_size": 4096, "num_hidden_layers": 32, "vocab_size": 248320, "num_attention_heads": 16, )"
     R"("num_key_value_heads": 4, "head_dim": 256, "intermediate_size": 12288, "max_position_embeddings": )"
     R"(32768, "linear_num_value_heads": 32, "linear_num_key_heads": 16, "linear_key_head_dim": 128, )"
     R"("linear_value_head_dim": 128})"},
    {"qwen3_vl_text",
     R"({"hidden_size": 4096, "num_hidden_layers": 32, "vocab_size": 151936, "num_attention_heads": 32, )"
     R"("num_key_value_heads": 32, "head_dim": 128, "intermediate_size": 22016, "max_position_embeddings": )"
     R"(128000})"},
    {"recurrent_gemma",
     R"({"hidden_size": 2560, "num_hidden_layers": 26, "vocab_size": 256000, "num_attention_heads": 10, )"
     R"("intermediate_size": 7680, "hidden_activation": "gelu_pytorch_tanh", "conv1d_width": 4})"},
    {"rwkv", R"({"hidden_size": 4096, "num_hidden_layers": 32, "vocab_size": 50277})"},
    {"seed_oss",
     R"({"hidden_size": 4096, "num_hidden_layers": 64, "vocab_size": 155136, "num_attention_heads": 80, )"
     R"("num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 27648, "attention_bias": true, )"
     R"("max_position_embeddings": 524288})"},
    {"smollm3",
     R"({"hidden_size": 2048, "num_hidden_layers": 36, "vocab_size": 128256, "num_attention_heads": 16, )"
     R"("num_key_value_heads": 4, "intermediate_size": 11008, "tie_word_embeddings": true, )"
     R"("max_position_embeddings": 32768})"},
    {"stablelm",
     R"({"hidden_size": 2560, "num_hidden_layers": 32, "vocab_size": 50304, "num_attention_heads": 32, )"
     R"("num_key_value_heads": 32, "intermediate_size": 6912, "max_position_embeddings": 4096})"},
    {"starcoder2",
     R"({"hidden_size": 3072, "num_hidden_layers": 30, "vocab_size": 49152, "num_attention_heads": 24, )"
     R"("num_key_value_heads": 2, "intermediate_size": 12288, "hidden_act": "gelu_pytorch_tanh", )"
     R"("max_position_embeddings": 4096, "use_bias": true})"},
    {"vaultgemma",
     R"({"hidden_size": 2304, "num_hidden_layers": 26, "vocab_size": 256000, "num_attention_heads": 8, )"
     R"("num_key_value_heads": 4, "head_dim": 256, "intermediate_size": 9216, "hidden_activation": )"
     R"("gelu_pytorch_tanh", "sliding_window": 4096, "max_position_embeddings": 8192})"},
    {"xglm",
     R"({"num_attention_heads": 16, "hidden_size": 1024, "num_hidden_layers": 24, "vocab_size": 256008, )"
     R"("activation_function": "gelu", "max_position_embeddings": 2048, "ffn_dim": 4096})"},
    {"xlstm", R"({"hidden_size": 4096, "num_hidden_layers": 32, "vocab_size": 50304, "num_heads": 8})"},
    {"youtu",
     R"({"hidden_size": 2048, "num_hidden_layers": 32, "vocab_size": 128256, "num_attention_heads": 16, )"
     R"("intermediate_size": 6144, "max_position_embeddings": 131072, "q_lora_rank": 1536, "kv_lora_rank": )"
     R"(512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128})"},
    {"zamba",
     R"({"hidden_size": 3712, "num_hidden_layers": 76, "vocab_size": 32000, "num_attention_heads": 16, )"
     R"("num_key_value_heads": 16, "intermediate_size": 14848, "hidden_act": "gelu", )"
     R"("max_position_embeddings": 4096, "mamba_d_state": 16, "attn_layer_period": 6, "attn_layer_offset": )"
     R"(4, "n_mamba_heads": 2})"},
    {"zamba2",
     R"({"hidden_size": 2560, "num_hidden_layers": 54, "vocab_size": 32000, "num_attention_heads": 32, )"
     R"("hidden_act": "gelu", "max_position_embeddings": 4096, "mamba_d_state": 64, "mamba_ngroups": 1, )"
     R"("n_mamba_heads": 8, "adapter_rank": 128, "num_mem_blocks": 1})"},
};
// clang-format on

}  // namespace

const char* class_defaults(const std::string& model_type) {
  for (const ClassDefaults& row : kDefaults) {
    if (row.type == model_type) return row.json;
  }
  for (const ClassDefaults& row : moe_class_defaults()) {
    if (row.type == model_type) return row.json;
  }
  return "{}";
}

}  // namespace memwall
