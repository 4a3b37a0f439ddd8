#include "huggingface/inert_keys.h"

#include <algorithm>
#include <array>
#include <span>

namespace memwall {
namespace {

// A name, or with a star at an end or both the names that end, begin or go on so. A star does not reach names
// that end in a size (kSizes) unless the row's name does, too, or the row is of parts beside the language
// model. Sources: the configuration and modelling code of Hugging Face transformers 5.24, for a family that
// it lacks that in the model's repository.
struct Inert {
  std::string_view names;  // separated by blanks
  std::string_view why;
  bool beside = false;
};

constexpr std::array kInert = std::to_array<Inert>({
    {"_* architectures model_type transformers_version *_version auto_map name finetuning_task torch_dtype "
     "dtype *_dtype tie_encoder_decoder is_encoder_decoder add_cross_attention cross_attention_hidden_size "
     "is_composition is_matryoshka",
     "names the checkpoint, its code or how it was saved"},
    {"lm_head rm_head use_rmsnorm use_rms_norm org_vocab_size cla_share_factor add_classification_head "
     "weight_share_add_bias moe_use_aux_free sinkhorn_2gate",
     "states what is so of every model of those families, or belongs to a switch that is read"},
    {"*token_id *token_ids *_token *_token_index *_class_id use_position_ids attn_uses_sequence_id id2label "
     "label2id num_labels problem_type "
     "tokenizer* token_* bos_* eos_* sep_* unk_* cls_* pad_token* prefix suffix type_vocab_size "
     "num_special_tokens n_special max_new_tokens",
     "ids of tokens and labels"},
    {"*dropout* *_pdrop *_drop drop_* *initializer* *initialization* init_* *_init *init_std *_std *jitter* "
     "router_aux* *aux_loss* *_loss *_loss_* *_coef *_coeff *_coefficient seq_aux gradient_checkpointing* "
     "*layerdrop output_router_logits *z_loss* mup_* use_mup* use_mu_p* train* mlm_* *_warmup* "
     "label_smoothing* embedding_fraction shared_experts_overlap moe_shared_expert_overlap "
     "expert_capacity* moe_capacity* capacity_factor* *_capacity_factor router_bias_update* *_update_rate "
     "*_update_speed learning_rate* weight_decay* adam_* batch_size *_batch_size max_steps *lr_* "
     "moe_token_drop_policy moe_drop_tokens moe_token_dropping block_mlp_init_scale block_out_init_scale "
     "dense_list moe_eval_capacity* moe_train_capacity* min_capacity num_train_epochs warmup_ratio",
     "training: at inference nothing of it runs"},
    {"eps *_eps *epsilon *softcap* *soft_cap* *logit_* *logits* *scaling *scaling_factor scale "
     "embedding_scale attn_scale attention_value_scale residual_scale qk_scale qk_scale_factor softmax_scale "
     "scale_emb scale_depth scale_embedding scale_attn* scale_attention* scale_sqrt_depth scale_factor "
     "*temperature* *clip* *_limit *_alpha *_beta *_alpha_factor *_beta_factor mscale* embedding_multiplier "
     "width_scale embedding_multiplier_scale "
     "output_multiplier_scale attn_output_multiplier scale_qk_dot_by_d max_attn_value compression_ratio "
     "residual_multiplier attention_multiplier lm_head_multiplier output_multiplier mup_attn_multiplier "
     "mup_embedding_multiplier mup_width_multiplier *_out_multiplier key_multiplier *_in_multiplier "
     "mlp_multipliers ssm_multipliers logits_multiplier embeddings_scale *gate_lower_bound norm_topk* "
     "*renormalize* *normalize_* *normalized_* dim_model_base routed_scaling_factor routed_*_factor "
     "query_pre_attn_scalar *normalization_constant moe_norm_min norm_min time_step_* alibi_bias_max "
     "attn_temperature_tuning floor_scale *_lower_bound *_upper_bound kda_safe_gate rescale_every "
     "rescale_layer "
     "use_gemma_norm rms_norm_add_unit_offset norm_expert_weight norm_reduction_* mamba_norm_before_gate "
     "norm_before_gate rescale_prenorm_residual residual_in_fp32 residual_post_layernorm "
     "apply_residual_connection_post_layernorm use_logn_attn logn_* *log_scaling* n_layer_scaling",
     "values scaled, bounded or taken in another order: no tensor more or less"},
    {"rope_theta *rope_parameters *rope_scaling rope_* rope_scaling_layers rotary_dim *rotary* *_theta "
     "*theta rope use_rope *_use_rope "
     "original_max_position* max_position_embedding* alibi_bias_max long_factor short_factor yarn_* use_yarn "
     "*use_nope use_dynamic_ntk interpolate_factor *_base_freq *_freq_base rope_local_base_freq mrope* "
     "position_embedding_type position_encoding_2d nope_layer_interval no_rope_layer_interval no_rope_layers "
     "full_attn_mod "
     "relative_attention",
     "positions by rotation: computed, not stored; or which layers have them"},
    {"image_* *_image_* video_* audio* *audio_config vision* *_vision_* *vision_config mm_* *_modality* "
     "speech_* projector_* *_projector_* *projector patch_* img_* *_image use_image_id visual visual_* tts_* "
     "*tts_config talker_* *talker_config code2wav_config vq_config embd_layer query_num num_query_tokens "
     "slice_config slice_mode batch_vision_input batch_3d_resampler drop_vision_last_layer "
     "downsample_ratio ps_version select_layer dynamic_image_size use_thumbnail min_dynamic_patch "
     "max_dynamic_patch force_image_size tile_tag view_tag candidate_resolutions hd_transform_order "
     "num_img_tokens num_crops num_media_embeds vit_* anyres_* max_image_size freq_allocation "
     "pixel_hidden_size "
     "spatial_conv_size temporal_conv_size img_processor sam_config qformer_config spatial_merge_size "
     "temporal_patch_size position_id_per_seconds seconds_per_chunk deepstack* *_visual_indexes "
     "downsample_rate window_audio* has_lora_adapter pixel_shuffle_factor perceiver_config use_mm_proj "
     "num_audio_tokens",
     "parts for images and sound: beside the language model", true},
    {"mtp_* use_mtp* *_mtp_* num_nextn_* *_mtp nextn_* num_mtp* *_for_mtp_iteration eagle_* medusa_* "
     "draft_* *_mtp_layers mtp",
     "drafts of later tokens: beside the model, named as an extra", true},
    {"summary_* task_* do_sample num_beams num_beam_groups top_k top_p repetition_penalty "
     "*no_repeat_ngram_size length_penalty num_return_sequences min_length max_length max_tokens "
     "diversity_penalty early_stopping use_cache cache_* output_attentions output_hidden_states "
     "output_scores output_past return_* is_decoder *_generation* remove_invalid_values bad_words_ids "
     "exponential_decay* *typical_p max_batch_size use_kv_cache context_window_size begin_suppress* "
     "suppress_* forced_*",
     "how text is generated or what a call returns"},
    {"pretraining_tp ep_size ep_degree *_parallel_size skip_bias_add skip_bias_add_qkv pre_allocate_kv_cache "
     "need_fp32_gate fuse_norm "
     "fuse_rms_norm fuse_gate_detach_matmul tensor_parallel* pipeline_parallel* "
     "sequence_parallel* "
     "expert_parallel* chunk_size_feed_forward torchscript use_bfloat16 *attn_implementation "
     "*_implementation use_flash* *flash_attn* use_kernels use_sdpa use_cache_quantization "
     "use_cache_kernel *fused_* fused_* *fuse_* *_fusion use_fp8* fp8_* use_fast* *_kernel_type "
     "use_*_kernel* use_triton* *_autotune* chunk_size *_chunk_size mamba_chunk_size block_size "
     "chunkwise_kernel sequence_kernel step_kernel mode *_precision *fp32* *float32* *_dispatch* "
     "deterministic* use_xla pruned_heads blocksparse_triton_kernel_block_size use_mamba_kernels "
     "use_mambapy falcon_mamba_use* calc_logits_for_entire_prompt num_logits_to_keep "
     "use_mem_eff_path use_mem_efficient* low_cpu_mem* offload* kv_cache_dtype softmax_in_fp32 *_in_fp32 "
     "reorder_and_upcast_attn moe_apply_router_weight_on_input use_bidirectional_attention moe_grouped_gemm "
     "use_liger_kernel neuron dual_chunk_attention_config use_grouped_gemm use_megablocks moe_layer_use_*  "
     "*_backend",
     "how the same arithmetic is cut up or which kernel runs it"},
    {"quantization_config compression_config quantization", "read where formats are"},
    {"scoring_func topk_method n_group topk_group num_expert_group num_expert_groups num_limited_groups "
     "expert_group* *use_grouped_topk* *grouped_topk moe_router_activation* *router_activation* "
     "*_score_function moe_router_score* moe_router_topk* moe_router_group* moe_router_num_groups "
     "moe_router_use_* num_groups_per_tok moe_group_* moe_n_group moe_topk_group score_before_experts "
     "router_scaling* router_type use_bias_for_routing moe_router_pre_softmax use_group_limited*",
     "which experts are chosen: as many are read"},
    {"hidden_act hidden_activation *_act *_act_fn *activation *activation_function activation_* "
     "use_sliding_window max_window_layers sliding_window sliding_window_size sliding_window_pattern "
     "_sliding_window_pattern global_attn_every_n_layers attention_chunk_size qk_head_dim swiglu* "
     "layer_types head_type keep_window_size blocksparse_block_size blocksparse_num_local_blocks "
     "blocksparse_* dense_attention_every_n_layers "
     "index_local_blocks *_local_block",
     "read where it bears on a family; no tensor's shape depends on it"},
});

// What a family's code ignores, derives from other keys, or reads only where a layer of some kind is there.
struct InertOfFamily {
  std::string_view types;  // beginnings of model_type, separated by blanks
  std::string_view names;
  std::string_view why;
};

constexpr std::array kInertOfFamilies = std::to_array<InertOfFamily>({
    {"zamba",
     "attention_hidden_size conv_dimension gated_linear_unit n_mamba_heads hybrid_layer_ids "
     "use_shared_block_lora",
     "follows from the hidden size; heads divide the same channels; the MLP is always gated, and adapted for "
     "each use"},
    {"arctic", "parallel_attn_mlp_res", "the dense MLP beside the experts, of which use_residual tells"},
    {"openelm", "num_gqa_groups qkv_multipliers", "num_query_heads and num_kv_heads list what they give"},
    {"minicpm", "sparse_config", "which cached tokens are read; all are counted"},
    {"step3p5 step3p7",
     "use_head_wise_attn_gate use_qk_norm use_moe moe_every_n_layer head_dim true_head_dim",
     "of every layer, as its code has it; which have experts, moe_layers_enum lists"},
    {"falcon_h1", "mamba_use_mlp mlp_expansion_factor", "the code does not read it"},
    {"rwkv5 rwkv6 rwkv7", "head_size_divisor hidden_ratio norm_first",
     "intermediate_size is what it gives; or a divisor of values"},
    {"lfm2", "block_dim block_ffn_dim conv_dim_out block_use_swiglu num_heads",
     "hidden_size and num_attention_heads once more; its MLP is gated"},
    {"apertus", "qk_norm", "its Q and K always have norms"},
    {"longcat", "mla_scale_q_lora mla_scale_kv_lora", "values scaled"},
    {"gpt_neo", "attention_layers", "attention_types, written out"},
    {"gpt_neox", "use_parallel_residual", "both orders have two norms a layer"},
    {"minimax_m2", "attn_type_list", "every layer of it has full attention"},
    {"step3", "use_moe use_mfa moe_layer_offset moe_every_n_layer att_impl_type",
     "moe_layers_enum tells which layers have experts; its attention is always factorized"},
    {"moshi", "num_codebooks audio_vocab_size", "of the audio decoder beside the text's"},
    {"mixformer", "architecture", "names of implementations"},
    {"lfm2", "conv_L_cache conv_bias conv_dim", "read by its convolutions"},
    {"xlstm", "embedding_dim num_blocks", "other names of hidden_size and num_hidden_layers"},
    {"mamba falcon_mamba", "expand", "intermediate_size is what it gives"},
    {"mamba2", "time_step_rank", "its time steps come from in_proj"},
    {"dbrx", "hidden_size", "d_model once more"},
    {"RefinedWeb", "padded_heads", "the code does not read it"},
    {"minimax_m3",
     "index_block_size index_topk_blocks index_local_blocks sparse_block_size sparse_disable_index_value "
     "use_sparse_attention sparse_local_block sparse_init_block",
     "read by its sparse layers, which sparse_attention_freq or layer_types name"},
    {"deepseek_v4", "qk_nope_head_dim", "head_dim without qk_rope_head_dim"},
    {"opt", "output_projection", "the head is the table, as tie_word_embeddings says"},
    {"qwen", "no_bias", "all but the fused projection are without biases"},
    {"llama4", "use_qk_norm", "a norm without weights"},
    {"gemma4", "vocab_size_per_layer_input", "read where layers have inputs of their own"},
    {"glm4v", "attention_bias", "the text model's q, k and v always have biases, o none"},
    {"step3p5 step3p7", "num_sliding_attention_heads", "read by sliding layers"},
    {"colpali colqwen colidefics", "embedding_dim", "of the projection behind the language model"},
    {"cohere2_moe", "prefix_dense_sliding_window_pattern", "which of the first layers slide"},
});

constexpr std::array kSizes = std::to_array<std::string_view>(
    {"_size", "_dim", "_dims", "_rank", "_heads", "_layers", "_experts", "_width", "_kernel", "_bias",
     "_gate", "_norm", "_groups", "_multiplier", "_ratio", "_channels", "_blocks"});

// Words that name a size, a count, a rank, a gate or a part. Where a word is short, it must be a whole part
// of the name.
constexpr std::array kWords =
    std::to_array<std::string_view>({"size",       "dim",         "rank",      "num",
                                     "n",          "head",        "heads",     "expert",
                                     "experts",    "gate",        "gated",     "gating",
                                     "width",      "hidden",      "inner",     "intermediate",
                                     "layer",      "layers",      "freq",      "frequency",
                                     "kernel",     "expand",      "expansion", "latent",
                                     "lora",       "conv",        "block",     "blocks",
                                     "window",     "sink",        "sinks",     "bias",
                                     "norm",       "shared",      "stages",    "stage",
                                     "period",     "interval",    "every",     "topk",
                                     "layernorm",  "rmsnorm",     "norms",     "proj",
                                     "projection", "projections", "biases",    "convolution",
                                     "mamba",      "ssm",         "rwkv",      "delta",
                                     "mla",        "dense",       "cross",     "encoder",
                                     "decoder",    "share",       "sharing",   "tie",
                                     "tied",       "pattern",     "types",     "dims",
                                     "sizes",      "ranks",       "widths",    "kernels",
                                     "gates",      "steps",       "latents",   "engram",
                                     "hyper",      "group",       "groups",    "channels",
                                     "ratio",      "ratios",      "factor",    "multiplier",
                                     "count",      "depth",       "loop",      "loops",
                                     "recurrent",  "memory",      "slots",     "adapter",
                                     "tables",     "ngram",       "d",         "ffn",
                                     "mlp",        "moe",         "attn",      "attention",
                                     "kv",         "q",           "k",         "v",
                                     "o",          "qk",          "qkv",       "mtp",
                                     "cla",        "nextn",       "state",     "mix",
                                     "mult",       "sparse",      "compress",  "compression",
                                     "residual",   "hash",        "position",  "positions",
                                     "embed",      "embedding",   "vocab"});

bool ends_in_a_size(std::string_view key) {
  return std::any_of(kSizes.begin(), kSizes.end(), [&](std::string_view size) {
    return key.size() >= size.size() && key.substr(key.size() - size.size()) == size;
  });
}

bool matches(std::string_view key, std::string_view name) {
  const bool open_start = name.front() == '*';
  const bool open_end = name.size() > 1 && name.back() == '*';
  if (open_start) name.remove_prefix(1);
  if (open_end) name.remove_suffix(1);
  if (open_start && open_end) return key.find(name) != std::string_view::npos;
  if (open_start) return key.size() >= name.size() && key.substr(key.size() - name.size()) == name;
  if (open_end) return key.substr(0, name.size()) == name;
  return key == name;
}

// Calls visit with each part of a text between separators, until it says true.
template <typename Visit>
bool any_part(std::string_view text, char separator, const Visit& visit) {
  while (!text.empty()) {
    const std::size_t at = text.find(separator);
    const std::string_view part = text.substr(0, at);
    if (!part.empty() && visit(part)) return true;
    text.remove_prefix(at == std::string_view::npos ? text.size() : at + 1);
  }
  return false;
}

bool is_stated(const json::Value& value) {
  switch (value.kind) {
    case json::Kind::boolean:
      return value.boolean;
    case json::Kind::number:
      return value.text.front() != '-' && value.text != "NaN" &&
             value.text.find_first_of("123456789I") != std::string::npos;
    case json::Kind::array:
    case json::Kind::object:
      return !value.items.empty();
    case json::Kind::null:
    case json::Kind::text:
      break;
  }
  return false;
}

}  // namespace

std::string_view inert_reason(std::string_view model_type, std::string_view key) {
  const bool size = ends_in_a_size(key);
  for (const Inert& inert : kInert) {
    const auto is_it = [&](std::string_view name) {
      if (size && !inert.beside && (name.back() == '*' || !ends_in_a_size(name))) return key == name;
      return matches(key, name);
    };
    if (any_part(inert.names, ' ', is_it)) return inert.why;
  }
  for (const InertOfFamily& inert : kInertOfFamilies) {
    const auto is_type = [&](std::string_view type) { return model_type.substr(0, type.size()) == type; };
    if (any_part(inert.types, ' ', is_type) &&
        any_part(inert.names, ' ', [&](std::string_view name) { return key == name; }))
      return inert.why;
  }
  return {};
}

bool states_a_size(std::string_view key, const json::Value& value) {
  return is_stated(value) && any_part(key, '_', [](std::string_view part) {
           return std::find(kWords.begin(), kWords.end(), part) != kWords.end();
         });
}

}  // namespace memwall
