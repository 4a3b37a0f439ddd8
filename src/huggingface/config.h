// A Hugging Face config.json, read by key. Families name the same thing differently and nest it differently;
// what a key is called is asked for as a list of names, and what was never asked for can be listed.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "input/json.h"

namespace memwall {

// The names a key goes by, the first found counts. A dot goes into an object: "attn_config.kv_n_heads".
using Names = std::initializer_list<const char*>;

// The names that a list may hold.
using Known = std::span<const char* const>;

class Config {
 public:
  // Throws InputError where the document is no object, or where the language model's own configuration is
  // none.
  explicit Config(json::Document document);

  const std::string& file() const { return document_->file; }
  // What a key is where the configuration leaves it out, as a JSON object; null in the configuration is not
  // left out.
  void set_defaults(const char* text);
  // How many layers there are, and how many more a list may tell of: multi-token-prediction layers follow the
  // others in some. Before, a list has whatever length it has.
  void set_layers(std::int64_t layers, std::int64_t drafts) {
    layers_ = layers;
    drafts_ = drafts;
  }

  // The language model's own model_type, "" where none is given; and the whole checkpoint's.
  const std::string& type() const { return type_; }
  const std::string& outer_type() const { return outer_type_; }
  // The language model's configuration sits inside another, with a vision tower or the like beside it.
  bool nested() const { return inner_ != outer_; }

  // The first of the names whose value is not null, from the language model's configuration; from the
  // outer one where `outer_too`. nullptr where there is none. Throws InputError where it is null and the
  // modelling code takes no null there. What it returns is of any kind: prefer the accessors below.
  const json::Value* find(Names names, bool outer_too = false) const;
  bool has(Names names) const { return find(names) != nullptr; }
  // One of them is in the language model's configuration itself, not only among the defaults, and not null.
  bool states(Names names) const;
  bool is_null(Names names) const;  // one of them is there, and all that are there are null

  // Each throws InputError at the value where it is of another kind or out of range, and the ones without
  // a fallback where the key is missing: a value of the wrong kind is never taken for a missing one. Flags
  // may be written 0 and 1.
  std::int64_t integer(Names names) const;
  std::int64_t integer_or(Names names, std::int64_t fallback) const;  // not negative
  std::optional<std::int64_t> maybe_integer(Names names) const;
  double number_or(Names names, double fallback) const;
  bool flag_or(Names names, bool fallback) const;
  // The classes the whole checkpoint was saved from; empty where it does not say.
  std::vector<std::string> architectures() const;
  // Of the whole checkpoint's configuration, where it says.
  std::optional<bool> outer_flag(const char* name) const;
  std::string text_or(Names names, const std::string& fallback) const;
  // Lists; of integers also as one comma-separated text ("3,4,5"). Empty where the key is missing.
  std::vector<std::int64_t> integers(Names names) const;
  std::vector<std::string> texts(Names names) const;

  // Lists with one item for each layer; of another length they are refused.
  bool is_list(Names names) const;
  // nullptr where the key is missing. Throws InputError where it is no list.
  const json::Value* layer_list(Names names) const;
  const json::Value* layer_item(Names names, std::int32_t layer) const;
  // A number, or layer `layer`'s of a list.
  std::int64_t layer_integer_or(Names names, std::int32_t layer, std::int64_t fallback) const;
  // The same where it must be a list.
  std::int64_t listed_integer_or(Names names, std::int32_t layer, std::int64_t fallback) const;
  // A number, or a list that repeats one.
  std::int64_t uniform_integer_or(Names names, std::int64_t fallback) const;
  // A number, or the first of a list of any length.
  std::int64_t first_integer_or(Names names, std::int64_t fallback) const;
  // Layer `layer`'s name of a list, which must be one of those known. "" where the key is missing.
  std::string layer_text(Names names, std::int32_t layer, Known known) const;
  // All of them.
  std::vector<std::string> layer_texts(Names names, Known known) const;

  // A size that was read by these names, or follows from others where none is stated: throws InputError, at
  // the value where there is one, unless it is from `least` to `most`.
  std::int64_t checked_size(Names names, std::int64_t size, std::int64_t least, std::int64_t most) const;

  // Throws InputError, at the object, where one that is neither the language model's nor of a part beside it
  // states a width and a depth, by any of these names: for a language model that states none, whose class's
  // defaults would be those of another model.
  void refuse_sizes_elsewhere(Names widths, Names depths) const;

  // Throws InputError: the configuration as a whole lacks something or contradicts itself. At the language
  // model's object.
  [[noreturn]] void fail(const std::string& message) const;
  // At the value of the first of the names that is stated; where none is, at the object.
  [[noreturn]] void fail_about(Names names, const std::string& message) const;
  [[noreturn]] void fail_at(const json::Value& value, const std::string& message) const;

  // Keys of the language model's configuration, also of objects in it ("attn_config.kv_n_heads") of which
  // others were asked for, that were never asked for and may bear on the count: inert ones (inert_keys.h) are
  // left out.
  std::vector<std::string> unasked() const;
  // Those of them that by name and value state a size, a count, a rank, a gate or the like.
  std::vector<std::string> unasked_sizes() const;

 private:
  struct Found {
    const json::Value* value = nullptr;  // never null
    const char* name = "";               // as the configuration calls it; the first name where there is none
  };
  // Sets `null` where the key is there and null.
  const json::Value* find_in(const json::Value& root, std::string_view name,
                             const json::Value** null = nullptr) const;
  Found look_up(Names names, bool outer_too = false) const;
  std::int64_t checked_integer(const Found& found) const;
  std::int64_t integer_item(const json::Value& item, const char* name) const;
  [[noreturn]] void fail_kind(const Found& found, const char* wanted) const;
  const json::Value* layer_list(const Found& found) const;
  std::string known_text(const Found& found, const json::Value& list, std::size_t index, Known known) const;
  void each_unasked(const std::function<void(const std::string&, const json::Value&)>& visit) const;

  std::shared_ptr<const json::Document> document_;
  std::shared_ptr<const json::Document> defaults_;
  const json::Value* outer_ = nullptr;
  const json::Value* inner_ = nullptr;
  std::string type_;
  std::string outer_type_;
  std::int64_t layers_ = 0;
  std::int64_t drafts_ = 0;
  std::shared_ptr<std::set<std::string, std::less<>>> asked_;
};

}  // namespace memwall
