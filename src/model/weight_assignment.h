// --weights for parts of a model: "experts=mxfp4,rest=q8_0". docs/model-format.md states the grammar.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/model.h"

namespace memwall {

// A part ("experts"), a tensor ("q_proj") or a pattern of tensors ("*.down_proj"; * any letters, ? one), and
// the format it takes.
struct WeightItem {
  std::string part;
  Format format;

  bool operator==(const WeightItem&) const = default;
};

// What is asked of one model. Without items it is one format, or nothing, for all.
struct WeightAssignment {
  std::optional<Format> rest{};     // of what no item names, as with_weights stores it; nothing: as it is
  std::vector<WeightItem> items{};  // a later one wins

  // As --weights takes it: "experts=mxfp4,rest=q8_0", "q8_0"; empty where nothing is asked.
  std::string label() const;

  bool operator==(const WeightAssignment&) const = default;
};

// What --weights says: one assignment for each alternative. `text` is formats and PART=FORMAT items between
// commas; items side by side belong together, with the format before them (or rest=FORMAT) for the rest, and
// ';' ends an alternative. `what` names the option in messages, `format_of` reads a format or throws.
// "bf16,q8_0" are two, "experts=mxfp4,rest=q8_0" one, "bf16;q8_0,experts=mxfp4" two. Throws InputError.
std::vector<WeightAssignment> parse_weight_assignments(
    std::string_view text, std::string_view what, const std::function<Format(const std::string&)>& format_of);

// The model stored so. Items change matrices alone: norms, biases and small parameters stay as `rest` leaves
// them. A tied lm_head is the embedding table, so an item for either is one for both. `head` as in
// with_weights, where no item names the lm_head or the embedding. Throws InputError where an item names
// nothing that the model has; `what` names the option in the message.
Model with_weights(Model model, const WeightAssignment& assignment, std::optional<Format> head,
                   std::string_view what = "--weights");

// What the model is stored as, in a word: what --weights assigned, else the format of most.
std::string weights_label(const Model& model);

// The formats of its linears and experts, most bytes first: "mxfp4+bf16". weights_label where that says more.
std::string stored_formats(const Model& model);

}  // namespace memwall
