// DeepSeek-V4's attention: one key-value head whose last tokens are kept in a window, and beside it entries
// that stand for several tokens each. Names and shapes: src/models/deepseek4.cpp of llama.cpp.
#include <fmt/format.h>

#include "checkpoint/gguf_bytes.h"
#include "format/checked.h"
#include "load/gguf_layers.h"

namespace memwall {
namespace {

// Those that llama.cpp loads: entries of 4 tokens overlap and are chosen by an indexer, those of 128 are all
// read.
constexpr std::int64_t kChosen = 4;
constexpr std::int64_t kAllRead = 128;

struct Compressed {
  std::int64_t heads = 0;
  std::int64_t width = 0;  // of a query head, and of the one that is kept
  std::int64_t rope = 0;
  std::int64_t ratio = 0;  // tokens an entry stands for; 0: there are no entries

  bool chosen() const { return ratio == kChosen; }
  LatentState latents() const { return {.heads = heads, .rank = width - rope, .rope = rope}; }
};

Compressed read_compressed(const GgufTensors& tensors) {
  const GgufSource& source = tensors.source();
  Compressed spec;
  spec.heads = source.at("attention.head_count", tensors.layer());
  spec.width = source.integer("attention.key_length");
  spec.rope = source.integer("rope.dimension_count", {0, spec.width});
  spec.ratio = source.at("attention.compress_ratios", tensors.layer(), kGgufCount);
  if (spec.ratio != 0 && spec.ratio != kChosen && spec.ratio != kAllRead) {
    source.fail(fmt::format("'{}' is {} for layer {}; it must be 0, {} or {}",
                            source.key("attention.compress_ratios"), spec.ratio, tensors.layer(), kChosen,
                            kAllRead));
  }
  return spec;
}

void check_shapes(const GgufTensors& tensors, const Compressed& spec) {
  const GgufSource& source = tensors.source();
  const std::string hidden = source.key("embedding_length");
  const std::string width = source.key("attention.key_length");
  const std::int64_t rank = source.integer("attention.q_lora_rank");
  const std::int64_t groups = source.integer("attention.output_group_count");
  const std::int64_t out = checked_mul(groups, source.integer("attention.output_lora_rank"));
  const std::int64_t queries = checked_mul(spec.heads, spec.width);
  if (queries % groups != 0) {
    source.fail(fmt::format("'{}' ({}) does not divide {} heads of {}",
                            source.key("attention.output_group_count"), groups, spec.heads, spec.width));
  }
  for (const char* stem : {"attn_q_a", "attn_q_b", "attn_kv", "attn_output_a", "attn_output_b"})
    tensors.need(stem);
  tensors.expect_rows("attn_q_a", rank, source.key("attention.q_lora_rank"));
  tensors.expect_columns("attn_q_a", source.hidden_size(), hidden);
  tensors.expect_rows("attn_q_b", queries, fmt::format("{} heads of {}", spec.heads, spec.width));
  tensors.expect_columns("attn_q_b", rank, source.key("attention.q_lora_rank"));
  tensors.expect_rows("attn_kv", spec.width, width);
  tensors.expect_columns("attn_kv", source.hidden_size(), hidden);
  const std::string of_groups =
      fmt::format("{} groups ({})", groups, source.key("attention.output_group_count"));
  tensors.expect_rows("attn_output_a", out, of_groups);
  tensors.expect_columns("attn_output_a", queries / groups, of_groups);
  tensors.expect_rows("attn_output_b", source.hidden_size(), hidden);
  tensors.expect_columns("attn_output_b", out, of_groups);
  const std::int64_t wide = checked_mul(spec.chosen() ? 2 : 1, spec.width);
  for (const char* stem : {"attn_compressor_kv", "attn_compressor_gate"}) {
    if (spec.ratio == 0) continue;
    tensors.need(stem);
    tensors.expect_rows(stem, wide, width);
    tensors.expect_columns(stem, source.hidden_size(), hidden);
  }
}

void add_compressor(GgufBlock& block, const GgufTensors& tensors, const std::string& stem,
                    const std::string& name) {
  tensors.need(stem + "_kv");
  tensors.need(stem + "_gate");
  block.linear(stem + "_kv", name + ".kv_proj");
  block.linear(stem + "_gate", name + ".gate_proj");
  block.parameter(stem + "_ape", name + ".position_bias");
  block.norm(stem + "_norm", name + ".kv_norm");
}

// Returns the entries that it chooses.
std::int64_t add_indexer(GgufBlock& block, const GgufTensors& tensors, std::int64_t ratio) {
  const GgufSource& source = tensors.source();
  const IndexerState state{.heads = source.integer("attention.indexer.head_count"),
                           .width = source.integer("attention.indexer.key_length"),
                           .every = ratio};
  tensors.need("indexer.proj");
  tensors.need("indexer.attn_q_b");
  tensors.expect_rows("indexer.proj", state.heads, source.key("attention.indexer.head_count"));
  tensors.expect_rows("indexer.attn_q_b", checked_mul(state.heads, state.width), "the indexer's heads");
  for (const char* stem : {"indexer_compressor_kv", "indexer_compressor_gate"})
    tensors.expect_rows(stem, checked_mul(2, state.width), source.key("attention.indexer.key_length"));
  add_compressor(block, tensors, "indexer_compressor", "indexer");
  block.linear("indexer.proj", "indexer.weights_proj");
  block.linear("indexer.attn_q_b", "indexer.q_b_proj");
  block.place(state);
  return source.integer("attention.indexer.top_k");
}

}  // namespace

void add_compressed_attention(GgufTensors& tensors, std::vector<Block>& blocks) {
  if (!tensors.has("attn_kv") || !tensors.source().has("attention.compress_ratios")) return;
  const Compressed spec = read_compressed(tensors);
  check_shapes(tensors, spec);

  GgufBlock block(tensors, {.kind = BlockKind::mixer, .name = "mla"});
  add_residual_mixing(block, "attn");
  block.norm("attn_norm", "attn_norm");
  block.linear("attn_q_a", "q_a_proj");
  block.linear("attn_kv", "kv_proj");
  block.norm("attn_q_a_norm", "q_a_norm");
  block.linear("attn_q_b", "q_b_proj");
  block.norm("attn_kv_norm", "kv_norm");
  if (spec.ratio > 0) {
    add_compressor(block, tensors, "attn_compressor", "compressor");
    LatentState entries = spec.latents();
    entries.every = spec.ratio;
    if (spec.chosen()) entries.top_k = add_indexer(block, tensors, spec.ratio);
    block.place(entries);
  }
  block.parameter("attn_sinks", "sinks");
  LatentState window = spec.latents();
  window.window = tensors.source().integer("attention.sliding_window");
  block.place(window);
  block.linear("attn_output_a", "o_a_proj");
  block.linear("attn_output_b", "o_b_proj");
  blocks.push_back(std::move(block.block()));
}

}  // namespace memwall
