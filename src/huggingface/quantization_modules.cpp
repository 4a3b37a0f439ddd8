#include "huggingface/quantization_modules.h"

#include <algorithm>
#include <charconv>
#include <optional>

namespace memwall {
namespace {

constexpr std::string_view kMeta = "*?[";

struct LayerPath {
  std::int32_t layer = 0;
  std::string_view rest;  // behind the number and its '.'
};

// "layers.3.mlp" taken apart, its number without wildcards.
std::optional<LayerPath> split_layer(std::string_view path) {
  const std::size_t dot = path.find('.');
  if (dot == std::string_view::npos) return std::nullopt;
  bool known = false;
  for (const std::string& list : layer_lists()) known = known || path.substr(0, dot) == list;
  if (!known) return std::nullopt;
  path.remove_prefix(dot + 1);
  LayerPath split;
  const auto [end, error] = std::from_chars(path.data(), path.data() + path.size(), split.layer);
  if (error != std::errc{} || split.layer < 0) return std::nullopt;
  path.remove_prefix(static_cast<std::size_t>(end - path.data()));
  if (!path.empty() && path.front() != '.') return std::nullopt;
  split.rest = path.empty() ? path : path.substr(1);
  return split;
}

ModulePattern::States join(ModulePattern::States a, const ModulePattern::States& b) {
  std::set<std::uint16_t> all(a.begin(), a.end());
  all.insert(b.begin(), b.end());
  return {all.begin(), all.end()};
}

// The tensors whose names take the pattern from `states` to a match.
std::vector<std::uint32_t> matching(const ModulePattern& pattern, const ModulePattern::States& states,
                                    const BlockNames& names, ModulePattern::Budget& budget) {
  std::vector<std::uint32_t> tensors;
  if (states.empty()) return tensors;
  for (std::size_t i = 0; i < names.of_tensor.size(); ++i) {
    for (const std::string& name : names.of_tensor[i]) {
      if (!pattern.matches(pattern.advance(states, name, budget))) continue;
      tensors.push_back(static_cast<std::uint32_t>(i));
      break;
    }
  }
  return tensors;
}

}  // namespace

void ModuleList::add(std::string_view name) {
  constexpr std::string_view kMlx = "switch_mlp.";  // its experts lie in one tensor of that module
  if (const std::size_t at = name.find(kMlx); at != std::string_view::npos)
    return add(std::string(name.substr(0, at)) + "experts." + std::string(name.substr(at + kMlx.size())));
  constexpr std::string_view kWeight = ".weight";  // some lists name tensors
  if (name.size() > kWeight.size() && name.substr(name.size() - kWeight.size()) == kWeight) {
    name.remove_suffix(kWeight.size());
  }
  if (!name.empty() && name.back() == '.') name.remove_suffix(1);  // "model.layers.3."
  const std::string_view path = without_prefix(name);
  const bool from_root = path.size() != name.size();
  const std::optional<LayerPath> in_layer = split_layer(path);
  const bool glob = path.find_first_of(kMeta) != std::string_view::npos;
  if (in_layer) {
    InLayer& listed = in_layer_[in_layer->layer];
    (glob ? listed.globs : listed.paths).emplace(in_layer->rest);
    if (glob) ModulePattern::glob(in_layer->rest);  // refused here, where the caller knows the place
  } else if (glob) {
    patterns_.push_back(ModulePattern::glob(name));
  } else if (from_root) {
    const std::vector<std::string>& lists = layer_lists();
    const bool all_layers = std::find(lists.begin(), lists.end(), path) != lists.end();
    everything_ = everything_ || all_layers;
    if (!all_layers) outside_.emplace(path);
  } else if (without_prefix(std::string(name) + ".").empty() && !name.empty()) {
    everything_ = true;  // "model"
  } else if (!path.empty()) {
    parts_.emplace(path);
  }
}

void ModuleList::add_part(std::string_view text) {
  add(text);
  if (text.find_first_of(kMeta) != std::string_view::npos) return;
  const bool inside = !text.empty() && text.back() == '.';  // "layers.0."
  patterns_.push_back(ModulePattern::glob("*" + std::string(text) + (inside ? "*" : "")));
}

void ModuleList::add_regex(std::string_view pattern) { patterns_.push_back(ModulePattern::regex(pattern)); }

const ModuleList::Tensors& ModuleList::named(const BlockNames& names) {
  const auto [at, is_new] = named_.try_emplace(&names);
  if (!is_new) return at->second;
  std::set<std::uint32_t> all;
  for (const auto& [run, tensors] : names.runs) {
    if (parts_.find(run) != parts_.end()) all.insert(tensors.begin(), tensors.end());
  }
  for (std::size_t tensor = 0; tensor < names.of_tensor.size(); ++tensor) {
    for (const std::string& name : names.of_tensor[tensor]) {
      const std::string_view text = name;
      for (std::size_t from = 0; from < text.size(); ++from) {
        if (parts_.find(text.substr(from)) != parts_.end()) all.insert(static_cast<std::uint32_t>(tensor));
      }
    }
  }
  at->second.assign(all.begin(), all.end());
  return at->second;
}

const ModuleList::Tensors& ModuleList::inside_layer(const std::string& glob, const BlockNames& names,
                                                    Budget& budget) {
  const auto [at, is_new] = inside_layers_.try_emplace({glob, &names});
  if (is_new) {
    const ModulePattern pattern = ModulePattern::glob(glob);
    at->second = matching(pattern, pattern.start(), names, budget);
  }
  return at->second;
}

void ModuleList::mark_pattern(const ModulePattern& pattern, const Block& block, const BlockNames& names,
                              const PathRoots& roots, Budget& budget, const Mark& mark) const {
  ModulePattern::States before;  // whatever stands before the layers
  for (const std::string& prefix : roots.prefixes) {
    before = join(std::move(before), pattern.advance(pattern.start(), prefix, budget));
  }
  if (block.layers.empty()) {
    for (const std::uint32_t tensor : matching(pattern, before, names, budget)) mark(0, tensor);
    return;
  }
  ModulePattern::States list;
  for (const std::string& name : roots.lists) {
    list = join(std::move(list), pattern.advance(before, name + ".", budget));
  }
  // Most patterns care for no layer's number: the states behind it are the same for all.
  std::map<ModulePattern::States, Tensors> known;
  for (std::size_t layer = 0; layer < block.layers.size(); ++layer) {
    const std::string number = std::to_string(block.layers[layer]) + ".";
    const auto [at, is_new] = known.try_emplace(pattern.advance(list, number, budget));
    if (is_new) at->second = matching(pattern, at->first, names, budget);
    for (const std::uint32_t tensor : at->second) mark(layer, tensor);
  }
}

void ModuleList::mark(const Block& block, const BlockNames& names, const PathRoots& roots, Budget& budget,
                      const Mark& mark) {
  const std::size_t layers = block.layers.empty() ? 1 : block.layers.size();
  if (everything_) {
    for (std::size_t layer = 0; layer < block.layers.size(); ++layer) {
      for (std::size_t tensor = 0; tensor < block.tensors.size(); ++tensor) mark(layer, tensor);
    }
  }
  if (!parts_.empty()) {
    for (const std::uint32_t tensor : named(names)) {
      for (std::size_t layer = 0; layer < layers; ++layer) mark(layer, tensor);
    }
  }
  if (block.layers.empty()) {
    for (const auto& [path, tensors] : names.beginnings) {
      if (outside_.find(path) == outside_.end()) continue;
      for (const std::uint32_t tensor : tensors) mark(0, tensor);
    }
  }
  for (std::size_t layer = 0; layer < block.layers.size(); ++layer) {
    const auto listed = in_layer_.find(block.layers[layer]);
    if (listed == in_layer_.end()) continue;
    for (const std::string& path : listed->second.paths) {
      if (path.empty()) {
        for (std::size_t tensor = 0; tensor < block.tensors.size(); ++tensor) mark(layer, tensor);
      } else if (const auto at = names.beginnings.find(path); at != names.beginnings.end()) {
        for (const std::uint32_t tensor : at->second) mark(layer, tensor);
      }
    }
    for (const std::string& glob : listed->second.globs) {
      for (const std::uint32_t tensor : inside_layer(glob, names, budget)) mark(layer, tensor);
    }
  }
  for (const ModulePattern& pattern : patterns_) mark_pattern(pattern, block, names, roots, budget, mark);
}

}  // namespace memwall
