// Blocks as the keys of a layer in a YAML model file.
#pragma once

#include <string>

#include "model/blocks.h"

namespace memwall {

// "attention: {heads: 32, kv_heads: 8}" on one line, or the several lines of a run, the first of which
// starts at column 0 and the others with at least two blanks.
std::string block_yaml(const Block& block, const Common& common);

}  // namespace memwall
