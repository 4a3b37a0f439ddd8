#include "load/safetensors_notes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "format/checked.h"
#include "input/json.h"

namespace memwall {
namespace {

constexpr std::size_t kMostNames = 5;

// What an extra is called, and the word by which a configuration announces it.
struct ExtraKind {
  Region region;
  const char* what;
  const char* word = nullptr;
};

constexpr std::array kKinds = {
    ExtraKind{Region::next_token, "multi-token-prediction layers", "multi-token"},
    ExtraKind{Region::vision, "a vision tower", "vision"},
    ExtraKind{Region::audio, "an audio encoder", "audio"},
    ExtraKind{Region::draft, "heads that draft tokens"},
    ExtraKind{Region::beyond, "layers that the configuration does not count"},
    ExtraKind{Region::head_copy, "lm_head, a copy of the embedding"},
    ExtraKind{Region::other_head, "another head"},
    ExtraKind{Region::rotary, "rotary tables"},
    ExtraKind{Region::mask, "attention masks and decays"},
    ExtraKind{Region::scales, "scales of activations and KV caches"},
    ExtraKind{Region::adapter, "adapters"},
    ExtraKind{Region::elsewhere, "parts outside the language model"},
};

}  // namespace

void NameList::add(const std::string& name) {
  ++count_;
  if (first_.size() < kMostNames) first_.push_back(excerpt(name));
}

std::string NameList::text() const {
  const std::int64_t more = count_ - static_cast<std::int64_t>(first_.size());
  std::string text = fmt::format("{}", fmt::join(first_, ", "));
  return more > 0 ? text + fmt::format(" and {} more", more) : text;
}

void BindingNotes::add_extra(Region region, const StoredWeight& weight) {
  Extra& extra = extras_[static_cast<std::size_t>(region)];
  extra.tensors += static_cast<std::int64_t>(weight.parts.size());
  extra.parameters = checked_add(extra.parameters, read_weight(weight).elements);
  extra.bytes = checked_add(extra.bytes, weight.bytes());
  if (region == Region::elsewhere) elsewhere.add(std::string(weight.module));
}

void BindingNotes::add_extra(Region region, const StoredModule& module) {
  Extra& extra = extras_[static_cast<std::size_t>(region)];
  for (const StoredModule::Variant& variant : module.variants)
    extra.tensors += variant.count * static_cast<std::int64_t>(variant.weight->parts.size());
  extra.parameters = checked_add(extra.parameters, module.elements());
  extra.bytes = checked_add(extra.bytes, module.bytes());
}

void BindingNotes::removed(const std::string& name) {
  const auto found =
      std::find_if(removed_.begin(), removed_.end(), [&](const auto& one) { return one.first == name; });
  if (found != removed_.end()) {
    ++found->second;
  } else {
    removed_.emplace_back(name, 1);
  }
}

void BindingNotes::finish(Model& model) const {
  std::vector<Extra> extras;
  for (const ExtraKind& kind : kKinds) {
    Extra extra = extras_[static_cast<std::size_t>(kind.region)];
    if (extra.tensors == 0) continue;
    extra.what = kind.what;
    for (const Extra& announced : model.extras) {
      if (kind.word != nullptr && announced.what.find(kind.word) != std::string::npos)
        extra.what = announced.what;
    }
    extras.push_back(std::move(extra));
  }
  model.extras = std::move(extras);  // what is announced and not there is not there

  const auto warn = [&](std::string text) { model.warnings.push_back(std::move(text)); };
  if (!removed_.empty()) {
    NameList names;
    for (const auto& [name, layers] : removed_)
      names.add(layers > 1 ? fmt::format("{} ({} layers)", name, layers) : name);
    warn(fmt::format("not in the checkpoint, though the configuration has it: {}", names.text()));
  }
  if (extras_[static_cast<std::size_t>(Region::beyond)].tensors > 0) {
    warn(fmt::format("the checkpoint has layers beyond the configuration's {}: not counted as run",
                     model.layers));
  }
  if (!by_shape.empty())
    warn(fmt::format("found by shape, as their names are not known: {}", by_shape.text()));
  if (!resized.empty()) warn(fmt::format("of another size than the configuration makes: {}", resized.text()));
  if (!elsewhere.empty()) warn(fmt::format("counted as no part of the language model: {}", elsewhere.text()));
  if (unknown.empty()) return;
  model.approximate = true;
  warn(fmt::format("tensors not understood, counted as read in every step: {}", unknown.text()));
}

}  // namespace memwall
