#include "model/block_yaml.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <string_view>
#include <vector>

#include "model/run_yaml.h"
#include "model/spec_of.h"

namespace memwall {
namespace {

const char* name_of(NormPlace place) {
  constexpr std::array<const char*, 4> kNames = {"none", "pre", "post", "both"};
  return kNames[static_cast<std::size_t>(place)];
}

const char* name_of(ActivationKind kind) {
  constexpr std::array<const char*, 3> kNames = {"silu", "gelu", "relu"};
  return kNames[static_cast<std::size_t>(kind)];
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

// weights:, formats: and bytes:, where they differ from what the rebuilt block has.
void add_formats(Flow& flow, const Block& block, const Block& rebuilt, Format weights, Format usual) {
  if (weights != usual) flow.add("weights", format_name(weights));
  Flow formats;
  for (std::size_t i = 0; i < block.tensors.size(); ++i) {
    if (block.tensors[i].format == rebuilt.tensors[i].format) continue;
    formats.add(yaml_key(block.tensors[i].name), format_name(block.tensors[i].format));
  }
  if (!formats.empty()) flow.add("formats", formats.braces());
  Flow bytes;
  for (const Tensor& tensor : block.tensors) {
    if (tensor.stored_bytes >= 0) bytes.add(yaml_key(tensor.name), tensor.stored_bytes);
  }
  if (!bytes.empty()) flow.add("bytes", bytes.braces());
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

// The block with its tensors and states written out, in the order they run.
std::string written_out(const Block& block, const Common& common) {
  const auto with_run = [&](const std::string& key, const std::string& keys) {
    return fmt::format("{}:\n{}  run:\n{}", key, keys, indented(run_yaml(block, common), "    "));
  };
  const auto name = [&] {
    return block.name.empty() ? std::string() : fmt::format("  name: {}\n", yaml_scalar(block.name));
  };
  std::string feeding = block.gated ? "" : "  gated: false\n";
  if (block.activation != ActivationKind::silu)
    feeding += fmt::format("  activation: {}\n", name_of(block.activation));
  switch (block.kind) {
    case BlockKind::mlp:
      return with_run("mlp", name() + feeding);
    case BlockKind::moe:
      return with_run("moe", name() + fmt::format("  per_token: {}\n", block.experts_per_token) + feeding);
    case BlockKind::attention:
    case BlockKind::kv_cache:
      return with_run("attention", name());
    case BlockKind::mixer:
      return with_run("mixer", block.name.empty() ? "  name: mixer\n" : name());
    default:
      return "run:\n" + indented(run_yaml(block, common), "  ");
  }
}

// A linear that a key of its own may say all about.
bool is_one_shape(const Block& block, const Common& common) {
  static const std::array<std::string_view, 8> kWords = {"attention", "mixer",  "kv_cache", "mlp",
                                                         "moe",       "repeat", "pattern",  "blocks"};
  if (block.tensors.empty() || !block.states.empty()) return false;
  const ToldBiases biases(block, common);
  const Tensor& tensor = block.tensors.front();
  const bool all = block.tensors.size() == (biases.tells(0) ? 2U : 1U);
  return all && tensor.role == Role::linear && !tensor.tied && tensor.read == Read::always &&
         tensor.copies == 1 && tensor.stored_bytes < 0 && tensor.name != "run" &&
         std::find(kWords.begin(), kWords.end(), tensor.name) == kWords.end();
}

}  // namespace

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
      const ToldBiases biases(extra, common);
      for (std::size_t i = 0; i < extra.tensors.size(); ++i) {
        if (biases.is_told(i)) continue;
        items += fmt::format("{}{{{}}}", items.empty() ? "" : ", ",
                             tensor_yaml(extra.tensors[i], common, biases.tells(i)));
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
      return written_out(original, model_common);
    case BlockKind::mixer:
      return written_out(original, model_common);
    case BlockKind::mlp:
    case BlockKind::moe: {
      Block extra{.kind = block.kind};
      const Block usual = without_extras(block, extra);
      if (block.kind == BlockKind::mlp) {
        if (const std::optional<MlpSpec> spec = mlp_spec_of(usual, common)) {
          Flow flow;
          add_mlp(flow, *spec);
          return finish("mlp", flow, usual, mlp_block(common, *spec), extra);
        }
      } else if (const std::optional<MoeSpec> spec = moe_spec_of(usual, common)) {
        return finish("moe", moe_flow(*spec), usual, moe_block(common, *spec), extra);
      }
      return written_out(original, model_common);
    }
    case BlockKind::kv_cache: {
      if (!block.tensors.empty() || block.states.size() != 1) return written_out(original, model_common);
      Flow flow;
      add_kv(flow, std::get<KvState>(block.states.front().state), false);
      return "kv_cache: " + flow.braces() + "\n";
    }
    case BlockKind::shapes:
    case BlockKind::embedding:
    case BlockKind::head:
      break;
  }
  if (!is_one_shape(original, model_common)) return written_out(original, model_common);
  return tensor_yaml(original.tensors.front(), model_common, ToldBiases(original, model_common).tells(0)) +
         "\n";
}

}  // namespace memwall
