#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "format/checked.h"
#include "load/gguf_layers.h"
#include "model/recurrent_blocks.h"

namespace memwall {
namespace {

// FLOPs an element of the state (docs/formulas.md).
constexpr std::int64_t kRwkv6Flops = 7;  // k·v, the bonus (2), r·S (2), decay, sum
constexpr std::int64_t kRwkv7Flops = 9;  // decay, a·S (2), the correction (2), k·v (2), r·S (2)

// What the file's own block would keep. llama.cpp keeps all of it in f32, the last inputs of convolutions
// too.
RecurrentState state_of(const Block& block) {
  RecurrentState state = std::get<RecurrentState>(block.states.front().state);
  state.elements = checked_add(state.elements, state.conv_elements);
  state.conv_elements = 0;
  return state;
}

// For states: what formats the tensors have does not matter.
Common common_of(const GgufSource& source) {
  Common common;
  common.hidden_size = source.hidden_size();
  return common;
}

void finish(GgufBlock& block, const GgufTensors& tensors, std::vector<Block>& blocks) {
  if (!post_attention_norm_is_next(tensors)) block.norm("post_attention_norm", "mixer_post_norm");
  blocks.push_back(std::move(block.block()));
}

// The convolution's kernel lies along its rows, which may be split into more dimensions.
void check_conv(const GgufTensors& tensors, const std::string& stem, std::int64_t channels,
                std::int64_t taps) {
  tensors.expect_columns(stem, taps, tensors.source().key("ssm.conv_kernel"));
  tensors.expect_rows(stem, channels, fmt::format("{}'s sizes", tensors.source().key("ssm")));
}

// The inner size's share of each head. Throws InputError where the heads do not divide it.
std::int64_t head_width(const GgufSource& source) {
  const std::int64_t inner = source.integer("ssm.inner_size");
  const std::int64_t heads = source.integer("ssm.time_step_rank");
  if (inner % heads != 0) {
    source.fail(fmt::format("'{}' ({}) must be a multiple of '{}' ({}), its heads",
                            source.key("ssm.inner_size"), inner, source.key("ssm.time_step_rank"), heads));
  }
  return inner / heads;
}

void add_mamba(GgufTensors& tensors, std::vector<Block>& blocks) {
  const GgufSource& source = tensors.source();
  const bool first = tensors.has("ssm_x");  // Mamba's B, C and dt come from the convolution's output
  const std::int64_t inner = source.integer("ssm.inner_size");
  const std::int64_t state = source.integer("ssm.state_size");
  const std::int64_t taps = source.integer("ssm.conv_kernel");
  const std::int64_t rank = source.integer("ssm.time_step_rank");
  Block built;
  if (first) {
    built = mamba_block(common_of(source), {.inner = inner, .state = state, .dt_rank = rank, .conv = taps});
    tensors.expect_rows("ssm_in", checked_mul(2, inner), source.key("ssm.inner_size"));
    check_conv(tensors, "ssm_conv1d", inner, taps);
  } else {
    const std::int64_t groups = source.integer_or("ssm.group_count", 0);
    built = mamba2_block(
        common_of(source),
        {.heads = rank, .head_dim = head_width(source), .state = state, .groups = groups, .conv = taps});
    const std::int64_t channels = checked_add(inner, checked_mul(checked_mul(2, groups), state));
    tensors.expect_rows("ssm_in", checked_add(checked_add(inner, channels), rank),
                        fmt::format("{}'s sizes", source.key("ssm")));
    check_conv(tensors, "ssm_conv1d", channels, taps);
  }
  tensors.need("ssm_conv1d");
  tensors.need("ssm_out");
  tensors.expect_columns("ssm_out", inner, source.key("ssm.inner_size"));

  GgufBlock block(tensors, {.kind = BlockKind::mixer, .name = built.name});
  block.norm("attn_norm", "mixer_norm");
  block.linear("ssm_in", "in_proj");
  block.linear("ssm_x", "x_proj");
  block.norm("ssm_dt_norm", "dt_layernorm");
  block.norm("ssm_b_norm", "b_layernorm");
  block.norm("ssm_c_norm", "c_layernorm");
  if (first) {
    block.linear("ssm_dt", "dt_proj");
  } else {
    block.parameter("ssm_dt", "dt");
  }
  block.parameter("ssm_conv1d", "conv1d");
  block.parameter("ssm_a", "A_log");
  block.parameter("ssm_d", "D");
  block.place(state_of(built));
  block.norm("ssm_norm", "gated_norm", inner);
  block.linear("ssm_out", "out_proj");
  finish(block, tensors, blocks);
}

void add_delta_net(GgufTensors& tensors, std::vector<Block>& blocks) {
  const GgufSource& source = tensors.source();
  DeltaNetSpec spec;
  spec.key_heads = source.integer("ssm.group_count");
  spec.value_heads = source.integer("ssm.time_step_rank");
  spec.key_dim = source.integer("ssm.state_size");
  const std::int64_t values = source.integer("ssm.inner_size");
  spec.conv = source.integer("ssm.conv_kernel");
  spec.value_dim = head_width(source);
  const std::int64_t keys = checked_mul(spec.key_heads, spec.key_dim);
  const std::int64_t channels = checked_add(checked_mul(2, keys), values);
  const std::string sizes = fmt::format("{}'s sizes", source.key("ssm"));
  check_conv(tensors, "ssm_conv1d", channels, spec.conv);
  tensors.expect_rows("attn_qkv", channels, sizes);
  tensors.expect_rows("attn_gate", values, sizes);
  tensors.expect_rows("ssm_in", checked_add(channels, values), sizes);
  tensors.expect_columns("ssm_out", values, source.key("ssm.inner_size"));
  tensors.need(tensors.has("ssm_in") ? "ssm_in" : "attn_qkv");
  tensors.need("ssm_conv1d");
  tensors.need("ssm_out");
  const Block built = delta_net_block(common_of(source), spec);

  GgufBlock block(tensors, {.kind = BlockKind::mixer, .name = built.name});
  add_residual_mixing(block, "attn");
  block.norm("attn_norm", "mixer_norm");
  block.linear("ssm_in", "in_proj_qkvz");
  block.linear("attn_qkv", "in_proj_qkv");
  block.linear("attn_gate", "in_proj_z");
  block.linear("ssm_ba", "in_proj_ba");
  block.linear("ssm_beta", "in_proj_b");
  block.linear("ssm_alpha", "in_proj_a");
  block.parameter("ssm_conv1d", "conv1d");
  block.parameter("ssm_dt", "dt");
  block.parameter("ssm_a", "A_log");
  block.place(state_of(built));
  block.norm("ssm_norm", "gated_norm", values);
  block.linear("ssm_out", "out_proj");
  finish(block, tensors, blocks);
}

// Kimi's delta attention: a decay for every channel, not for every head.
void add_kimi_delta(GgufTensors& tensors, std::vector<Block>& blocks) {
  const GgufSource& source = tensors.source();
  const std::int64_t heads = source.at("attention.head_count", tensors.layer());
  const std::int64_t width = source.integer("kda.head_dim");
  const std::int64_t taps = source.integer("ssm.conv_kernel");
  const std::int64_t channels = checked_mul(heads, width);
  const std::string of = fmt::format("{} heads of '{}' ({})", heads, source.key("kda.head_dim"), width);
  for (const char* stem : {"attn_q", "attn_k", "attn_v"}) {
    tensors.need(stem);
    tensors.expect_rows(stem, channels, of);
  }
  for (const char* stem : {"ssm_conv1d_q", "ssm_conv1d_k", "ssm_conv1d_v"}) {
    const StoredTensor& kernel = tensors.need(stem);
    if (kernel.elements() != checked_mul(channels, taps))
      source.fail(fmt::format("tensor '{}' has {} elements, but {} and '{}' ({}) make {}", kernel.name,
                              kernel.elements(), of, source.key("ssm.conv_kernel"), taps,
                              checked_mul(channels, taps)));
  }
  tensors.need("attn_output");
  tensors.expect_columns("attn_output", channels, of);
  const Block built = delta_net_block(
      common_of(source),
      {.key_heads = heads, .value_heads = heads, .key_dim = width, .value_dim = width, .conv = taps});

  GgufBlock block(tensors, {.kind = BlockKind::mixer, .name = "kimi_delta_attention"});
  add_residual_mixing(block, "attn");
  block.norm("attn_norm", "mixer_norm");
  for (const char* part : {"q", "k", "v"})
    block.linear(fmt::format("attn_{}", part), fmt::format("{}_proj", part));
  block.linear("ssm_beta", "b_proj");
  for (const char* part : {"f_a", "f_b", "g_a", "g_b"})
    block.linear(fmt::format("ssm_{}", part), fmt::format("{}_proj", part));
  block.linear("ssm_g", "g_proj");  // Kimi K3
  block.linear("attn_gate", "g_proj");
  for (const char* part : {"q", "k", "v"})
    block.parameter(fmt::format("ssm_conv1d_{}", part), fmt::format("{}_conv1d", part));
  block.parameter("ssm_dt", "dt");
  block.parameter("ssm_a", "A_log");
  block.place(state_of(built));
  block.norm("ssm_norm", "o_norm", channels);
  block.linear("attn_output", "o_proj");
  finish(block, tensors, blocks);
}

void add_short_conv(GgufTensors& tensors, std::vector<Block>& blocks) {
  const GgufSource& source = tensors.source();
  const std::int64_t hidden = source.hidden_size();
  const std::int64_t taps = source.integer("shortconv.l_cache");
  tensors.expect_columns("shortconv.conv", taps, source.key("shortconv.l_cache"));
  tensors.expect_rows("shortconv.conv", hidden, source.key("embedding_length"));
  tensors.need("shortconv.in_proj");
  tensors.need("shortconv.out_proj");
  const Block built = short_conv_block(common_of(source), hidden, taps, false);

  GgufBlock block(tensors, {.kind = BlockKind::mixer, .name = built.name});
  block.norm("attn_norm", "mixer_norm");
  block.linear("shortconv.in_proj", "in_proj");
  block.parameter("shortconv.conv", "conv1d");
  block.place(state_of(built));
  block.linear("shortconv.out_proj", "out_proj");
  finish(block, tensors, blocks);
}

void add_rwkv(GgufTensors& tensors, std::vector<Block>& blocks) {
  constexpr std::string_view kPrefix = "time_mix_";
  constexpr std::array<std::string_view, 14> kLinears = {"receptance", "key", "value",    "gate",    "w1",
                                                         "w2",         "a1",  "a2",       "v1",      "v2",
                                                         "g1",         "g2",  "decay_w1", "decay_w2"};
  const GgufSource& source = tensors.source();
  const std::int64_t hidden = source.hidden_size();
  const std::int64_t head = source.integer("wkv.head_size");
  const std::int64_t shifts = source.integer_or("token_shift_count", 2);
  if (hidden % head != 0) {
    source.fail(fmt::format("'{}' ({}) must be a multiple of '{}' ({})", source.key("embedding_length"),
                            hidden, source.key("wkv.head_size"), head));
  }
  tensors.need("time_mix_output");
  const bool seventh = tensors.has_any("time_mix_a1");

  GgufBlock block(tensors, {.kind = BlockKind::mixer, .name = "rwkv"});
  block.norm("attn_norm", "mixer_norm");
  for (const std::string_view linear : kLinears) {
    // The first layer has no earlier values to mix in: its v1 and v2 are stored, and never read.
    const bool unread = seventh && tensors.layer() == 0 && linear.front() == 'v' && linear.size() == 2;
    if (unread) block.set_read(Read::never);
    block.linear(std::string(kPrefix) + std::string(linear), std::string(linear));
    block.set_read(Read::always);
  }
  std::vector<std::string> small;
  for (const auto& [name, tensor] : tensors.rest()) {
    if (name.compare(0, kPrefix.size(), kPrefix) != 0) continue;
    const std::string stem = name.substr(0, name.rfind('.'));
    if (stem != "time_mix_output" && stem != "time_mix_ln") small.push_back(stem);
  }
  for (const std::string& stem : small) {
    if (seventh && tensors.layer() == 0 && stem == "time_mix_v0") block.set_read(Read::never);
    block.parameter(stem, stem.substr(kPrefix.size()));
    block.set_read(Read::always);
  }
  const std::int64_t elements = checked_mul(hidden, head);
  block.place(RecurrentState{.elements = checked_add(elements, checked_mul(shifts, hidden)),
                             .flops = checked_mul(seventh ? kRwkv7Flops : kRwkv6Flops, elements)});
  block.norm("time_mix_ln", "ln_x");
  block.linear("time_mix_output", "output");
  finish(block, tensors, blocks);
}

}  // namespace

void add_recurrence(GgufTensors& tensors, std::vector<Block>& blocks) {
  if (tensors.has("ssm_conv1d_q")) {
    add_kimi_delta(tensors, blocks);
  } else if (tensors.has("ssm_ba") || tensors.has("ssm_alpha") || tensors.has("ssm_beta")) {
    add_delta_net(tensors, blocks);
  } else if (tensors.has("ssm_in")) {
    add_mamba(tensors, blocks);
  } else if (tensors.has("shortconv.conv")) {
    add_short_conv(tensors, blocks);
  } else if (tensors.has_any("time_mix_")) {
    add_rwkv(tensors, blocks);
  }
}

}  // namespace memwall
