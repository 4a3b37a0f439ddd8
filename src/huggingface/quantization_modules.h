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

  // A path ("model.layers.3.self_attn.q_proj") or its beginning ("model.layers.3"): a name that starts as the
  // model's own do ("model.transformer.ff_out") is the module of that path alone. Or some components in a row
  // of one ("mlp.gate", "lm_head"), or its end ("gate" of "mlp.shared_expert_gate"), as transformers'
  // should_convert_module has them; or a glob. Throws std::invalid_argument with the reason.
  void add(std::string_view name);
  // Whatever path holds the text, up to the end of a component: AutoAWQ's lists.
  void add_part(std::string_view text);
  // A regular expression, tied to the path's begin. Throws std::invalid_argument with the reason.
  void add_regex(std::string_view pattern);

  bool empty() const {
    return parts_.empty() && outside_.empty() && in_layer_.empty() && patterns_.empty() && !everything_;
  }

  // Throws std::length_error where the patterns need too many steps.
  void mark(const Block& block, const BlockNames& names, const PathRoots& roots, Budget& budget,
            const Mark& mark);

 private:
  // What is listed for one layer, behind its number: "" is all of it.
  struct InLayer {
    std::set<std::string, std::less<>> paths;
    std::set<std::string, std::less<>> globs;
  };
  using Tensors = std::vector<std::uint32_t>;

  const Tensors& named(const BlockNames& names);
  const Tensors& inside_layer(const std::string& glob, const BlockNames& names, Budget& budget);
  void mark_pattern(const ModulePattern& pattern, const Block& block, const BlockNames& names,
                    const PathRoots& roots, Budget& budget, const Mark& mark) const;

  bool everything_ = false;                     // "model"
  std::set<std::string, std::less<>> parts_;    // anywhere in a path
  std::set<std::string, std::less<>> outside_;  // paths before and behind the layers
  std::map<std::int32_t, InLayer> in_layer_;
  std::vector<ModulePattern> patterns_;
  std::map<const BlockNames*, Tensors> named_;  // by parts_
  std::map<std::pair<std::string, const BlockNames*>, Tensors> inside_layers_;
};

}  // namespace memwall
