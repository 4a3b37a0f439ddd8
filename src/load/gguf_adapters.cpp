// Granite Switch: low-rank adapters beside every matrix, one of which each token uses.
#include <fmt/format.h>

#include "format/checked.h"
#include "load/gguf_layers.h"

namespace memwall {
namespace {

// Tokens that switch are found by an attention of one head over a cache of its own, behind the layers.
Block router_cache(const GgufSource& source, std::int32_t layer) {
  const std::int64_t heads = source.at("attention.head_count", layer);
  const std::int64_t width = source.integer_or("attention.key_length", source.hidden_size() / heads);
  Block block{.kind = BlockKind::kv_cache};
  block.place(KvState{
      .heads = 1, .kv_heads = 1, .d_k = width, .d_v = source.integer_or("attention.value_length", width)});
  return block;
}

}  // namespace

void add_adapters(GgufTensors& tensors, std::vector<Block>& blocks) {
  const GgufSource& source = tensors.source();
  if (!source.has("adapters.count")) return;
  // The first stands for none of them, and is computed, too (src/models/granite-switch.cpp in llama.cpp).
  const std::int64_t slots = checked_add(source.integer("adapters.count"), 1);
  const std::int64_t rank = source.integer("adapters.lora_rank");
  GgufBlock block(tensors, {.kind = BlockKind::moe, .experts_per_token = 1});
  for (const char* stem : {"attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"}) {
    const std::string down = fmt::format("{}.lora_a", stem);
    const std::string up = fmt::format("{}.lora_b", stem);
    tensors.need(down);
    tensors.need(up);
    tensors.expect_rows(down, checked_mul(slots, rank), source.key("adapters"));
    tensors.expect_columns(up, rank, source.key("adapters.lora_rank"));
    block.experts(down, "adapters." + down, slots);
    block.experts(up, "adapters." + up, slots);
  }
  blocks.push_back(std::move(block.block()));
  if (tensors.layer() == source.layers() - 1) blocks.push_back(router_cache(source, tensors.layer()));
}

}  // namespace memwall
