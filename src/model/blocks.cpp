#include "model/blocks.h"

#include "format/checked.h"

namespace memwall {
namespace {

void add_linear(Block& block, const Common& common, const std::string& name, std::int64_t out,
                std::int64_t in, bool bias) {
  block.tensors.push_back(
      {.name = name, .role = Role::linear, .out = out, .in = in, .format = common.weights});
  if (bias)
    block.tensors.push_back({.name = name + ".bias", .role = Role::bias, .out = out, .format = common.small});
}

void add_norm(Block& block, const Common& common, const std::string& name, std::int64_t width) {
  if (common.norm == NormKind::none) return;
  block.tensors.push_back({.name = name, .role = Role::norm, .out = width, .format = common.small});
  if (common.norm == NormKind::layer) {
    block.tensors.push_back(
        {.name = name + ".bias", .role = Role::bias, .out = width, .format = common.small});
  }
}

bool has_pre(NormPlace place) { return place == NormPlace::pre || place == NormPlace::both; }
bool has_post(NormPlace place) { return place == NormPlace::post || place == NormPlace::both; }

State state_of(const AttentionSpec& spec) {
  return {.kv_heads = spec.kv_heads, .d_k = spec.head_dim, .d_v = spec.v_head_dim, .window = spec.window};
}

// The linears of an MLP, under a prefix ("" or "shared_expert.").
void add_mlp_linears(Block& block, const Common& common, const MlpSpec& spec, const std::string& prefix) {
  const std::int64_t hidden = common.hidden_size;
  if (spec.gated && spec.fused_gate_up) {
    add_linear(block, common, prefix + "gate_up_proj", checked_mul(2, spec.intermediate), hidden, spec.bias);
  } else {
    if (spec.gated) add_linear(block, common, prefix + "gate_proj", spec.intermediate, hidden, spec.bias);
    add_linear(block, common, prefix + "up_proj", spec.intermediate, hidden, spec.bias);
  }
  add_linear(block, common, prefix + "down_proj", hidden, spec.intermediate, spec.bias);
}

}  // namespace

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
  Block block{.kind = BlockKind::attention,
              .state = state_of(spec),
              .heads = spec.heads,
              .rotary = spec.rotary,
              .norm = common.norm};
  const std::int64_t hidden = common.hidden_size;
  const std::int64_t q_width = checked_mul(spec.heads, spec.head_dim);
  const std::int64_t k_width = checked_mul(spec.kv_heads, spec.head_dim);
  const std::int64_t v_width = checked_mul(spec.kv_heads, spec.v_head_dim);
  if (has_pre(spec.norm)) add_norm(block, common, "attn_norm", hidden);
  if (spec.fused_qkv) {
    const bool bias = spec.bias_q || spec.bias_k || spec.bias_v;
    add_linear(block, common, "qkv_proj", checked_add(q_width, checked_add(k_width, v_width)), hidden, bias);
  } else {
    add_linear(block, common, "q_proj", q_width, hidden, spec.bias_q);
    add_linear(block, common, "k_proj", k_width, hidden, spec.bias_k);
    add_linear(block, common, "v_proj", v_width, hidden, spec.bias_v);
  }
  if (spec.qk_norm != QkNorm::none) {
    const bool full = spec.qk_norm == QkNorm::full;
    add_norm(block, common, "q_norm", full ? q_width : spec.head_dim);
    add_norm(block, common, "k_norm", full ? k_width : spec.head_dim);
  }
  add_linear(block, common, "o_proj", hidden, checked_mul(spec.heads, spec.v_head_dim), spec.bias_o);
  if (has_post(spec.norm)) add_norm(block, common, "attn_post_norm", hidden);
  return block;
}

Block kv_cache_block(const AttentionSpec& spec) {
  return Block{
      .kind = BlockKind::kv_cache, .state = state_of(spec), .heads = spec.heads, .rotary = spec.rotary};
}

Block mlp_block(const Common& common, const MlpSpec& spec) {
  Block block{
      .kind = BlockKind::mlp, .norm = common.norm, .gated = spec.gated, .activation = spec.activation};
  if (has_pre(spec.norm)) add_norm(block, common, "mlp_norm", common.hidden_size);
  add_mlp_linears(block, common, spec, "");
  if (has_post(spec.norm)) add_norm(block, common, "mlp_post_norm", common.hidden_size);
  return block;
}

Block moe_block(const Common& common, const MoeSpec& spec) {
  Block block{.kind = BlockKind::moe,
              .norm = common.norm,
              .gated = spec.expert.gated,
              .activation = spec.expert.activation,
              .experts_per_token = spec.per_token};
  const std::int64_t hidden = common.hidden_size;
  if (has_pre(spec.expert.norm)) add_norm(block, common, "mlp_norm", hidden);
  block.tensors.push_back(
      {.name = "router", .role = Role::router, .out = spec.experts, .in = hidden, .format = common.small});
  if (spec.router_bias) {
    block.tensors.push_back(
        {.name = "router.bias", .role = Role::bias, .out = spec.experts, .format = common.small});
  }
  // An expert's tensors are an MLP's, one copy an expert, read where the expert was chosen.
  const std::size_t first_expert = block.tensors.size();
  add_mlp_linears(block, common, spec.expert, "experts.");
  for (std::size_t i = first_expert; i < block.tensors.size(); ++i) {
    Tensor& tensor = block.tensors[i];
    if (tensor.role == Role::linear) tensor.role = Role::expert;
    tensor.copies = spec.experts;
    tensor.read = Read::per_expert;
  }
  if (spec.shared_intermediate > 0) {
    MlpSpec shared = spec.expert;
    shared.intermediate = spec.shared_intermediate;
    add_mlp_linears(block, common, shared, "shared_expert.");
    if (spec.shared_gate) add_linear(block, common, "shared_expert.gate", 1, hidden, false);
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
  Block block{.kind = BlockKind::head, .norm = common.norm};
  if (spec.final_norm) add_norm(block, common, "final_norm", common.hidden_size);
  if (spec.vocab_size > 0) {
    block.tensors.push_back({.name = "lm_head",
                             .role = Role::lm_head,
                             .out = spec.vocab_size,
                             .in = common.hidden_size,
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
