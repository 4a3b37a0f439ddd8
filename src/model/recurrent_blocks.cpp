#include "model/recurrent_blocks.h"

#include "format/checked.h"

namespace memwall {
namespace {

// FLOPs an element of the state (docs/formulas.md).
constexpr std::int64_t kMambaFlops = 7;     // dt·A, exp, decay, dt·x·B (2), C·h (2)
constexpr std::int64_t kMamba2Flops = 5;    // decay, x·B (2), C·h (2): one decay a head
constexpr std::int64_t kDeltaNetFlops = 7;  // decay, k·S (2), the correction (2), q·S (2)

std::int64_t product(std::int64_t a, std::int64_t b, std::int64_t c = 1) {
  return checked_mul(checked_mul(a, b), c);
}

void add_pre_norm(Block& block, const Common& common, NormPlace place) {
  if (place == NormPlace::pre || place == NormPlace::both)
    add_norm(block, common, "mixer_norm", common.hidden_size);
}

void add_post_norm(Block& block, const Common& common, NormPlace place) {
  if (place == NormPlace::post || place == NormPlace::both)
    add_norm(block, common, "mixer_post_norm", common.hidden_size);
}

// A depthwise convolution's kernel. The last inputs it keeps are one fewer than its taps.
void add_conv(Block& block, const Common& common, std::int64_t channels, std::int64_t taps, bool bias) {
  add_parameter(block, common, "conv1d", product(channels, taps));
  if (bias) add_parameter(block, common, "conv1d_bias", channels);
}

std::int64_t conv_state(std::int64_t channels, std::int64_t taps) {
  return taps > 1 ? product(channels, taps - 1) : 0;
}

}  // namespace

std::int64_t conv_flops(std::int64_t channels, std::int64_t taps) { return product(2, channels, taps); }

Block mamba_block(const Common& common, const MambaSpec& spec, NormPlace norm) {
  Block block{.kind = BlockKind::mixer, .name = "mamba"};
  const std::int64_t hidden = common.hidden_size;
  add_pre_norm(block, common, norm);
  add_linear(block, common, "in_proj", product(2, spec.inner), hidden, spec.bias);
  add_linear(block, common, "x_proj", checked_add(spec.dt_rank, product(2, spec.state)), spec.inner);
  if (spec.inner_norms) {
    add_norm(block, common, "dt_layernorm", spec.dt_rank, 1, NormKind::rms);
    add_norm(block, common, "b_layernorm", spec.state, 1, NormKind::rms);
    add_norm(block, common, "c_layernorm", spec.state, 1, NormKind::rms);
  }
  add_linear(block, common, "dt_proj", spec.inner, spec.dt_rank, true);
  add_conv(block, common, spec.inner, spec.conv, spec.conv_bias);
  add_parameter(block, common, "A_log", product(spec.inner, spec.state));
  add_parameter(block, common, "D", spec.inner);
  const std::int64_t elements = product(spec.inner, spec.state);
  block.place(RecurrentState{
      .elements = elements,
      .element_bytes = spec.element_bytes,
      .conv_elements = conv_state(spec.inner, spec.conv),
      .flops = checked_add(product(kMambaFlops, elements), conv_flops(spec.inner, spec.conv))});
  add_linear(block, common, "out_proj", hidden, spec.inner, spec.bias);
  add_post_norm(block, common, norm);
  return block;
}

Block mamba2_block(const Common& common, const Mamba2Spec& spec, NormPlace norm) {
  Block block{.kind = BlockKind::mixer, .name = "mamba2"};
  const std::int64_t hidden = common.hidden_size;
  const std::int64_t inner = product(spec.heads, spec.head_dim);
  const std::int64_t channels = checked_add(inner, product(2, spec.groups, spec.state));
  add_pre_norm(block, common, norm);
  // z; x, B and C; dt.
  add_linear(block, common, "in_proj", checked_add(checked_add(inner, channels), spec.heads), hidden,
             spec.bias);
  add_conv(block, common, channels, spec.conv, spec.conv_bias);
  for (const char* name : {"dt_bias", "A_log", "D"}) add_parameter(block, common, name, spec.heads);
  const std::int64_t elements = product(inner, spec.state);
  block.place(
      RecurrentState{.elements = elements,
                     .element_bytes = spec.element_bytes,
                     .conv_elements = conv_state(channels, spec.conv),
                     .flops = checked_add(product(kMamba2Flops, elements), conv_flops(channels, spec.conv))});
  if (spec.norm) add_norm(block, common, "gated_norm", inner, 1, NormKind::rms);
  add_linear(block, common, "out_proj", hidden, inner, spec.bias);
  add_post_norm(block, common, norm);
  return block;
}

Block delta_net_block(const Common& common, const DeltaNetSpec& spec, NormPlace norm) {
  Block block{.kind = BlockKind::mixer, .name = "gated_delta_net"};
  const std::int64_t hidden = common.hidden_size;
  const std::int64_t keys = product(spec.key_heads, spec.key_dim);
  const std::int64_t values = product(spec.value_heads, spec.value_dim);
  const std::int64_t channels = checked_add(product(2, keys), values);
  add_pre_norm(block, common, norm);
  if (spec.fused) {
    add_linear(block, common, "in_proj_qkvz", checked_add(channels, values), hidden);
    add_linear(block, common, "in_proj_ba", product(2, spec.value_heads), hidden);
  } else {
    add_linear(block, common, "in_proj_qkv", channels, hidden);
    add_linear(block, common, "in_proj_z", values, hidden);
    add_linear(block, common, "in_proj_b", spec.value_heads, hidden);
    add_linear(block, common, "in_proj_a", spec.value_heads, hidden);
  }
  add_conv(block, common, channels, spec.conv, false);
  add_parameter(block, common, "dt_bias", spec.value_heads);
  add_parameter(block, common, "A_log", spec.value_heads);
  const std::int64_t elements = product(spec.value_heads, spec.key_dim, spec.value_dim);
  block.place(RecurrentState{
      .elements = elements,
      .element_bytes = spec.element_bytes,
      .conv_elements = conv_state(channels, spec.conv),
      .flops = checked_add(product(kDeltaNetFlops, elements), conv_flops(channels, spec.conv))});
  add_norm(block, common, "gated_norm", spec.value_dim, spec.value_heads, NormKind::rms);
  add_linear(block, common, "out_proj", hidden, values);
  add_post_norm(block, common, norm);
  return block;
}

Block short_conv_block(const Common& common, std::int64_t channels, std::int64_t taps, bool bias) {
  Block block{.kind = BlockKind::mixer, .name = "short_conv"};
  add_pre_norm(block, common, NormPlace::pre);
  add_linear(block, common, "in_proj", product(3, channels), common.hidden_size, bias);
  add_conv(block, common, channels, taps, bias);
  block.place(RecurrentState{.conv_elements = conv_state(channels, taps),
                             .flops = checked_add(conv_flops(channels, taps), product(2, channels))});
  add_linear(block, common, "out_proj", common.hidden_size, channels, bias);
  return block;
}

}  // namespace memwall
