// Small configurations for the tests of the families.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "huggingface/read_config.h"
#include "tests/support.h"

namespace memwall {

// A configuration of hidden size 8 and vocabulary 10; `keys` are the family's own, which may not repeat
// those.
inline std::string config_text(const std::string& type, const std::string& keys) {
  return R"({"model_type": ")" + type +
         R"(", "hidden_size": 8, "vocab_size": 10, "torch_dtype": "float16", )" + keys + "}";
}

inline Model read_text(const std::string& text) {
  return model_from_config(json::parse(text, "config.json"), "small");
}

inline Model read_small(const std::string& type, const std::string& keys) {
  return read_text(config_text(type, keys));
}

inline std::string refusal(const std::string& text) {
  return error_of([&] { read_text(text); });
}

inline std::int64_t total(const Model& model) { return count_parameters(model).total; }
inline std::int64_t active(const Model& model) { return count_parameters(model).active; }

// The block of that kind (or mixer of that name) that a layer has.
inline const Block& block_of(const Model& model, std::int32_t layer, BlockKind kind,
                             const std::string& name = "") {
  for (const Block& block : model.blocks) {
    if (block.kind != kind || block.name != name) continue;
    for (const std::int32_t own : block.layers) {
      if (own == layer) return block;
    }
  }
  ADD_FAILURE() << "layer " << layer << " has no such block";
  return model.blocks.front();
}

inline KvState kv_of(const Model& model, std::int32_t layer) {
  return std::get<KvState>(block_of(model, layer, BlockKind::attention).states.at(0).state);
}

}  // namespace memwall
