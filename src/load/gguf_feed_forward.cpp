#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "checkpoint/gguf_bytes.h"
#include "format/checked.h"
#include "load/gguf_layers.h"

namespace memwall {
namespace {

// The stems of an MLP's matrices in their several places.
struct Stems {
  std::string gate;
  std::string up;
  std::string down;
  std::string gate_up;
};

Stems stems(const std::string& suffix) {
  return {"ffn_gate" + suffix, "ffn_up" + suffix, "ffn_down" + suffix, "ffn_gate_up" + suffix};
}

std::int64_t rows_of_each(const StoredTensor& tensor) {
  return tensor.shape.size() > 1 ? tensor.shape[tensor.shape.size() - 2] : 1;
}

// One matrix for gate and up: named so, or an up that is twice as wide as down (Phi-3, GLM-4).
bool is_fused(const GgufTensors& tensors, const Stems& of) {
  if (tensors.has(of.gate_up)) return true;
  const StoredTensor* up = tensors.weight(of.up);
  const StoredTensor* down = tensors.weight(of.down);
  return up != nullptr && down != nullptr && !tensors.has(of.gate) &&
         rows_of_each(*up) / 2 == columns_of(*down) && rows_of_each(*up) % 2 == 0;
}

void expect(const GgufTensors& tensors, const StoredTensor& tensor, std::int64_t found, std::int64_t wanted,
            std::string_view what, const std::string& reason) {
  if (found == wanted) return;
  tensors.source().fail(fmt::format("tensor '{}' has {} {}, but {} makes {}", excerpt(tensor.name), found,
                                    what, reason, wanted));
}

// `width`: of what goes in and comes out.
void check_shapes(const GgufTensors& tensors, const Stems& of, std::int64_t width) {
  const StoredTensor& down = tensors.need(of.down);
  const StoredTensor& up = tensors.need(tensors.has(of.gate_up) ? of.gate_up : of.up);
  const std::int64_t inner = columns_of(down);
  const std::string reason = fmt::format("'{}'", excerpt(down.name));
  const std::string hidden = fmt::format("the width of {}", width);
  expect(tensors, up, rows_of_each(up), is_fused(tensors, of) ? checked_mul(2, inner) : inner, "rows",
         reason);
  expect(tensors, up, columns_of(up), width, "columns", hidden);
  expect(tensors, down, rows_of_each(down), width, "rows", hidden);
  if (const StoredTensor* gate = tensors.weight(of.gate)) {
    expect(tensors, *gate, rows_of_each(*gate), inner, "rows", reason);
    expect(tensors, *gate, columns_of(*gate), width, "columns", hidden);
  }
}

void add_dense(GgufTensors& tensors, std::vector<Block>& blocks, bool beside_experts) {
  const Stems of = stems("");
  check_shapes(tensors, of, tensors.source().hidden_size());
  const bool fused = is_fused(tensors, of);
  GgufBlock block(tensors, {.kind = BlockKind::mlp,
                            .gated = fused || tensors.has(of.gate),
                            .activation = tensors.source().architecture().activation});
  const bool next = post_attention_norm_is_next(tensors);
  add_residual_mixing(block, "ffn");
  block.norm("ffn_norm", "mlp_norm");
  if (next) block.norm("post_attention_norm", "mlp_norm");
  // Falcon 40B, whose attention has another norm, or Nemotron-H, whose layers are an MLP or attention.
  block.norm("attn_norm", "mlp_norm");
  block.linear(of.gate_up, "gate_up_proj");
  block.linear(of.gate, "gate_proj");
  block.linear(of.up, fused ? "gate_up_proj" : "up_proj");
  block.norm("ffn_sub_norm", "sub_norm");
  block.parameter("ffn.act.scales", "act_scales");
  block.linear(of.down, "down_proj");
  block.norm("post_ffw_norm_1", "mlp_post_norm");
  if (!beside_experts) {
    block.norm("post_ffw_norm", "mlp_post_norm");
    block.norm("layer_output_norm", "mlp_post_norm");
  }
  blocks.push_back(std::move(block.block()));
}

// RWKV's channel mixing.
void add_channel_mix(GgufTensors& tensors, std::vector<Block>& blocks) {
  GgufBlock block(tensors, {.kind = BlockKind::mlp, .activation = ActivationKind::relu});
  block.norm("attn_norm_2", "mlp_norm");
  block.norm("ffn_norm", "mlp_norm");
  block.parameter("channel_mix_lerp_k", "lerp_k");
  block.parameter("channel_mix_lerp_r", "lerp_r");
  block.linear("channel_mix_receptance", "receptance_proj");
  block.linear("channel_mix_key", "up_proj");
  block.linear("channel_mix_value", "down_proj");
  blocks.push_back(std::move(block.block()));
}

// The old files of Mixtral keep every expert's matrices apart.
std::int64_t separate_count(const GgufTensors& tensors) {
  std::int64_t count = 0;
  while (tensors.has(fmt::format("ffn_down.{}", count))) ++count;
  return count;
}

bool has_experts(const GgufTensors& tensors) {
  return tensors.has("ffn_down_exps") || tensors.has("ffn_up_exps") || tensors.has("ffn_gate_up_exps") ||
         tensors.has("ffn_down.0") || tensors.has("ffn_up.0");
}

void add_experts(GgufTensors& tensors, std::vector<Block>& blocks) {
  const GgufSource& source = tensors.source();
  const std::int64_t hidden = source.hidden_size();
  const std::int64_t experts = source.integer("expert_count");
  const std::int64_t used = source.at("expert_used_count", tensors.layer(), {1, experts});
  tensors.need("ffn_gate_inp");
  tensors.expect_rows("ffn_gate_inp", experts, source.key("expert_count"));
  tensors.expect_columns("ffn_gate_inp", hidden, source.key("embedding_length"));
  const bool separate = tensors.has("ffn_down.0") || tensors.has("ffn_up.0");
  if (separate && separate_count(tensors) != experts) {
    source.fail(fmt::format("layer {} has {} experts, but '{}' is {}", tensors.layer(),
                            separate_count(tensors), source.key("expert_count"), experts));
  }
  const Stems of = stems(separate ? ".0" : "_exps");
  // Experts of a narrower space: Nemotron-H's and Kimi K3's.
  const bool routed = tensors.has("ffn_routed_down");
  const StoredTensor* latent = tensors.weight(routed ? "ffn_routed_down" : "ffn_latent_down");
  check_shapes(tensors, of, latent != nullptr ? rows_of(*latent) : hidden);
  const Stems shared = stems("_shexp");
  const bool has_shared = tensors.has(shared.down);
  if (has_shared) check_shapes(tensors, shared, hidden);
  const bool fused = is_fused(tensors, of);
  const bool gated = fused || tensors.has(of.gate);

  GgufBlock block(tensors, {.kind = BlockKind::moe,
                            .gated = gated,
                            .activation = source.architecture().activation,
                            .experts_per_token = used});
  const bool next = post_attention_norm_is_next(tensors);
  add_residual_mixing(block, "ffn");
  block.norm("ffn_norm", "mlp_norm");
  block.norm("pre_ffw_norm_2", "mlp_norm");
  if (next) block.norm("post_attention_norm", "mlp_norm");
  block.norm("attn_norm", "mlp_norm");         // Nemotron-H: a layer of experts alone
  block.norm("attn_output_norm", "mlp_norm");  // DBRX
  block.norm("ffn_norm_exps", latent != nullptr ? "experts_norm" : "mlp_norm");
  block.linear("ffn_gate_inp", "router", Role::router);
  block.bias_of("exp_probs_b", "router");  // of the choice alone, as DeepSeek-V3 balances its experts
  block.linear("ffn_gate_inp_shexp", "shared_expert.gate");
  block.linear(routed ? "ffn_routed_down" : "ffn_latent_down", "latent_in_proj");
  if (separate) {
    block.separate_experts("ffn_gate", "experts.gate_proj", experts);
    block.separate_experts("ffn_up", "experts.up_proj", experts);
    block.separate_experts("ffn_down", "experts.down_proj", experts);
  } else {
    block.experts(of.gate_up, "experts.gate_up_proj", experts);
    block.experts(of.gate, "experts.gate_proj", experts);
    block.experts(of.up, fused ? "experts.gate_up_proj" : "experts.up_proj", experts);
    block.experts(of.down, "experts.down_proj", experts);
  }
  block.norm("ffn_routed_norm", "latent_norm");
  block.linear(routed ? "ffn_routed_up" : "ffn_latent_up", "latent_out_proj");
  if (has_shared) {
    const bool shared_fused = is_fused(tensors, shared);
    block.linear(shared.gate_up, "shared_expert.gate_up_proj");
    block.linear(shared.gate, "shared_expert.gate_proj");
    block.linear(shared.up, shared_fused ? "shared_expert.gate_up_proj" : "shared_expert.up_proj");
    block.linear(shared.down, "shared_expert.down_proj");
  }
  block.norm("post_ffw_norm_2", "experts_post_norm");
  block.norm("post_ffw_norm", "mlp_post_norm");
  block.norm("layer_output_norm", "mlp_post_norm");
  blocks.push_back(std::move(block.block()));
}

// GroveMoE's adjugate experts: each belongs to several others, and runs where one of those was chosen.
void add_chunk_experts(GgufTensors& tensors, std::vector<Block>& blocks) {
  const Stems of = stems("_chexps");
  if (!tensors.has(of.down)) return;
  const GgufSource& source = tensors.source();
  check_shapes(tensors, of, source.hidden_size());
  const std::int64_t experts = tensors.need(of.down).shape.front();
  const std::int64_t used = source.at("expert_used_count", tensors.layer());
  GgufBlock block(tensors, {.kind = BlockKind::moe,
                            .gated = tensors.has(of.gate),
                            .activation = source.architecture().activation,
                            .experts_per_token = std::min(used, experts)});
  block.experts(of.gate, "experts.gate_proj", experts);
  block.experts(of.up, "experts.up_proj", experts);
  block.experts(of.down, "experts.down_proj", experts);
  blocks.push_back(std::move(block.block()));
}

}  // namespace

void add_feed_forward(GgufTensors& tensors, std::vector<Block>& blocks) {
  const bool experts = has_experts(tensors);
  if (tensors.has("ffn_up") || tensors.has("ffn_down") || tensors.has("ffn_gate_up"))
    add_dense(tensors, blocks, experts);
  if (experts) add_experts(tensors, blocks);
  add_chunk_experts(tensors, blocks);
  if (tensors.has_any("channel_mix_")) add_channel_mix(tensors, blocks);
}

}  // namespace memwall
