// What a model's parameters and bytes are made of.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/model.h"

namespace memwall {

struct Component {
  std::string name;             // "attention", "experts", "lm_head"; a mixer by its own name
  std::int64_t parameters = 0;  // stored, tied tensors once
  std::int64_t stored_bytes = 0;
  std::int64_t read_bytes = 0;  // by a batch-1 decode step
};

// In the order a step meets them; they add up to count_parameters, stored_bytes and read_bytes.
std::vector<Component> components_of(const Model& model);

}  // namespace memwall
