// Tensors and states as the items of a run in a YAML model file, and the pieces they are written with.
#pragma once

#include <fmt/format.h>

#include <string>

#include "model/blocks.h"

namespace memwall {

// "key: value, key: value", to stand between braces.
class Flow {
 public:
  template <typename Value>
  Flow& add(const char* key, const Value& value) {
    text_ += fmt::format("{}{}: {}", text_.empty() ? "" : ", ", key, value);
    return *this;
  }
  template <typename Value>
  Flow& add_unless(const char* key, const Value& value, const Value& usual) {
    return value == usual ? *this : add(key, value);
  }
  std::string braces() const { return "{" + text_ + "}"; }

 private:
  std::string text_;
};

// "rms", as the key norm has it.
const char* norm_kind_name(NormKind kind);

// heads, kv_heads and the rest of an attention's cache.
void add_kv(Flow& flow, const KvState& kv, bool rotary_is_usual);

// One tensor; its bias is told with it.
std::string tensor_yaml(const Block& block, const Tensor& tensor, const Common& common);

// The items of a run, one a line, each starting with "- ".
std::string run_yaml(const Block& block, const Common& common);

// A text as a YAML scalar, in quotes where it needs them.
std::string yaml_scalar(const std::string& text);

}  // namespace memwall
