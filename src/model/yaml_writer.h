// A Model as a YAML model file (docs/model-format.md).
#pragma once

#include <string>

#include "model/model.h"

namespace memwall {

// The document: read back, it gives the same tensors, states, layers, extras and warnings.
std::string model_yaml(const Model& model);

}  // namespace memwall
