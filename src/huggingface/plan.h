// From a config's keys to a plan of the model, by the names that most families share.
#pragma once

#include "huggingface/family.h"

namespace memwall {

inline constexpr Names kExperts = {"num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts",
                                   "num_routed_experts"};
inline constexpr Names kExpertsPerToken = {
    "num_experts_per_tok", "num_experts_per_token", "experts_per_token", "moe_top_k", "moe_topk", "moe_k",
    "top_k_experts",       "num_selected_experts"};

// The width of the residual stream. Throws InputError where it is missing or no size.
std::int64_t read_hidden_size(const Config& config);
// How many layers there are: stated, or as many as a list or pattern of their kinds has. Throws InputError
// where it cannot be told, or is not from 1 to 10,000.
std::int64_t read_layer_count(const Config& config);
// How many multi-token-prediction layers stand behind them.
std::int64_t draft_layers(const Config& config);

// Of tensors stored as `dtype`. Throws InputError where a key that every decoder has is missing, or makes no
// sense.
Plan read_plan(const Config& config, const Family& family, Format dtype);

// Of checkpoints saved without a language model's head, by their architecture: no lm_head, and what stands in
// its place.
void replace_head(const Config& config, Plan& plan);

// Layer `index` of the plan: its window, chunk and widths.
LayerPlan plan_layer(const Config& config, const Family& family, const Plan& plan, std::int32_t index);

// The experts (none: experts = 0), and which layers have them.
MoeSpec read_moe(const Config& config, const Family& family, const MlpSpec& mlp);
std::vector<bool> read_moe_layers(const Config& config, const Plan& plan);

bool is_on(const Config& config, const Switch& property);

}  // namespace memwall
