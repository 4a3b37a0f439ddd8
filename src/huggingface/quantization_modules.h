// The modules that a list in quantization_config names: exact paths, parts of paths, globs and regular
// expressions.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "huggingface/quantization_names.h"
#include "huggingface/quantization_pattern.h"

namespace memwall {

class ModuleList {
 public:
  // What a call may cost together with all that share the budget.
  using Budget = ModulePattern::Budget;
  // Tensor `tensor` of the block's `layer`th layer, counted from 0, is listed. May be called twice for one.
  using Mark = std::function<void(std::size_t layer, std::size_t tensor)>;

  // A path ("model.layers.3.self_attn.q_proj"), its beginning ("model.layers.3"), some components in a row of
  // it ("mlp.gate", "lm_head"), or a glob. Throws std::invalid_argument with the reason.
  void add(std::string_view name);
  // A regular expression, tied to the path's begin. Throws std::invalid_argument with the reason.
  void add_regex(std::string_view pattern);

  bool empty() const { return parts_.empty() && in_layer_.empty() && patterns_.empty(); }

  // Throws std::length_error where the patterns need too many steps.
  void mark(const Block& block, const BlockNames& names, Budget& budget, const Mark& mark);

 private:
  // What is listed for one layer, behind its number: "" is all of it.
  struct InLayer {
    std::set<std::string, std::less<>> paths;
    std::set<std::string, std::less<>> globs;
  };
  using Tensors = std::vector<std::uint32_t>;

  const Tensors& inside_layer(const std::string& glob, const BlockNames& names, Budget& budget);
  void mark_pattern(const ModulePattern& pattern, const Block& block, const BlockNames& names, Budget& budget,
                    const Mark& mark) const;

  std::set<std::string, std::less<>> parts_;
  std::map<std::int32_t, InLayer> in_layer_;
  std::vector<ModulePattern> patterns_;
  std::map<std::pair<std::string, const BlockNames*>, Tensors> inside_layers_;
};

}  // namespace memwall
