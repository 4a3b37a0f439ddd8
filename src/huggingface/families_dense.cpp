// Dense decoders: one attention and one MLP a layer. Sources: the modelling code of Hugging Face transformers
// 5.24 (models/NAME/modeling_NAME.py) or, for a family that it lacks, the code in the model's repository.
#include <fmt/format.h>

#include "format/checked.h"
#include "huggingface/family.h"

namespace memwall {
namespace {

constexpr Switch kAlways{nullptr, true};
constexpr Switch kNever{nullptr, false};

void all_biases(Plan& plan, bool on) {
  plan.attention.bias_q = plan.attention.bias_k = plan.attention.bias_v = plan.attention.bias_o = on;
  plan.mlp.bias = on;
}

// One key states the bias of every linear.
void bias_by(const Config& config, Plan& plan, const char* key, bool fallback) {
  all_biases(plan, config.flag_or({key}, fallback));
}

void qwen1(const Config&, Plan& plan) { plan.mlp.intermediate /= 2; }  // it counts w1 and w2 together

void molmo(const Config& config, Plan& plan) {
  plan.mlp.intermediate /= 2;  // it counts both halves of the gated projection
  plan.head.tied = config.flag_or({"weight_tying", "tie_word_embeddings"}, false);
}

void internlm(const Config& config, Plan& plan) {
  const bool bias = config.flag_or({"bias"}, false);
  plan.attention.bias_q = plan.attention.bias_k = plan.attention.bias_v = plan.attention.bias_o = bias;
}

void internlm3(const Config& config, Plan& plan) {
  plan.attention.bias_o = plan.mlp.bias = config.flag_or({"bias"}, false);
}

void seed_oss(const Config& config, Plan& plan) {
  plan.attention.bias_o = config.flag_or({"attention_out_bias"}, false);
}

void chatglm(const Config& config, Plan& plan) {
  if (!config.flag_or({"multi_query_attention"}, false)) plan.attention.kv_heads = plan.attention.heads;
  plan.attention.bias_o = plan.mlp.bias = config.flag_or({"add_bias_linear"}, false);
  plan.head.final_norm = config.flag_or({"post_layer_norm"}, true);
  if (!config.flag_or({"rmsnorm"}, true)) plan.common.norm = NormKind::layer;
  plan.head.vocab_size = config.integer_or({"padded_vocab_size", "vocab_size"}, plan.head.vocab_size);
}

void gpt_bigcode(const Config& config, Plan& plan) {
  plan.attention.kv_heads = config.flag_or({"multi_query"}, true) ? 1 : plan.attention.heads;
}

void falcon(const Config& config, Plan& plan) {
  bias_by(config, plan, "bias", false);
  const bool grouped = config.flag_or({"new_decoder_architecture"}, config.has({"n_head_kv"}));
  if (!grouped) plan.attention.kv_heads = config.flag_or({"multi_query"}, true) ? 1 : plan.attention.heads;
  plan.attention.rotary = !config.flag_or({"alibi"}, false);
  // One norm feeds attention and MLP in parallel, two where the architecture is the grouped one.
  const bool parallel = config.flag_or({"parallel_attn"}, true);
  const bool two_norms = !parallel || (grouped && config.integer_or({"num_ln_in_parallel_attn"}, 2) == 2);
  plan.mlp.norm = two_norms ? NormPlace::pre : NormPlace::none;
}

void opt(const Config& config, Plan& plan) {
  bias_by(config, plan, "enable_bias", true);
  if (!config.flag_or({"layer_norm_elementwise_affine"}, true)) plan.common.norm = NormKind::none;
  const bool pre = config.flag_or({"do_layer_norm_before"}, true);
  plan.attention.norm = plan.mlp.norm = pre ? NormPlace::pre : NormPlace::post;
  plan.head.final_norm = pre && !config.flag_or({"_remove_final_layer_norm"}, false);
  // OPT-350m embeds in a narrower space, with a projection at each end.
  const std::int64_t width = config.integer_or({"word_embed_proj_dim"}, plan.common.hidden_size);
  if (width != plan.common.hidden_size) plan.embedding_width = width;
}

void mpt(const Config& config, Plan& plan) {
  all_biases(plan, !config.flag_or({"no_bias"}, true));
  plan.mlp.intermediate =
      checked_mul(plan.common.hidden_size, config.integer_or({"expansion_ratio"}, 4));
  if (config.flag_or({"attn_config.qk_ln"}, false)) plan.attention.qk_norm = QkNorm::full;
  plan.positions = config.flag_or({"attn_config.alibi"}, true)
                       ? 0
                       : config.integer_or({"max_seq_len", "max_sequence_length"}, 0);
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

void phi3small(const Config& config, Plan& plan) {
  plan.mlp.intermediate = config.integer_or({"ff_intermediate_size"}, plan.mlp.intermediate);
}

void gpt_neo(const Config& config, Plan& plan) {
  // attention_types is [[["global", "local"], 12]]: kinds and how often they repeat.
  const json::Value* groups = config.find({"attention_types"});
  plan.types.clear();
  if (groups == nullptr) return;
  for (const json::Value& group : groups->items) {
    if (group.items.size() != 2) config.fail_at(group, "attention_types holds pairs of kinds and a count");
    const std::int64_t repeat = json::as_integer(config.file(), group.items[1], "attention_types", {1, 10'000});
    for (std::int64_t i = 0; i < repeat && plan.types.size() < static_cast<std::size_t>(plan.layers); ++i) {
      for (const json::Value& kind : group.items[0].items)
        plan.types.push_back(kind.text == "local" ? "sliding_attention" : "full_attention");
    }
  }
  if (plan.types.size() < static_cast<std::size_t>(plan.layers))
    config.fail_at(*groups, "attention_types lists fewer layers than num_layers");
}

void bloom(const Config&, Plan& plan) { plan.embedding_norm = true; }

// The activation xIELU has two learned slopes a layer, and stores its beta and eps.
std::vector<Block> apertus_feed_forward(const Config&, const Plan& plan, const LayerPlan& layer) {
  Block block = mlp_block(plan.common, layer.mlp);
  Block slopes;
  add_parameter(slopes, plan.common, "xielu", 4);
  block.tensors.insert(block.tensors.end() - 1, slopes.tensors.begin(), slopes.tensors.end());
  return {block};
}

std::vector<Block> muse_mixer(const Config&, const Plan& plan, const LayerPlan& layer) {
  AttentionSpec spec = layer.attention;
  spec.gate = OutputGate::full;
  return {attention_block(plan.common, spec)};
}

// Llama-Nemotron: an architecture search left layers without attention, with another grouping, with a linear
// in place of either, and with MLPs of other widths.
constexpr const char* kNasBlocks = "block_configs";

const json::Value& nas_part(const Config& config, const LayerPlan& layer, const char* part) {
  const json::Value* blocks = config.find({kNasBlocks});
  if (blocks == nullptr || static_cast<std::size_t>(layer.index) >= blocks->items.size())
    config.fail(fmt::format("block_configs lists no layer {}", layer.index));
  const json::Value& block = blocks->items[static_cast<std::size_t>(layer.index)];
  const json::Value* value = block.find(part);
  if (value == nullptr) config.fail_at(block, fmt::format("layer {} has no {}", layer.index, part));
  return *value;
}

bool nas_flag(const Config& config, const json::Value& part, const char* key) {
  const json::Value* value = part.find(key);
  return value != nullptr && value->kind != json::Kind::null && json::as_bool(config.file(), *value, key);
}

Block nas_linear(const Plan& plan, const char* norm, const char* name) {
  Block block{.kind = BlockKind::mixer, .name = "linear"};
  add_norm(block, plan.common, norm, plan.common.hidden_size);
  add_linear(block, plan.common, name, plan.common.hidden_size, plan.common.hidden_size);
  return block;
}

std::vector<Block> nas_mixer(const Config& config, const Plan& plan, const LayerPlan& layer) {
  const json::Value& part = nas_part(config, layer, "attention");
  if (nas_flag(config, part, "no_op")) return {};
  if (nas_flag(config, part, "replace_with_linear")) return {nas_linear(plan, "attn_norm", "linear_attn")};
  AttentionSpec spec = layer.attention;
  const json::Value* group = part.find("n_heads_in_group");
  if (group == nullptr || group->kind == json::Kind::null)
    config.fail_at(part, fmt::format("layer {} has no n_heads_in_group", layer.index));
  const std::int64_t in_group = json::as_integer(config.file(), *group, "n_heads_in_group", {1, spec.heads});
  if (spec.heads % in_group != 0) config.fail_at(*group, "n_heads_in_group does not divide the heads");
  spec.kv_heads = spec.heads / in_group;
  if (const json::Value* window = part.find("window_length"); window != nullptr && window->kind != json::Kind::null)
    spec.window = json::as_integer(config.file(), *window, "window_length", {0, 1 << 30});
  return {attention_block(plan.common, spec)};
}

std::vector<Block> nas_feed_forward(const Config& config, const Plan& plan, const LayerPlan& layer) {
  const json::Value& part = nas_part(config, layer, "ffn");
  if (nas_flag(config, part, "no_op")) return {};
  if (nas_flag(config, part, "replace_with_linear")) return {nas_linear(plan, "mlp_norm", "linear_mlp")};
  MlpSpec spec = layer.mlp;
  const json::Value* width = part.find("intermediate_size");
  if (width != nullptr && width->kind != json::Kind::null) {
    spec.intermediate = json::as_integer(config.file(), *width, "intermediate_size", {1, 1 << 30});
  } else {
    const json::Value* mult = part.find("ffn_mult");
    if (mult == nullptr) config.fail_at(part, fmt::format("layer {} has no ffn_mult", layer.index));
    const double factor = json::as_number(config.file(), *mult, "ffn_mult");
    if (!(factor > 0 && factor < 1000)) config.fail_at(*mult, "ffn_mult must be from 0 to 1000");
    // Two thirds for the gate, rounded up to 256 (DeciLM's ffn_mult_to_intermediate_size).
    const auto width_of = static_cast<std::int64_t>(2 * factor * static_cast<double>(plan.common.hidden_size) / 3);
    spec.intermediate = div_up(width_of, 256) * 256;
  }
  return {mlp_block(plan.common, spec)};
}

}  // namespace

const std::vector<Family>& dense_families() {
  static const std::vector<Family> families = {
      {.types = {"llama", "yi", "Yi", "aquila", "xverse", "orion", "cwm", "helium", "granite", "smollm3",
                 "minicpm", "minicpmv", "exaone", "voxtral", "voxtral_text", "iquestcoder", "mobilellm"}},
      {.types = {"mistral", "ministral", "ministral3", "mistral3", "pixtral"}, .sliding = Sliding::all},
      {.types = {"baichuan"}, .fused_qkv = true},
      {.types = {"internlm"}, .adjust = internlm},
      {.types = {"internlm2"}, .fused_qkv = true, .adjust = internlm},
      {.types = {"internlm3"}, .qkv_bias = {"qkv_bias", false}, .adjust = internlm3},
      {.types = {"qwen"}, .qkv_bias = kAlways, .o_bias = kNever, .fused_qkv = true, .adjust = qwen1},
      {.types = {"qwen2", "qwen2_vl", "qwen2_vl_text", "qwen2_5_vl", "qwen2_5_vl_text", "qwen2_5_omni",
                 "qwen2_5_omni_text", "qwen2_audio"},
       .qkv_bias = kAlways,
       .o_bias = kNever,
       .sliding = Sliding::by_switch},
      {.types = {"mimo"}, .qkv_bias = {"attention_bias", true}, .o_bias = kNever},
      {.types = {"qwen3", "qwen3_vl", "qwen3_vl_text"}, .qk_norm = QkNorm::head, .sliding = Sliding::by_switch},
      {.types = {"molmo"}, .qkv_bias = {"qkv_bias", true}, .o_bias = kNever, .adjust = molmo},
      {.types = {"gemma"}, .tied = true},
      {.types = {"gemma2"},
       .norm_place = NormPlace::both,
       .tied = true,
       .sliding = Sliding::pattern,
       .sliding_pattern = 2},
      {.types = {"vaultgemma"}, .tied = true, .sliding = Sliding::pattern, .sliding_pattern = 2},
      {.types = {"gemma3", "gemma3_text"},
       .norm_place = NormPlace::both,
       .tied = true,
       .qk_norm = QkNorm::head,
       .sliding = Sliding::pattern,
       .sliding_pattern = 6},
      {.types = {"phi3", "phi3_v"}, .fused_qkv = true, .fused_gate_up = true, .sliding = Sliding::all},
      {.types = {"phi", "phi-msft"},
       .norm = NormKind::layer,
       .qkv_bias = kAlways,
       .o_bias = kAlways,
       .mlp_bias = kAlways,
       .lm_head_bias = true,
       .gated = false,
       .parallel = kAlways,
       .qk_norm = QkNorm::head,
       .qk_norm_if = {"qk_layernorm", false}},
      {.types = {"phi3small"},
       .norm = NormKind::layer,
       .tied = true,
       .qkv_bias = kAlways,
       .o_bias = kAlways,
       .mlp_bias = kAlways,
       .fused_qkv = true,
       .fused_gate_up = true,
       .adjust = phi3small},
      {.types = {"gpt2", "gpt-sw3"},
       .norm = NormKind::layer,
       .tied = true,
       .qkv_bias = kAlways,
       .o_bias = kAlways,
       .mlp_bias = kAlways,
       .rotary = false,
       .gated = false,
       .fused_qkv = true,
       .positions = "n_positions"},
      {.types = {"gpt_bigcode"},
       .norm = NormKind::layer,
       .tied = true,
       .qkv_bias = kAlways,
       .o_bias = kAlways,
       .mlp_bias = kAlways,
       .rotary = false,
       .gated = false,
       .fused_qkv = true,
       .positions = "n_positions",
       .adjust = gpt_bigcode},
      {.types = {"gpt_neo"},
       .norm = NormKind::layer,
       .tied = true,
       .qkv_bias = kNever,
       .o_bias = kAlways,
       .mlp_bias = kAlways,
       .rotary = false,
       .gated = false,
       .positions = "max_position_embeddings",
       .adjust = gpt_neo},
      {.types = {"gptj"},
       .norm = NormKind::layer,
       .qkv_bias = kNever,
       .o_bias = kNever,
       .mlp_bias = kAlways,
       .lm_head_bias = true,
       .gated = false,
       .parallel = kAlways},
      {.types = {"codegen", "moss"},
       .norm = NormKind::layer,
       .qkv_bias = kNever,
       .o_bias = kNever,
       .mlp_bias = kAlways,
       .lm_head_bias = true,
       .gated = false,
       .fused_qkv = true,
       .parallel = kAlways},
      {.types = {"gpt_neox", "gpt_neox_reward_model"},
       .norm = NormKind::layer,
       .qkv_bias = {"attention_bias", true},
       .o_bias = {"attention_bias", true},
       .mlp_bias = kAlways,
       .gated = false,
       .fused_qkv = true},
      {.types = {"opt"},
       .norm = NormKind::layer,
       .tied = true,
       .rotary = false,
       .gated = false,
       .positions = "max_position_embeddings",
       .extra_positions = 2,
       .adjust = opt},
      {.types = {"biogpt"},
       .norm = NormKind::layer,
       .tied = true,
       .qkv_bias = kAlways,
       .o_bias = kAlways,
       .mlp_bias = kAlways,
       .rotary = false,
       .gated = false,
       .positions = "max_position_embeddings",
       .extra_positions = 2},
      {.types = {"xglm"},
       .norm = NormKind::layer,
       .tied = true,
       .qkv_bias = kAlways,
       .o_bias = kAlways,
       .mlp_bias = kAlways,
       .rotary = false,
       .gated = false},
      {.types = {"bloom"},
       .norm = NormKind::layer,
       .tied = true,
       .qkv_bias = kAlways,
       .o_bias = kAlways,
       .mlp_bias = kAlways,
       .rotary = false,
       .gated = false,
       .fused_qkv = true,
       .adjust = bloom},
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
      {.types = {"cohere"},
       .norm = NormKind::layer_no_bias,
       .tied = true,
       .parallel = kAlways,
       .qk_norm = QkNorm::full,
       .qk_norm_if = {"use_qk_norm", false}},
      {.types = {"cohere2"},
       .norm = NormKind::layer_no_bias,
       .tied = true,
       .parallel = kAlways,
       .sliding = Sliding::pattern,
       .sliding_pattern = 4},
      {.types = {"olmo"}, .norm = NormKind::none},
      {.types = {"olmo2", "olmo3"},
       .norm_place = NormPlace::post,
       .qk_norm = QkNorm::full,
       .sliding = Sliding::pattern,
       .sliding_pattern = 4},
      {.types = {"exaone4"},
       .norm_place = NormPlace::post,
       .qk_norm = QkNorm::head,
       .sliding = Sliding::pattern,
       .sliding_pattern = 4},
      {.types = {"glm"}, .o_bias = kNever, .fused_gate_up = true},
      {.types = {"glm4"}, .norm_place = NormPlace::both, .o_bias = kNever, .fused_gate_up = true},
      {.types = {"glm4v", "glm4v_text", "glm_ocr_text"},
       .norm_place = NormPlace::both,
       .qkv_bias = kAlways,
       .o_bias = kNever,
       .fused_gate_up = true},
      {.types = {"chatglm"},
       .qkv_bias = {"add_qkv_bias", true},
       .fused_qkv = true,
       .fused_gate_up = true,
       .adjust = chatglm},
      {.types = {"nemotron"}, .norm = NormKind::layer, .gated = false},
      {.types = {"persimmon"},
       .norm = NormKind::layer,
       .qkv_bias = kAlways,
       .o_bias = kAlways,
       .mlp_bias = kAlways,
       .gated = false,
       .fused_qkv = true,
       .qk_norm = QkNorm::head,
       .qk_norm_if = {"qk_layernorm", false}},
      {.types = {"arcee"}, .gated = false},
      {.types = {"apertus", "apertus1p5_text"},
       .gated = false,
       .qk_norm = QkNorm::head,
       .feed_forward = apertus_feed_forward},
      {.types = {"hunyuan_v1_dense", "hunyuan_vl_text"}, .qk_norm = QkNorm::head, .qk_norm_if = {"use_qk_norm", true}},
      {.types = {"ernie4_5"},
       .tied = true,
       .qkv_bias = {"use_bias", false},
       .o_bias = {"use_bias", false},
       .mlp_bias = {"use_bias", false}},
      {.types = {"seed_oss"}, .adjust = seed_oss},
      {.types = {"muse_glimmer", "muse_glimmer_text"}, .norm_place = NormPlace::both, .mixer = muse_mixer},
      {.types = {"nemotron-nas", "nemotron_nas", "deci"}, .mixer = nas_mixer, .feed_forward = nas_feed_forward},
  };
  return families;
}

}  // namespace memwall
