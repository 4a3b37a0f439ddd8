// Which layers of a GGUF file a decode step runs, and how often.
#pragma once

#include <cstdint>
#include <vector>

#include "load/gguf_source.h"

namespace memwall {

// For each layer that a step runs, in order, the layer of the file whose weights it reads. Mostly the same;
// Nanbeige runs all its layers several times, HRM-Text two stacks of them in turn. Each run keeps a cache of
// its own. Throws InputError where the keys that say so contradict each other.
std::vector<std::int32_t> gguf_order(const GgufSource& source);

}  // namespace memwall
