// The pieces that model files are written with: scalars, keys and flow mappings.
#pragma once

#include <fmt/format.h>

#include <string>

namespace memwall {

// A text as a YAML scalar that is read back as the same text, in quotes where it needs them. Control
// characters and broken UTF-8, which no reader takes, are written as their escapes: "\x1b" becomes the four
// characters \x1b.
std::string yaml_scalar(const std::string& text);

// A name as a key. YAML allows a key 1024 characters: of a longer one the first are kept, and a hash.
std::string yaml_key(const std::string& name);

// "key: value, key: value", to stand between braces. Keys and values are written as they are.
class Flow {
 public:
  template <typename Value>
  Flow& add(const std::string& key, const Value& value) {
    text_ += fmt::format("{}{}: {}", text_.empty() ? "" : ", ", key, value);
    return *this;
  }
  template <typename Value>
  Flow& add_unless(const std::string& key, const Value& value, const Value& usual) {
    return value == usual ? *this : add(key, value);
  }
  bool empty() const { return text_.empty(); }
  std::string braces() const { return "{" + text_ + "}"; }

 private:
  std::string text_;
};

}  // namespace memwall
