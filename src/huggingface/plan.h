// From a config's keys to a plan of the model, by the names that most families share.
#pragma once

#include "huggingface/family.h"

namespace memwall {

// Of tensors stored as `dtype`. Throws InputError where a key that every decoder has is missing, or makes no
// sense.
Plan read_plan(const Config& config, const Family& family, Format dtype);

// Layer `index` of the plan: its window, chunk and widths.
LayerPlan plan_layer(const Config& config, const Family& family, const Plan& plan, std::int32_t index);

// The experts (none: experts = 0), and which layers have them.
MoeSpec read_moe(const Config& config, const Family& family, const MlpSpec& mlp);
std::vector<bool> read_moe_layers(const Config& config, const Plan& plan);

bool is_on(const Config& config, const Switch& property);

}  // namespace memwall
