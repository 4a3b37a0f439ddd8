// Model files in YAML (docs/model-format.md).
#pragma once

#include <string>

#include "input/yaml.h"
#include "model/model.h"

namespace memwall {

// Reads a model file. Throws InputError with file, line and column where the file is wrong: unknown keys,
// wrong types, sizes out of range or whose product passes 2^63 - 1, heads that kv_heads do not divide.
Model load_model_yaml(const std::string& path);

// The same from a parsed document.
Model model_from_yaml(const yaml::Node& document);

}  // namespace memwall
