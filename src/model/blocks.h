// Builds a Model's blocks from what model files say of them: heads and widths in, tensors and state out.
// Every reader (YAML now, checkpoints' configs later) goes through these, so a shape is derived once.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/model.h"

namespace memwall {

enum class NormPlace : std::uint8_t { none, pre, post, both };
enum class QkNorm : std::uint8_t { none, head, full };

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
  bool bias_q = false, bias_k = false, bias_v = false, bias_o = false;
  QkNorm qk_norm = QkNorm::none;
  bool rotary = true;
  bool fused_qkv = false;
  NormPlace norm = NormPlace::pre;
};

struct MlpSpec {
  std::int64_t intermediate = 0;
  bool gated = true;
  ActivationKind activation = ActivationKind::silu;
  bool bias = false;
  bool fused_gate_up = false;
  NormPlace norm = NormPlace::pre;
};

struct MoeSpec {
  std::int64_t experts = 0;
  std::int64_t per_token = 0;
  MlpSpec expert;  // its norm is the block's
  bool router_bias = false;
  std::int64_t shared_intermediate = 0;  // 0: no shared expert
  bool shared_gate = false;
};

struct HeadSpec {
  std::int64_t vocab_size = 0;
  bool tied = false;
  bool bias = false;
  bool final_norm = true;
};

Block embedding_block(const Common& common, std::int64_t vocab_size, std::int64_t positions);
Block attention_block(const Common& common, const AttentionSpec& spec);
Block kv_cache_block(const AttentionSpec& spec);
Block mlp_block(const Common& common, const MlpSpec& spec);
Block moe_block(const Common& common, const MoeSpec& spec);
Block shape_block(const Common& common, const std::string& name, std::int64_t out, std::int64_t in,
                  bool bias);
Block head_block(const Common& common, const HeadSpec& spec);

}  // namespace memwall
