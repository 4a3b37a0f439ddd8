// A Hugging Face config.json, read by key. Families name the same thing differently and nest it differently;
// what a key is called is asked for as a list of names, and what was never asked for can be listed.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "input/json.h"

namespace memwall {

// The names a key goes by, the first found counts. A dot goes into an object: "attn_config.kv_n_heads".
using Names = std::initializer_list<const char*>;

class Config {
 public:
  // Throws InputError where the document is no object.
  explicit Config(json::Document document);

  const std::string& file() const { return document_->file; }
  // What a key is where the configuration leaves it out, as a JSON object; null in the configuration is not
  // left out.
  void set_defaults(const char* text);

  // The language model's own model_type, "" where none is given; and the whole checkpoint's.
  const std::string& type() const { return type_; }
  const std::string& outer_type() const { return outer_type_; }
  // The language model's configuration sits inside another, with a vision tower or the like beside it.
  bool nested() const { return inner_ != outer_; }

  // The first of the names whose value is not null, from the language model's configuration; from the
  // outer one where `outer_too`. nullptr where there is none.
  const json::Value* find(Names names, bool outer_too = false) const;
  bool has(Names names) const { return find(names) != nullptr; }

  // Each throws InputError at the value where it is of another kind or out of range, and the ones without
  // a fallback where the key is missing. Flags may be written 0 and 1.
  std::int64_t integer(Names names) const;
  std::int64_t integer_or(Names names, std::int64_t fallback) const;  // not negative
  std::optional<std::int64_t> maybe_integer(Names names) const;
  double number_or(Names names, double fallback) const;
  bool flag_or(Names names, bool fallback) const;
  // Of the whole checkpoint's configuration, where it says.
  std::optional<bool> outer_flag(const char* name) const;
  std::string text_or(Names names, const std::string& fallback) const;
  // Lists, or the same as one comma-separated text; empty where the key is missing.
  std::vector<std::int64_t> integers(Names names) const;
  std::vector<std::string> texts(Names names) const;
  // A number, or layer `layer`'s of a list.
  std::int64_t layer_integer_or(Names names, std::int32_t layer, std::int64_t fallback) const;

  // Throws InputError: the configuration as a whole lacks something or contradicts itself.
  [[noreturn]] void fail(const std::string& message) const;
  [[noreturn]] void fail_at(const json::Value& value, const std::string& message) const;

  // Top-level keys of the language model's configuration that were never asked for and may bear on the
  // count: tokens' ids, dropout rates and the like are left out.
  std::vector<std::string> unasked() const;

 private:
  // Sets `found` where the key is there, be it null.
  const json::Value* find_in(const json::Value& root, std::string_view name, bool* found = nullptr) const;
  std::int64_t checked_integer(const json::Value& value, std::string_view name) const;

  std::shared_ptr<const json::Document> document_;
  std::shared_ptr<const json::Document> defaults_;
  const json::Value* outer_ = nullptr;
  const json::Value* inner_ = nullptr;
  std::string type_;
  std::string outer_type_;
  std::shared_ptr<std::set<std::string, std::less<>>> asked_;
};

}  // namespace memwall
