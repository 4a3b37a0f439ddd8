// States that are no state-space layer's: linear attention with a fixed decay, and the convolution behind
// embeddings of n-grams.
#include <fmt/format.h>

#include "format/checked.h"
#include "load/gguf_layers.h"
#include "model/recurrent_blocks.h"

namespace memwall {

void add_lightning_attention(GgufTensors& tensors, std::vector<Block>& blocks) {
  if (!tensors.has("attn_norm_2") || !tensors.has("attn_gate") || !tensors.has("attn_qkv")) return;
  constexpr std::int64_t kFlops = 5;  // decay, k·v (2), q·S (2)
  const GgufSource& source = tensors.source();
  const std::int64_t heads = source.at("attention.head_count", tensors.layer());
  const std::int64_t head = source.integer_or("attention.key_length", source.hidden_size() / heads);
  const std::int64_t width = checked_mul(heads, head);
  const std::string of = fmt::format("{} heads ({}) of {}", heads, source.key("attention.head_count"), head);
  for (const char* stem : {"attn_qkv", "attn_gate", "attn_output"}) tensors.need(stem);
  tensors.expect_rows("attn_qkv", checked_mul(3, width), of);
  tensors.expect_rows("attn_gate", width, of);
  tensors.expect_columns("attn_output", width, of);
  tensors.expect_columns("attn_norm_2", width, of);
  const std::int64_t elements = checked_mul(width, head);

  GgufBlock block(tensors, {.kind = BlockKind::mixer, .name = "lightning_attention"});
  block.norm("attn_norm", "mixer_norm");
  block.linear("attn_qkv", "qkv_proj");
  block.linear("attn_gate", "output_gate");
  block.place(RecurrentState{.elements = elements, .flops = checked_mul(kFlops, elements)});
  block.norm("attn_norm_2", "gated_norm");
  block.linear("attn_output", "out_proj");
  blocks.push_back(std::move(block.block()));
}

void add_ngram_embedding(GgufTensors& tensors, std::vector<Block>& blocks) {
  if (!tensors.has("ple_key")) return;
  const GgufSource& source = tensors.source();
  const std::int64_t streams = source.integer("hyper_connection.count");
  const std::int64_t channels = checked_mul(streams, source.hidden_size());
  const std::int64_t taps = source.integer("ple.conv_kernel");
  for (const char* stem : {"ple_key", "ple_value", "ple_conv1d"}) tensors.need(stem);
  tensors.expect_rows("ple_key", channels, "the residual streams");
  tensors.expect_columns("ple_conv1d", taps, source.key("ple.conv_kernel"));
  tensors.expect_rows("ple_conv1d", channels, "the residual streams");
  const std::int64_t kept = checked_mul(taps - 1, source.integer("ple.ngram_size"));
  GgufBlock block(tensors, {.kind = BlockKind::mixer, .name = "ngram_embedding"});
  block.linear("ple_key", "key_proj");
  block.linear("ple_value", "value_proj");
  for (const char* part : {"key", "query", "conv"})
    block.norm(fmt::format("ple_norm_{}", part), fmt::format("{}_norm", part));
  block.parameter("ple_conv1d", "conv1d");
  block.place(RecurrentState{.elements = checked_mul(kept, channels), .flops = conv_flops(channels, taps)});
  blocks.push_back(std::move(block.block()));
}

}  // namespace memwall
