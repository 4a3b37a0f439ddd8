// Blocks whose state does not grow with the context: state-space layers, gated delta nets, linear attention,
// short convolutions. docs/formulas.md derives the FLOPs of a step.
#pragma once

#include <cstdint>
#include <string>

#include "model/blocks.h"

namespace memwall {

// Mamba (arXiv 2312.00752), its convolution included.
struct MambaSpec {
  std::int64_t inner = 0;  // channels
  std::int64_t state = 0;  // of a channel
  std::int64_t dt_rank = 0;
  std::int64_t conv = 4;  // taps
  bool bias = false;      // of in_proj and out_proj
  bool conv_bias = true;
  bool inner_norms = false;  // of dt, B and C, with weights (Jamba)
  std::int64_t element_bytes = 4;
};

// Mamba-2 (arXiv 2405.21060).
struct Mamba2Spec {
  std::int64_t heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t state = 0;   // of a channel
  std::int64_t groups = 1;  // that share B and C
  std::int64_t conv = 4;
  bool bias = false;  // of in_proj and out_proj
  bool conv_bias = true;
  bool norm = true;  // gated, before out_proj
  std::int64_t element_bytes = 4;
};

// Gated delta nets (arXiv 2412.06464), as Qwen3-Next has them.
struct DeltaNetSpec {
  std::int64_t key_heads = 0;
  std::int64_t value_heads = 0;
  std::int64_t key_dim = 0;  // of a head
  std::int64_t value_dim = 0;
  std::int64_t conv = 4;
  bool fused = true;  // q, k, v and z in one projection, b and a in another; else four
  std::int64_t element_bytes = 4;
};

// Each begins with a norm of the hidden state where `norm` is pre. `name` is the block's and its op's.
Block mamba_block(const Common& common, const MambaSpec& spec, NormPlace norm = NormPlace::pre);
Block mamba2_block(const Common& common, const Mamba2Spec& spec, NormPlace norm = NormPlace::pre);
Block delta_net_block(const Common& common, const DeltaNetSpec& spec, NormPlace norm = NormPlace::pre);

// The double-gated short convolution of LFM2: `taps` inputs of each channel.
Block short_conv_block(const Common& common, std::int64_t channels, std::int64_t taps, bool bias);

// FLOPs of one token: a convolution of `channels` by `taps`.
std::int64_t conv_flops(std::int64_t channels, std::int64_t taps);

}  // namespace memwall
