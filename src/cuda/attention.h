// Attention's operands on a GPU, with rotary in the same launch or without.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "bench/device.h"
#include "cuda/context.h"

namespace memwall::cuda {

// A decode step's attention. `turned`: queries and new keys are turned as they are loaded.
struct AttentionTask {
  AttentionWork work;
  Workload workload;
  bool turned = false;
  double flops = 0;
};

std::vector<Variant> attention_variants(const AttentionTask& task, Context& context);
Footprint attention_footprint(const AttentionTask& task, Context& context);
std::unique_ptr<Operands> place_attention(const AttentionTask& task, Context& context, std::int64_t copies,
                                          std::uint64_t seed);

}  // namespace memwall::cuda
