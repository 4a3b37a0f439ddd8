#include "load/gguf_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <stdexcept>

#include "checkpoint/ggml_types.h"
#include "checkpoint/gguf_bytes.h"
#include "format/checked.h"
#include "load/gguf_layers.h"
#include "load/gguf_order.h"
#include "load/gguf_required.h"
#include "load/gguf_sorted.h"
#include "model/join_layers.h"

namespace memwall {
namespace {

Block embedding_of(GgufTensors& outside) {
  const std::int64_t hidden = outside.source().hidden_size();
  outside.need("token_embd");
  const std::string reason = outside.source().key("embedding_length");
  outside.expect_columns("token_embd", hidden, reason);
  outside.expect_columns("position_embd", hidden, reason);
  GgufBlock block(outside, {.kind = BlockKind::embedding});
  block.set_read(Read::gathered);
  block.linear("token_embd", "embed_tokens", Role::embedding);
  block.linear("position_embd", "embed_positions", Role::positions);
  block.linear("per_layer_token_embd", "embed_tokens_per_layer", Role::embedding);
  block.set_read(Read::always);
  // LFM2 calls its last norm so.
  if (outside.has("output_norm")) block.norm("token_embd_norm", "embed_norm");
  block.linear("per_layer_model_proj", "per_layer_model_projection");
  block.norm("per_layer_proj_norm", "per_layer_projection_norm",
             outside.weight("per_layer_proj_norm") != nullptr
                 ? checked_mul(outside.source().layers(), outside.need("per_layer_proj_norm").elements())
                 : 0);
  block.linear("altup_proj", "altup_projections");
  block.parameter("hrm.z_l_init", "z_l_init");
  return std::move(block.block());
}

Block head_of(GgufTensors& outside, const Tensor& embedding) {
  GgufBlock block(outside, {.kind = BlockKind::head});
  outside.expect_columns("output", outside.source().hidden_size(), outside.source().key("embedding_length"));
  block.linear("altup_unembd_proj", "altup_unembed_projections");
  add_last_residual_mixing(block);
  block.norm("output_norm", "final_norm");
  block.norm("token_embd_norm", "final_norm");
  if (outside.has("output")) {
    block.linear("output", "lm_head", Role::lm_head);
    return std::move(block.block());
  }
  // llama.cpp multiplies by the embedding then, the whole of it.
  Tensor tied = embedding;
  tied.name = "lm_head";
  tied.role = Role::lm_head;
  tied.read = Read::always;
  tied.tied = true;
  block.block().tensors.push_back(tied);
  return std::move(block.block());
}

std::string name_of(const Gguf& file) {
  std::string name = excerpt(file.text_or("general.name", ""));
  if (!name.empty()) return name;
  name = std::filesystem::path(file.path).stem().string();
  constexpr std::size_t kPart = sizeof("-00001-of-00003") - 1;
  if (file.files.size() > 1 && name.size() > kPart) name.resize(name.size() - kPart);
  return excerpt(name);
}

bool is_of_ggml(const std::string& name) {
  const GgmlType* type = find_ggml_type(name);
  return type != nullptr && !type->fork;
}

void add_warnings(const GgufSource& source, const std::vector<std::string>& unknown, Model& model) {
  if (!source.is_known()) {
    model.approximate = true;
    std::string text = fmt::format(
        "architecture '{}' is not known: read by the names of its tensors, with the activation SiLU",
        source.name());
    if (source.has("attention.sliding_window") && !source.has("attention.sliding_window_pattern"))
      text += " and the sliding window in every layer";
    model.warnings.push_back(text);
  } else if (source.architecture().note != nullptr) {
    model.warnings.emplace_back(source.architecture().note);
  }
  if (source.file().has(source.key("attention.kv_lora_rank"))) {
    const auto& tensors = source.file().tensors;
    if (std::any_of(tensors.begin(), tensors.end(),
                    [](const StoredTensor& t) { return t.name.find(".attn_kv_b.") != std::string::npos; })) {
      model.warnings.emplace_back(
          "attn_kv_b is not split into attn_k_b and attn_v_b: latents are counted, but llama.cpp caches the "
          "whole K and V of such files");
    }
  }
  std::map<std::string, std::string> types;  // and what they are shown as
  for (const StoredTensor& tensor : source.file().tensors) {
    if (!tensor.format && !is_of_ggml(tensor.type))
      types.emplace(tensor.type, format_name(nearest_format(tensor)));
  }
  if (!types.empty()) {
    std::vector<std::string> shown;
    for (const auto& [type, format] : types) shown.push_back(fmt::format("{} as {}", type, format));
    model.warnings.push_back(
        fmt::format("types of a fork of ggml, counted by their own bytes and shown as the nearest format: {}",
                    fmt::join(shown, ", ")));
  }
  if (unknown.empty()) return;
  model.approximate = true;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < unknown.size() && i < 3; ++i) names.push_back(excerpt(unknown[i]));
  model.warnings.push_back(fmt::format("{} tensor{} not understood, counted as read in every step: {}{}",
                                       unknown.size(), unknown.size() > 1 ? "s are" : " is",
                                       fmt::join(names, ", "), unknown.size() > 3 ? ", ..." : ""));
}

// A layer that runs again keeps a cache of its own and reads the weights of the first run.
void add_layers(GgufSorted& sorted, std::vector<std::string>& unknown, Model& model) {
  const GgufSource& source = sorted.outside.source();
  const std::vector<std::int32_t> order = gguf_order(source);
  const std::set<std::int32_t> distinct(order.begin(), order.end());
  const bool repeats = distinct.size() < order.size();
  std::map<std::int32_t, std::vector<Block>> tied;
  LayerJoiner layers;
  for (std::size_t run = 0; run < order.size(); ++run) {
    const std::int32_t layer = order[run];
    const auto earlier = tied.find(layer);
    if (earlier != tied.end()) {
      layers.add(static_cast<std::int32_t>(run), earlier->second);
      continue;
    }
    std::vector<Block> blocks = gguf_layer(sorted.layers[static_cast<std::size_t>(layer)], unknown);
    layers.add(static_cast<std::int32_t>(run), blocks);
    if (!repeats) continue;
    for (Block& block : blocks) {
      for (Tensor& tensor : block.tensors) tensor.tied = true;
    }
    tied.emplace(layer, std::move(blocks));
  }
  for (const GgufTensors& layer : sorted.layers) {
    if (layer.empty()) continue;
    source.fail(fmt::format("tensor '{}' is of layer {}, but the file has {} layers",
                            excerpt(layer.rest().begin()->second->name), layer.layer(), distinct.size()));
  }
  model.layers = static_cast<std::int32_t>(order.size());
  layers.finish(model.blocks);
}

Model build(const GgufSource& source) {
  const Gguf& file = source.file();
  GgufSorted sorted = sort_gguf_tensors(source);
  require_gguf_tensors(sorted);
  Model model;
  model.name = model.title = name_of(file);
  model.architecture = source.name();
  model.file = file.path;
  model.hidden_size = source.hidden_size();
  model.max_context = source.integer_or("context_length", 0);
  model.kv = KvFormat::f16;  // llama.cpp's own choice

  std::vector<std::string> unknown;
  model.blocks.push_back(embedding_of(sorted.outside));
  const Tensor embedding = model.blocks.front().tensors.front();
  model.vocab_size = embedding.out;
  add_layers(sorted, unknown, model);
  Block head = head_of(sorted.outside, embedding);
  add_unknown(sorted.outside, model.blocks, unknown);
  model.blocks.push_back(std::move(head));
  model.head = model.blocks.back().find("lm_head")->format;
  model.weights = main_format(model).value_or(model.head);
  model.extras = std::move(sorted.extras);
  add_warnings(source, unknown, model);

  std::int64_t placed = stored_bytes(model);
  for (const Extra& extra : model.extras) placed = checked_add(placed, extra.bytes);
  std::int64_t stored = 0;
  for (const StoredTensor& tensor : file.tensors) stored = checked_add(stored, tensor.bytes);
  if (placed != stored) {
    throw std::logic_error(
        fmt::format("{}: {} bytes of its tensors, of {}, were not placed: a defect of memwall", file.path,
                    stored - placed, stored));
  }
  check_sums(model);
  return model;
}

}  // namespace

Model model_from_gguf(const Gguf& file) {
  const GgufSource source(file);
  try {
    return build(source);
  } catch (const std::overflow_error&) {
    source.fail("its sizes multiply to more than 2^63 - 1");
  }
}

Model load_gguf(const std::string& path) { return model_from_gguf(read_gguf(path)); }

}  // namespace memwall
