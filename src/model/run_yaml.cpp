#include "model/run_yaml.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>
#include <utility>

#include "input/error.h"

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
    default:
      return "linear";
  }
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

std::string tensor_yaml(const Block& block, const Tensor& tensor, const Common& common) {
  Flow flow;
  const bool vector =
      tensor.role == Role::norm || tensor.role == Role::parameter || tensor.role == Role::bias;
  const bool table =
      tensor.role == Role::embedding || tensor.role == Role::positions || tensor.role == Role::lm_head;
  const Format usual = table ? common.head : tensor.role == Role::linear ? common.weights : common.small;
  const bool biased = block.find(tensor.name + ".bias") != nullptr;
  if (tensor.role == Role::linear && !biased && !tensor.tied && tensor.read == Read::always &&
      tensor.format == usual) {
    return fmt::format("{}: [{}, {}]", yaml_scalar(tensor.name), tensor.out, tensor.in);
  }
  if (tensor.copies != 1)
    throw InputError(fmt::format("{} cannot be written as YAML: experts outside a moe", tensor.name));
  if (tensor.role == Role::norm) {
    flow.add("norm", tensor.out).add_unless("rows", tensor.rows, std::int64_t{1});
    flow.add_unless("kind", std::string(norm_kind_name(tensor.norm)),
                    std::string(norm_kind_name(common.norm)));
  } else if (vector) {
    flow.add("parameters", tensor.out * tensor.in);
  } else {
    flow.add("shape", fmt::format("[{}, {}]", tensor.out, tensor.in));
    if (tensor.role != Role::linear) flow.add("role", role_name(tensor.role));
    if (biased) flow.add("bias", true);
  }
  const bool gathered = tensor.role == Role::embedding || tensor.role == Role::positions;
  if (tensor.read == Read::never) flow.add("read", "never");
  if (tensor.read == Read::gathered && !gathered) flow.add("read", "gathered");
  if (tensor.read == Read::always && gathered) flow.add("read", "always");
  if (tensor.format != usual) flow.add("weights", format_name(tensor.format));
  if (tensor.tied) flow.add("tied", true);
  return fmt::format("{}: {}", yaml_scalar(tensor.name), flow.braces());
}

std::string yaml_scalar(const std::string& text) {
  const bool plain = !text.empty() &&
                     std::all_of(text.begin(), text.end(),
                                 [](unsigned char c) {
                                   return std::isalnum(c) != 0 || c == '_' || c == '.' || c == '-' ||
                                          c == '/' || c == ' ' || c == '(' || c == ')' || c >= 0x80;
                                 }) &&
                     std::isalpha(static_cast<unsigned char>(text.front())) != 0 && text.back() != ' ';
  if (plain && text != "true" && text != "false" && text != "null" && text != "yes" && text != "no")
    return text;
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + "\"";
}

std::string run_yaml(const Block& block, const Common& common) {
  std::string text;
  auto state = block.states.begin();
  for (std::size_t i = 0; i <= block.tensors.size(); ++i) {
    for (; state != block.states.end() && state->before == i; ++state)
      text += "- " + std::visit(StateYaml{}, state->state) + "\n";
    if (i == block.tensors.size() || block.owner_of(block.tensors[i]) != nullptr) continue;
    text += "- " + tensor_yaml(block, block.tensors[i], common) + "\n";
  }
  return text;
}

}  // namespace memwall
