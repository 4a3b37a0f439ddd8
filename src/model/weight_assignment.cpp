#include "model/weight_assignment.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "input/error.h"
#include "model/weight_parts.h"

namespace memwall {
namespace {

constexpr std::array<std::string_view, 4> kRestWords = {"rest", "default", "else", "other"};

bool is_rest(std::string_view part) {
  return std::find(kRestWords.begin(), kRestWords.end(), plain_part(part)) != kRestWords.end();
}

bool is_matrix(const Tensor& tensor) {
  return tensor.role != Role::norm && tensor.role != Role::bias && tensor.role != Role::parameter;
}

[[noreturn]] void fail_part(const Model& model, const WeightItem& item, std::string_view what,
                            bool matched_vectors) {
  if (matched_vectors) {
    throw InputError(fmt::format("{}: '{}' names norms, biases or small parameters of {}, whose formats stay",
                                 what, item.part, model.name));
  }
  std::vector<std::string> parts = weight_parts(model);
  std::string tensors;
  int told = 0;
  for (const Block& block : model.blocks) {
    for (const Tensor& tensor : block.tensors) {
      if (tensor.role != Role::linear && tensor.role != Role::expert) continue;
      if (told < 3 && tensors.find(tensor.name) == std::string::npos) {
        tensors += (told == 0 ? "" : ", ") + tensor.name;
        ++told;
      }
    }
  }
  throw InputError(fmt::format("{}: {} has no part or tensor '{}'; its parts are {}, and 'rest'{}", what,
                               model.name, item.part, fmt::join(parts, ", "),
                               tensors.empty() ? "" : "; tensors are named like " + tensors));
}

void store_as(Tensor& tensor, Format format) {
  tensor.format = format;
  tensor.stored_bytes = -1;
}

bool is_table(const Tensor& tensor) {
  return tensor.role == Role::embedding || tensor.role == Role::positions || tensor.role == Role::lm_head;
}

// A tied lm_head reads the embedding table: whichever of the two was named decides for both.
void join_tied(Model& model, const std::vector<const Tensor*>& named, std::string_view what) {
  Tensor* table = nullptr;
  Tensor* head = nullptr;
  for (Block& block : model.blocks) {
    for (Tensor& tensor : block.tensors) {
      if (tensor.role == Role::embedding && table == nullptr) table = &tensor;
      if (tensor.role == Role::lm_head && tensor.tied) head = &tensor;
    }
  }
  if (table == nullptr || head == nullptr || table->format == head->format) return;
  const auto was_named = [&](const Tensor* tensor) {
    return std::find(named.begin(), named.end(), tensor) != named.end();
  };
  if (was_named(table) && was_named(head)) {
    throw InputError(
        fmt::format("{}: the lm_head of {} is its embedding table: one format for both", what, model.name));
  }
  if (was_named(head))
    store_as(*table, head->format);
  else
    store_as(*head, table->format);
}

// "a=b, c=d" may have blanks around each word.
std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(' ');
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(' ') - first + 1);
}

std::string assigned(std::string_view part, Format format) {
  return fmt::format("{}={}", part, format_name(format));
}

}  // namespace

std::string WeightAssignment::label() const {
  if (items.empty()) return rest ? format_name(*rest) : "";
  std::vector<std::string> parts;
  for (const WeightItem& item : items) parts.push_back(assigned(item.part, item.format));
  if (rest) parts.push_back(assigned("rest", *rest));
  return fmt::format("{}", fmt::join(parts, ","));
}

std::vector<WeightAssignment> parse_weight_assignments(
    std::string_view text, std::string_view what,
    const std::function<Format(const std::string&)>& format_of) {
  std::vector<WeightAssignment> assignments;
  bool open = false;  // whether an item may still join the last one
  std::size_t start = 0;
  while (true) {
    const std::size_t end = std::min(text.find_first_of(",;", start), text.size());
    const std::string_view item = trimmed(text.substr(start, end - start));
    if (item.empty()) {
      throw InputError(
          fmt::format("{}: an item of the list is empty; write formats with one comma between", what));
    }
    const std::size_t equals = item.find('=');
    if (equals == std::string_view::npos) {
      if (open && !assignments.back().items.empty()) {
        throw InputError(fmt::format(
            "{}: '{}' after parts is either the rest or another alternative; write rest={} or ;{}", what,
            item, item, item));
      }
      assignments.push_back({.rest = format_of(std::string(item))});
    } else {
      const std::string part(trimmed(item.substr(0, equals)));
      const std::string name(trimmed(item.substr(equals + 1)));
      if (part.empty() || name.empty())
        throw InputError(fmt::format("{}: '{}' is not PART=FORMAT, like experts=mxfp4", what, item));
      if (!open) assignments.emplace_back();
      WeightAssignment& last = assignments.back();
      const Format format = format_of(name);
      if (!is_rest(part)) {
        last.items.push_back({part, format});
      } else if (last.rest) {
        throw InputError(fmt::format("{}: the rest is given twice, as {} and {}", what,
                                     format_name(*last.rest), format_name(format)));
      } else {
        last.rest = format;
      }
    }
    open = true;
    if (end == text.size()) return assignments;
    if (text[end] == ';') open = false;
    start = end + 1;
  }
}

Model with_weights(Model model, const WeightAssignment& assignment, std::optional<Format> head,
                   std::string_view what) {
  model = with_weights(std::move(model), assignment.rest, head);
  if (assignment.items.empty()) return model;
  std::vector<const Tensor*> named;  // tables that an item named
  for (const WeightItem& item : assignment.items) {
    bool found = false;
    bool vectors = false;
    for (Block& block : model.blocks) {
      for (Tensor& tensor : block.tensors) {
        if (!names_tensor(item.part, block, tensor)) continue;
        if (!is_matrix(tensor)) {
          vectors = true;
          continue;
        }
        found = true;
        store_as(tensor, item.format);
        if (is_table(tensor)) named.push_back(&tensor);
      }
    }
    if (!found) fail_part(model, item, what, vectors);
  }
  if (head && !named.empty()) {
    throw InputError(
        fmt::format("{}: names the lm_head or the embedding, and so does --head-weights; give one", what));
  }
  join_tied(model, named, what);
  for (const Block& block : model.blocks) {
    for (const Tensor& tensor : block.tensors) {
      if (tensor.role == Role::lm_head) model.head = tensor.format;
    }
  }
  model.weights = main_format(model).value_or(model.weights);
  model.weights_assigned = assignment.label();
  check_sums(model);
  return model;
}

std::string weights_label(const Model& model) {
  return model.weights_assigned.empty() ? format_name(model.weights) : model.weights_assigned;
}

std::string stored_formats(const Model& model) {
  if (!model.weights_assigned.empty()) return model.weights_assigned;
  const auto formats = formats_by_bytes(model);
  if (formats.size() < 2) return format_name(model.weights);
  constexpr std::size_t kShown = 2;
  std::string text;
  for (std::size_t i = 0; i < std::min(formats.size(), kShown); ++i)
    text += (i == 0 ? "" : "+") + format_name(formats[i].first);
  return formats.size() > kShown ? text + "+…" : text;
}

}  // namespace memwall
