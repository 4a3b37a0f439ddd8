#include "model/run_yaml.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace memwall {
namespace {

struct StateYaml {
  std::string operator()(const KvState& s) const {
    Flow flow;
    add_kv(flow, s, true);
    return "attention: " + flow.braces();
  }
  std::string operator()(const LatentState& s) const {
    Flow flow;
    flow.add("heads", s.heads).add("rank", s.rank);
    for (const auto& [key, value] : {std::pair{"rope", s.rope},
                                     {"nope", s.d_nope},
                                     {"v_head_dim", s.d_v},
                                     {"window", s.window},
                                     {"top_k", s.top_k}}) {
      flow.add_unless(key, value, std::int64_t{0});
    }
    return "latent: " + flow.add_unless("every", s.every, std::int64_t{1}).braces();
  }
  std::string operator()(const IndexerState& s) const {
    Flow flow;
    flow.add("heads", s.heads).add("head_dim", s.width).add_unless("every", s.every, std::int64_t{1});
    return "indexer: " + flow.braces();
  }
  std::string operator()(const RecurrentState& s) const {
    Flow flow;
    flow.add_unless("elements", s.elements, std::int64_t{0});
    flow.add_unless("element_bytes", s.element_bytes, std::int64_t{4});
    flow.add_unless("conv_elements", s.conv_elements, std::int64_t{0});
    return "recurrent: " + flow.add_unless("flops", s.flops, std::int64_t{0}).braces();
  }
};

const char* role_name(Role role) {
  switch (role) {
    case Role::embedding:
      return "embedding";
    case Role::positions:
      return "positions";
    case Role::lm_head:
      return "lm_head";
    case Role::router:
      return "router";
    case Role::bias:
      return "bias";
    default:
      return "linear";
  }
}

const char* name_of(Read read) {
  constexpr std::array<const char*, 4> kNames = {"always", "gathered", "per_expert", "never"};
  return kNames[static_cast<std::size_t>(read)];
}

bool is_vector(Role role) { return role == Role::norm || role == Role::parameter || role == Role::bias; }

// The bias that a reader makes of `bias: true`, or of a norm's kind.
Tensor usual_bias(const Tensor& owner, const Common& common) {
  return {.name = owner.name + ".bias",
          .role = Role::bias,
          .out = owner.out,
          .copies = owner.copies,
          .format = owner.role == Role::norm ? owner.format : common.small,
          .read = owner.read,
          .tied = owner.tied && owner.role != Role::lm_head};
}

// A state's word is no name for a tensor.
std::string item_key(const std::string& name) {
  constexpr std::array<std::string_view, 4> kStates = {"attention", "latent", "indexer", "recurrent"};
  const bool state = std::find(kStates.begin(), kStates.end(), name) != kStates.end();
  return yaml_key(state ? name + ".weight" : name);
}

}  // namespace

const char* norm_kind_name(NormKind kind) {
  constexpr std::array<const char*, 4> kNames = {"none", "rms", "layer", "layer_no_bias"};
  return kNames[static_cast<std::size_t>(kind)];
}

void add_kv(Flow& flow, const KvState& kv, bool rotary_is_usual) {
  flow.add("heads", kv.heads).add_unless("kv_heads", kv.kv_heads, kv.heads).add("head_dim", kv.d_k);
  flow.add_unless("v_head_dim", kv.d_v, kv.d_k);
  for (const auto& [key, value] : {std::pair{"window", kv.window}, {"chunk", kv.chunk}, {"top_k", kv.top_k}})
    flow.add_unless(key, value, std::int64_t{0});
  flow.add_unless("rotary", kv.rotary, rotary_is_usual).add_unless("shared_kv", kv.shared, false);
}

ToldBiases::ToldBiases(const Block& block, const Common& common)
    : told_(block.tensors.size()), tells_(block.tensors.size()) {
  std::unordered_map<std::string_view, std::size_t> places;
  for (std::size_t i = 0; i < block.tensors.size(); ++i) places.emplace(block.tensors[i].name, i);
  for (std::size_t i = 0; i < block.tensors.size(); ++i) {
    const Tensor& owner = block.tensors[i];
    if (owner.role == Role::parameter || owner.role == Role::bias) continue;
    if (owner.role == Role::norm && owner.norm != NormKind::layer) continue;
    const auto found = places.find(owner.name + ".bias");
    // It is read back right behind its owner.
    if (found == places.end() || found->second != i + 1) continue;
    if (block.tensors[i + 1] != usual_bias(owner, common)) continue;
    tells_[i] = told_[i + 1] = true;
  }
}

std::string tensor_yaml(const Tensor& tensor, const Common& common, bool tells) {
  Flow flow;
  const bool vector = is_vector(tensor.role);
  const bool table =
      tensor.role == Role::embedding || tensor.role == Role::positions || tensor.role == Role::lm_head;
  const bool weight = tensor.role == Role::linear || tensor.role == Role::expert;
  const Format usual = table ? common.head : weight ? common.weights : common.small;
  const bool plain = tensor.role == Role::linear && !tensor.tied && tensor.read == Read::always &&
                     tensor.format == usual && tensor.copies == 1 && tensor.stored_bytes < 0;
  if (plain && !tells) return fmt::format("{}: [{}, {}]", item_key(tensor.name), tensor.out, tensor.in);
  if (tensor.role == Role::norm) {
    flow.add("norm", tensor.out).add_unless("rows", tensor.rows, std::int64_t{1});
    flow.add_unless("kind", std::string(norm_kind_name(tensor.norm)),
                    std::string(norm_kind_name(common.norm)));
    if (tensor.norm == NormKind::layer && !tells) flow.add("bias", false);
  } else if (vector) {
    flow.add("parameters", tensor.out * tensor.in);
    if (tensor.role == Role::bias) flow.add("role", role_name(tensor.role));
  } else {
    flow.add("shape", fmt::format("[{}, {}]", tensor.out, tensor.in));
    if (tensor.role != Role::linear && tensor.role != Role::expert) flow.add("role", role_name(tensor.role));
    if (tells) flow.add("bias", true);
  }
  flow.add_unless("experts", tensor.copies, std::int64_t{1});
  const Read usual_read = tensor.copies > 1 ? Read::per_expert
                          : tensor.role == Role::embedding || tensor.role == Role::positions ? Read::gathered
                                                                                             : Read::always;
  if (tensor.read != usual_read) flow.add("read", name_of(tensor.read));
  if (tensor.format != usual) flow.add("weights", format_name(tensor.format));
  if (tensor.stored_bytes >= 0) flow.add("bytes", tensor.stored_bytes);
  if (tensor.tied) flow.add("tied", true);
  return fmt::format("{}: {}", item_key(tensor.name), flow.braces());
}

std::string run_yaml(const Block& block, const Common& common) {
  const ToldBiases biases(block, common);
  std::string text;
  auto state = block.states.begin();
  for (std::size_t i = 0; i <= block.tensors.size(); ++i) {
    for (; state != block.states.end() && state->before == i; ++state)
      text += "- " + std::visit(StateYaml{}, state->state) + "\n";
    if (i == block.tensors.size() || biases.is_told(i)) continue;
    text += "- " + tensor_yaml(block.tensors[i], common, biases.tells(i)) + "\n";
  }
  return text;
}

}  // namespace memwall
