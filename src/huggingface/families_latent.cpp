// Decoders with multi-head latent attention. Sources: DeepSeek-V2 (arXiv 2405.04434), V3 (2412.19437), V3.2, and
// the modelling code of Hugging Face transformers 5.24 (models/NAME/modeling_NAME.py).
#include <fmt/format.h>

#include <algorithm>

#include "format/checked.h"
#include "huggingface/family.h"

namespace memwall {
namespace {

constexpr Switch kAlways{nullptr, true};

MlaSpec read_mla(const Config& config, const Plan& plan) {
  MlaSpec spec;
  spec.heads = plan.attention.heads;
  spec.q_lora_rank = config.integer_or({"q_lora_rank"}, 0);
  spec.kv_lora_rank = config.integer({"kv_lora_rank"});
  spec.qk_nope_head_dim = config.integer({"qk_nope_head_dim"});
  spec.qk_rope_head_dim = config.integer({"qk_rope_head_dim"});
  spec.v_head_dim = config.integer({"v_head_dim"});
  spec.bias = config.flag_or({"attention_bias"}, false);
  spec.norm = plan.attention.norm;
  if (spec.heads < 1 || spec.kv_lora_rank < 1 || spec.v_head_dim < 1 ||
      spec.qk_nope_head_dim + spec.qk_rope_head_dim < 1) {
    config.fail("latent attention needs num_attention_heads, kv_lora_rank, qk_nope_head_dim and v_head_dim above 0");
  }
  return spec;
}

std::vector<Block> mla_mixer(const Config& config, const Plan& plan, const LayerPlan&) {
  return {mla_block(plan.common, read_mla(config, plan))};
}

// Latent attention of what a lightning indexer chooses. Layers marked "shared" use an earlier one's choice.
std::vector<Block> sparse_mla_mixer(const Config& config, const Plan& plan, const LayerPlan& layer) {
  MlaSpec spec = read_mla(config, plan);
  spec.top_k = config.integer_or({"index_topk"}, 2048);
  const std::vector<std::string> types = config.texts({"indexer_types"});
  const auto index = static_cast<std::size_t>(layer.index);
  if (index >= types.size() || types[index] != "shared") {
    spec.index_heads = config.integer_or({"index_n_heads"}, 64);
    spec.index_head_dim = config.integer_or({"index_head_dim"}, 128);
  }
  return {mla_block(plan.common, spec)};
}

void minicpm3(const Config&, Plan& plan) { plan.attention.head_dim = std::max<std::int64_t>(1, plan.attention.head_dim); }

// A.X K1 has a norm behind its experts too.
void axk1(const Config&, Plan& plan) { plan.moe.expert.norm = NormPlace::both; }

// DeepSeek-V4: one shared key-value head of head_dim, kept for a window; beside it entries that compress
// `ratio` tokens, all read (ratio 128) or chosen by an indexer (ratio 4); and hyper-connections that mix
// hc_mult copies of the residual stream.
std::vector<Tensor> hyper_connection(const Config& config, const Plan& plan, const std::string& name) {
  const std::int64_t copies = config.integer_or({"hc_mult"}, 4);
  Block part;
  const std::int64_t mixes = checked_mul(2 + copies, copies);
  add_linear(part, plan.common, name + ".fn", mixes, checked_mul(copies, plan.common.hidden_size));
  add_parameter(part, plan.common, name + ".base", mixes);
  add_parameter(part, plan.common, name + ".scale", 3);
  return part.tensors;
}

void deepseek_v4(const Config& config, Plan& plan) {
  plan.attention.kv_heads = 1;
  if (plan.moe.experts > 0) plan.moe.shared_intermediate = plan.moe.expert.intermediate;
  plan.moe_layers.assign(static_cast<std::size_t>(plan.layers), plan.moe.experts > 0);
  plan.types.clear();
  const std::int64_t copies = config.integer_or({"hc_mult"}, 4);
  Block part;
  add_linear(part, plan.common, "hc_head.fn", copies, checked_mul(copies, plan.common.hidden_size));
  add_parameter(part, plan.common, "hc_head.base", copies);
  add_parameter(part, plan.common, "hc_head.scale", 1);
  plan.head_parts = part.tensors;
}

std::int64_t v4_ratio(const Config& config, const LayerPlan& layer) {
  const std::vector<std::string> types = config.texts({"layer_types"});
  const auto index = static_cast<std::size_t>(layer.index);
  if (index < types.size()) {
    if (types[index] == "compressed_sparse_attention") return config.integer_or({"compress_rates.compressed_sparse_attention"}, 4);
    if (types[index] == "heavily_compressed_attention") return config.integer_or({"compress_rates.heavily_compressed_attention"}, 128);
    return 0;
  }
  if (config.has({"compress_ratios"})) return config.layer_integer_or({"compress_ratios"}, layer.index, 0);
  return layer.index < 2 || layer.index % 2 == 0 ? 128 : 4;
}

std::vector<Block> deepseek_v4_mixer(const Config& config, const Plan& plan, const LayerPlan& layer) {
  const Common& common = plan.common;
  const std::int64_t hidden = common.hidden_size;
  const std::int64_t heads = plan.attention.heads;
  const std::int64_t width = plan.attention.head_dim;
  const std::int64_t q_rank = config.integer_or({"q_lora_rank"}, 1024);
  const std::int64_t groups = config.integer_or({"o_groups"}, 8);
  const std::int64_t o_rank = config.integer_or({"o_lora_rank"}, 1024);
  const std::int64_t rope = std::min(config.integer_or({"qk_rope_head_dim"}, 64), width);
  const std::int64_t index_heads = config.integer_or({"index_n_heads"}, 64);
  const std::int64_t index_width = config.integer_or({"index_head_dim"}, 128);
  if (groups < 1 || q_rank < 1 || o_rank < 1) config.fail("q_lora_rank, o_groups and o_lora_rank must be above 0");
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

// Two attentions and two dense MLPs a layer, the experts beside the second; some "experts" do nothing.
void longcat(const Config& config, Plan& plan) {
  plan.layers = static_cast<std::int32_t>(config.integer_or({"num_layers", "num_hidden_layers"}, plan.layers));
  plan.moe_layers.assign(static_cast<std::size_t>(plan.layers), true);
}

std::vector<Block> longcat_mixer(const Config& config, const Plan& plan, const LayerPlan& layer) {
  const Block attention = mla_block(plan.common, read_mla(config, plan));
  return {attention, mlp_block(plan.common, layer.mlp), attention};
}

std::vector<Block> longcat_feed_forward(const Config& config, const Plan& plan, const LayerPlan& layer) {
  MoeSpec spec = plan.moe;
  spec.expert.norm = NormPlace::none;  // it reads what the first MLP read
  const std::int64_t idle = config.integer_or({"zero_expert_num"}, 0);
  Block moe = moe_block(plan.common, spec);
  for (Tensor& tensor : moe.tensors) {
    if (tensor.name == "router" || tensor.name == "router.bias") tensor.out = checked_add(tensor.out, idle);
  }
  return {moe, mlp_block(plan.common, layer.mlp)};
}

}  // namespace

const std::vector<Family>& latent_families() {
  static const std::vector<Family> families = {
      {.types = {"deepseek_v2"}, .mixer = mla_mixer},
      {.types = {"deepseek_v3", "kimi_k2", "kimi_k25", "glm4_moe_lite"},
       .router_bias = kAlways,
       .mixer = mla_mixer},
      {.types = {"axk1"}, .router_bias = kAlways, .adjust = axk1, .mixer = mla_mixer},
      {.types = {"youtu"}, .tied = true, .mixer = mla_mixer},
      {.types = {"deepseek_v32", "glm_moe_dsa"}, .router_bias = kAlways, .mixer = sparse_mla_mixer},
      {.types = {"deepseek_v4", "deepseek_ref"},
       .adjust = deepseek_v4,
       .mixer = deepseek_v4_mixer,
       .feed_forward = deepseek_v4_feed_forward},
      {.types = {"minicpm3"}, .tied = true, .adjust = minicpm3, .mixer = mla_mixer},
      {.types = {"longcat_flash"},
       .router_bias = kAlways,
       .adjust = longcat,
       .mixer = longcat_mixer,
       .feed_forward = longcat_feed_forward},
  };
  return families;
}

}  // namespace memwall
