#include <fmt/format.h>

#include <algorithm>

#include "checkpoint/gguf_bytes.h"
#include "format/checked.h"
#include "load/gguf_layers.h"

namespace memwall {
namespace {

constexpr std::int64_t kGemma3nOwnCaches = 20;  // layers, in llama.cpp's src/models/gemma3n.cpp

struct Heads {
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t d_k = 0;
  std::int64_t d_v = 0;
  std::int64_t q_width() const { return checked_mul(heads, d_k); }
  std::int64_t k_width() const { return checked_mul(kv_heads, d_k); }
  std::int64_t v_width() const { return checked_mul(kv_heads, d_v); }
  std::int64_t y_width() const { return checked_mul(heads, d_v); }
};

Heads read_heads(const GgufSource& source, std::int32_t layer, bool windowed) {
  Heads heads;
  heads.heads = source.at("attention.head_count", layer);
  heads.kv_heads = source.at_or("attention.head_count_kv", layer, heads.heads, kGgufSize);
  if (heads.heads % heads.kv_heads != 0) {
    source.fail(fmt::format("'{}' ({}) must be a multiple of '{}' ({}), in layer {}",
                            source.key("attention.head_count"), heads.heads,
                            source.key("attention.head_count_kv"), heads.kv_heads, layer));
  }
  // Gemma 4's sliding layers have narrower heads.
  const auto width = [&](const char* key) {
    const std::string in_windows = std::string(key) + "_swa";
    if (windowed && source.has(in_windows)) return source.at(in_windows, layer);
    if (source.has(key)) return source.at(key, layer);
    if (source.hidden_size() % heads.heads != 0) {
      source.fail(fmt::format("'{}' ({}) does not divide '{}' ({}), and there is no '{}'",
                              source.key("attention.head_count"), heads.heads, source.key("embedding_length"),
                              source.hidden_size(), source.key(key)));
    }
    return source.hidden_size() / heads.heads;
  };
  heads.d_k = width("attention.key_length");
  heads.d_v = width("attention.value_length");
  return heads;
}

// True where the layer reads the cache of an earlier one.
bool shares_cache(const GgufSource& source, std::int32_t layer) {
  const std::int64_t shared = source.integer_or("attention.shared_kv_layers", 0, {0, source.layers() - 1});
  if (shared > 0) return layer >= source.layers() - shared;
  return source.name() == "gemma3n" && layer >= kGemma3nOwnCaches;
}

void check_shapes(const GgufTensors& tensors, const Heads& heads) {
  const GgufSource& source = tensors.source();
  const std::string of_q =
      fmt::format("{} heads ({}) of {}", heads.heads, source.key("attention.head_count"), heads.d_k);
  const std::string of_kv =
      fmt::format("{} heads ({})", heads.kv_heads, source.key("attention.head_count_kv"));
  // Qwen3-Next's attn_q makes an output gate, too.
  if (const StoredTensor* q = tensors.weight("attn_q")) {
    if (rows_of(*q) != checked_mul(2, heads.q_width())) tensors.expect_rows("attn_q", heads.q_width(), of_q);
  }
  tensors.expect_rows("attn_k", heads.k_width(), fmt::format("{} of {}", of_kv, heads.d_k));
  tensors.expect_rows("attn_v", heads.v_width(), fmt::format("{} of {}", of_kv, heads.d_v));
  if (const StoredTensor* qkv = tensors.weight("attn_qkv")) {
    const std::int64_t kv_width = checked_add(heads.k_width(), heads.v_width());
    if (rows_of(*qkv) != checked_add(checked_mul(2, heads.q_width()), kv_width))
      tensors.expect_rows("attn_qkv", checked_add(heads.q_width(), kv_width), of_q + " and " + of_kv);
  }
  tensors.expect_columns("attn_output", heads.y_width(),
                         fmt::format("{} heads of {}", heads.heads, heads.d_v));
  const std::string hidden = source.key("embedding_length");
  for (const char* stem : {"attn_q", "attn_k", "attn_v", "attn_qkv"})
    tensors.expect_columns(stem, source.hidden_size(), hidden);
  tensors.expect_rows("attn_output", source.hidden_size(), hidden);
}

// MiniMax-M3 and Qwen4 attend to the blocks of tokens that an indexer of their own chooses. Returns the
// tokens read; 0 for all, in layers of Qwen4 that the file gives no blocks.
std::int64_t add_block_indexer(GgufBlock& block, const GgufTensors& tensors) {
  if (!tensors.has("indexer.k_proj")) return 0;
  const GgufSource& source = tensors.source();
  const IndexerState state{.heads = source.integer("attention.indexer.head_count"),
                           .width = source.integer("attention.indexer.key_length")};
  tensors.expect_rows("indexer.q_proj", checked_mul(state.heads, state.width), "the indexer's heads");
  tensors.expect_rows("indexer.k_proj", state.width, source.key("attention.indexer.key_length"));
  constexpr const char* kRatios = "attention.compress_ratios";
  const bool has_size = source.has("attention.indexer.block_size");
  const std::int64_t ratio = has_size ? 0 : source.at_or(kRatios, tensors.layer(), 0);
  const bool chooses = has_size || ratio > 0;
  if (!chooses) block.set_read(Read::never);
  for (const char* part : {"q_proj", "k_proj"}) {
    tensors.need(fmt::format("indexer.{}", part));
    block.linear(fmt::format("indexer.{}", part), fmt::format("indexer.{}", part));
  }
  block.norm("indexer.q_norm", "indexer.q_norm", checked_mul(state.heads, state.width));
  block.norm("indexer.k_norm", "indexer.k_norm");
  block.set_read(Read::always);
  if (!chooses) return 0;
  block.place(state);
  const std::int64_t top_k = source.integer("attention.indexer.top_k");
  // Qwen4's is a number of tokens in whole blocks, to which the unfinished block comes.
  return has_size ? checked_mul(top_k, source.integer("attention.indexer.block_size"))
                  : checked_add(top_k, ratio - 1);
}

void norms_behind(GgufBlock& block, const GgufTensors& tensors) {
  // DBRX calls its norm before the experts so.
  if (tensors.source().name() != "dbrx") block.norm("attn_output_norm", "attn_post_norm");
  if (!post_attention_norm_is_next(tensors)) block.norm("post_attention_norm", "attn_post_norm");
}

// Some layers of DeciLM have a linear in the attention's place.
void add_linear_layer(GgufTensors& tensors, std::vector<Block>& blocks) {
  GgufBlock block(tensors, {.kind = BlockKind::mixer, .name = "linear"});
  block.norm("attn_norm", "attn_norm");
  block.linear("attn_output", "o_proj");
  blocks.push_back(std::move(block.block()));
}

}  // namespace

bool post_attention_norm_is_next(const GgufTensors& tensors) {
  return !tensors.has("ffn_norm") && !tensors.has("post_ffw_norm") &&
         (tensors.has_any("ffn_") || tensors.has_any("channel_mix_"));
}

void add_attention(GgufTensors& tensors, std::vector<Block>& blocks) {
  const bool fused = tensors.has("attn_qkv");
  if (!fused && !tensors.has("attn_q")) {
    if (tensors.has("attn_output")) add_linear_layer(tensors, blocks);
    return;
  }
  const GgufSource& source = tensors.source();
  const std::int32_t layer = tensors.layer();
  const GgufSource::Reach reach = source.reach(layer);
  const Heads heads = read_heads(source, layer, reach.is_bounded());
  const bool shared = shares_cache(source, layer);
  if (!fused && !shared) {
    tensors.need("attn_k");
    // Where Gemma 4 has none, V is K; the cache holds both.
    if (source.name() != "gemma4") tensors.need("attn_v");
  }
  tensors.need("attn_output");
  check_shapes(tensors, heads);

  GgufBlock block(tensors, {.kind = BlockKind::attention});
  add_residual_mixing(block, "attn");
  const bool of_its_own = tensors.has("attn_norm_2");  // Falcon 40B: attn_norm is the MLP's
  block.norm(of_its_own ? "attn_norm_2" : "attn_norm", "attn_norm");
  block.linear("attn_qkv", "qkv_proj");
  block.linear("attn_q", "q_proj");
  if (shared) block.set_read(Read::never);
  block.linear("attn_k", "k_proj");
  block.linear("attn_v", "v_proj");
  block.set_read(Read::always);
  block.linear("attn_gate", "attn_gate");
  block.norm("attn_q_norm", "q_norm", heads.q_width());
  if (shared) block.set_read(Read::never);
  block.norm("attn_k_norm", "k_norm", heads.k_width());
  block.set_read(Read::always);
  block.parameter("attn_sinks", "sinks");
  const std::int64_t top_k = add_block_indexer(block, tensors);
  block.place(KvState{.heads = heads.heads,
                      .kv_heads = heads.kv_heads,
                      .d_k = heads.d_k,
                      .d_v = heads.d_v,
                      .window = reach.window,
                      .chunk = reach.chunk,
                      .top_k = top_k,
                      .rotary = source.is_rotary(layer),
                      .shared = shared});
  block.norm("attn_sub_norm", "attn_sub_norm");
  block.linear("attn_output", "o_proj");
  norms_behind(block, tensors);
  blocks.push_back(std::move(block.block()));
}

}  // namespace memwall
