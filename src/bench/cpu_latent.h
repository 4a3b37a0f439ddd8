// Latent attention's two phases on the CPU, which share nothing but the cache they write: decode absorbs
// kv_b_proj, prefill expands the latents.
#pragma once

#include <cstdint>
#include <memory>

#include "bench/cpu_operands.h"

namespace memwall {

bool has_latent_prefill(const LatentState& state, const Workload& workload);
Footprint latent_prefill_footprint(const LatentWork& work, const Workload& workload, int workers);
std::unique_ptr<Operands> place_latent_prefill(const LatentWork& work, const Workload& workload,
                                               CpuContext& context, std::int64_t copies, std::uint64_t seed);

}  // namespace memwall
