// Rotary and attention of a decode step as one launch.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "bench/device.h"
#include "cuda/context.h"

namespace memwall::cuda {

// Whether `task` is [rotary, attention] of one decode step in a form that one launch computes: the step's
// queries and its new key are turned as they are loaded. The functions below take only such tasks.
bool is_fused_attention(const FusedTask& task);

std::vector<Variant> fused_attention_variants(const FusedTask& task, Context& context);
Footprint fused_attention_footprint(const FusedTask& task, Context& context);
std::unique_ptr<Operands> place_fused_attention(const FusedTask& task, Context& context, std::int64_t copies,
                                                std::uint64_t seed);

}  // namespace memwall::cuda
