#include "model/yaml_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <stdexcept>

#include "input/suggest.h"
#include "model/blocks.h"
#include "model/yaml_blocks.h"
#include "model/yaml_run.h"

namespace memwall {
namespace {

using yaml::Mapping;
using yaml::Node;

constexpr Range kSize{1, std::int64_t{1} << 31};
constexpr Range kCount{1, std::int64_t{1} << 50};
constexpr Range kTotal{0, std::int64_t{1} << 50};
constexpr std::int32_t kMostLayers = 10'000;
constexpr std::int64_t kMostBlocks = 1'000'000;  // of one entry: a file of a megabyte must not take gigabytes

void require_name(const Node& node, const std::string& name) {
  const bool plain = std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return std::islower(c) || std::isdigit(c) || c == '.' || c == '_' || c == '-';
  });
  if (!plain)
    yaml::fail(node, fmt::format("the name '{}' may hold lower case letters, digits and . _ - only", name));
}

std::optional<Published> read_published(Mapping& top) {
  const Node* node = top.optional("parameters");
  if (node == nullptr) return std::nullopt;
  Mapping map(*node, "parameters");
  Published published;
  published.parameters = map.integer("published", kCount);
  published.source = map.text("source");
  published.rounded = map.flag_or("rounded", false);
  published.buffers = map.integer_or("buffers", kCount, 0);
  published.buffers_are = map.text_or("buffers_are", "");
  if (published.buffers > 0 && published.buffers_are.empty()) {
    yaml::fail(*node, "parameters has buffers: say what they are in buffers_are");
  }
  map.finish();
  return published;
}

// What the reader of a checkpoint found besides the layers, as inspect writes it.
void read_notes(Mapping& top, Model& model) {
  model.approximate = top.flag_or("approximate", false);
  model.warnings = top.text_list_or_empty("warnings");
  const Node* list = top.optional("extras");
  if (list == nullptr) return;
  if (list->kind != yaml::Kind::sequence) yaml::fail(*list, "extras must be a list");
  for (const Node& item : list->items) {
    Mapping map(item, "an extra");
    Extra extra;
    extra.what = map.text("what");
    extra.tensors = map.integer_or("tensors", kTotal, 0);
    extra.parameters = map.integer_or("parameters", kTotal, 0);
    extra.bytes = map.integer_or("bytes", kTotal, 0);
    map.finish();
    model.extras.push_back(std::move(extra));
  }
}

// Appends one entry of `layers`: its layer or pattern, repeated.
void read_entry(const Node& entry, const Common& common, Model& model) {
  Mapping map(entry, "a layer");
  const std::int64_t repeat = map.integer_or("repeat", {1, kMostLayers}, 1);
  const Node* pattern = map.optional("pattern");
  std::vector<std::vector<Block>> layers;
  if (pattern != nullptr) {
    if (pattern->kind != yaml::Kind::sequence || pattern->items.empty()) {
      yaml::fail(*pattern, "pattern must be a list of layers");
    }
    for (const Node& item : pattern->items) {
      Mapping layer(item, "a layer");
      layers.push_back(read_layer(layer, common));
    }
    for (const auto& [key, value] : entry.entries) {
      if (!map.knows(key.text))
        yaml::fail(key,
                   fmt::format("'{}' stands beside pattern; a pattern's layers hold the blocks", key.text));
    }
  } else {
    layers.push_back(read_layer(map, common));
  }
  const std::int64_t added = repeat * static_cast<std::int64_t>(layers.size());
  if (model.layers + added > kMostLayers) yaml::fail(entry, fmt::format("more than {} layers", kMostLayers));
  std::int64_t blocks = 0;
  for (const std::vector<Block>& layer : layers) blocks += static_cast<std::int64_t>(layer.size());
  if (blocks * repeat > kMostBlocks)
    yaml::fail(entry, fmt::format("more than {} blocks in all its layers", kMostBlocks));
  for (std::size_t position = 0; position < layers.size(); ++position) {
    for (Block& block : layers[position]) {
      for (std::int64_t i = 0; i < repeat; ++i) {
        block.layers.push_back(static_cast<std::int32_t>(model.layers +
                                                         i * static_cast<std::int64_t>(layers.size()) +
                                                         static_cast<std::int64_t>(position)));
      }
      model.blocks.push_back(std::move(block));
    }
  }
  model.layers += static_cast<std::int32_t>(added);
}

bool needs_hidden_size(const Node& layers) {
  const auto layer_needs = [](const Node& layer) {
    return layer.find("attention") != nullptr || layer.find("mixer") != nullptr ||
           layer.find("mlp") != nullptr || layer.find("moe") != nullptr;
  };
  for (const Node& entry : layers.items) {
    if (layer_needs(entry)) return true;
    if (const Node* pattern = entry.find("pattern")) {
      if (std::any_of(pattern->items.begin(), pattern->items.end(), layer_needs)) return true;
    }
  }
  return false;
}

// The formats a file states, and what follows from them.
Common read_common(Mapping& top, Model& model) {
  Common common;
  model.weights = Format{FormatKind::bf16, 0, false};
  if (const Node* node = top.optional("weights")) model.weights = read_format(*node, "weights");
  const bool plain = is_plain_float(model.weights);
  common.weights = model.weights;
  common.small = plain ? model.weights : Format{FormatKind::bf16, 0, false};
  common.head = keeps_16bit_head(model.weights) ? common.small : model.weights;
  if (const Node* node = top.optional("head_weights")) common.head = read_format(*node, "head_weights");
  if (const Node* node = top.optional("norm_weights")) common.small = read_format(*node, "norm_weights");
  model.head = common.head;
  model.kv = KvFormat::bf16;
  if (plain) model.kv = *find_kv_format(format_name(model.weights));
  if (const Node* node = top.optional("kv")) {
    const std::string name = yaml::as_text(*node, "kv");
    const std::optional<KvFormat> kv = find_kv_format(name);
    if (!kv) yaml::fail_unknown(*node, "KV format", name, kv_format_names());
    model.kv = *kv;
  }
  common.norm = NormKind::rms;
  if (const Node* node = top.optional("norm")) {
    common.norm = read_choice<NormKind>(*node, "norm",
                                        {{"rms", NormKind::rms},
                                         {"layer", NormKind::layer},
                                         {"layer_no_bias", NormKind::layer_no_bias},
                                         {"none", NormKind::none}});
  }
  return common;
}

}  // namespace

Model model_from_yaml(const Node& document) {
  Mapping top(document, "a model");
  Model model;
  model.file = *document.file;
  model.name = top.text("name");
  require_name(*top.optional("name"), model.name);
  model.title = top.text_or("title", model.name);
  model.architecture = top.text_or("architecture", "");
  model.source = top.text_or("source", "");
  model.aliases = top.text_list_or_empty("aliases");
  model.published = read_published(top);
  read_notes(top, model);
  Common common = read_common(top, model);

  model.hidden_size = common.hidden_size = top.integer_or("hidden_size", kSize, 0);
  model.vocab_size = top.integer_or("vocab_size", kSize, 0);
  model.max_context = top.integer_or("max_context", kCount, 0);
  const std::int64_t positions = top.integer_or("positions", kSize, 0);
  const bool vocabulary = model.vocab_size > 0;
  HeadSpec head{.vocab_size = model.vocab_size,
                .tied = top.flag_or("tie_embeddings", false),
                .bias = top.flag_or("lm_head_bias", false),
                .final_norm = top.flag_or("final_norm", vocabulary)};
  const Node* own_embedding = top.optional("embedding");
  const Node* own_head = top.optional("head");
  const Node* outside = top.optional("outside");
  const Node& layers = top.require("layers");
  top.finish();

  if (layers.kind != yaml::Kind::sequence || layers.items.empty()) {
    yaml::fail(layers, "layers must be a list of layers, each a mapping");
  }
  if (model.hidden_size == 0 && (vocabulary || head.final_norm || needs_hidden_size(layers))) {
    yaml::fail(document, "a model with a vocabulary, attention, mixer, mlp or moe needs hidden_size");
  }
  if (!vocabulary && (positions > 0 || head.tied || head.bias)) {
    yaml::fail(document, "positions, tie_embeddings and lm_head_bias need vocab_size");
  }
  try {
    if (own_embedding != nullptr) {
      model.blocks.push_back({.kind = BlockKind::embedding});
      read_run(*own_embedding, common, model.blocks.back());
    } else if (vocabulary) {
      model.blocks.push_back(embedding_block(common, model.vocab_size, positions));
    }
    for (const Node& entry : layers.items) read_entry(entry, common, model);
    if (outside != nullptr) {
      model.blocks.push_back({.kind = BlockKind::shapes});
      read_run(*outside, common, model.blocks.back());
    }
    if (own_head != nullptr) {
      model.blocks.push_back({.kind = BlockKind::head});
      read_run(*own_head, common, model.blocks.back());
    } else if (vocabulary || head.final_norm) {
      model.blocks.push_back(head_block(common, head));
    }
    check_sums(model);
  } catch (const std::overflow_error&) {
    yaml::fail(layers, "the layers' sizes multiply to more than 2^63 - 1 bytes");
  }
  return model;
}

Model load_model_yaml(const std::string& path) { return model_from_yaml(yaml::load(path)); }

}  // namespace memwall
