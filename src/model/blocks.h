// Builds a Model's blocks from what model files say of them: heads and widths in, tensors and state out.
// Every reader of model files goes through these, so a shape is derived once.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/model.h"

namespace memwall {

enum class NormPlace : std::uint8_t { none, pre, post, both };
// Norms of Q and K: one of a head's width, shared by all heads; one over the whole projection.
enum class QkNorm : std::uint8_t { none, head, full };
// What scales the attention's output before o_proj: a value an element of it (Qwen3-Next keeps that
// projection inside q_proj), or one a head.
enum class OutputGate : std::uint8_t { none, in_q_proj, full, head };

// What the blocks of one model have in common.
struct Common {
  std::int64_t hidden_size = 0;
  NormKind norm = NormKind::rms;
  Format weights;  // of linears
  Format head;     // of the embedding and the lm_head
  Format small;    // of norms, biases and routers
};

struct AttentionSpec {
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t v_head_dim = 0;
  std::int64_t window = 0;
  std::int64_t chunk = 0;
  std::int64_t top_k = 0;
  bool bias_q = false, bias_k = false, bias_v = false, bias_o = false;
  QkNorm qk_norm = QkNorm::none;
  bool rotary = true;
  bool fused_qkv = false;
  OutputGate gate = OutputGate::none;
  bool sinks = false;      // a learned logit a head
  bool sub_norm = false;   // of the attention's output, before o_proj (BitNet)
  bool shared_kv = false;  // reads an earlier layer's cache: no k_proj and v_proj
  NormPlace norm = NormPlace::pre;
};

// Multi-head latent attention (DeepSeek-V2, sections 2.1.2 and 2.1.3), run absorbed.
struct MlaSpec {
  std::int64_t heads = 0;
  std::int64_t q_lora_rank = 0;  // 0: one q_proj
  std::int64_t kv_lora_rank = 0;
  std::int64_t qk_nope_head_dim = 0;
  std::int64_t qk_rope_head_dim = 0;
  std::int64_t v_head_dim = 0;
  bool bias = false;  // of the projections that read the hidden state, and of o_proj
  // The lightning indexer of DeepSeek-V3.2; 0 heads: none.
  std::int64_t index_heads = 0;
  std::int64_t index_head_dim = 0;
  std::int64_t top_k = 0;  // entries attention reads at most; kept where an earlier layer's choice is used
  NormPlace norm = NormPlace::pre;
};

struct MlpSpec {
  std::int64_t intermediate = 0;
  bool gated = true;
  ActivationKind activation = ActivationKind::silu;
  bool bias = false;
  bool fused_gate_up = false;
  bool sub_norm = false;  // of the activations, before down_proj (BitNet)
  NormPlace norm = NormPlace::pre;
};

struct MoeSpec {
  std::int64_t experts = 0;
  std::int64_t per_token = 0;
  MlpSpec expert;  // its norm is the block's
  bool router_bias = false;
  std::int64_t idle = 0;                 // "experts" the router may choose that do nothing (LongCat)
  std::int64_t shared_intermediate = 0;  // 0: no shared expert
  bool shared_gate = false;
  std::int64_t latent = 0;  // the width experts work in, between two projections every token takes; 0: hidden
};

struct HeadSpec {
  std::int64_t vocab_size = 0;
  std::int64_t width = 0;  // of the embedding, where it is not the hidden size
  bool tied = false;
  bool bias = false;
  bool final_norm = true;
};

Block embedding_block(const Common& common, std::int64_t vocab_size, std::int64_t positions);
Block attention_block(const Common& common, const AttentionSpec& spec);
Block kv_cache_block(const AttentionSpec& spec);
Block mla_block(const Common& common, const MlaSpec& spec);
Block mlp_block(const Common& common, const MlpSpec& spec);
Block moe_block(const Common& common, const MoeSpec& spec);
Block shape_block(const Common& common, const std::string& name, std::int64_t out, std::int64_t in,
                  bool bias);
Block head_block(const Common& common, const HeadSpec& spec);

// For blocks that have no spec of their own: a norm, a linear or a small parameter, appended. A norm's kind
// is the model's unless given; `rows` are the vectors a token that it is applied to.
void add_linear(Block& block, const Common& common, const std::string& name, std::int64_t out,
                std::int64_t in, bool bias = false);
void add_norm(Block& block, const Common& common, const std::string& name, std::int64_t width,
              std::int64_t rows = 1);
void add_norm(Block& block, const Common& common, const std::string& name, std::int64_t width,
              std::int64_t rows, NormKind kind);
void add_parameter(Block& block, const Common& common, const std::string& name, std::int64_t count);

}  // namespace memwall
