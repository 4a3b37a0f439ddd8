// Keys of quantization_config that no byte depends on.
#include <algorithm>
#include <array>
#include <string_view>

#include "huggingface/quantization_scheme.h"

namespace memwall {
namespace {

// Of calibration, activations, kernels and provenance. "act_" and the like begin many more.
constexpr std::array kInert = {"activation_scale_ub",
                               "activation_scheme",
                               "algo_config",
                               "autoround_version",
                               "amp",
                               "backend",
                               "backward_dtype",
                               "base_model_name_or_path",
                               "batch_size",
                               "block_name_to_quantize",
                               "cache_block_outputs",
                               "calib_size",
                               "calibration",
                               "chunk_size",
                               "custom_mode",
                               "damp_auto_increment",
                               "damp_percent",
                               "dataset",
                               "dequantize",
                               "desc_act",
                               "do_fuse",
                               "dynamic_loss_scale",
                               "enable_minmax_tuning",
                               "enable_norm_bias_tuning",
                               "enable_proxy_error",
                               "enable_quanted_input",
                               "exllama_config",
                               "fmt",
                               "forward_method",
                               "fuse_max_seq_len",
                               "global_compression_ratio",
                               "gradient_accumulate_steps",
                               "gradient_dtype",
                               "gradient_scale_rule",
                               "hadamard_group_size",
                               "hadamard_size",
                               "include_input_output_embeddings",
                               "is_static",
                               "iters",
                               "kv_cache_dtype",
                               "linear_class",
                               "low_cpu_mem_usage",
                               "low_gpu_mem_usage",
                               "lr",
                               "matmul_backend",
                               "max_input_length",
                               "meta",
                               "method",
                               "minmax_lr",
                               "model_file_base_name",
                               "model_name_or_path",
                               "model_seqlen",
                               "module_name_preceding_first_block",
                               "modules_to_fuse",
                               "momentum",
                               "mse",
                               "n_parallel_calib_samples",
                               "not_use_best_mse",
                               "nsamples",
                               "offload_meta",
                               "optimize",
                               "output_dtype",
                               "pack_dtype",
                               "pad_token_id",
                               "producer",
                               "quant_backend",
                               "quant_block_list",
                               "quant_method",
                               "quant_mode",
                               "quantization_status",
                               "quantize_backend",
                               "quantizer",
                               "rms_norm_eps",
                               "round_zero",
                               "sampler",
                               "scale_dtype",
                               "scale_rule",
                               "seqlen",
                               "static_groups",
                               "sym",
                               "symmetric",
                               "tiling_mode",
                               "to_quant_block_names",
                               "tokenizer",
                               "transform_init",
                               "true_sequential",
                               "tune_metadata",
                               "use_best_mse",
                               "use_cuda_fp16",
                               "use_exllama",
                               "use_rms_norm",
                               "version",
                               "weight_scale_rule",
                               "softmax_quant_spec",
                               "export",
                               "quantization_type",
                               "weight_per_tensor"};

}  // namespace

bool leaves_bytes_alone(std::string_view key) {
  for (const std::string_view with :
       {"act_", "activation_", "input_", "output_", "bnb_4bit_", "llm_int8_", "calib", "producer_", "_"}) {
    if (key.substr(0, with.size()) == with) return true;
  }
  return std::find(kInert.begin(), kInert.end(), key) != kInert.end();
}

}  // namespace memwall
