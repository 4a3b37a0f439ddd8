#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "huggingface/families_parts.h"
#include "huggingface/plan.h"

namespace memwall {
namespace {

constexpr std::int64_t kMostExperts = 1 << 20;
constexpr std::array kMlpKinds = {"dense", "sparse", "moe", "hash_moe"};

}  // namespace

MoeSpec read_moe(const Config& config, const Family& family, const MlpSpec& mlp) {
  MoeSpec spec;
  const auto number = [&](Names names) {
    return family.lists_modalities ? config.first_integer_or(names, 0) : config.uniform_integer_or(names, 0);
  };
  spec.experts = number(kExperts);
  if (spec.experts > kMostExperts)
    config.fail_about(kExperts, fmt::format("{} experts are more than {}", spec.experts, kMostExperts));
  spec.per_token = number(kExpertsPerToken);
  if (spec.experts == 0 && spec.per_token > 0 && config.is_null(kExperts)) {
    config.fail_about(kExperts,
                      fmt::format("the experts are null, but each token takes {} of them", spec.per_token));
  }
  spec.expert = mlp;
  spec.expert.intermediate =
      number({"moe_intermediate_size", "moe_ffn_hidden_size", "expert_ffn_hidden_size"});
  if (spec.expert.intermediate == 0) spec.expert.intermediate = mlp.intermediate;
  spec.router_bias = is_on(config, family.router_bias);
  spec.shared_gate = family.shared_gate;
  spec.shared_intermediate = size_or_none(
      config, {"shared_expert_intermediate_size", "moe_shared_expert_intermediate_size",
               "shared_experts_intermediate_size", "shared_intermediate_size", "share_expert_dim"});
  const std::int64_t shared =
      config.integer_or({"n_shared_experts", "num_shared_experts", "moe_num_shared_experts"}, 0);
  if (spec.experts > 0 && spec.shared_intermediate == 0 && shared > 0) {
    if (shared > kMostExperts)
      config.fail_about({"n_shared_experts", "num_shared_experts", "moe_num_shared_experts"},
                        fmt::format("{} shared experts are too many", shared));
    spec.shared_intermediate = shared * spec.expert.intermediate;
  }
  return spec;
}

std::vector<bool> read_moe_layers(const Config& config, const Plan& plan) {
  const auto layers = static_cast<std::size_t>(plan.layers);
  std::vector<bool> moe(layers, plan.moe.experts > 0);
  // Asked in any case: which of them counts, the others decide.
  const std::int64_t dense = config.integer_or({"first_k_dense_replace", "num_dense_layers"}, 0);
  const bool listed = config.is_list({"moe_layer_freq"});
  const std::int64_t every =
      listed ? 1 : std::max<std::int64_t>(1, config.integer_or({"moe_layer_freq", "decoder_sparse_step"}, 1));
  if (plan.moe.experts == 0) return moe;
  const std::vector<std::string> types = config.layer_texts({"mlp_layer_types"}, kMlpKinds);
  if (!types.empty()) {
    for (std::size_t i = 0; i < layers; ++i) moe[i] = types[i] != "dense";
    return moe;
  }
  if (config.has({"moe_layers_enum", "moe_layers"}))
    return named_layers(config, {"moe_layers_enum", "moe_layers"}, plan);
  if (listed) {
    for (std::size_t i = 0; i < layers; ++i)
      moe[i] = config.layer_integer_or({"moe_layer_freq"}, static_cast<std::int32_t>(i), 0) != 0;
    return moe;
  }
  // Qwen counts layers from one here, DeepSeek from zero.
  const bool from_one = config.has({"decoder_sparse_step"});
  const std::vector<bool> dense_ones = named_layers(config, {"mlp_only_layers"}, plan);
  for (std::size_t i = 0; i < layers; ++i) {
    const auto layer = static_cast<std::int64_t>(i);
    moe[i] = layer >= dense && (layer + (from_one ? 1 : 0)) % every == 0 && !dense_ones[i];
  }
  return moe;
}

}  // namespace memwall
