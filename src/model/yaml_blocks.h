// The blocks of a YAML model file: one layer's keys to Blocks.
#pragma once

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "input/yaml.h"
#include "model/blocks.h"

namespace memwall {

// The blocks of one layer, in the order of its keys; keys that `layer` already knows (repeat) are passed
// over. Throws InputError.
std::vector<Block> read_layer(yaml::Mapping& layer, const Common& common);

// A linear from its shape, [out, in]. Throws InputError.
Tensor shape_tensor(const yaml::Node& key, const yaml::Node& shape, const Common& common);

Format read_format(const yaml::Node& node, std::string_view what);

// One of a few words. Throws InputError naming the nearest.
template <typename Value>
Value read_choice(const yaml::Node& node, std::string_view what,
                  std::initializer_list<std::pair<const char*, Value>> choices) {
  const std::string word = yaml::as_text(node, what);
  std::vector<std::string> words;
  for (const auto& [name, value] : choices) {
    if (word == name) return value;
    words.emplace_back(name);
  }
  yaml::fail_unknown(node, what, word, words);
}

}  // namespace memwall
