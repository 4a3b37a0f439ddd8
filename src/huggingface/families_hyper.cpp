// Decoders with hyper-connections around latent attention: DeepSeek-V4 and Hunyuan 4. Sources: the modelling
// code of Hugging Face transformers 5.24 (models/NAME/modeling_NAME.py).
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "format/checked.h"
#include "huggingface/families_parts.h"
#include "huggingface/plan.h"

namespace memwall {
namespace {

// DeepSeek-V4: one shared key-value head of head_dim, kept for a window; beside it entries that compress
// `ratio` tokens, all read (ratio 128) or chosen by an indexer (ratio 4); and hyper-connections that mix
// hc_mult copies of the residual stream.
void deepseek_v4(const Config& config, Plan& plan) {
  plan.attention.kv_heads = 1;
  if (plan.moe.experts == 0) config.fail_about(kExperts, "no n_routed_experts");
  plan.moe.shared_intermediate = plan.moe.expert.intermediate;
  all_moe(plan);
  plan.types.clear();
  add_hyper_head(config, plan);
}

constexpr std::array kV4Kinds = {"sliding_attention", "compressed_sparse_attention",
                                 "heavily_compressed_attention"};

std::int64_t v4_ratio(const Config& config, const LayerPlan& layer) {
  const std::int64_t sparse =
      size_or(config, {"compress_rate_csa", "compress_rates.compressed_sparse_attention"}, 4);
  const std::int64_t heavy =
      size_or(config, {"compress_rate_hca", "compress_rates.heavily_compressed_attention"}, 128);
  const std::string type = config.layer_text({"layer_types"}, layer.index, kV4Kinds);
  if (type == "compressed_sparse_attention") return sparse;
  if (type == "heavily_compressed_attention") return heavy;
  if (!type.empty()) return 0;
  if (config.has({"compress_ratios"})) {
    const std::int64_t ratio = config.listed_integer_or({"compress_ratios"}, layer.index, 0);
    if (ratio > 1 << 20) config.fail_about({"compress_ratios"}, fmt::format("compress_ratios has {}", ratio));
    return ratio;
  }
  return layer.index < 2 || layer.index % 2 == 0 ? heavy : sparse;
}

std::vector<Block> deepseek_v4_mixer(const Config& config, const Plan& plan, const LayerPlan& layer) {
  const Common& common = plan.common;
  const std::int64_t hidden = common.hidden_size;
  const std::int64_t heads = plan.attention.heads;
  const std::int64_t width = plan.attention.head_dim;
  const std::int64_t q_rank = size_or(config, {"q_lora_rank"}, 1024);
  const std::int64_t groups = size_or(config, {"o_groups"}, 8);
  const std::int64_t o_rank = size_or(config, {"o_lora_rank"}, 1024);
  const std::int64_t rope = std::min(size_or_none(config, {"qk_rope_head_dim"}, 64), width);
  const std::int64_t index_heads = size_or(config, {"index_n_heads"}, 64);
  const std::int64_t index_width = size_or(config, {"index_head_dim"}, 128);
  const std::int64_t ratio = v4_ratio(config, layer);

  Block block{.kind = BlockKind::mixer, .name = "mla"};
  block.tensors = hyper_connection(config, plan, "attn_hc");
  add_norm(block, common, "attn_norm", hidden);
  add_linear(block, common, "q_a_proj", q_rank, hidden);
  add_linear(block, common, "kv_proj", width, hidden);
  add_norm(block, common, "q_a_norm", q_rank);
  add_linear(block, common, "q_b_proj", checked_mul(heads, width), q_rank);
  add_norm(block, common, "kv_norm", width);
  if (ratio > 0) {
    // Entries overlap where an indexer chooses among them: twice the width before compression.
    const bool chosen = ratio <= 4;
    const std::int64_t wide = chosen ? 2 * width : width;
    add_linear(block, common, "compressor.kv_proj", wide, hidden);
    add_linear(block, common, "compressor.gate_proj", wide, hidden);
    add_parameter(block, common, "compressor.position_bias", checked_mul(ratio, wide));
    add_norm(block, common, "compressor.kv_norm", width);
    if (chosen) {
      add_linear(block, common, "indexer.kv_proj", 2 * index_width, hidden);
      add_linear(block, common, "indexer.gate_proj", 2 * index_width, hidden);
      add_linear(block, common, "indexer.weights_proj", index_heads, hidden);
      add_linear(block, common, "indexer.q_b_proj", checked_mul(index_heads, index_width), q_rank);
      add_parameter(block, common, "indexer.position_bias", checked_mul(ratio, 2 * index_width));
      add_norm(block, common, "indexer.kv_norm", index_width);
      block.place(IndexerState{.heads = index_heads, .width = index_width, .every = ratio});
    }
    block.place(LatentState{.heads = heads,
                            .rank = width - rope,
                            .rope = rope,
                            .top_k = chosen ? config.integer_or({"index_topk"}, 512) : 0,
                            .every = ratio});
  }
  add_parameter(block, common, "sinks", heads);
  block.place(LatentState{.heads = heads,
                          .rank = width - rope,
                          .rope = rope,
                          .window = config.integer_or({"sliding_window"}, 128)});
  add_linear(block, common, "o_a_proj", checked_mul(groups, o_rank), checked_mul(heads, width) / groups);
  add_linear(block, common, "o_b_proj", hidden, checked_mul(groups, o_rank));
  return {block};
}

std::vector<Block> deepseek_v4_feed_forward(const Config& config, const Plan& plan, const LayerPlan& layer) {
  MoeSpec spec = plan.moe;
  // The first layers route by a table of token ids.
  spec.router_bias = layer.index >= config.integer_or({"num_hash_layers"}, 3);
  Block block = moe_block(plan.common, spec);
  const std::vector<Tensor> mixing = hyper_connection(config, plan, "ffn_hc");
  block.tensors.insert(block.tensors.begin(), mixing.begin(), mixing.end());
  return {block};
}

// Hunyuan 4: latent attention with an output gate and sinks. Every fourth layer has an indexer.
void hy_v4(const Config& config, Plan& plan) {
  add_hyper_head(config, plan);
  if (config.has({"mlp_layer_types"})) return;
  for (std::int32_t i = 0; i < plan.layers; ++i) plan.moe_layers[static_cast<std::size_t>(i)] = i > 0;
}

std::vector<Block> hy_v4_mixer(const Config& config, const Plan& plan, const LayerPlan& layer) {
  MlaSpec spec = read_mla(config, plan);
  spec.top_k = size_or(config, {"index_topk"}, 2048);
  const bool chooses = config.has({"indexer_types"})
                           ? config.layer_text({"indexer_types"}, layer.index, kIndexerKinds) != "shared"
                           : layer.index == 0 || layer.index % 4 == 1;
  if (chooses) {
    spec.index_heads = size_or(config, {"index_n_heads"}, 16);
    spec.index_head_dim = size_or(config, {"index_head_dim"}, 128);
  }
  Block block = mla_block(plan.common, spec);
  Block part;
  add_linear(part, plan.common, "attn_gate", checked_mul(spec.heads, spec.v_head_dim),
             plan.common.hidden_size);
  insert_after_states(block, part.tensors);
  part.tensors = hyper_connection(config, plan, "attn_hc", false);
  add_parameter(part, plan.common, "sinks", spec.heads);
  block.tensors.insert(block.tensors.begin(), part.tensors.begin(), part.tensors.end());
  for (Block::Placed& placed : block.states) placed.before += part.tensors.size();
  return {block};
}

std::vector<Block> hy_v4_feed_forward(const Config& config, const Plan& plan, const LayerPlan& layer) {
  std::vector<Block> blocks = common_feed_forward(plan, layer);
  const std::vector<Tensor> mixing = hyper_connection(config, plan, "ffn_hc", false);
  blocks.front().tensors.insert(blocks.front().tensors.begin(), mixing.begin(), mixing.end());
  return blocks;
}

}  // namespace

const std::vector<Family>& hyper_families() {
  static const std::vector<Family> families = {
      {.types = {"deepseek_v4", "deepseek_ref"},
       .layer_kinds = {kV4Kinds.begin(), kV4Kinds.end()},
       .adjust = deepseek_v4,
       .mixer = deepseek_v4_mixer,
       .feed_forward = deepseek_v4_feed_forward},
      {.types = {"hy_v4", "hy_v4_vl", "hy_v4_vl_text"},
       .router_bias = kAlways,
       .layer_kinds = kIndexedKinds,
       .adjust = hy_v4,
       .mixer = hy_v4_mixer,
       .feed_forward = hy_v4_feed_forward},
  };
  return families;
}

}  // namespace memwall
