// Tensors and states as the items of a run in a YAML model file.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "model/blocks.h"
#include "model/yaml_text.h"

namespace memwall {

// "rms", as the key norm has it.
const char* norm_kind_name(NormKind kind);

// heads, kv_heads and the rest of an attention's cache.
void add_kv(Flow& flow, const KvState& kv, bool rotary_is_usual);

// The tensors of a block that are written with another, which finds its bias by `bias: true` or by its kind.
class ToldBiases {
 public:
  ToldBiases(const Block& block, const Common& common);
  bool is_told(std::size_t tensor) const { return told_[tensor]; }  // by its owner
  bool tells(std::size_t tensor) const { return tells_[tensor]; }   // of its bias

 private:
  std::vector<bool> told_;
  std::vector<bool> tells_;
};

// "NAME: [out, in]" or "NAME: {...}": a tensor as an item of a run. `tells`: its bias is told with it.
std::string tensor_yaml(const Tensor& tensor, const Common& common, bool tells);

// The items of a run, one a line, each starting with "- ".
std::string run_yaml(const Block& block, const Common& common);

}  // namespace memwall
