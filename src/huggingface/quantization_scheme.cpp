#include "huggingface/quantization_scheme.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <stdexcept>
#include <utility>

namespace memwall {
namespace {

constexpr Range kIntegers{-1, std::int64_t{1} << 31};

// What transformers' methods call the list of modules that stay.
constexpr std::initializer_list<const char*> kListed = {
    "modules_to_not_convert", "ignored_layers",        "ignore",
    "skip_modules",           "llm_int8_skip_modules", "linear_weights_not_to_quantize"};

// Null, false, and what is empty.
bool says_nothing(const json::Value& value) {
  switch (value.kind) {
    case json::Kind::null:
      return true;
    case json::Kind::boolean:
      return !value.boolean;
    case json::Kind::text:
      return value.text.empty();
    case json::Kind::array:
    case json::Kind::object:
      return value.items.empty();
    case json::Kind::number:
      break;
  }
  return false;
}

}  // namespace

const json::Value* QuantizationSection::find(std::string_view key) const {
  asked_->emplace(key);
  const json::Value* found = value_->find(key);
  return found != nullptr && found->kind != json::Kind::null ? found : nullptr;
}

std::vector<std::string> QuantizationSection::unasked() const {
  std::vector<std::string> keys;
  for (std::size_t i = 0; i < value_->keys.size(); ++i) {
    const std::string& key = value_->keys[i];
    if (says_nothing(value_->items[i]) || asked_->contains(key) || leaves_bytes_alone(key)) continue;
    keys.push_back(key);
  }
  return keys;
}

std::optional<QuantizationSection> QuantizationSection::section(std::string_view key) const {
  const json::Value* found = find(key);
  if (found == nullptr || found->kind != json::Kind::object) return std::nullopt;
  return QuantizationSection(*file_, *found);
}

std::int64_t QuantizationSection::integer_or(std::string_view key, std::int64_t fallback) const {
  const json::Value* found = find(key);
  return found == nullptr ? fallback : json::as_integer(*file_, *found, key, kIntegers);
}

bool QuantizationSection::flag_or(std::string_view key, bool fallback) const {
  const json::Value* found = find(key);
  return found == nullptr ? fallback : json::as_bool(*file_, *found, key);
}

std::string QuantizationSection::known_word(std::string_view key, const std::string& fallback,
                                            std::span<const std::string_view> known) const {
  std::string word = word_or(key, fallback);
  const auto same = [](char a, char b) { return a == b || (a == '_' && b == '-'); };
  const auto is_word = [&](std::string_view one) {
    return std::equal(word.begin(), word.end(), one.begin(), one.end(), same);
  };
  if (find(key) == nullptr || std::any_of(known.begin(), known.end(), is_word)) return word;
  fail(*find(key), fmt::format("{} '{}' is not known; {} are", key, excerpt(word), fmt::join(known, ", ")));
}

std::string QuantizationSection::word_or(std::string_view key, const std::string& fallback) const {
  const json::Value* found = find(key);
  if (found == nullptr) return fallback;
  std::string word = json::as_text(*file_, *found, key);
  for (char& c : word) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    if (c == '-') c = '_';
  }
  return word;
}

void QuantizationSection::add_module(const json::Value& at, std::string_view name, ModuleList& list) const {
  constexpr std::string_view kRegex = "re:";
  if (name.substr(0, kRegex.size()) == kRegex) return add_regex(at, name.substr(kRegex.size()), list);
  try {
    list.add(name);
  } catch (const std::invalid_argument& error) {
    fail(at, fmt::format("module name '{}' is not supported: {}", excerpt(name), error.what()));
  }
}

void QuantizationSection::add_part(const json::Value& at, std::string_view text, ModuleList& list) const {
  try {
    list.add_part(text);
  } catch (const std::invalid_argument& error) {
    fail(at, fmt::format("module name '{}' is not supported: {}", excerpt(text), error.what()));
  }
}

void QuantizationSection::add_regex(const json::Value& at, std::string_view pattern, ModuleList& list) const {
  try {
    list.add_regex(pattern);
  } catch (const std::invalid_argument& error) {
    fail(at, fmt::format("module pattern '{}' is not supported: {}", excerpt(pattern), error.what()));
  }
}

void QuantizationSection::add_modules(std::initializer_list<const char*> keys, ModuleList& list) const {
  for (const char* key : keys) {
    const json::Value* found = find(key);
    if (found == nullptr) continue;
    if (found->kind != json::Kind::array) fail(*found, fmt::format("{} must be a list of names", key));
    for (const json::Value& item : found->items) add_module(item, json::as_text(*file_, item, key), list);
  }
}

void QuantizationSection::add_listed(std::initializer_list<const char*> keys, ModuleList& list) const {
  for (const char* key : keys) {
    const json::Value* found = find(key);
    if (found == nullptr) continue;
    if (found->kind != json::Kind::array) fail(*found, fmt::format("{} must be a list of names", key));
    for (const json::Value& item : found->items) {
      const std::string& name = json::as_text(*file_, item, key);
      const bool regex = name.rfind(".*", 0) == 0 || name.find_first_of("\\^$(|+") != std::string::npos;
      if (regex && name.rfind("re:", 0) != 0) {
        add_regex(item, name, list);
      } else {
        add_module(item, name, list);
      }
    }
  }
}

void QuantizationSection::fail(const json::Value& at, const std::string& message) const {
  json::fail(*file_, at, message);
}

Format int_format(const QuantizationSection& section, std::int64_t bits, std::int64_t group,
                  ZeroPoints zero) {
  constexpr std::array<std::string_view, 3> kSuffixes = {"", "-zp", "-zp16"};
  const std::string rows = group < 0 ? "c" : fmt::format("g{}", group);
  const std::string name = fmt::format("int{}-{}{}", bits, rows, kSuffixes[static_cast<std::size_t>(zero)]);
  if (const std::optional<Format> format = find_format(name)) return *format;
  section.fail(
      fmt::format("{} bits in groups of {} are not supported; 2, 3, 4, 5, 6 and 8 bits are, in groups that "
                  "are a power of two from 16 to 1024 or a row (-1)",
                  bits, group));
}

void keep_modules(const QuantizationSection& section, std::initializer_list<const char*> keys,
                  QuantizationScheme& scheme) {
  ModuleList list;
  section.add_modules(keys, list);
  if (!list.empty())
    scheme.rules.push_back({.roles = kAll, .format = std::nullopt, .modules = std::move(list)});
}

void add_every_layer(QuantizationScheme& scheme, const StoredAs& format) {
  scheme.rules.push_back({.roles = kEveryLayer, .format = format, .modules = std::nullopt});
}

void keep_listed(const QuantizationSection& section, QuantizationScheme& scheme) {
  ModuleList list;
  section.add_listed(kListed, list);
  if (!list.empty())
    scheme.rules.push_back({.roles = kAll, .format = std::nullopt, .modules = std::move(list)});
}

QuantizationScheme of_one_format(const QuantizationSection& section, const StoredAs& format) {
  QuantizationScheme scheme;
  add_every_layer(scheme, format);
  keep_listed(section, scheme);
  return scheme;
}

QuantizationScheme of_transformers(const QuantizationSection& section, const StoredAs& format) {
  QuantizationScheme scheme;
  const bool listed = std::any_of(kListed.begin(), kListed.end(),
                                  [&](const char* key) { return section.find(key) != nullptr; });
  scheme.rules.push_back({.roles = listed ? Roles(kEveryLayer | kHead) : kEveryLayer,
                          .format = format,
                          .modules = std::nullopt});
  keep_listed(section, scheme);
  return scheme;
}

void add_exceptions(const QuantizationSection& section, const json::Value& modules, bool regexes,
                    FormatOf format, const QuantizationSection& outer, QuantizationScheme& scheme) {
  std::vector<std::pair<std::optional<StoredAs>, ModuleList>> lists;
  for (std::size_t i = 0; i < modules.keys.size(); ++i) {
    const std::string& name = modules.keys[i];
    const json::Value& value = modules.items[i];
    if (value.kind != json::Kind::object && value.kind != json::Kind::boolean) continue;
    section.find(name);  // it is understood
    const std::optional<StoredAs> wanted = format(QuantizationSection(section.file(), value), outer);
    auto at = std::find_if(lists.begin(), lists.end(), [&](const auto& l) { return l.first == wanted; });
    if (at == lists.end()) at = lists.insert(at, {wanted, ModuleList()});
    if (regexes && name.find_first_of("*\\^$+|") != std::string::npos) {
      section.add_regex(value, name, at->second);
    } else {
      section.add_module(value, name, at->second);
    }
  }
  for (auto& [wanted, list] : lists) {
    scheme.rules.push_back({.roles = kAll, .format = wanted, .modules = std::move(list)});
  }
}

}  // namespace memwall
