#include "model/yaml_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <unordered_set>
#include <utility>
#include <vector>

#include "model/block_yaml.h"
#include "model/run_yaml.h"
#include "model/spec_of.h"

namespace memwall {
namespace {

// What most blocks have in common: the kind of norm, and the format of small tensors.
Common common_of(const Model& model) {
  Common common;
  common.hidden_size = model.hidden_size;
  common.weights = model.weights;
  common.head = model.head;
  std::map<NormKind, std::size_t> kinds;
  std::map<std::string, std::size_t> formats;
  for (const Block& block : model.blocks) {
    for (const Tensor& tensor : block.tensors) {
      if (tensor.role == Role::norm) kinds[tensor.norm] += block.layers.size() + 1;
      if (tensor.role == Role::norm || tensor.role == Role::router)
        formats[format_name(tensor.format)] += block.layers.size() + 1;
    }
  }
  const auto less = [](const auto& a, const auto& b) { return a.second < b.second; };
  common.norm = kinds.empty() ? NormKind::none : std::max_element(kinds.begin(), kinds.end(), less)->first;
  common.small = formats.empty()
                     ? Format{}
                     : *find_format(std::max_element(formats.begin(), formats.end(), less)->first);
  return common;
}

// A layer's blocks, by their places in Model::blocks.
using Layer = std::vector<std::size_t>;

std::vector<Layer> layers_of(const Model& model) {
  std::vector<Layer> layers(static_cast<std::size_t>(model.layers));
  for (std::size_t b = 0; b < model.blocks.size(); ++b) {
    for (const std::int32_t layer : model.blocks[b].layers)
      layers[static_cast<std::size_t>(layer)].push_back(b);
  }
  return layers;
}

// How often the `length` layers from `first` on repeat.
std::size_t repeats(const std::vector<Layer>& layers, std::size_t first, std::size_t length) {
  std::size_t count = 1;
  while (first + (count + 1) * length <= layers.size() &&
         std::equal(layers.begin() + static_cast<std::ptrdiff_t>(first),
                    layers.begin() + static_cast<std::ptrdiff_t>(first + length),
                    layers.begin() + static_cast<std::ptrdiff_t>(first + count * length))) {
    ++count;
  }
  return count;
}

// The text's lines, the first after `first`, the others after `rest`.
std::string prefixed(const std::string& text, const std::string& first, const std::string& rest) {
  std::string out;
  std::size_t start = 0;
  while (start < text.size()) {
    const std::size_t end = std::min(text.find('\n', start), text.size());
    out += (start == 0 ? first : rest) + text.substr(start, end - start) + "\n";
    start = end + 1;
  }
  return out;
}

std::string layers_yaml(const Model& model, const Common& common) {
  constexpr std::size_t kLongestPattern = 64;
  const std::vector<Layer> layers = layers_of(model);
  std::vector<std::string> blocks;
  for (const Block& block : model.blocks) {
    blocks.push_back(block.layers.empty() ? "" : block_yaml(block, common));
  }
  const auto layer_text = [&](const Layer& layer) {
    std::set<std::string> keys;
    std::string text;
    std::string list = "blocks:\n";
    for (const std::size_t b : layer) {
      keys.insert(blocks[b].substr(0, blocks[b].find(':')));
      text += blocks[b];
      list += prefixed(blocks[b], "  - ", "    ");
    }
    return keys.size() == layer.size() ? text : list;
  };
  std::string text = "layers:\n";
  for (std::size_t first = 0; first < layers.size();) {
    std::size_t length = 1;
    std::size_t count = repeats(layers, first, 1);
    for (std::size_t l = 2; l <= kLongestPattern && first + 2 * l <= layers.size(); ++l) {
      const std::size_t c = repeats(layers, first, l);
      if (c > 1 && c * l > count * length) {
        length = l;
        count = c;
      }
    }
    const std::string repeat = count > 1 ? fmt::format("repeat: {}\n", count) : "";
    if (length == 1) {
      text += prefixed(repeat + layer_text(layers[first]), "  - ", "    ");
    } else {
      text += prefixed(repeat + "pattern:\n", "  - ", "    ");
      for (std::size_t i = 0; i < length; ++i)
        text += prefixed(layer_text(layers[first + i]), "      - ", "        ");
    }
    first += length * count;
  }
  return text;
}

// What stands outside the layers and is neither embedding nor head: tensors of a checkpoint that no reader
// understood. Their names need not be unique among several blocks.
Block other_tensors(const Model& model) {
  Block all;
  std::unordered_set<std::string> names;
  for (const Block& block : model.blocks) {
    if (!block.layers.empty() || block.kind == BlockKind::embedding || block.kind == BlockKind::head)
      continue;
    for (Tensor tensor : block.tensors) {
      while (!names.insert(tensor.name).second) tensor.name += "_2";
      all.tensors.push_back(std::move(tensor));
    }
  }
  return all;
}

// Keys for the usual embedding and head, or their runs.
std::string outside_yaml(const Model& model, const Common& common) {
  const auto of_kind = [&](BlockKind kind) -> const Block* {
    for (const Block& block : model.blocks) {
      if (block.kind == kind) return &block;
    }
    return nullptr;
  };
  const auto stored_alike = [](const Block& a, const Block& b) {
    for (std::size_t i = 0; i < a.tensors.size(); ++i) {
      if (a.tensors[i].format != b.tensors[i].format ||
          a.tensors[i].stored_bytes != b.tensors[i].stored_bytes)
        return false;
    }
    return true;
  };
  std::string text;
  if (const Block* embedding = of_kind(BlockKind::embedding)) {
    const Tensor* positions = embedding->find("embed_positions");
    const std::int64_t rows = positions != nullptr ? positions->out : 0;
    const Block usual = embedding_block(common, model.vocab_size, rows);
    if (same_shapes(usual, *embedding) && stored_alike(usual, *embedding)) {
      if (rows > 0) text += fmt::format("positions: {}\n", rows);
    } else {
      text += "embedding:\n" + prefixed(run_yaml(*embedding, common), "  ", "  ");
    }
  }
  if (const Block* head = of_kind(BlockKind::head)) {
    const Tensor* lm_head = head->find("lm_head");
    const HeadSpec spec{.vocab_size = lm_head != nullptr ? model.vocab_size : 0,
                        .tied = lm_head != nullptr && lm_head->tied,
                        .bias = head->find("lm_head.bias") != nullptr,
                        .final_norm = head->find("final_norm") != nullptr};
    const Block usual = head_block(common, spec);
    if (same_shapes(usual, *head) && stored_alike(usual, *head)) {
      if (spec.tied) text += "tie_embeddings: true\n";
      if (spec.bias) text += "lm_head_bias: true\n";
      if (spec.final_norm != (model.vocab_size > 0)) text += fmt::format("final_norm: {}\n", spec.final_norm);
    } else {
      text += "head:\n" + prefixed(run_yaml(*head, common), "  ", "  ");
    }
  }
  if (const Block other = other_tensors(model); !other.tensors.empty())
    text += "outside:\n" + prefixed(run_yaml(other, common), "  ", "  ");
  return text;
}

// Names in model files are lower case letters, digits and . _ - only.
std::string plain_name(const std::string& name) {
  std::string plain;
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    plain += std::isalnum(byte) != 0 && byte < 0x80 ? static_cast<char>(std::tolower(byte))
             : c == '.' || c == '_'                 ? c
                                                    : '-';
  }
  return plain.empty() ? "model" : plain;
}

std::string notes_yaml(const Model& model) {
  std::string text = model.approximate ? "approximate: true\n" : "";
  if (!model.warnings.empty()) text += "warnings:\n";
  for (const std::string& warning : model.warnings) text += fmt::format("  - {}\n", yaml_scalar(warning));
  if (!model.extras.empty()) text += "extras:\n";
  for (const Extra& extra : model.extras) {
    Flow flow;
    flow.add("what", yaml_scalar(extra.what));
    for (const auto& [key, value] :
         {std::pair{"tensors", extra.tensors}, {"parameters", extra.parameters}, {"bytes", extra.bytes}}) {
      flow.add_unless(key, value, std::int64_t{0});
    }
    text += fmt::format("  - {}\n", flow.braces());
  }
  return text;
}

}  // namespace

std::string model_yaml(const Model& model) {
  const Common common = common_of(model);
  std::string text = fmt::format("name: {}\n", plain_name(model.name));
  if (!model.title.empty()) text += fmt::format("title: {}\n", yaml_scalar(model.title));
  if (!model.aliases.empty()) {
    std::vector<std::string> aliases;
    for (const std::string& alias : model.aliases) aliases.push_back(yaml_scalar(alias));
    text += fmt::format("aliases: [{}]\n", fmt::join(aliases, ", "));
  }
  if (!model.architecture.empty()) text += fmt::format("architecture: {}\n", yaml_scalar(model.architecture));
  if (!model.source.empty()) text += fmt::format("source: {}\n", yaml_scalar(model.source));
  if (model.published) {
    text += fmt::format("parameters:\n  published: {}\n  source: {}\n", model.published->parameters,
                        yaml_scalar(model.published->source));
    if (model.published->rounded) text += "  rounded: true\n";
    if (model.published->buffers > 0) {
      text += fmt::format("  buffers: {}\n  buffers_are: {}\n", model.published->buffers,
                          yaml_scalar(model.published->buffers_are));
    }
  }
  text += notes_yaml(model);
  text += fmt::format("weights: {}\n", format_name(model.weights));
  const bool plain = is_plain_float(model.weights);
  const Format small = plain ? model.weights : Format{FormatKind::bf16, 0, false};
  const Format head = keeps_16bit_head(model.weights) ? small : model.weights;
  if (model.head != head) text += fmt::format("head_weights: {}\n", format_name(model.head));
  if (common.small != small) text += fmt::format("norm_weights: {}\n", format_name(common.small));
  const KvFormat kv = plain ? *find_kv_format(format_name(model.weights)) : KvFormat::bf16;
  if (model.kv != kv) text += fmt::format("kv: {}\n", kv_format_name(model.kv));
  if (model.hidden_size > 0) text += fmt::format("hidden_size: {}\n", model.hidden_size);
  if (model.vocab_size > 0) text += fmt::format("vocab_size: {}\n", model.vocab_size);
  if (model.max_context > 0) text += fmt::format("max_context: {}\n", model.max_context);
  if (common.norm != NormKind::rms) text += fmt::format("norm: {}\n", norm_kind_name(common.norm));
  return text + outside_yaml(model, common) + layers_yaml(model, common);
}

}  // namespace memwall
