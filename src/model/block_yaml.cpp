#include "model/block_yaml.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <vector>

#include "input/error.h"
#include "model/spec_of.h"

namespace memwall {
namespace {

// "key: value, key: value", to stand between braces.
class Flow {
 public:
  template <typename Value>
  Flow& add(const char* key, const Value& value) {
    text_ += fmt::format("{}{}: {}", text_.empty() ? "" : ", ", key, value);
    return *this;
  }
  template <typename Value>
  Flow& add_unless(const char* key, const Value& value, const Value& usual) {
    return value == usual ? *this : add(key, value);
  }
  std::string braces() const { return "{" + text_ + "}"; }

 private:
  std::string text_;
};

const char* name_of(NormPlace place) {
  constexpr std::array<const char*, 4> kNames = {"none", "pre", "post", "both"};
  return kNames[static_cast<std::size_t>(place)];
}

const char* name_of(NormKind kind) {
  constexpr std::array<const char*, 4> kNames = {"none", "rms", "layer", "layer_no_bias"};
  return kNames[static_cast<std::size_t>(kind)];
}

const char* name_of(ActivationKind kind) {
  constexpr std::array<const char*, 3> kNames = {"silu", "gelu", "relu"};
  return kNames[static_cast<std::size_t>(kind)];
}

void add_kv(Flow& flow, const KvState& kv, bool rotary_is_usual) {
  flow.add("heads", kv.heads).add_unless("kv_heads", kv.kv_heads, kv.heads).add("head_dim", kv.d_k);
  flow.add_unless("v_head_dim", kv.d_v, kv.d_k);
  for (const auto& [key, value] : {std::pair{"window", kv.window}, {"chunk", kv.chunk}, {"top_k", kv.top_k}})
    flow.add_unless(key, value, std::int64_t{0});
  flow.add_unless("rotary", kv.rotary, rotary_is_usual).add_unless("shared_kv", kv.shared, false);
}

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

// One tensor of a run; its bias is told with it.
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
    flow.add_unless("kind", std::string(name_of(tensor.norm)), std::string(name_of(common.norm)));
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

bool is_told_elsewhere(const Block& block, const Tensor& tensor) {
  constexpr std::string_view kBias = ".bias";
  if (tensor.role != Role::bias || tensor.name.size() <= kBias.size()) return false;
  return block.find(tensor.name.substr(0, tensor.name.size() - kBias.size())) != nullptr;
}

// The format of most of a block's linears.
Format main_format(const Block& block, Format usual) {
  std::map<std::string, std::int64_t> elements;
  for (const Tensor& tensor : block.tensors) {
    if (tensor.role == Role::linear || tensor.role == Role::expert)
      elements[format_name(tensor.format)] += tensor.out * tensor.in * tensor.copies;
  }
  if (elements.empty()) return usual;
  const auto most = std::max_element(elements.begin(), elements.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  return *find_format(most->first);
}

// weights: and formats:, where they differ from what the rebuilt block has.
void add_formats(Flow& flow, const Block& block, const Block& rebuilt, Format weights, Format usual) {
  if (weights != usual) flow.add("weights", format_name(weights));
  Flow formats;
  bool any = false;
  for (std::size_t i = 0; i < block.tensors.size(); ++i) {
    if (block.tensors[i].format == rebuilt.tensors[i].format) continue;
    formats.add(block.tensors[i].name.c_str(), format_name(block.tensors[i].format));
    any = true;
  }
  if (any) flow.add("formats", formats.braces());
}

std::string bias_yaml(const AttentionSpec& spec) {
  if (spec.bias_q && spec.bias_k && spec.bias_v && spec.bias_o) return "true";
  std::vector<const char*> which;
  if (spec.bias_q) which.push_back("q");
  if (spec.bias_k) which.push_back("k");
  if (spec.bias_v) which.push_back("v");
  if (spec.bias_o) which.push_back("o");
  return which.empty() ? "false" : fmt::format("[{}]", fmt::join(which, ", "));
}

Flow attention_flow(const AttentionSpec& spec, const KvState& kv) {
  Flow flow;
  add_kv(flow, kv, true);
  flow.add_unless("bias", bias_yaml(spec), std::string("false"));
  if (spec.qk_norm != QkNorm::none) flow.add("qk_norm", spec.qk_norm == QkNorm::head ? "head" : "full");
  flow.add_unless("fused_qkv", spec.fused_qkv, false);
  constexpr std::array<const char*, 4> kGates = {"none", "in_q_proj", "full", "head"};
  if (spec.gate != OutputGate::none) flow.add("gate", kGates[static_cast<std::size_t>(spec.gate)]);
  flow.add_unless("sinks", spec.sinks, false).add_unless("sub_norm", spec.sub_norm, false);
  if (spec.norm != NormPlace::pre) flow.add("norm", name_of(spec.norm));
  return flow;
}

void add_mlp(Flow& flow, const MlpSpec& spec) {
  flow.add("intermediate", spec.intermediate).add_unless("gated", spec.gated, true);
  if (spec.activation != ActivationKind::silu) flow.add("activation", name_of(spec.activation));
  flow.add_unless("bias", spec.bias, false).add_unless("fused_gate_up", spec.fused_gate_up, false);
  flow.add_unless("sub_norm", spec.sub_norm, false);
  if (spec.norm != NormPlace::pre) flow.add("norm", name_of(spec.norm));
}

Flow moe_flow(const MoeSpec& spec) {
  Flow flow;
  flow.add("experts", spec.experts).add("per_token", spec.per_token);
  add_mlp(flow, spec.expert);
  flow.add_unless("router_bias", spec.router_bias, false).add_unless("idle", spec.idle, std::int64_t{0});
  if (spec.shared_intermediate > 0) {
    Flow shared;
    shared.add("intermediate", spec.shared_intermediate).add_unless("gate", spec.shared_gate, false);
    flow.add("shared", shared.braces());
  }
  return flow.add_unless("latent", spec.latent, std::int64_t{0});
}

// A block without the tensors that the rebuilt one lacks; these go to `extra`.
Block without_extras(const Block& block, Block& extra) {
  static const std::vector<std::string> kUsual = {
      "mlp_norm",        "router",         "shared_expert.gate", "experts.", "latent_in_proj",
      "latent_out_proj", "shared_expert.", "gate_proj",          "up_proj",  "gate_up_proj",
      "down_proj",       "sub_norm",       "mlp_post_norm"};
  Block usual = block;
  usual.tensors.clear();
  for (const Tensor& tensor : block.tensors) {
    const bool known = std::any_of(kUsual.begin(), kUsual.end(), [&](const std::string& name) {
      return tensor.name.rfind(name, 0) == 0 && (name.back() == '.' || tensor.name.size() == name.size() ||
                                                 tensor.name.substr(name.size()) == ".bias");
    });
    (known ? usual : extra).tensors.push_back(tensor);
  }
  return usual;
}

std::string indented(const std::string& text, const std::string& indent) {
  std::string out;
  std::size_t start = 0;
  while (start < text.size()) {
    const std::size_t end = text.find('\n', start);
    out += indent + text.substr(start, end - start) + "\n";
    if (end == std::string::npos) break;
    start = end + 1;
  }
  return out;
}

std::string mixer_yaml(const Block& block, const Common& common) {
  std::string name = block.name.empty() ? "attention" : block.name;
  return fmt::format("mixer:\n  name: {}\n  run:\n{}", yaml_scalar(name),
                     indented(run_yaml(block, common), "    "));
}

}  // namespace

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
    if (i == block.tensors.size() || is_told_elsewhere(block, block.tensors[i])) continue;
    text += "- " + tensor_yaml(block, block.tensors[i], common) + "\n";
  }
  return text;
}

std::string block_yaml(const Block& original, const Common& model_common) {
  Block block = original;
  Common common = model_common;
  common.weights = main_format(block, common.weights);
  const bool tied = !block.tensors.empty() && std::all_of(block.tensors.begin(), block.tensors.end(),
                                                          [](const Tensor& t) { return t.tied; });
  for (Tensor& tensor : block.tensors) tensor.tied = tensor.tied && !tied;
  const auto finish = [&](const char* key, Flow flow, const Block& usual, const Block& rebuilt,
                          const Block& extra) {
    if (tied) flow.add("tied", true);
    if (!extra.tensors.empty()) {
      std::string items;
      for (const Tensor& tensor : extra.tensors) {
        if (is_told_elsewhere(extra, tensor)) continue;
        items += fmt::format("{}{{{}}}", items.empty() ? "" : ", ", tensor_yaml(extra, tensor, common));
      }
      flow.add("extra", fmt::format("[{}]", items));
    }
    add_formats(flow, usual, rebuilt, common.weights, model_common.weights);
    return fmt::format("{}: {}\n", key, flow.braces());
  };
  switch (block.kind) {
    case BlockKind::attention:
      if (const std::optional<AttentionSpec> spec = attention_spec_of(block, common)) {
        return finish("attention", attention_flow(*spec, std::get<KvState>(block.states.front().state)),
                      block, attention_block(common, *spec), {});
      }
      return mixer_yaml(original, model_common);
    case BlockKind::mixer:
      return mixer_yaml(original, model_common);
    case BlockKind::mlp:
    case BlockKind::moe: {
      Block extra;
      const Block usual = without_extras(block, extra);
      if (block.kind == BlockKind::mlp) {
        if (const std::optional<MlpSpec> spec = mlp_spec_of(usual, common)) {
          Flow flow;
          add_mlp(flow, *spec);
          return finish("mlp", flow, usual, mlp_block(common, *spec), extra);
        }
        return mixer_yaml(original, model_common);
      }
      if (const std::optional<MoeSpec> spec = moe_spec_of(usual, common))
        return finish("moe", moe_flow(*spec), usual, moe_block(common, *spec), extra);
      break;
    }
    case BlockKind::kv_cache: {
      Flow flow;
      add_kv(flow, std::get<KvState>(block.states.front().state), false);
      return "kv_cache: " + flow.braces() + "\n";
    }
    case BlockKind::shapes:
      return tensor_yaml(block, block.tensors.front(), model_common) + "\n";
    case BlockKind::embedding:
    case BlockKind::head:
      break;
  }
  throw InputError("a block of experts has tensors that no key of a model file describes");
}

}  // namespace memwall
