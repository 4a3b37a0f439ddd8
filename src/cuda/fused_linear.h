// Linears fused with what stands around them.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "bench/device.h"
#include "cuda/context.h"

namespace memwall::cuda {

// [norm] + 1 to 4 linears of one input, format and width; or [norm] + linear(s) + activation, which takes one
// linear, or two of one shape where gated; or [norm] + linear + residual. Up to 16 rows.
bool is_fused_linear(const FusedTask& task);

// The task must be one.
std::vector<Variant> fused_linear_variants(const FusedTask& task, Context& context);
Footprint fused_linear_footprint(const FusedTask& task, Context& context);
std::unique_ptr<Operands> place_fused_linear(const FusedTask& task, Context& context, std::int64_t copies,
                                             std::uint64_t seed);

}  // namespace memwall::cuda
