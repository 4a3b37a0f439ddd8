// Lists of norms, linears, small parameters and states in a YAML model file, in the order they run: what a
// mixer is, and what stands before and behind the layers where it is not the usual.
#pragma once

#include "input/yaml.h"
#include "model/blocks.h"

namespace memwall {

// Appends the items of `run` to a block. Throws InputError.
void read_run(const yaml::Node& run, const Common& common, Block& block);

// mixer: {name, run}. Throws InputError.
Block read_mixer(const yaml::Node& node, const Common& common);

}  // namespace memwall
