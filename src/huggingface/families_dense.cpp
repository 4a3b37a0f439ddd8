// Dense decoders after Llama: RMSNorm, rotary embedding, a gated MLP. Sources: the modelling code of Hugging
// Face transformers 5.24 (models/NAME/modeling_NAME.py) or, for a family that it lacks, the code in the
// model's repository.
#include "format/checked.h"
#include "huggingface/families_parts.h"

namespace memwall {
namespace {

void bitnet(const Config&, Plan& plan) { plan.attention.sub_norm = plan.mlp.sub_norm = true; }

void granite_swa(const Config&, Plan& plan) {
  plan.attention.sinks = true;
  type_layers(
      plan, [](std::int32_t i) { return i % 4 == 0; }, "sliding_attention");
}

// Norms of Q and K with weights of each head's own and biases.
std::vector<Block> chameleon_mixer(const Config&, const Plan& plan, const LayerPlan& layer) {
  const AttentionSpec& spec = layer.attention;
  Block block = common_attention(plan, layer);
  Block norms;
  add_norm(norms, plan.common, "q_norm", checked_mul(spec.heads, spec.head_dim), 1, NormKind::layer);
  add_norm(norms, plan.common, "k_norm", checked_mul(spec.kv_heads, spec.head_dim), 1, NormKind::layer);
  insert_before_state(block, norms.tensors);
  return {block};
}

void chameleon(const Config& config, Plan& plan) {
  if (config.flag_or({"swin_norm"}, false)) plan.attention.norm = plan.mlp.norm = NormPlace::post;
}

// Peri-LN where use_post_norm says so.
void hyperclovax(const Config& config, Plan& plan) {
  if (config.flag_or({"use_post_norm"}, true)) plan.attention.norm = plan.mlp.norm = NormPlace::both;
}

// Differential attention (arXiv 2410.05258): pairs of heads are subtracted, weighted by four learned vectors.
std::vector<Block> diffllama_mixer(const Config&, const Plan& plan, const LayerPlan& layer) {
  Block block = common_attention(plan, layer);
  Block lambdas;
  for (const char* name : {"lambda_q1", "lambda_k1", "lambda_q2", "lambda_k2"})
    add_parameter(lambdas, plan.common, name, layer.attention.head_dim);
  insert_before_state(block, lambdas.tensors);
  return {block};
}

// The table has rows for image tokens that the lm_head lacks.
void molmo2(const Config& config, Plan& plan) {
  plan.extra_vocab = size_or_none(config, {"additional_vocab_size"}, 128);
  plan.attention.bias_q = plan.attention.bias_k = plan.attention.bias_v =
      config.flag_or({"attention_bias", "qkv_bias"}, false);
  plan.attention.qk_norm = config.text_or({"qk_norm_type"}, "qwen3") == "olmo" ? QkNorm::full : QkNorm::head;
  if (!config.flag_or({"use_qk_norm"}, true)) plan.attention.qk_norm = QkNorm::none;
  if (config.flag_or({"norm_after"}, false)) plan.attention.norm = plan.mlp.norm = NormPlace::post;
}

// Llama 3.2 Vision: layers that attend to an image's keys and values, which prefill computes once.
void mllama(const Config& config, Plan& plan) {
  plan.extra_vocab = 8;
  const std::vector<bool> cross = named_layers(config, {"cross_attention_layers"}, plan);
  plan.types.clear();
  type_layers(
      plan, [&](std::int32_t i) { return !cross[static_cast<std::size_t>(i)]; }, "cross_attention");
  plan.notes.emplace_back("the image's keys and values, which cross-attention reads, are not counted");
}

std::vector<Block> mllama_mixer(const Config&, const Plan& plan, const LayerPlan& layer) {
  if (layer.type != "cross_attention") return {common_attention(plan, layer)};
  const AttentionSpec& spec = layer.attention;
  const std::int64_t hidden = plan.common.hidden_size;
  const std::int64_t q_width = checked_mul(spec.heads, spec.head_dim);
  const std::int64_t kv_width = checked_mul(spec.kv_heads, spec.head_dim);
  Block block{.kind = BlockKind::mixer, .name = "cross_attention"};
  add_norm(block, plan.common, "attn_norm", hidden);
  add_linear(block, plan.common, "q_proj", q_width, hidden);
  add_norm(block, plan.common, "q_norm", spec.head_dim, spec.heads);
  const std::size_t of_the_image = block.tensors.size();
  add_linear(block, plan.common, "k_proj", kv_width, hidden);
  add_linear(block, plan.common, "v_proj", kv_width, hidden);
  add_norm(block, plan.common, "k_norm", spec.head_dim, spec.kv_heads);
  for (std::size_t i = of_the_image; i < block.tensors.size(); ++i) block.tensors[i].read = Read::never;
  add_linear(block, plan.common, "o_proj", hidden, q_width);
  add_parameter(block, plan.common, "gates", 2);
  return {block};
}

// The language model's keys stand beside its own; which configuration class it derives from, they tell:
// Qwen2's has max_window_layers, Qwen3's a head_dim besides, Llama's and MiniCPM's neither.
void minicpmv(const Config& config, Plan& plan) {
  if (!config.has({"max_window_layers"})) return;
  const bool qwen3 = config.has({"head_dim"});
  plan.attention.bias_q = plan.attention.bias_k = plan.attention.bias_v =
      !qwen3 || config.flag_or({"attention_bias"}, false);
  if (qwen3) plan.attention.qk_norm = QkNorm::head;
}

// The text's decoder; the audio's is beside it. ffn_dim counts gate and up together.
void moshi(const Config&, Plan& plan) {
  plan.mlp.intermediate /= 2;
  plan.extra_vocab = 1;
}

void qwen1(const Config&, Plan& plan) { plan.mlp.intermediate /= 2; }  // it counts w1 and w2 together

void molmo(const Config& config, Plan& plan) {
  plan.mlp.intermediate /= 2;  // it counts both halves of the gated projection
  plan.head.tied = config.flag_or({"weight_tying", "tie_word_embeddings"}, false);
  plan.head.vocab_size = size_or(config, {"embedding_size"}, plan.head.vocab_size);
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

// The first ChatGLM is of GPT's line: LayerNorm, biases, an MLP without a gate, a tied head.
void chatglm_6b(const Config& config, Plan& plan) {
  all_biases(plan, true);
  plan.common.norm = NormKind::layer;
  plan.mlp.gated = plan.mlp.fused_gate_up = false;
  plan.mlp.activation = ActivationKind::gelu;
  plan.mlp.intermediate = size_or(config, {"inner_hidden_size"}, checked_mul(4, plan.common.hidden_size));
  plan.head.tied = config.flag_or({"tie_word_embeddings"}, true);
}

void chatglm(const Config& config, Plan& plan) {
  if (config.has({"inner_hidden_size", "position_encoding_2d"})) return chatglm_6b(config, plan);
  if (!config.flag_or({"multi_query_attention"}, false)) plan.attention.kv_heads = plan.attention.heads;
  plan.attention.bias_o = plan.mlp.bias = config.flag_or({"add_bias_linear"}, false);
  plan.head.final_norm = config.flag_or({"post_layer_norm"}, true);
  if (!config.flag_or({"rmsnorm"}, true)) plan.common.norm = NormKind::layer;
  plan.head.vocab_size = config.integer_or({"padded_vocab_size", "vocab_size"}, plan.head.vocab_size);
}

// The activation xIELU has two learned slopes a layer, and stores its beta and eps.
std::vector<Block> apertus_feed_forward(const Config&, const Plan& plan, const LayerPlan& layer) {
  Block block = mlp_block(plan.common, layer.mlp);
  Block slopes;
  add_parameter(slopes, plan.common, "xielu", 4);
  block.tensors.insert(block.tensors.end() - 1, slopes.tensors.begin(), slopes.tensors.end());
  return {block};
}

// The lm_head may lack rows of the table.
void apertus(const Config& config, Plan& plan) {
  const std::int64_t vocab = plan.head.vocab_size;
  const std::int64_t output = size_or(config, {"output_vocab_size"}, vocab);
  if (output > vocab) config.fail_about({"output_vocab_size"}, "output_vocab_size is above vocab_size");
  plan.head.vocab_size = output;
  plan.extra_vocab = vocab - output;
}

std::vector<Block> muse_mixer(const Config&, const Plan& plan, const LayerPlan& layer) {
  AttentionSpec spec = layer.attention;
  spec.gate = OutputGate::full;
  return {attention_block(plan.common, spec)};
}

}  // namespace

const std::vector<Family>& dense_families() {
  static const std::vector<Family> families = {
      {.types = {"llama", "yi", "Yi", "aquila", "xverse", "cwm", "helium", "granite", "smollm3", "minicpm",
                 "exaone", "voxtral", "voxtral_text", "iquestcoder", "mobilellm", "solar"}},
      {.types = {"minicpmv", "minicpmo"}, .adjust = minicpmv},
      {.types = {"moshi"}, .sliding = Sliding::all, .adjust = moshi},
      {.types = {"orion"}, .norm = NormKind::layer},
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
      {.types = {"qwen3", "qwen3_vl", "qwen3_vl_text"},
       .qk_norm = QkNorm::head,
       .sliding = Sliding::by_switch},
      {.types = {"molmo"}, .qkv_bias = {"qkv_bias", true}, .o_bias = kNever, .adjust = molmo},
      {.types = {"phi3", "phi3_v", "phi4mm", "phi4_multimodal"},
       .fused_qkv = true,
       .fused_gate_up = true,
       .sliding = Sliding::all},
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
      {.types = {"glm4v", "glm4v_text"},
       .norm_place = NormPlace::both,
       .qkv_bias = kAlways,
       .o_bias = kNever,
       .fused_gate_up = true},
      {.types = {"glm_ocr", "glm_ocr_text"},
       .norm_place = NormPlace::both,
       .qkv_bias = kNever,
       .o_bias = kNever,
       .fused_gate_up = true},
      {.types = {"chatglm"},
       .qkv_bias = {"add_qkv_bias", true},
       .fused_qkv = true,
       .fused_gate_up = true,
       .adjust = chatglm},
      {.types = {"arcee"}, .gated = false},
      {.types = {"apertus", "apertus1p5_text"},
       .gated = false,
       .qk_norm = QkNorm::head,
       .adjust = apertus,
       .feed_forward = apertus_feed_forward},
      {.types = {"hunyuan_v1_dense", "hunyuan_vl_text"},
       .qk_norm = QkNorm::head,
       .qk_norm_if = {"use_qk_norm", true}},
      {.types = {"ernie4_5"},
       .tied = true,
       .qkv_bias = {"use_bias", false},
       .o_bias = {"use_bias", false},
       .mlp_bias = {"use_bias", false}},
      {.types = {"seed_oss"}, .adjust = seed_oss},
      {.types = {"muse_glimmer", "muse_glimmer_text"}, .norm_place = NormPlace::both, .mixer = muse_mixer},
      {.types = {"bitnet"}, .adjust = bitnet},
      {.types = {"nanochat"}, .norm = NormKind::none, .gated = false},
      {.types = {"diffllama"}, .mixer = diffllama_mixer},
      {.types = {"granite_swa"}, .tied = true, .adjust = granite_swa},
      {.types = {"hyperclovax"}, .adjust = hyperclovax},
      {.types = {"chameleon"}, .adjust = chameleon, .mixer = chameleon_mixer},
      {.types = {"molmo2", "molmo2_text"}, .qkv_bias = kNever, .o_bias = kNever, .adjust = molmo2},
      {.types = {"mllama", "mllama_text_model"}, .adjust = mllama, .mixer = mllama_mixer},
  };
  return families;
}

}  // namespace memwall
