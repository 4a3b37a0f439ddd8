// A configuration's values as numbers, truth values, texts and lists. A value of another kind than its key's
// is an error at its place, never the fallback.
#include <fmt/format.h>

#include <algorithm>

#include "huggingface/config.h"
#include "huggingface/inert_keys.h"

namespace memwall {
namespace {

constexpr Range kWhole{0, std::int64_t{1} << 50};

std::vector<std::string> split_at_commas(const std::string& text) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == ',') {
      parts.emplace_back();
    } else if (c != ' ') {
      parts.back() += c;
    }
  }
  if (parts.back().empty()) parts.pop_back();
  return parts;
}

}  // namespace

std::int64_t Config::checked_integer(const Found& found) const {
  return json::as_integer(file(), *found.value, found.name, kWhole);
}

std::int64_t Config::integer_or(Names names, std::int64_t fallback) const {
  return maybe_integer(names).value_or(fallback);
}

std::optional<std::int64_t> Config::maybe_integer(Names names) const {
  const Found found = look_up(names);
  if (found.value == nullptr) return std::nullopt;
  return checked_integer(found);
}

double Config::number_or(Names names, double fallback) const {
  const Found found = look_up(names);
  return found.value == nullptr ? fallback : json::as_number(file(), *found.value, found.name);
}

bool Config::flag_or(Names names, bool fallback) const {
  const Found found = look_up(names);
  if (found.value == nullptr) return fallback;
  if (found.value->kind == json::Kind::number)
    return json::as_integer(file(), *found.value, found.name, {0, 1}) == 1;
  return json::as_bool(file(), *found.value, found.name);
}

std::optional<bool> Config::outer_flag(const char* name) const {
  const json::Value* value = find_in(*outer_, name);
  if (value == nullptr) value = find_in(*outer_, std::string("vlm_config.") + name);
  if (value == nullptr) return std::nullopt;
  return json::as_bool(file(), *value, name);
}

std::vector<std::string> Config::architectures() const {
  const json::Value* list = find_in(*outer_, "architectures");
  std::vector<std::string> all;
  if (list == nullptr) return all;
  if (list->kind != json::Kind::array) fail_kind({list, "architectures"}, "a list of texts");
  for (const json::Value& item : list->items) all.push_back(json::as_text(file(), item, "architectures"));
  return all;
}

std::string Config::text_or(Names names, const std::string& fallback) const {
  const Found found = look_up(names);
  return found.value == nullptr ? fallback : json::as_text(file(), *found.value, found.name);
}

std::int64_t Config::integer_item(const json::Value& item, const char* name) const {
  if (item.kind == json::Kind::boolean) return item.boolean ? 1 : 0;
  return checked_integer({&item, name});
}

std::vector<std::int64_t> Config::integers(Names names) const {
  const Found found = look_up(names);
  std::vector<std::int64_t> all;
  if (found.value == nullptr) return all;
  if (found.value->kind == json::Kind::text) {
    for (const std::string& part : split_at_commas(found.value->text)) {
      const std::optional<std::int64_t> integer = json::to_integer(part);
      if (!integer || *integer < 0) fail_kind(found, "a list of integers");
      all.push_back(*integer);
    }
    return all;
  }
  if (found.value->kind != json::Kind::array) fail_kind(found, "a list of integers");
  for (const json::Value& item : found.value->items) all.push_back(integer_item(item, found.name));
  return all;
}

std::vector<std::string> Config::texts(Names names) const {
  const Found found = look_up(names);
  std::vector<std::string> all;
  if (found.value == nullptr) return all;
  if (found.value->kind != json::Kind::array) fail_kind(found, "a list of texts");
  for (const json::Value& item : found.value->items) all.push_back(json::as_text(file(), item, found.name));
  return all;
}

bool Config::is_list(Names names) const {
  const json::Value* value = find(names);
  return value != nullptr && value->kind == json::Kind::array;
}

const json::Value* Config::layer_list(const Found& found) const {
  if (found.value->kind != json::Kind::array) fail_kind(found, "a list with one item for each layer");
  const auto length = static_cast<std::int64_t>(found.value->items.size());
  if (layers_ > 0 && length != layers_ && length != layers_ + drafts_)
    fail_at(*found.value, fmt::format("{} lists {} layers of {}", found.name, length, layers_));
  return found.value;
}

const json::Value* Config::layer_list(Names names) const {
  const Found found = look_up(names);
  return found.value == nullptr ? nullptr : layer_list(found);
}

const json::Value* Config::layer_item(Names names, std::int32_t layer) const {
  const Found found = look_up(names);
  if (found.value == nullptr) return nullptr;
  const json::Value* list = layer_list(found);
  const auto index = static_cast<std::size_t>(layer);
  if (index >= list->items.size())
    fail_at(*list, fmt::format("{} lists {} layers, but there is a layer {}", found.name, list->items.size(),
                               layer));
  return &list->items[index];
}

std::int64_t Config::layer_integer_or(Names names, std::int32_t layer, std::int64_t fallback) const {
  const Found found = look_up(names);
  if (found.value == nullptr) return fallback;
  if (found.value->kind != json::Kind::array) return checked_integer(found);
  return integer_item(*layer_item({found.name}, layer), found.name);
}

std::int64_t Config::listed_integer_or(Names names, std::int32_t layer, std::int64_t fallback) const {
  const json::Value* item = layer_item(names, layer);
  return item == nullptr ? fallback : integer_item(*item, *names.begin());
}

std::int64_t Config::uniform_integer_or(Names names, std::int64_t fallback) const {
  const Found found = look_up(names);
  if (found.value == nullptr) return fallback;
  if (found.value->kind != json::Kind::array) return checked_integer(found);
  const std::vector<json::Value>& items = layer_list(found)->items;
  if (items.empty()) fail_kind(found, "a whole number");
  const std::int64_t first = integer_item(items.front(), found.name);
  for (const json::Value& item : items) {
    if (integer_item(item, found.name) != first)
      fail_at(item, fmt::format("{} differs between layers, which is not read", found.name));
  }
  return first;
}

std::int64_t Config::first_integer_or(Names names, std::int64_t fallback) const {
  const Found found = look_up(names);
  if (found.value == nullptr) return fallback;
  if (found.value->kind != json::Kind::array) return checked_integer(found);
  if (found.value->items.empty()) fail_kind(found, "a whole number");
  return integer_item(found.value->items.front(), found.name);
}

std::string Config::known_text(const Found& found, const json::Value& list, std::size_t index,
                               Known known) const {
  const json::Value& item = list.items[index];
  const std::string& text = json::as_text(file(), item, found.name);
  if (std::find(known.begin(), known.end(), text) == known.end()) {
    fail_at(item, fmt::format("layer {} is of type '{}' in {}; known for model_type '{}' are {}", index,
                              excerpt(text), found.name, excerpt(type_), fmt::join(known, ", ")));
  }
  return text;
}

std::string Config::layer_text(Names names, std::int32_t layer, Known known) const {
  const Found found = look_up(names);
  if (found.value == nullptr) return "";
  layer_item({found.name}, layer);
  return known_text(found, *found.value, static_cast<std::size_t>(layer), known);
}

std::vector<std::string> Config::layer_texts(Names names, Known known) const {
  const Found found = look_up(names);
  std::vector<std::string> all;
  if (found.value == nullptr) return all;
  const json::Value& list = *layer_list(found);
  for (std::size_t i = 0; i < list.items.size(); ++i) all.push_back(known_text(found, list, i, known));
  return all;
}

std::vector<std::string> Config::unasked() const {
  std::vector<std::string> keys;
  each_unasked([&](const std::string& key, const json::Value&) {
    if (key.find('.') == std::string::npos) keys.push_back(excerpt(key));
  });
  return keys;
}

std::vector<std::string> Config::unasked_sizes() const {
  std::vector<std::string> keys;
  each_unasked([&](const std::string& key, const json::Value& value) {
    if (states_a_size(key.substr(key.rfind('.') + 1), value)) keys.push_back(excerpt(key));
  });
  return keys;
}

}  // namespace memwall
