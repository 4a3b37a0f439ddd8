// The names of modules in checkpoints, and the tensors of a Model's blocks that they may be. Sources: the
// modelling code of Hugging Face transformers 5.24, and the repositories of models that it lacks.
#pragma once

#include <string_view>
#include <unordered_map>
#include <vector>

namespace memwall {

// By a module's path inside its parent, "c_fc" of "mlp.c_fc": names in a block, the likeliest first. A name
// is not listed for itself.
using AliasIndex = std::unordered_map<std::string_view, std::vector<const char*>>;

const AliasIndex& layer_aliases();    // directly in a layer
const AliasIndex& mixing_aliases();   // inside of attention or a recurrence
const AliasIndex& feeding_aliases();  // inside of an MLP or experts
const AliasIndex& outside_aliases();  // before and after the layers

}  // namespace memwall
