#include "load/gguf_layers.h"

#include <fmt/format.h>

#include <string_view>

#include "checkpoint/gguf_bytes.h"

namespace memwall {
namespace {

bool mixes_tokens(const std::vector<Block>& blocks) {
  for (const Block& block : blocks) {
    if (block.kind == BlockKind::attention || block.kind == BlockKind::mixer) return true;
  }
  return false;
}

// Names of what might keep a state.
bool may_keep_state(std::string_view name) {
  for (const char* part : {"attn", "ssm", "conv", "mix", "recur", "delta"}) {
    if (name.find(part) != std::string_view::npos && name.find("norm") == std::string_view::npos) return true;
  }
  return false;
}

}  // namespace

void add_side_paths(GgufTensors& tensors, std::vector<Block>& blocks) {
  GgufBlock block(tensors, {.kind = BlockKind::shapes});
  block.norm("altup_router_norm", "altup.router_norm");
  for (const char* part : {"router", "predict_coef", "correct_coef"})
    block.linear(fmt::format("altup_{}", part), fmt::format("altup.{}", part));
  block.parameter("altup_correct_scale", "altup.correct_scale");
  block.linear("laurel_l", "laurel.linear_left");
  block.linear("laurel_r", "laurel.linear_right");
  block.norm("laurel_post_norm", "laurel.post_norm");
  block.linear("inp_gate", "per_layer_input_gate");
  block.linear("proj", "per_layer_projection");
  block.norm("post_norm", "post_per_layer_input_norm");
  block.parameter("layer_output_scale", "layer_scalar");
  if (!block.empty()) blocks.push_back(std::move(block.block()));
}

void add_unknown(GgufTensors& tensors, std::vector<Block>& blocks, std::vector<std::string>& unknown) {
  if (tensors.empty()) return;
  constexpr std::size_t kMostKept = 4096;  // of a model, each by itself
  GgufBlock block(tensors, {.kind = BlockKind::shapes});
  while (!tensors.empty()) {
    const auto& [name, tensor] = *tensors.rest().begin();
    unknown.push_back(tensor->name);
    if (unknown.size() > kMostKept) {
      block.others(name);
      continue;
    }
    const std::string whole = name;
    const std::size_t dot = whole.rfind('.');
    const std::string stem = whole.substr(0, dot);
    const bool matrix = tensor->shape.size() > 1 && rows_of(*tensor) > 1 && columns_of(*tensor) > 1;
    if (matrix && (dot == std::string::npos || whole.substr(dot) == ".weight")) {
      block.linear(stem, excerpt(stem));
    } else {
      block.parameter(whole, excerpt(whole));
    }
  }
  blocks.push_back(std::move(block.block()));
}

std::vector<Block> gguf_layer(GgufTensors& tensors, std::vector<std::string>& unknown) {
  const GgufSource& source = tensors.source();
  if (tensors.empty()) {
    source.fail(fmt::format("layer {} has no tensors, but '{}' is {}", tensors.layer(),
                            source.key("block_count"), source.blocks()));
  }
  std::vector<Block> blocks;
  add_ngram_embedding(tensors, blocks);
  add_recurrence(tensors, blocks);
  add_lightning_attention(tensors, blocks);
  add_latent_attention(tensors, blocks);
  add_compressed_attention(tensors, blocks);
  add_attention(tensors, blocks);
  const bool mixes = mixes_tokens(blocks);
  add_feed_forward(tensors, blocks);
  add_adapters(tensors, blocks);
  add_side_paths(tensors, blocks);
  for (const auto& [name, tensor] : tensors.rest()) {
    if (mixes || !may_keep_state(name)) continue;
    source.fail(
        fmt::format("tensor '{}' is not understood, so what layer {} keeps of earlier tokens is not "
                    "known; describe the model in YAML (docs/model-format.md)",
                    excerpt(tensor->name), tensors.layer()));
  }
  add_unknown(tensors, blocks, unknown);
  return blocks;
}

}  // namespace memwall
