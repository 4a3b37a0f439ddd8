#include "model/blocks.h"

#include "format/checked.h"

namespace memwall {
namespace {

bool has_pre(NormPlace place) { return place == NormPlace::pre || place == NormPlace::both; }
bool has_post(NormPlace place) { return place == NormPlace::post || place == NormPlace::both; }

KvState state_of(const AttentionSpec& spec) {
  return {.heads = spec.heads,
          .kv_heads = spec.kv_heads,
          .d_k = spec.head_dim,
          .d_v = spec.v_head_dim,
          .window = spec.window,
          .chunk = spec.chunk,
          .top_k = spec.top_k,
          .rotary = spec.rotary,
          .shared = spec.shared_kv};
}

// The linears of an MLP, under a prefix ("" or "shared_expert.").
void add_mlp_linears(Block& block, const Common& common, const MlpSpec& spec, const std::string& prefix,
                     std::int64_t hidden) {
  if (spec.gated && spec.fused_gate_up) {
    add_linear(block, common, prefix + "gate_up_proj", checked_mul(2, spec.intermediate), hidden, spec.bias);
  } else {
    if (spec.gated) add_linear(block, common, prefix + "gate_proj", spec.intermediate, hidden, spec.bias);
    add_linear(block, common, prefix + "up_proj", spec.intermediate, hidden, spec.bias);
  }
  if (spec.sub_norm) add_norm(block, common, prefix + "sub_norm", spec.intermediate);
  add_linear(block, common, prefix + "down_proj", hidden, spec.intermediate, spec.bias);
}

}  // namespace

void add_linear(Block& block, const Common& common, const std::string& name, std::int64_t out,
                std::int64_t in, bool bias) {
  block.tensors.push_back(
      {.name = name, .role = Role::linear, .out = out, .in = in, .format = common.weights});
  if (bias)
    block.tensors.push_back({.name = name + ".bias", .role = Role::bias, .out = out, .format = common.small});
}

void add_norm(Block& block, const Common& common, const std::string& name, std::int64_t width,
              std::int64_t rows) {
  add_norm(block, common, name, width, rows, common.norm);
}

void add_norm(Block& block, const Common& common, const std::string& name, std::int64_t width,
              std::int64_t rows, NormKind kind) {
  if (kind == NormKind::none) return;
  block.tensors.push_back(
      {.name = name, .role = Role::norm, .out = width, .format = common.small, .norm = kind, .rows = rows});
  if (kind == NormKind::layer) {
    block.tensors.push_back(
        {.name = name + ".bias", .role = Role::bias, .out = width, .format = common.small});
  }
}

void add_parameter(Block& block, const Common& common, const std::string& name, std::int64_t count) {
  block.tensors.push_back({.name = name, .role = Role::parameter, .out = count, .format = common.small});
}

Block embedding_block(const Common& common, std::int64_t vocab_size, std::int64_t positions) {
  Block block{.kind = BlockKind::embedding};
  block.tensors.push_back({.name = "embed_tokens",
                           .role = Role::embedding,
                           .out = vocab_size,
                           .in = common.hidden_size,
                           .format = common.head,
                           .read = Read::gathered});
  if (positions > 0) {
    block.tensors.push_back({.name = "embed_positions",
                             .role = Role::positions,
                             .out = positions,
                             .in = common.hidden_size,
                             .format = common.head,
                             .read = Read::gathered});
  }
  return block;
}

Block attention_block(const Common& common, const AttentionSpec& spec) {
  Block block{.kind = BlockKind::attention};
  const std::int64_t hidden = common.hidden_size;
  const std::int64_t q_width = checked_mul(spec.heads, spec.head_dim);
  const std::int64_t k_width = checked_mul(spec.kv_heads, spec.head_dim);
  const std::int64_t v_width = checked_mul(spec.kv_heads, spec.v_head_dim);
  const std::int64_t y_width = checked_mul(spec.heads, spec.v_head_dim);
  if (has_pre(spec.norm)) add_norm(block, common, "attn_norm", hidden);
  if (spec.fused_qkv) {
    const bool bias = spec.bias_q || spec.bias_k || spec.bias_v;
    add_linear(block, common, "qkv_proj", checked_add(q_width, checked_add(k_width, v_width)), hidden, bias);
  } else {
    const std::int64_t gated = spec.gate == OutputGate::in_q_proj ? checked_mul(2, q_width) : q_width;
    add_linear(block, common, "q_proj", gated, hidden, spec.bias_q);
    if (!spec.shared_kv) {
      add_linear(block, common, "k_proj", k_width, hidden, spec.bias_k);
      add_linear(block, common, "v_proj", v_width, hidden, spec.bias_v);
    }
  }
  if (spec.gate == OutputGate::full) add_linear(block, common, "attn_gate", y_width, hidden);
  if (spec.gate == OutputGate::head) add_linear(block, common, "attn_gate", spec.heads, hidden);
  if (spec.qk_norm == QkNorm::full) {
    add_norm(block, common, "q_norm", q_width);
    if (!spec.shared_kv) add_norm(block, common, "k_norm", k_width);
  } else if (spec.qk_norm == QkNorm::head) {
    add_norm(block, common, "q_norm", spec.head_dim, spec.heads);
    if (!spec.shared_kv) add_norm(block, common, "k_norm", spec.head_dim, spec.kv_heads);
  }
  if (spec.sinks) add_parameter(block, common, "sinks", spec.heads);
  block.place(state_of(spec));
  if (spec.sub_norm) add_norm(block, common, "attn_sub_norm", y_width);
  add_linear(block, common, "o_proj", hidden, y_width, spec.bias_o);
  if (has_post(spec.norm)) add_norm(block, common, "attn_post_norm", hidden);
  return block;
}

Block kv_cache_block(const AttentionSpec& spec) {
  Block block{.kind = BlockKind::kv_cache};
  block.place(state_of(spec));
  return block;
}

Block mla_block(const Common& common, const MlaSpec& spec) {
  Block block{.kind = BlockKind::mixer, .name = "mla"};
  const std::int64_t hidden = common.hidden_size;
  const std::int64_t qk_head_dim = checked_add(spec.qk_nope_head_dim, spec.qk_rope_head_dim);
  const std::int64_t q_width = checked_mul(spec.heads, qk_head_dim);
  if (has_pre(spec.norm)) add_norm(block, common, "attn_norm", hidden);
  if (spec.q_lora_rank > 0) {
    add_linear(block, common, "q_a_proj", spec.q_lora_rank, hidden, spec.bias);
  } else {
    add_linear(block, common, "q_proj", q_width, hidden);
  }
  add_linear(block, common, "kv_a_proj_with_mqa", checked_add(spec.kv_lora_rank, spec.qk_rope_head_dim),
             hidden, spec.bias);
  add_norm(block, common, "kv_a_layernorm", spec.kv_lora_rank);
  if (spec.q_lora_rank > 0) {
    add_norm(block, common, "q_a_layernorm", spec.q_lora_rank);
    add_linear(block, common, "q_b_proj", q_width, spec.q_lora_rank);
  }
  if (spec.index_heads > 0) {
    const std::int64_t index_width = checked_mul(spec.index_heads, spec.index_head_dim);
    const std::int64_t query_source = spec.q_lora_rank > 0 ? spec.q_lora_rank : hidden;
    add_linear(block, common, "indexer.wq_b", index_width, query_source);
    add_linear(block, common, "indexer.wk", spec.index_head_dim, hidden);
    add_linear(block, common, "indexer.weights_proj", spec.index_heads, hidden);
    add_norm(block, common, "indexer.k_norm", spec.index_head_dim, 1, NormKind::layer);
    block.place(IndexerState{.heads = spec.index_heads, .width = spec.index_head_dim});
  }
  // Absorbed, its K half multiplies the queries and its V half the attention's output: read once.
  add_linear(block, common, "kv_b_proj",
             checked_mul(spec.heads, checked_add(spec.qk_nope_head_dim, spec.v_head_dim)), spec.kv_lora_rank);
  block.place(LatentState{.heads = spec.heads,
                          .rank = spec.kv_lora_rank,
                          .rope = spec.qk_rope_head_dim,
                          .d_nope = spec.qk_nope_head_dim,
                          .d_v = spec.v_head_dim,
                          .top_k = spec.top_k});
  add_linear(block, common, "o_proj", hidden, checked_mul(spec.heads, spec.v_head_dim), spec.bias);
  if (has_post(spec.norm)) add_norm(block, common, "attn_post_norm", hidden);
  return block;
}

Block mlp_block(const Common& common, const MlpSpec& spec) {
  Block block{.kind = BlockKind::mlp, .gated = spec.gated, .activation = spec.activation};
  if (has_pre(spec.norm)) add_norm(block, common, "mlp_norm", common.hidden_size);
  add_mlp_linears(block, common, spec, "", common.hidden_size);
  if (has_post(spec.norm)) add_norm(block, common, "mlp_post_norm", common.hidden_size);
  return block;
}

Block moe_block(const Common& common, const MoeSpec& spec) {
  Block block{.kind = BlockKind::moe,
              .gated = spec.expert.gated,
              .activation = spec.expert.activation,
              .experts_per_token = spec.per_token};
  const std::int64_t hidden = common.hidden_size;
  if (has_pre(spec.expert.norm)) add_norm(block, common, "mlp_norm", hidden);
  const std::int64_t choices = checked_add(spec.experts, spec.idle);
  block.tensors.push_back(
      {.name = "router", .role = Role::router, .out = choices, .in = hidden, .format = common.small});
  if (spec.router_bias) {
    block.tensors.push_back(
        {.name = "router.bias", .role = Role::bias, .out = choices, .format = common.small});
  }
  if (spec.shared_gate) add_linear(block, common, "shared_expert.gate", 1, hidden);
  const std::int64_t expert_width = spec.latent > 0 ? spec.latent : hidden;
  if (spec.latent > 0) add_linear(block, common, "latent_in_proj", spec.latent, hidden);
  // An expert's tensors are an MLP's, one copy an expert, read where the expert was chosen.
  const std::size_t first_expert = block.tensors.size();
  add_mlp_linears(block, common, spec.expert, "experts.", expert_width);
  for (std::size_t i = first_expert; i < block.tensors.size(); ++i) {
    Tensor& tensor = block.tensors[i];
    if (tensor.role == Role::linear) tensor.role = Role::expert;
    tensor.copies = spec.experts;
    tensor.read = Read::per_expert;
  }
  if (spec.latent > 0) add_linear(block, common, "latent_out_proj", hidden, spec.latent);
  if (spec.shared_intermediate > 0) {
    MlpSpec shared = spec.expert;
    shared.intermediate = spec.shared_intermediate;
    add_mlp_linears(block, common, shared, "shared_expert.", hidden);
  }
  if (has_post(spec.expert.norm)) add_norm(block, common, "mlp_post_norm", hidden);
  return block;
}

Block shape_block(const Common& common, const std::string& name, std::int64_t out, std::int64_t in,
                  bool bias) {
  Block block{.kind = BlockKind::shapes};
  add_linear(block, common, name, out, in, bias);
  return block;
}

Block head_block(const Common& common, const HeadSpec& spec) {
  Block block{.kind = BlockKind::head};
  if (spec.final_norm) add_norm(block, common, "final_norm", common.hidden_size);
  if (spec.vocab_size > 0) {
    block.tensors.push_back({.name = "lm_head",
                             .role = Role::lm_head,
                             .out = spec.vocab_size,
                             .in = spec.width > 0 ? spec.width : common.hidden_size,
                             .format = common.head,
                             .tied = spec.tied});
    if (spec.bias) {
      block.tensors.push_back(
          {.name = "lm_head.bias", .role = Role::bias, .out = spec.vocab_size, .format = common.small});
    }
  }
  return block;
}

}  // namespace memwall
