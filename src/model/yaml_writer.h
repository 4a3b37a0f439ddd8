// A Model as a YAML model file (docs/model-format.md).
#pragma once

#include <string>

#include "model/model.h"

namespace memwall {

// The document: read back, it gives the same tensors, states and layers. What a checkpoint holds besides
// stands in comments. Throws InputError where a block has a part that the format cannot express.
std::string model_yaml(const Model& model);

}  // namespace memwall
