#include "load/safetensors_weights.h"

#include <algorithm>
#include <array>
#include <string>
#include <unordered_map>
#include <unordered_set>

namespace memwall {
namespace {

using Words = std::unordered_set<std::string_view>;

// What may follow a module's path, by the tool that writes it.
const Words& part_names() {
  static const Words names = {
      "weight", "bias",
      // GPTQ, AWQ, MLX
      "qweight", "qzeros", "scales", "g_idx", "biases", "zeros",
      // compressed-tensors, ModelOpt, fp8, DeepSeek's own
      "weight_packed", "weight_scale", "weight_scale_inv", "weight_scale_2", "weight_zero_point",
      "weight_shape", "weight_global_scale", "weight_g_idx", "weight_scales", "scale", "scale_inv",
      "pre_quant_scale", "input_scale", "input_scale_inv", "input_scale_ub", "input_global_scale",
      "input_zero_point", "output_scale", "output_zero_point", "activation_scale", "act_scale", "k_scale",
      "v_scale", "q_scale", "prob_scale", "k_zero_point", "v_zero_point",
      // bitsandbytes, gpt-oss, HQQ
      "SCB", "weight_format", "blocks", "W_q", "zero",
      // AQLM, QuIP#, EXL2, EXL3
      "codes", "codebooks", "Qidxs", "SU", "SV", "q_weight", "q_scale_max", "q_groups", "q_group_map",
      "q_invperm", "q_perm", "trellis", "suh", "svh", "mcg", "mul1"};
  return names;
}

// The values, where several parts are there.
constexpr std::array<std::string_view, 12> kMainParts = {
    "weight", "qweight", "weight_packed", "weight_qdata", "blocks",  "weight._data",
    "W_q",    "codes",   "Qidxs",         "q_weight",     "trellis", ""};

// Scales of activations and of the KV cache, which some tools keep at the attention itself.
constexpr std::array<std::string_view, 16> kActivationParts = {
    "input_scale",      "input_scale_inv", "input_scale_ub",    "input_global_scale",
    "input_zero_point", "output_scale",    "output_zero_point", "activation_scale",
    "act_scale",        "pre_quant_scale", "k_scale",           "v_scale",
    "q_scale",          "prob_scale",      "k_zero_point",      "v_zero_point"};

// Experts in one tensor have no module: their parts are joined to their names by an underscore.
constexpr std::array<std::string_view, 5> kStacked = {"gate_up_proj", "gate_proj", "up_proj", "down_proj",
                                                      "w13"};

struct Name {
  std::string_view module;
  std::string_view part;
};

Name split(std::string_view name) {
  constexpr std::string_view kInside = ".weight.";  // "weight.absmax", "weight._data"
  if (const std::size_t at = name.find(kInside); at != std::string_view::npos)
    return {name.substr(0, at), name.substr(at + 1)};
  const std::size_t dot = name.rfind('.');
  if (dot == std::string_view::npos) return {name, ""};
  const std::string_view last = name.substr(dot + 1);
  if (part_names().contains(last)) return {name.substr(0, dot), last};
  // torchao's tensor subclasses, flattened: "_weight_qdata", "_weight_scale", "_weight_zero_point".
  constexpr std::string_view kFlattened = "_weight_";
  if (last.starts_with(kFlattened)) return {name.substr(0, dot), last.substr(1)};
  for (const std::string_view stacked : kStacked) {
    if (!last.starts_with(stacked) || last.size() <= stacked.size() || last[stacked.size()] != '_') continue;
    const std::string_view part = last.substr(stacked.size() + 1);
    if (part_names().contains(part)) return {name.substr(0, dot + 1 + stacked.size()), part};
  }
  return {name, ""};
}

template <std::size_t count>
bool is_one_of(const std::array<std::string_view, count>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

const StoredTensor* StoredWeight::find(std::string_view name) const {
  for (const Part& part : parts) {
    if (part.name == name) return part.tensor;
  }
  return nullptr;
}

const StoredTensor& StoredWeight::main() const {
  for (const std::string_view name : kMainParts) {
    if (const StoredTensor* tensor = find(name)) return *tensor;
  }
  return *std::max_element(parts.begin(), parts.end(), [](const Part& a, const Part& b) {
            return a.tensor->bytes < b.tensor->bytes;
          })->tensor;
}

bool StoredWeight::only_scales() const {
  return !bias && std::all_of(parts.begin(), parts.end(),
                              [](const Part& part) { return is_one_of(kActivationParts, part.name); });
}

std::int64_t StoredWeight::bytes() const {
  std::int64_t bytes = 0;
  for (const Part& part : parts) bytes = checked_add(bytes, part.tensor->bytes);
  return bytes;
}

std::vector<StoredWeight> stored_weights(const Checkpoint& checkpoint) {
  std::vector<StoredWeight> weights;
  std::unordered_map<std::string_view, std::size_t> of_module;
  of_module.reserve(checkpoint.tensors.size());
  for (const StoredTensor& tensor : checkpoint.tensors) {
    const Name name = split(tensor.name);
    if (name.part == "bias") {
      weights.push_back({.module = name.module, .bias = true, .parts = {{name.part, &tensor}}});
      continue;
    }
    const auto [at, is_new] = of_module.try_emplace(name.module, weights.size());
    if (is_new) weights.push_back({.module = name.module});
    weights[at->second].parts.push_back({name.part, &tensor});
  }
  // A lone "norm.scale" or "zero" is a parameter of that name.
  for (StoredWeight& weight : weights) {
    if (weight.bias || weight.parts.size() > 1 || weight.only_scales()) continue;
    if (is_one_of(kMainParts, weight.parts.front().name)) continue;
    weight.module = weight.parts.front().tensor->name;
    weight.parts.front().name = "";
  }
  return weights;
}

bool stored_alike(const StoredWeight& a, const StoredWeight& b) {
  return std::equal(a.parts.begin(), a.parts.end(), b.parts.begin(), b.parts.end(),
                    [](const StoredWeight::Part& x, const StoredWeight::Part& y) {
                      return x.name == y.name && x.tensor->type == y.tensor->type &&
                             x.tensor->shape == y.tensor->shape;
                    });
}

}  // namespace memwall
