// The parts of a model by the words that people have for them: "attention", "experts", "*.down_proj".
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model/model.h"

namespace memwall {

// "Shared Experts" and "shared-experts" are one word, "shared_experts".
std::string plain_part(std::string_view text);

// The parts a matrix belongs to: of a mixer both "attention", where it attends, and its own name. None for
// norms, biases and small parameters.
std::vector<std::string> parts_of(const Block& block, const Tensor& tensor);

// Whether `part` names the tensor: by one of its parts, by its name, or by a pattern of names, in which '*'
// stands for any letters and '?' for one.
bool names_tensor(std::string_view part, const Block& block, const Tensor& tensor);

// The parts that a model has, in its order: "embedding", "attention", "mlp", "experts", "shared_experts",
// "router", "lm_head", mixers by their names.
std::vector<std::string> weight_parts(const Model& model);

}  // namespace memwall
