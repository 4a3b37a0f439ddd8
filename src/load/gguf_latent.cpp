#include <fmt/format.h>

#include "checkpoint/gguf_bytes.h"
#include "format/checked.h"
#include "load/gguf_layers.h"

namespace memwall {
namespace {

// A key of the layer's latent attention: dots.note's sliding layers have sizes of their own.
std::string size_key(const GgufTensors& tensors, const char* key) {
  const std::string in_windows = std::string(key) + "_swa";
  const GgufSource& source = tensors.source();
  return source.reach(tensors.layer()).window > 0 && source.has(in_windows) ? in_windows : key;
}

LatentState read_latents(const GgufTensors& tensors) {
  const GgufSource& source = tensors.source();
  const std::string rank = size_key(tensors, "attention.kv_lora_rank");
  LatentState latents;
  latents.heads = source.at("attention.head_count", tensors.layer());
  latents.rank = source.integer(rank);
  const StoredTensor& down = tensors.need("attn_kv_a_mqa");
  latents.rope = rows_of(down) - latents.rank;
  const StoredTensor& query = tensors.need(tensors.has("attn_q_b") ? "attn_q_b" : "attn_q");
  const StoredTensor& output = tensors.need("attn_output");
  const std::int64_t query_head = rows_of(query) / latents.heads;
  latents.d_nope = query_head - latents.rope;
  latents.d_v = columns_of(output) / latents.heads;
  if (latents.rope < 0 || latents.rope > query_head) {
    source.fail(fmt::format("tensor '{}' has {} rows, but '{}' is {} and a query head has {} elements",
                            excerpt(down.name), rows_of(down), source.key(rank), latents.rank, query_head));
  }
  latents.window = source.reach(tensors.layer()).window;
  if (latents.window == 0) latents.top_k = source.integer_or("attention.indexer.top_k", 0);
  return latents;
}

void check_shapes(const GgufTensors& tensors, const LatentState& latents) {
  const GgufSource& source = tensors.source();
  const std::string heads = fmt::format("{} heads ({})", latents.heads, source.key("attention.head_count"));
  // The widths come from these two, which the heads must divide; the keys must agree where they are there.
  const std::int64_t head_dim = source.integer_or(size_key(tensors, "attention.key_length_mla"),
                                                  latents.d_nope + latents.rope, kGgufSize);
  const std::int64_t d_v =
      source.integer_or(size_key(tensors, "attention.value_length_mla"), latents.d_v, kGgufSize);
  const char* query = tensors.has("attn_q_b") ? "attn_q_b" : "attn_q";
  tensors.expect_rows(query, checked_mul(latents.heads, head_dim), fmt::format("{} of {}", heads, head_dim));
  tensors.expect_columns("attn_output", checked_mul(latents.heads, d_v), fmt::format("{} of {}", heads, d_v));
  const std::string latent = fmt::format("{} latents of {}", heads, latents.rank);
  tensors.expect_columns("attn_kv_b", latents.rank, source.key("attention.kv_lora_rank"));
  tensors.expect_rows("attn_kv_b", checked_mul(latents.heads, latents.d_nope + latents.d_v),
                      fmt::format("{} of {} and {}", heads, latents.d_nope, latents.d_v));
  tensors.expect_rows("attn_k_b", checked_mul(latents.heads, latents.rank), latent);
  tensors.expect_columns("attn_k_b", latents.d_nope, "the query heads without rotary elements");
  tensors.expect_rows("attn_v_b", checked_mul(latents.heads, latents.d_v),
                      fmt::format("{} of {}", heads, latents.d_v));
  tensors.expect_columns("attn_v_b", latents.rank, source.key("attention.kv_lora_rank"));
  tensors.expect_columns("attn_kv_a_mqa", source.hidden_size(), source.key("embedding_length"));
  tensors.expect_rows("attn_output", source.hidden_size(), source.key("embedding_length"));
}

void add_indexer(GgufBlock& block, const GgufTensors& tensors) {
  if (!tensors.has("indexer.attn_k")) return;
  const GgufSource& source = tensors.source();
  IndexerState state{.heads = source.integer("attention.indexer.head_count"),
                     .width = source.integer("attention.indexer.key_length")};
  tensors.expect_rows("indexer.attn_q_b", checked_mul(state.heads, state.width), "the indexer's heads");
  tensors.expect_rows("indexer.attn_k", state.width, source.key("attention.indexer.key_length"));
  block.linear("indexer.attn_q_b", "indexer.wq_b");
  block.linear("indexer.attn_k", "indexer.wk");
  block.linear("indexer.proj", "indexer.weights_proj");
  block.norm("indexer.k_norm", "indexer.k_norm");
  if (tensors.has("indexer_compressor_gate")) {
    // GLM-5.3 Flash pools several keys into one by learned gates, from keys and gates that it keeps.
    tensors.expect_rows("indexer_compressor_gate", state.width, source.key("attention.indexer.key_length"));
    block.parameter("indexer_compressor_ape", "indexer.index_kpool_compress_ape");
    block.linear("indexer_compressor_gate", "indexer.index_kpool_compress_gate");
    state.width = checked_mul(2, state.width);
  }
  block.place(state);
}

}  // namespace

void add_latent_attention(GgufTensors& tensors, std::vector<Block>& blocks) {
  if (!tensors.has("attn_kv_a_mqa")) return;
  const LatentState latents = read_latents(tensors);
  if (!tensors.has("attn_kv_b")) {
    tensors.need("attn_k_b");
    tensors.need("attn_v_b");
  }
  check_shapes(tensors, latents);

  GgufBlock block(tensors, {.kind = BlockKind::mixer, .name = "mla"});
  add_residual_mixing(block, "attn");
  block.norm("attn_norm", "attn_norm");
  block.linear("attn_q_a", "q_a_proj");
  block.linear("attn_q", "q_proj");
  block.linear("attn_kv_a_mqa", "kv_a_proj_with_mqa");
  block.norm("attn_kv_a_norm", "kv_a_layernorm");
  block.norm("attn_q_a_norm", "q_a_layernorm");
  block.norm("attn_k_norm", "k_rope_only_layernorm");  // dots.note
  block.parameter("attn_sinks", "sinks");
  block.linear("attn_q_b", "q_b_proj");
  block.linear("attn_gate", "attn_gate");
  add_indexer(block, tensors);
  // Absorbed, K's half multiplies the queries and V's half the attention's output. Split, each is one matrix
  // a head; old files keep them together.
  block.linear("attn_kv_b", "kv_b_proj");
  block.linear("attn_k_b", "k_b_proj");
  block.place(latents);
  block.linear("attn_v_b", "v_b_proj");
  block.norm("attn_sub_norm", "attn_sub_norm");
  block.linear("attn_output", "o_proj");
  if (!post_attention_norm_is_next(tensors)) block.norm("post_attention_norm", "attn_post_norm");
  blocks.push_back(std::move(block.block()));
}

}  // namespace memwall
