#include <fmt/format.h>

#include <algorithm>

#include "huggingface/families_parts.h"
#include "huggingface/plan.h"

namespace memwall {
namespace {

constexpr std::int64_t kMostExperts = 1 << 20;

}  // namespace

MoeSpec read_moe(const Config& config, const Family& family, const MlpSpec& mlp) {
  MoeSpec spec;
  spec.experts = config.layer_integer_or(
      {"num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts", "num_routed_experts"}, 0,
      0);
  if (spec.experts == 0) return spec;
  for (const char* key : {"num_local_experts", "num_experts", "n_routed_experts"}) {
    const json::Value* value = config.find({key});
    if (value == nullptr || value->kind != json::Kind::array) continue;
    for (const std::int64_t experts : config.integers({key})) {
      if (experts != spec.experts)
        config.fail_at(*value, fmt::format("{} differs between layers, which is not read", key));
    }
  }
  if (spec.experts > kMostExperts)
    config.fail(fmt::format("{} experts are more than {}", spec.experts, kMostExperts));
  spec.per_token =
      config.layer_integer_or({"num_experts_per_tok", "num_experts_per_token", "experts_per_token",
                               "moe_top_k", "moe_topk", "moe_k", "top_k_experts", "num_selected_experts"},
                              0, 0);
  spec.expert = mlp;
  spec.expert.intermediate = config.layer_integer_or(
      {"moe_intermediate_size", "moe_ffn_hidden_size", "expert_ffn_hidden_size"}, 0, 0);
  if (spec.expert.intermediate == 0) spec.expert.intermediate = mlp.intermediate;
  spec.router_bias = is_on(config, family.router_bias);
  spec.shared_gate = family.shared_gate;
  spec.shared_intermediate = size_or_none(
      config, {"shared_expert_intermediate_size", "moe_shared_expert_intermediate_size",
               "shared_experts_intermediate_size", "shared_intermediate_size", "share_expert_dim"});
  const std::int64_t shared =
      config.integer_or({"n_shared_experts", "num_shared_experts", "moe_num_shared_experts"}, 0);
  if (spec.shared_intermediate == 0 && shared > 0) {
    if (shared > kMostExperts) config.fail(fmt::format("{} shared experts are too many", shared));
    spec.shared_intermediate = shared * spec.expert.intermediate;
  }
  return spec;
}

std::vector<bool> read_moe_layers(const Config& config, const Plan& plan) {
  const auto layers = static_cast<std::size_t>(plan.layers);
  std::vector<bool> moe(layers, plan.moe.experts > 0);
  if (plan.moe.experts == 0) return moe;
  const std::vector<std::string> types = config.texts({"mlp_layer_types"});
  if (!types.empty()) {
    for (std::size_t i = 0; i < layers; ++i) moe[i] = i < types.size() && types[i] != "dense";
    return moe;
  }
  if (config.has({"moe_layers_enum", "moe_layers"}))
    return named_layers(config, {"moe_layers_enum", "moe_layers"}, plan);
  const json::Value* frequency = config.find({"moe_layer_freq", "decoder_sparse_step", "moe_layer_interval"});
  if (frequency != nullptr && frequency->kind != json::Kind::number) {
    const std::vector<std::int64_t> by_layer = config.integers({"moe_layer_freq"});
    for (std::size_t i = 0; i < layers; ++i) moe[i] = i < by_layer.size() && by_layer[i] != 0;
    return moe;
  }
  const std::int64_t every =
      std::max<std::int64_t>(1, config.integer_or({"moe_layer_freq", "decoder_sparse_step"}, 1));
  // Qwen counts layers from one here, DeepSeek from zero.
  const bool from_one = config.has({"decoder_sparse_step"});
  const std::int64_t dense = config.integer_or({"first_k_dense_replace", "num_dense_layers"}, 0);
  const std::vector<bool> dense_ones = named_layers(config, {"mlp_only_layers"}, plan);
  for (std::size_t i = 0; i < layers; ++i) {
    const auto layer = static_cast<std::int64_t>(i);
    moe[i] = layer >= dense && (layer + (from_one ? 1 : 0)) % every == 0 && !dense_ones[i];
  }
  return moe;
}

}  // namespace memwall
