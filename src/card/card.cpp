#include "card/card.h"

#include <fmt/format.h>

#include <array>

#include "input/data_files.h"
#include "input/yaml.h"

namespace memwall {
namespace {

using yaml::Mapping;
using yaml::Node;

struct TypeName {
  ComputeType type;
  std::string_view name;
};
constexpr std::array kTypes = {
    TypeName{ComputeType::f32, "f32"}, TypeName{ComputeType::tf32, "tf32"},
    TypeName{ComputeType::f16, "f16"}, TypeName{ComputeType::bf16, "bf16"},
    TypeName{ComputeType::f8, "f8"},   TypeName{ComputeType::int8, "int8"},
    TypeName{ComputeType::f4, "f4"},
};

const Shelf kCards{.what = "card",
                   .folder = "configs/cards",
                   .ignored = {"nvidia", "geforce", "tesla", "amd", "radeon", "instinct", "apple", "intel",
                               "graphics", "gpu", "macbook", "mac", "studio"},
                   .memory = true,
                   .otherwise = "; a card YAML of your own is taken, too (docs/card-format.md)"};

// A figure without a document behind it is a rumour: every `source` must name one of `sources`.
std::string read_source(Mapping& map, const std::vector<std::string>& sources) {
  const Node& node = map.require("source");
  const std::string name = yaml::as_text(node, "source");
  for (const std::string& known : sources) {
    if (name == known) return name;
  }
  yaml::fail_unknown(node, "source", name, sources);
}

double read_figure(Mapping& card, std::string_view key, const std::vector<std::string>& sources) {
  Mapping map(card.require(key), std::string(key));
  const double value = map.positive("value");
  read_source(map, sources);
  map.finish();
  return value;
}

std::vector<std::string> read_sources(Mapping& card) {
  const Node& node = card.require("sources");
  if (node.kind != yaml::Kind::mapping || node.entries.empty()) {
    yaml::fail(node, "sources must map names to documents");
  }
  std::vector<std::string> names;
  for (const auto& [key, value] : node.entries) {
    yaml::as_text(value, "a source");
    names.push_back(key.text);
  }
  return names;
}

std::map<ComputeType, PeakFigure> read_peaks(Mapping& card, const std::vector<std::string>& sources) {
  std::map<ComputeType, PeakFigure> peaks;
  const Node& node = card.require("peaks_TFLOPs");
  Mapping map(node, "peaks_TFLOPs");
  for (const TypeName& type : kTypes) {
    const Node* figure = map.optional(type.name);
    if (figure == nullptr) continue;
    Mapping peak(*figure, std::string(type.name));
    PeakFigure& entry = peaks[type.type];
    entry.tflops = peak.positive("value");
    entry.source = read_source(peak, sources);
    entry.accumulate = peak.text_or("accumulate", "");
    peak.finish();
  }
  map.finish();
  if (peaks.count(ComputeType::f32) == 0 || peaks.count(ComputeType::f16) == 0) {
    yaml::fail(node, "peaks_TFLOPs needs f32 and f16 at least");
  }
  return peaks;
}

double read_share(Mapping& map, std::string_view key, double most) {
  const double value = map.positive(key);
  if (value > most) yaml::fail(map.require(key), fmt::format("{} must be at most {}", key, most));
  return value;
}

Achievable read_achievable(Mapping& card) {
  Mapping map(card.require("achievable"), "achievable");
  Achievable a;
  a.class_name = map.text("class");
  a.provisional = map.flag_or("provisional", false);
  a.bandwidth_share = read_share(map, "bandwidth_share", 1);
  a.compute_share = read_share(map, "compute_share", 1);
  a.kernel_us = map.positive("kernel_us");
  a.spread = read_share(map, "spread", 0.9);
  a.source = map.text("source");
  map.finish();
  return a;
}

}  // namespace

std::string_view compute_type_name(ComputeType type) {
  for (const TypeName& t : kTypes) {
    if (t.type == type) return t.name;
  }
  return "?";
}

Card load_card_yaml(const std::string& path) {
  const Node document = yaml::load(path);
  Mapping map(document, "a card");
  Card card;
  card.name = map.text("name");
  card.title = map.text_or("title", card.name);
  card.aliases = map.text_list_or_empty("aliases");
  card.vendor = map.text_or("vendor", "");
  card.architecture = map.text_or("architecture", "");
  map.text_or("compute_capability", "");
  const std::vector<std::string> sources = read_sources(map);
  card.bandwidth_GBps = read_figure(map, "bandwidth_GBps", sources);
  card.capacity_GiB = read_figure(map, "capacity_GiB", sources);
  if (map.optional("l2_MiB") != nullptr) card.l2_MiB = read_figure(map, "l2_MiB", sources);
  if (const Node* node = map.optional("interconnect")) {
    Mapping link(*node, "interconnect");
    card.interconnect = Interconnect{link.text("name"), link.positive("GBps")};
    read_source(link, sources);
    link.finish();
  }
  card.peaks = read_peaks(map, sources);
  card.achievable = read_achievable(map);
  map.finish();
  return card;
}

Card find_card(std::string_view word, std::vector<std::string>* notes) {
  return load_card_yaml(find_on_shelf(kCards, word, notes));
}

std::vector<Card> all_cards() {
  std::vector<Card> cards;
  for (const std::string& name : shelf_names(kCards))
    cards.push_back(load_card_yaml(shelf_path(kCards, name)));
  return cards;
}

}  // namespace memwall
