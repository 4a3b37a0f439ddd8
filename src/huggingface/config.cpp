// A configuration's keys: where they are looked for, which were, and where an error stands.
#include "huggingface/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "huggingface/inert_keys.h"
#include "huggingface/null_keys.h"
#include "input/error.h"

namespace memwall {
namespace {

// Where composite checkpoints keep their language model's configuration.
constexpr std::array kNests = {"text_config",
                               "llm_config",
                               "language_config",
                               "thinker_config.text_config",
                               "thinker_config",
                               "language_model_config",
                               "vlm_config.text_config",
                               "vlm_config"};

// Words in the names of objects that describe parts beside the language model, besides those of inert_keys.h.
constexpr std::array kBeside = {"vision",  "visual", "image", "audio",     "speech",    "encoder", "tower",
                                "adapter", "draft",  "depth", "perceiver", "projector", "codec",   "vit"};

bool has_any(const json::Value& object, Names names) {
  return std::any_of(names.begin(), names.end(), [&](const char* name) {
    const json::Value* value = object.find(name);
    return value != nullptr && value->kind == json::Kind::number;
  });
}

void move_to(json::Value& value, const json::Value& place) {
  value.line = place.line;
  value.column = place.column;
  for (json::Value& item : value.items) move_to(item, place);
}

std::string all_names(Names names) {
  std::string text;
  for (const char* name : names) {
    if (!text.empty()) text += text.find(" (also called ") == std::string::npos ? " (also called " : ", ";
    text += name;
  }
  return names.size() > 1 ? text + ")" : text;
}

}  // namespace

Config::Config(json::Document document)
    : document_(std::make_shared<const json::Document>(std::move(document))),
      asked_(std::make_shared<std::set<std::string, std::less<>>>()) {
  outer_ = inner_ = &document_->root;
  if (outer_->kind != json::Kind::object) fail_at(*outer_, "a config.json is one object, { ... }");
  outer_type_ = type_ = text_or({"model_type"}, "");
  for (const char* nest : kNests) {
    const json::Value* inner = find_in(*outer_, nest);
    if (inner == nullptr) continue;
    if (inner->kind != json::Kind::object) fail_kind({inner, nest}, "an object, the language model's");
    inner_ = inner;
    type_ = text_or({"model_type"}, "");
    break;
  }
}

void Config::set_defaults(const char* text) {
  json::Document defaults = json::parse(text, "the defaults of " + type_);
  move_to(defaults.root, *inner_);  // an error in what follows from them stands at what lacks the keys
  defaults_ = std::make_shared<const json::Document>(std::move(defaults));
}

const json::Value* Config::find_in(const json::Value& root, std::string_view name,
                                   const json::Value** null) const {
  if (asked_->find(name) == asked_->end()) {
    for (std::size_t dot = name.find('.'); dot != std::string_view::npos; dot = name.find('.', dot + 1))
      asked_->emplace(name.substr(0, dot));
    asked_->emplace(name);
  }
  const json::Value* value = &root;
  while (value != nullptr && !name.empty()) {
    const std::size_t dot = name.find('.');
    value = value->find(name.substr(0, dot));
    name = dot == std::string_view::npos ? std::string_view{} : name.substr(dot + 1);
  }
  if (value == nullptr) return nullptr;
  if (value->kind != json::Kind::null) return value;
  if (null != nullptr && *null == nullptr) *null = value;
  return nullptr;
}

Config::Found Config::look_up(Names names, bool outer_too) const {
  Found found{nullptr, *names.begin()};
  const json::Value* null = nullptr;
  const char* null_name = nullptr;
  for (const json::Value* root : {inner_, outer_}) {
    for (const char* name : names) {
      const bool first_null = null == nullptr;
      const json::Value* value = find_in(*root, name, &null);
      if (value != nullptr && found.value == nullptr) found = {value, name};
      if (first_null && null != nullptr) null_name = name;
    }
    if (!outer_too || found.value != nullptr) break;
  }
  if (found.value != nullptr) return found;
  if (null != nullptr) {
    if (!takes_null(type_, null_name)) fail_at(*null, fmt::format("{} must be a value, not null", null_name));
    return found;
  }
  if (defaults_ == nullptr) return found;
  for (const char* name : names) {
    if (const json::Value* value = find_in(defaults_->root, name)) return {value, name};
  }
  return found;
}

const json::Value* Config::find(Names names, bool outer_too) const { return look_up(names, outer_too).value; }

bool Config::states(Names names) const {
  return std::any_of(names.begin(), names.end(),
                     [&](const char* name) { return find_in(*inner_, name) != nullptr; });
}

bool Config::is_null(Names names) const {
  const json::Value* null = nullptr;
  for (const char* name : names) {
    if (find_in(*inner_, name, &null) != nullptr) return false;
  }
  return null != nullptr;
}

std::int64_t Config::integer(Names names) const {
  if (const std::optional<std::int64_t> value = maybe_integer(names)) return *value;
  fail_about(names, fmt::format("no {}", all_names(names)));
}

std::int64_t Config::checked_size(Names names, std::int64_t size, std::int64_t least,
                                  std::int64_t most) const {
  if (size >= least && size <= most) return size;
  const Found found = look_up(names);
  if (found.value != nullptr)
    fail_at(*found.value, fmt::format("{} is {}; it must be from {} to {}", found.name, size, least, most));
  if (size == 0) fail(fmt::format("no {}", all_names(names)));
  fail(fmt::format("{}, which follows from other keys, is {}; it must be from {} to {}", found.name, size,
                   least, most));
}

void Config::refuse_sizes_elsewhere(Names widths, Names depths) const {
  const std::function<void(const json::Value&, const std::string&)> look = [&](const json::Value& object,
                                                                               const std::string& path) {
    for (std::size_t i = 0; i < object.keys.size(); ++i) {
      const std::string& key = object.keys[i];
      const json::Value& value = object.items[i];
      const auto holds = [&](const char* word) { return key.find(word) != std::string::npos; };
      if (value.kind != json::Kind::object || is_inert(outer_type_, key) ||
          std::any_of(kBeside.begin(), kBeside.end(), holds))
        continue;
      const std::string name = path + key;
      if (&value != inner_ && has_any(value, widths) && has_any(value, depths)) {
        fail_at(value,
                fmt::format("no {} is stated where it is read: its sizes stand in {}, which is not read",
                            *widths.begin(), excerpt(name)));
      }
      look(value, name + '.');
    }
  };
  look(*outer_, "");
}

void Config::fail(const std::string& message) const { fail_at(*inner_, message); }

void Config::fail_about(Names names, const std::string& message) const {
  for (const char* name : names) {
    const json::Value* null = nullptr;
    if (const json::Value* value = find_in(*inner_, name, &null)) fail_at(*value, message);
    if (null != nullptr) fail_at(*null, message);
  }
  fail(message);
}

void Config::fail_at(const json::Value& value, const std::string& message) const {
  json::fail(file(), value, message);
}

void Config::fail_kind(const Found& found, const char* wanted) const {
  fail_at(*found.value, fmt::format("{} must be {}, not {}", found.name, wanted, json::shown(*found.value)));
}

void Config::each_unasked(const std::function<void(const std::string&, const json::Value&)>& visit) const {
  const auto was_asked = [&](const std::string& key) { return asked_->find(key) != asked_->end(); };
  for (std::size_t i = 0; i < inner_->keys.size(); ++i) {
    const std::string& key = inner_->keys[i];
    const json::Value& value = inner_->items[i];
    if (is_inert(type_, key)) continue;
    const auto own = asked_->lower_bound(key + '.');
    const bool gone_into = own != asked_->end() && own->rfind(key + '.', 0) == 0;
    if (!was_asked(key) && value.kind != json::Kind::object) visit(key, value);
    if (value.kind != json::Kind::object || (was_asked(key) && !gone_into)) continue;
    if (!gone_into) visit(key, value);
    for (std::size_t k = 0; k < value.keys.size(); ++k) {
      const std::string path = key + '.' + value.keys[k];
      if (!is_inert(type_, value.keys[k]) && !was_asked(path)) visit(path, value.items[k]);
    }
  }
}

}  // namespace memwall
