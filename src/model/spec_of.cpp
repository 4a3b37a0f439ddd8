#include "model/spec_of.h"

#include <algorithm>
#include <string>

namespace memwall {
namespace {

NormPlace norm_place(const Block& block, const std::string& pre, const std::string& post) {
  const bool has_pre = block.find(pre) != nullptr;
  const bool has_post = block.find(post) != nullptr;
  if (has_pre) return has_post ? NormPlace::both : NormPlace::pre;
  return has_post ? NormPlace::post : NormPlace::none;
}

bool has(const Block& block, const std::string& name) { return block.find(name) != nullptr; }

QkNorm qk_norm_of(const Block& block, const KvState& kv) {
  const Tensor* norm = block.find("q_norm");
  if (norm == nullptr) return QkNorm::none;
  return norm->out == kv.d_k && norm->rows == kv.heads ? QkNorm::head : QkNorm::full;
}

OutputGate gate_of(const Block& block, const KvState& kv) {
  if (const Tensor* gate = block.find("attn_gate"))
    return gate->out == kv.heads && kv.d_v != 1 ? OutputGate::head : OutputGate::full;
  const Tensor* q = block.find("q_proj");
  return q != nullptr && q->out == 2 * kv.heads * kv.d_k ? OutputGate::in_q_proj : OutputGate::none;
}

// The linears under a prefix; its norm place is the caller's.
std::optional<MlpSpec> mlp_under(const Block& block, const std::string& prefix) {
  const Tensor* down = block.find(prefix + "down_proj");
  if (down == nullptr) return std::nullopt;
  MlpSpec spec;
  spec.intermediate = down->in;
  spec.activation = block.activation;
  spec.fused_gate_up = has(block, prefix + "gate_up_proj");
  spec.gated = block.gated;
  spec.bias = has(block, prefix + "down_proj.bias");
  spec.sub_norm = has(block, prefix + "sub_norm");
  spec.norm = norm_place(block, "mlp_norm", "mlp_post_norm");
  return spec;
}

}  // namespace

bool same_shapes(const Block& a, const Block& b) {
  const auto same = [](Tensor x, const Tensor& y) {
    x.format = y.format;
    x.stored_bytes = y.stored_bytes;
    return x == y;
  };
  return a.kind == b.kind && a.states == b.states && a.gated == b.gated && a.activation == b.activation &&
         a.experts_per_token == b.experts_per_token &&
         std::equal(a.tensors.begin(), a.tensors.end(), b.tensors.begin(), b.tensors.end(), same);
}

std::optional<AttentionSpec> attention_spec_of(const Block& block, const Common& common) {
  if (block.states.size() != 1) return std::nullopt;
  const auto* kv = std::get_if<KvState>(&block.states.front().state);
  if (kv == nullptr) return std::nullopt;
  AttentionSpec spec;
  spec.heads = kv->heads;
  spec.kv_heads = kv->kv_heads;
  spec.head_dim = kv->d_k;
  spec.v_head_dim = kv->d_v;
  spec.window = kv->window;
  spec.chunk = kv->chunk;
  spec.top_k = kv->top_k;
  spec.rotary = kv->rotary;
  spec.shared_kv = kv->shared;
  spec.fused_qkv = has(block, "qkv_proj");
  const bool fused_bias = has(block, "qkv_proj.bias");
  spec.bias_q = fused_bias || has(block, "q_proj.bias");
  spec.bias_k = fused_bias || has(block, "k_proj.bias");
  spec.bias_v = fused_bias || has(block, "v_proj.bias");
  spec.bias_o = has(block, "o_proj.bias");
  spec.qk_norm = qk_norm_of(block, *kv);
  spec.gate = gate_of(block, *kv);
  spec.sinks = has(block, "sinks");
  spec.sub_norm = has(block, "attn_sub_norm");
  spec.norm = norm_place(block, "attn_norm", "attn_post_norm");
  if (!same_shapes(attention_block(common, spec), block)) return std::nullopt;
  return spec;
}

std::optional<MlpSpec> mlp_spec_of(const Block& block, const Common& common) {
  const std::optional<MlpSpec> spec = mlp_under(block, "");
  if (!spec || !same_shapes(mlp_block(common, *spec), block)) return std::nullopt;
  return spec;
}

std::optional<MoeSpec> moe_spec_of(const Block& block, const Common& common) {
  const std::optional<MlpSpec> expert = mlp_under(block, "experts.");
  const Tensor* router = block.find("router");
  const Tensor* down = block.find("experts.down_proj");
  if (!expert || router == nullptr) return std::nullopt;
  MoeSpec spec;
  spec.experts = down->copies;
  spec.idle = router->out - down->copies;
  spec.per_token = block.experts_per_token;
  spec.expert = *expert;
  spec.router_bias = has(block, "router.bias");
  if (const Tensor* shared = block.find("shared_expert.down_proj")) spec.shared_intermediate = shared->in;
  spec.shared_gate = has(block, "shared_expert.gate");
  if (const Tensor* latent = block.find("latent_in_proj")) spec.latent = latent->out;
  if (!same_shapes(moe_block(common, spec), block)) return std::nullopt;
  return spec;
}

}  // namespace memwall
