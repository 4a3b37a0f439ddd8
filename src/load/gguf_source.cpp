#include "load/gguf_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <variant>

#include "checkpoint/gguf_bytes.h"
#include "input/error.h"

namespace memwall {
namespace {

constexpr std::int64_t kMostLayers = 10'000;

bool is_plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
         c == '.';
}

// What an unknown architecture is taken for: an attention of all tokens, or of a window where the file has
// one.
const GgufArchitecture kUnknown = {.name = ""};

}  // namespace

GgufSource::GgufSource(const Gguf& file) : file_(file) {
  check_kind();
  read_architecture();
  hidden_size_ = integer("embedding_length");
  blocks_ = static_cast<std::int32_t>(integer("block_count", {1, kMostLayers}));
  const std::int64_t predicting = integer_or("nextn_predict_layers", 0, {0, blocks_ - 1});
  layers_ = blocks_ - static_cast<std::int32_t>(predicting);
  if (!has("attention.layer_norm_rms_epsilon") && has("attention.layer_norm_epsilon"))
    norm_ = NormKind::layer;
  const GgufSliding& sliding = architecture_->sliding;
  const bool possible = !known_ || (sliding.layers != GgufSliding::Layers::none &&
                                    (sliding.only_at == 0 || sliding.only_at == layers_));
  if (possible) {
    window_ = integer_or("attention.sliding_window", sliding.window);
    if (window_ > 0 && sliding.chunks) window_ = sliding.window;
  }
}

void GgufSource::fail(const std::string& message) const {
  throw InputError(fmt::format("{}: {}", file_.path, message));
}

void GgufSource::check_kind() const {
  const std::string kind = file_.text_or("general.type", "model");
  if (kind != "model") {
    fail(fmt::format("holds a '{}' (general.type), not a model; name the file of the model that it is for",
                     excerpt(kind)));
  }
  if (!file_.tensors.empty()) return;
  fail(file_.has("tokenizer.ggml.tokens")
           ? "holds a vocabulary and no tensors; name a file that holds the model's weights"
           : "holds no tensors; name a file that holds a model's weights");
}

void GgufSource::read_architecture() {
  name_ = file_.text("general.architecture");
  if (name_.empty() || name_.size() > 64 || !std::all_of(name_.begin(), name_.end(), is_plain)) {
    fail(fmt::format("general.architecture is '{}', which can be no architecture's name", excerpt(name_)));
  }
  architecture_ = find_gguf_architecture(name_);
  known_ = architecture_ != nullptr;
  if (!known_) architecture_ = &kUnknown;
  if (architecture_->refusal != nullptr) {
    fail(fmt::format("its architecture, '{}', {}", name_, architecture_->refusal));
  }
}

std::int64_t GgufSource::integer(std::string_view suffix, Range range) const {
  return file_.integer(key(suffix), range);
}

std::int64_t GgufSource::integer_or(std::string_view suffix, std::int64_t fallback, Range range) const {
  return file_.integer_or(key(suffix), fallback, range);
}

const std::vector<std::int64_t>& GgufSource::values(std::string_view suffix, Range range) const {
  const std::string full = key(suffix);
  const auto found = lists_.find(full);
  if (found != lists_.end()) return found->second;
  std::vector<std::int64_t> list = file_.integers(full, range);
  // A list tells of every layer, with or without those for multi-token prediction; llama.cpp, too, takes no
  // other length (llama_model_loader::get_key_or_arr).
  const bool is_list = std::holds_alternative<GgufArray>(file_.metadata.at(full).value);
  const auto size = static_cast<std::int64_t>(list.size());
  if (is_list && size != blocks_ && size != layers_)
    fail(fmt::format("'{}' lists {} layers, but there are {}", full, size, blocks_));
  return lists_.emplace(full, std::move(list)).first->second;
}

std::int64_t GgufSource::at(std::string_view suffix, std::int32_t layer, Range range) const {
  const std::vector<std::int64_t>& list = values(suffix, kGgufCount);
  const auto index = list.size() == 1 ? std::size_t{0} : static_cast<std::size_t>(layer);
  if (index >= list.size())
    fail(fmt::format("'{}' lists {} layers, but there is a layer {}", key(suffix), list.size(), layer));
  const std::int64_t value = list[index];
  if (value < range.low || value > range.high) {
    fail(fmt::format("'{}' is {} for layer {}; it must be {} to {}", key(suffix), value, layer, range.low,
                     range.high));
  }
  return value;
}

std::int64_t GgufSource::at_or(std::string_view suffix, std::int32_t layer, std::int64_t fallback,
                               Range range) const {
  return has(suffix) ? at(suffix, layer, range) : fallback;
}

bool GgufSource::slides(std::int32_t layer) const {
  constexpr std::string_view kPattern = "attention.sliding_window_pattern";
  const GgufSliding& sliding = architecture_->sliding;
  std::int64_t period = sliding.period;
  if (has(kPattern) || sliding.layers == GgufSliding::Layers::pattern_key) {
    const std::vector<std::int64_t>& pattern = values(kPattern, kGgufCount);
    const auto* one_each = std::get_if<GgufArray>(&file_.metadata.at(key(kPattern)).value);
    if (one_each != nullptr) return pattern.at(static_cast<std::size_t>(layer)) != 0;
    period = pattern.front();
  }
  if (period == 0) return true;
  return sliding.full_first ? layer % period != 0 : layer % period < period - 1;
}

GgufSource::Reach GgufSource::reach(std::int32_t layer) const {
  if (window_ == 0 || !slides(layer)) return {};
  return architecture_->sliding.chunks ? Reach{.chunk = window_} : Reach{.window = window_};
}

bool GgufSource::is_rotary(std::int32_t layer) const {
  switch (architecture_->rotary) {
    case GgufRotary::never:
      return false;
    case GgufRotary::in_windows:
      return window_ == 0 || reach(layer).is_bounded();
    case GgufRotary::three_of_four:
      return (layer + 1) % 4 != 0;
    case GgufRotary::by_key:
      return file_.flag_or(key("rope.scaling.finetuned"), true);
    case GgufRotary::always:
      break;
  }
  // ALiBi takes the place of rotary embeddings.
  return !(file_.number_or(key("attention.max_alibi_bias"), 0) > 0);
}

}  // namespace memwall
