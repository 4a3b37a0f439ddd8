// The models memwall ships, and MODEL as a person writes it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model/model.h"

namespace memwall {

// A zoo model's name or alias, or a model YAML's path. Throws InputError.
Model find_model(std::string_view word);

// Every model of the zoo, by name.
std::vector<Model> zoo();

}  // namespace memwall
