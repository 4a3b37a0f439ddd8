// Decoders that choose by an indexer what their latent attention reads. Sources: DeepSeek-V3.2, and the
// modelling code of Hugging Face transformers 5.24 (models/NAME/modeling_NAME.py).
#include <fmt/format.h>

#include <algorithm>

#include "format/checked.h"
#include "huggingface/families_parts.h"

namespace memwall {
namespace {

// Whether a layer uses an earlier one's choice: listed, or every index_topk_freq-th chooses, from
// index_skip_topk_offset - 1 on (GLM-5; without the keys every layer does).
bool shares_choice(const Config& config, const LayerPlan& layer) {
  const std::string type = config.layer_text({"indexer_types"}, layer.index, kIndexerKinds);
  const std::int64_t every = std::max<std::int64_t>(1, config.integer_or({"index_topk_freq"}, 1));
  const std::int64_t offset = config.integer_or({"index_skip_topk_offset"}, 2);
  if (!type.empty()) return type == "shared";
  if (config.is_list({"index_topk_pattern"}))
    return config.layer_text({"index_topk_pattern"}, layer.index, kIndexerKinds) == "shared";
  if (const std::string letters = config.text_or({"index_topk_pattern"}, ""); !letters.empty()) {
    const auto index = static_cast<std::size_t>(layer.index);
    if (index >= letters.size() || letters.find_first_not_of("FS") != std::string::npos)
      config.fail_about({"index_topk_pattern"},
                        "index_topk_pattern must have a letter for each layer, F (full) or S (shared)");
    return letters[index] == 'S';
  }
  return std::max<std::int64_t>(0, layer.index - offset + 1) % every != 0;
}

// Latent attention of what a lightning indexer chooses.
MlaSpec read_indexed_mla(const Config& config, const Plan& plan, const LayerPlan& layer) {
  MlaSpec spec = read_mla(config, plan);
  spec.top_k = size_or(config, {"index_topk"}, 2048);
  if (!shares_choice(config, layer)) {
    spec.index_heads = size_or(config, {"index_n_heads"}, 64);
    spec.index_head_dim = size_or(config, {"index_head_dim"}, 128);
  }
  return spec;
}

std::vector<Block> indexed_mixer(const Config& config, const Plan& plan, const LayerPlan& layer) {
  return {mla_block(plan.common, read_indexed_mla(config, plan, layer))};
}

// A gate on the attention's output: a value an element of it, or one a head.
void add_gate(Block& block, const Plan& plan, std::int64_t width) {
  Block gate;
  add_linear(gate, plan.common, "attn_gate", width, plan.common.hidden_size);
  insert_after_states(block, gate.tensors);
}

// dots.note: sliding layers have sizes of their own, and no indexer.
void dots3_note(const Config&, Plan& plan) {
  type_layers(
      plan, [](std::int32_t i) { return i < 2 || i % 4 == 1; }, "sliding_attention");
}

std::vector<Block> dots3_note_mixer(const Config& config, const Plan& plan, const LayerPlan& layer) {
  MlaSpec spec = read_indexed_mla(config, plan, layer);
  const bool sliding = layer.type == "sliding_attention";
  if (sliding) {
    spec.index_heads = spec.top_k = 0;
    const auto own = [&](const char* key, const char* name, std::int64_t fallback) {
      return layer_override(config, layer.index, name, size_or(config, {key}, fallback));
    };
    spec.heads = own("swa_num_attention_heads", "num_attention_heads", 64);
    spec.q_lora_rank = own("swa_q_lora_rank", "q_lora_rank", 1024);
    spec.kv_lora_rank = own("swa_kv_lora_rank", "kv_lora_rank", 1024);
    spec.qk_nope_head_dim = own("swa_qk_nope_head_dim", "qk_nope_head_dim", 192);
    spec.v_head_dim = own("swa_v_head_dim", "v_head_dim", 128);
  }
  Block block = mla_block(plan.common, spec);
  Block norm;
  add_norm(norm, plan.common, "k_rope_only_layernorm", spec.qk_rope_head_dim);
  insert_before_state(block, norm.tensors);
  add_gate(block, plan, spec.heads);
  if (sliding)
    std::get<LatentState>(block.states.back().state).window = size_or(config, {"sliding_window"}, 512);
  return {block};
}

// A.X K2: norms of low-rank gates, and the queries' projection makes the attention's gate too.
void add_gated_norm(Block& block, const Config& config, const Plan& plan, const std::string& name) {
  const std::int64_t rank = size_or(config, {"gated_norm_rank"}, 16);
  Block gate;
  add_linear(gate, plan.common, name + ".fc1", rank, plan.common.hidden_size);
  add_linear(gate, plan.common, name + ".fc2", plan.common.hidden_size, rank);
  block.tensors.insert(block.tensors.begin() + 1, gate.tensors.begin(), gate.tensors.end());
  for (Block::Placed& placed : block.states) placed.before += gate.tensors.size();
}

std::vector<Block> axk2_mixer(const Config& config, const Plan& plan, const LayerPlan& layer) {
  const MlaSpec spec = read_indexed_mla(config, plan, layer);
  if (spec.q_lora_rank == 0) config.fail_about({"q_lora_rank"}, "A.X K2 needs q_lora_rank");
  Block block = mla_block(plan.common, spec);
  for (Tensor& tensor : block.tensors) {
    if (tensor.name != "q_b_proj") continue;
    tensor.out = checked_add(tensor.out, checked_mul(spec.heads, spec.v_head_dim));
    tensor.in = checked_mul(2, tensor.in);
  }
  add_gated_norm(block, config, plan, "attn_norm_gate");
  return {block};
}

std::vector<Block> axk2_feed_forward(const Config& config, const Plan& plan, const LayerPlan& layer) {
  std::vector<Block> blocks = common_feed_forward(plan, layer);
  if (layer.moe) add_gated_norm(blocks.front(), config, plan, "mlp_norm_gate");
  return blocks;
}

// Mistral Large 4: every fourth layer has no rotary part; the softmax is scaled by learned values.
void add_layer_norm(Block& block, const Plan& plan, const char* name) {
  add_norm(block, plan.common, name, plan.common.hidden_size, 1, NormKind::layer);
}

void mistral_large4(const Config& config, Plan& plan) {
  Block part;
  add_parameter(part, plan.common, "rotary_emb.alpha", size_at(config, {"qk_rope_head_dim"}) / 2);
  plan.embedding_parts = part.tensors;
  const std::int64_t dense = config.integer_or({"first_k_dense_replace"}, 1);
  if (config.has({"mlp_layer_types"})) return;
  for (std::int32_t i = 0; i < plan.layers; ++i) plan.moe_layers[static_cast<std::size_t>(i)] = i >= dense;
}

std::vector<Block> mistral_large4_mixer(const Config& config, const Plan& plan, const LayerPlan& layer) {
  MlaSpec spec = read_indexed_mla(config, plan, layer);
  if (config.listed_integer_or({"kv_source_layers"}, layer.index, layer.index) != layer.index)
    config.fail_about({"kv_source_layers"},
                      "of Mistral Large 4, only models whose layers all keep a cache are read");
  const bool rotary = config.has({"no_rope_layers"})
                          ? config.listed_integer_or({"no_rope_layers"}, layer.index, 1) != 0
                          : (layer.index + 1) % 4 != 0;
  if (!rotary) {
    spec.qk_nope_head_dim += spec.qk_rope_head_dim;
    spec.qk_rope_head_dim = 0;
  }
  Block block = mla_block(plan.common, spec);
  Block part;
  if (spec.index_heads > 0) {
    add_layer_norm(part, plan, "indexer.q_input_norm");
    add_parameter(part, plan.common, "indexer.softmax_scaling", checked_mul(2, spec.index_heads));
  }
  insert_before_state(block, part.tensors);
  part = {};
  add_parameter(part, plan.common, "softmax_scaling", checked_mul(2, spec.heads));
  block.tensors.insert(block.tensors.begin() + static_cast<std::ptrdiff_t>(block.states.back().before),
                       part.tensors.begin(), part.tensors.end());
  block.states.back().before += part.tensors.size();
  return {block};
}

// GLM-5.3 Flash: delta attention in three of four layers, hyper-connections around every block, and an
// indexer that compresses index_kpool keys into one by learned gates, from keys and gates it keeps.
void glm5_next(const Config&, Plan& plan) {
  for (std::string& type : plan.types) type = type == "linear_attention" ? type : "full_attention";
  type_layers(plan, [](std::int32_t i) { return i % 4 == 3; });
}

std::vector<Block> glm5_next_mixer(const Config& config, const Plan& plan, const LayerPlan& layer) {
  Block block = kimi_delta_block(config, plan, true, true);
  if (is_full_attention(layer.type)) {
    const MlaSpec spec = read_indexed_mla(config, plan, layer);
    block = mla_block(plan.common, spec);
    if (spec.index_heads > 0) {
      const std::int64_t width = spec.index_head_dim;
      Block pool;
      add_parameter(pool, plan.common, "indexer.index_kpool_compress_ape",
                    checked_mul(size_or(config, {"index_kpool"}, 16), width));
      add_linear(pool, plan.common, "indexer.index_kpool_compress_gate", width, plan.common.hidden_size);
      insert_before_state(block, pool.tensors);
      std::get<IndexerState>(block.states.front().state).width = checked_mul(2, width);
    }
  }
  const std::vector<Tensor> mixing = hyper_connection(config, plan, "attn_hc");
  block.tensors.insert(block.tensors.begin(), mixing.begin(), mixing.end());
  for (Block::Placed& placed : block.states) placed.before += mixing.size();
  return {block};
}

std::vector<Block> glm5_next_feed_forward(const Config& config, const Plan& plan, const LayerPlan& layer) {
  std::vector<Block> blocks = common_feed_forward(plan, layer);
  const std::vector<Tensor> mixing = hyper_connection(config, plan, "ffn_hc");
  blocks.front().tensors.insert(blocks.front().tensors.begin(), mixing.begin(), mixing.end());
  return blocks;
}

}  // namespace

const std::vector<Family>& indexed_families() {
  static const std::vector<Family> families = {
      {.types = {"deepseek_v32", "glm_moe_dsa"},
       .router_bias = kAlways,
       .layer_kinds = kIndexedKinds,
       .mixer = indexed_mixer},
      {.types = {"dots3_note", "dots3_note_text"},
       .router_bias = kAlways,
       .layer_kinds = {"full_attention", "indexed_attention", "deepseek_sparse_attention",
                       "sliding_attention"},
       .adjust = dots3_note,
       .mixer = dots3_note_mixer},
      {.types = {"axk2"},
       .router_bias = kAlways,
       .layer_kinds = kIndexedKinds,
       .mixer = axk2_mixer,
       .feed_forward = axk2_feed_forward},
      {.types = {"mistral_large4", "mistral_large4_text"},
       .layer_kinds = kIndexedKinds,
       .adjust = mistral_large4,
       .mixer = mistral_large4_mixer},
      {.types = {"glm5_next", "glm5_next_text"},
       .router_bias = kAlways,
       .layer_kinds = {"full_attention", "indexed_attention", "deepseek_sparse_attention",
                       "linear_attention"},
       .adjust = glm5_next,
       .mixer = glm5_next_mixer,
       .feed_forward = glm5_next_feed_forward},
  };
  return families;
}

}  // namespace memwall
