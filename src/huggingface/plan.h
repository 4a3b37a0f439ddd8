// From a config's keys to a plan of the model, by the names that most families share.
#pragma once

#include "huggingface/family.h"

namespace memwall {

// Throws InputError where a key that every decoder has is missing, or has no sense.
Plan read_plan(const Config& config, const Family& family);

// Layer `index` of the plan: its window, chunk and widths.
LayerPlan plan_layer(const Config& config, const Family& family, const Plan& plan, std::int32_t index);

}  // namespace memwall
