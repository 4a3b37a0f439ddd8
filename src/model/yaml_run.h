// Lists of norms, linears, small parameters and states in a YAML model file, in the order they run: what a
// mixer is, and what stands before and behind the layers where it is not the usual.
#pragma once

#include <optional>

#include "input/yaml.h"
#include "model/blocks.h"

namespace memwall {

// Appends the items of `run` to a block. Throws InputError.
void read_run(const yaml::Node& run, const Common& common, Block& block);

// mixer: {name, run}. Throws InputError.
Block read_mixer(const yaml::Node& node, const Common& common);

// An attention, an mlp or a moe whose tensors and states are written out under `run`, where `map` has that
// key. Throws InputError.
std::optional<Block> read_written_out(BlockKind kind, yaml::Mapping& map, const Common& common);

// The key `activation`; SiLU where it is missing.
ActivationKind read_activation(yaml::Mapping& map);

}  // namespace memwall
