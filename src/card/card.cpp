#include "card/card.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "card/assumptions.h"
#include "input/data_files.h"
#include "input/numbers.h"
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

// What a figure may be at all: wide enough for a phone and for a machine of the next decade, and far from
// where times come out as 0 or without end.
struct Bounds {
  double low;
  double high;
};
constexpr Bounds kBandwidth{0.1, 100'000};  // GB/s
constexpr Bounds kCapacity{0.01, 65'536};   // GiB
constexpr Bounds kCache{0.001, 65'536};     // MiB
constexpr Bounds kLink{0.01, 100'000};      // GB/s
constexpr Bounds kTflops{0.001, 100'000};   // TFLOP/s
constexpr Bounds kShare{0.01, 1};           // of a peak
constexpr Bounds kKernel{0.001, 10'000};    // us
constexpr Bounds kSpread{0.001, 0.9};

double as_bounded(const Node& node, std::string_view what, Bounds bounds) {
  const std::string wanted =
      fmt::format("{} must be a number from {} to {}, in plain decimal", what, bounds.low, bounds.high);
  if (node.kind != yaml::Kind::scalar) fail(node, wanted);
  if (node.quoted) fail(node, wanted + ", without quotes");
  double value = 0;
  if (is_plain_decimal(node.text)) {
    std::from_chars(node.text.data(), node.text.data() + node.text.size(), value);
  }
  if (value >= bounds.low && value <= bounds.high) return value;
  constexpr std::size_t kShown = 24;
  const bool cut = node.text.size() > kShown;
  fail(node, fmt::format("{}, not {}{}", wanted, node.text.substr(0, kShown), cut ? "…" : ""));
}

// A card's `sources`: names for documents. Where it has none, a figure's `source` is free text.
struct Sources {
  std::vector<std::string> names;
  bool given = false;

  std::string read(Mapping& map) const {
    const Node* node = map.optional("source");
    if (node == nullptr) return "";
    const std::string name = yaml::as_text(*node, "source");
    if (given && std::find(names.begin(), names.end(), name) == names.end())
      yaml::fail_unknown(*node, "source", name, names);
    return name;
  }
};

// `1792`, or `{value: 1792, source: datasheet}`.
double read_figure(const Node& node, std::string_view key, Bounds bounds, const Sources& sources) {
  if (node.kind != yaml::Kind::mapping) return as_bounded(node, key, bounds);
  Mapping map(node, std::string(key));
  const double value = as_bounded(map.require("value"), key, bounds);
  sources.read(map);
  map.finish();
  return value;
}

double read_figure_or(Mapping& card, std::string_view key, Bounds bounds, const Sources& sources,
                      double fallback) {
  const Node* node = card.optional(key);
  return node == nullptr ? fallback : read_figure(*node, key, bounds, sources);
}

Sources read_sources(Mapping& card) {
  Sources sources;
  const Node* node = card.optional("sources");
  if (node == nullptr) return sources;
  if (node->kind != yaml::Kind::mapping || node->entries.empty()) {
    yaml::fail(*node, "sources must map names to documents");
  }
  sources.given = true;
  for (const auto& [key, value] : node->entries) {
    yaml::as_text(value, "a source");
    sources.names.push_back(key.text);
  }
  return sources;
}

std::map<ComputeType, PeakFigure> read_peaks(Mapping& card, const Sources& sources) {
  std::map<ComputeType, PeakFigure> peaks;
  const Node* node = card.optional("peaks_TFLOPs");
  if (node == nullptr) return peaks;
  Mapping map(*node, "peaks_TFLOPs");
  for (const TypeName& type : kTypes) {
    const Node* figure = map.optional(type.name);
    if (figure == nullptr) continue;
    PeakFigure& entry = peaks[type.type];
    if (figure->kind != yaml::Kind::mapping) {
      entry.tflops = as_bounded(*figure, type.name, kTflops);
      continue;
    }
    Mapping peak(*figure, std::string(type.name));
    entry.tflops = as_bounded(peak.require("value"), type.name, kTflops);
    entry.source = sources.read(peak);
    entry.accumulate = peak.text_or("accumulate", "");
    peak.finish();
  }
  map.finish();
  if (peaks.empty()) yaml::fail(*node, "peaks_TFLOPs holds no peak; leave it out, or give f16 at least");
  return peaks;
}

GivenAchievable read_achievable(Mapping& card) {
  GivenAchievable given;
  const Node* node = card.optional("achievable");
  if (node == nullptr) return given;
  Mapping map(*node, "achievable");
  const auto number = [&](std::string_view key, Bounds bounds, std::optional<double>& into) {
    if (const Node* value = map.optional(key)) into = as_bounded(*value, key, bounds);
  };
  if (map.optional("class") != nullptr) given.class_name = map.text("class");
  if (map.optional("provisional") != nullptr) given.provisional = map.flag_or("provisional", false);
  number("bandwidth_share", kShare, given.bandwidth_share);
  number("compute_share", kShare, given.compute_share);
  number("kernel_us", kKernel, given.kernel_us);
  number("spread", kSpread, given.spread);
  if (map.optional("source") != nullptr) given.source = map.text("source");
  map.finish();
  return given;
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
  const Sources sources = read_sources(map);
  card.bandwidth_GBps = read_figure(map.require("bandwidth_GBps"), "bandwidth_GBps", kBandwidth, sources);
  card.capacity_GiB = read_figure_or(map, "capacity_GiB", kCapacity, sources, 0);
  card.l2_MiB = read_figure_or(map, "l2_MiB", kCache, sources, 0);
  if (const Node* node = map.optional("interconnect")) {
    Mapping link(*node, "interconnect");
    card.interconnect = Interconnect{link.text("name"), as_bounded(link.require("GBps"), "GBps", kLink)};
    sources.read(link);
    link.finish();
  }
  card.peaks = read_peaks(map, sources);
  const GivenAchievable achievable = read_achievable(map);
  map.finish();
  const bool no_peak_given = card.peaks.empty();
  complete_peaks(card);
  complete_achievable(card, achievable, no_peak_given);
  note_capacity(card);
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
