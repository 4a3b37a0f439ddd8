#include "model/yaml_blocks.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "format/checked.h"
#include "input/suggest.h"
#include "model/yaml_run.h"

namespace memwall {
namespace {

using yaml::Mapping;
using yaml::Node;

constexpr Range kSize{1, std::int64_t{1} << 31};

const std::vector<std::string> kLayerKeys = {"attention", "mlp",    "moe",     "mixer", "run",
                                             "kv_cache",  "repeat", "pattern", "blocks"};

Common with_own_weights(Mapping& map, Common common) {
  if (const Node* node = map.optional("weights")) common.weights = read_format(*node, "weights");
  return common;
}

Tensor& tensor_of(const Node& key, Block& block) {
  const auto it = std::find_if(block.tensors.begin(), block.tensors.end(),
                               [&](const Tensor& t) { return t.name == key.text; });
  if (it != block.tensors.end()) return *it;
  std::vector<std::string> names;
  for (const Tensor& tensor : block.tensors) names.push_back(tensor.name);
  yaml::fail_unknown(key, "tensor in this block", key.text, names);
}

// formats: {q_proj: q4_k, v_proj: q6_k}, and bytes: {v_proj: 81920}: of single tensors.
void read_formats(Mapping& map, Block& block) {
  if (const Node* node = map.optional("formats")) {
    if (node->kind != yaml::Kind::mapping)
      yaml::fail(*node, "formats must be a mapping of tensors to formats");
    for (const auto& [key, value] : node->entries)
      tensor_of(key, block).format = read_format(value, "format");
  }
  if (const Node* node = map.optional("bytes")) {
    if (node->kind != yaml::Kind::mapping) yaml::fail(*node, "bytes must be a mapping of tensors to numbers");
    for (const auto& [key, value] : node->entries)
      tensor_of(key, block).stored_bytes = yaml::as_integer(value, "bytes", {0, std::int64_t{1} << 62});
  }
}

// tied: true: the block's weights are an earlier layer's. extra: tensors of a family's own, before the
// others.
void read_additions(Mapping& map, const Common& common, Block& block) {
  if (map.flag_or("tied", false)) {
    for (Tensor& tensor : block.tensors) tensor.tied = true;
  }
  if (const Node* extra = map.optional("extra")) {
    Block additions{.kind = block.kind};
    read_run(*extra, common, additions);
    if (!additions.states.empty())
      yaml::fail(*extra, "extra holds tensors; a block with a further state is a mixer");
    for (const Tensor& tensor : additions.tensors) {
      if (block.find(tensor.name) != nullptr)
        yaml::fail(*extra, fmt::format("the block has a {} already", tensor.name));
    }
    block.tensors.insert(block.tensors.begin(), additions.tensors.begin(), additions.tensors.end());
    for (Block::Placed& placed : block.states) placed.before += additions.tensors.size();
  }
  read_formats(map, block);
}

NormPlace read_norm_place(Mapping& map) {
  const Node* node = map.optional("norm");
  if (node == nullptr) return NormPlace::pre;
  return read_choice<NormPlace>(*node, "norm",
                                {{"pre", NormPlace::pre},
                                 {"post", NormPlace::post},
                                 {"both", NormPlace::both},
                                 {"none", NormPlace::none}});
}

void read_attention_biases(Mapping& map, AttentionSpec& spec) {
  const Node* node = map.optional("bias");
  if (node == nullptr) return;
  if (node->kind == yaml::Kind::scalar) {
    spec.bias_q = spec.bias_k = spec.bias_v = spec.bias_o = yaml::as_bool(*node, "bias");
    return;
  }
  if (node->kind != yaml::Kind::sequence)
    yaml::fail(*node, "bias must be true, false or a list of q, k, v, o");
  for (const Node& item : node->items) {
    *read_choice<bool*>(
        item, "bias", {{"q", &spec.bias_q}, {"k", &spec.bias_k}, {"v", &spec.bias_v}, {"o", &spec.bias_o}}) =
        true;
  }
}

// Heads, widths and window: what attention and kv_cache have in common.
AttentionSpec read_heads(Mapping& map, std::int64_t hidden_size) {
  AttentionSpec spec;
  spec.heads = map.integer("heads", kSize);
  spec.kv_heads = map.integer_or("kv_heads", kSize, spec.heads);
  if (spec.heads % spec.kv_heads != 0) {
    yaml::fail(*map.optional("kv_heads"),
               fmt::format("heads ({}) must be a multiple of kv_heads ({})", spec.heads, spec.kv_heads));
  }
  if (map.optional("head_dim") == nullptr) {
    if (hidden_size == 0 || hidden_size % spec.heads != 0) {
      yaml::fail(map.node(), hidden_size == 0
                                 ? fmt::format("{} needs head_dim", map.what())
                                 : fmt::format("{} heads do not divide hidden_size {}; give head_dim",
                                               spec.heads, hidden_size));
    }
    spec.head_dim = hidden_size / spec.heads;
  } else {
    spec.head_dim = map.integer("head_dim", kSize);
  }
  spec.v_head_dim = map.integer_or("v_head_dim", kSize, spec.head_dim);
  spec.window = map.integer_or("window", kSize, 0);
  spec.chunk = map.integer_or("chunk", kSize, 0);
  spec.top_k = map.integer_or("top_k", kSize, 0);
  if (spec.window > 0 && spec.chunk > 0)
    yaml::fail(map.node(), "a layer slides (window) or is chunked, not both");
  return spec;
}

Block read_attention(const Node& node, const Common& model_common) {
  Mapping map(node, "attention");
  if (std::optional<Block> written = read_written_out(BlockKind::attention, map, model_common))
    return *written;
  const Common common = with_own_weights(map, model_common);
  AttentionSpec spec = read_heads(map, common.hidden_size);
  read_attention_biases(map, spec);
  if (const Node* qk = map.optional("qk_norm")) {
    spec.qk_norm = read_choice<QkNorm>(
        *qk, "qk_norm", {{"head", QkNorm::head}, {"full", QkNorm::full}, {"none", QkNorm::none}});
  }
  spec.rotary = map.flag_or("rotary", true);
  spec.fused_qkv = map.flag_or("fused_qkv", false);
  if (const Node* gate = map.optional("gate")) {
    spec.gate = read_choice<OutputGate>(*gate, "gate",
                                        {{"in_q_proj", OutputGate::in_q_proj},
                                         {"full", OutputGate::full},
                                         {"head", OutputGate::head},
                                         {"none", OutputGate::none}});
    if (spec.fused_qkv && spec.gate == OutputGate::in_q_proj)
      yaml::fail(*gate, "gate: in_q_proj needs a q_proj of its own, without fused_qkv");
  }
  spec.sinks = map.flag_or("sinks", false);
  spec.sub_norm = map.flag_or("sub_norm", false);
  spec.shared_kv = map.flag_or("shared_kv", false);
  if (spec.fused_qkv && spec.shared_kv) yaml::fail(node, "shared_kv has a q_proj alone, without fused_qkv");
  spec.norm = read_norm_place(map);
  Block block = attention_block(common, spec);
  read_additions(map, common, block);
  map.finish();
  return block;
}

Block read_kv_cache(const Node& node, const Common& common) {
  Mapping map(node, "kv_cache");
  AttentionSpec spec = read_heads(map, common.hidden_size);
  spec.rotary = map.flag_or("rotary", false);
  spec.shared_kv = map.flag_or("shared_kv", false);
  map.finish();
  return kv_cache_block(spec);
}

// The keys an mlp and a moe's experts share.
MlpSpec read_mlp_spec(Mapping& map) {
  MlpSpec spec;
  spec.intermediate = map.integer("intermediate", kSize);
  spec.gated = map.flag_or("gated", true);
  spec.activation = read_activation(map);
  spec.bias = map.flag_or("bias", false);
  spec.sub_norm = map.flag_or("sub_norm", false);
  spec.fused_gate_up = map.flag_or("fused_gate_up", false);
  if (spec.fused_gate_up && !spec.gated) yaml::fail(map.node(), "fused_gate_up needs gated: true");
  spec.norm = read_norm_place(map);
  return spec;
}

Block read_mlp(const Node& node, const Common& model_common) {
  Mapping map(node, "mlp");
  if (std::optional<Block> written = read_written_out(BlockKind::mlp, map, model_common)) return *written;
  const Common common = with_own_weights(map, model_common);
  Block block = mlp_block(common, read_mlp_spec(map));
  read_additions(map, common, block);
  map.finish();
  return block;
}

Block read_moe(const Node& node, const Common& model_common) {
  Mapping map(node, "moe");
  if (std::optional<Block> written = read_written_out(BlockKind::moe, map, model_common)) return *written;
  const Common common = with_own_weights(map, model_common);
  MoeSpec spec;
  spec.experts = map.integer("experts", {1, 1 << 20});
  spec.per_token = map.integer("per_token", {1, spec.experts});
  spec.expert = read_mlp_spec(map);
  spec.router_bias = map.flag_or("router_bias", false);
  if (const Node* shared = map.optional("shared")) {
    Mapping shared_map(*shared, "shared");
    spec.shared_intermediate = shared_map.integer("intermediate", kSize);
    spec.shared_gate = shared_map.flag_or("gate", false);
    shared_map.finish();
  }
  spec.latent = map.integer_or("latent", kSize, 0);
  spec.idle = map.integer_or("idle", {0, 1 << 20}, 0);
  Block block = moe_block(common, spec);
  read_additions(map, common, block);
  map.finish();
  return block;
}

// Any other key is a linear given by its shape, if its value is one; else it is a misspelt key.
Block read_shape(const Node& key, const Node& value, const Common& model_common) {
  const Node* shape = &value;
  Common common = model_common;
  bool bias = false;
  if (value.kind == yaml::Kind::mapping && value.find("shape") != nullptr) {
    Mapping map(value, key.text);
    shape = &map.require("shape");
    bias = map.flag_or("bias", false);
    common = with_own_weights(map, common);
    map.finish();
  } else if (value.kind != yaml::Kind::sequence) {
    yaml::fail(
        key, fmt::format("unknown key in a layer '{}'; did you mean {}? A linear of its own is {}: [out, in]",
                         key.text, join_or(nearest(key.text, kLayerKeys, 1)), key.text));
  }
  const Tensor linear = shape_tensor(key, *shape, common);
  return shape_block(common, key.text, linear.out, linear.in, bias);
}

// A block's own products must fit, so that the message can name its line.
void check_sizes(const Node& at, const Block& block) {
  try {
    for (const Tensor& tensor : block.tensors) {
      tensor.elements();
      tensor.bytes();
    }
  } catch (const std::overflow_error&) {
    yaml::fail(at, "this block's sizes multiply to more than 2^63 - 1 bytes");
  }
}

Block read_block(const Node& key, const Node& value, const Common& common) {
  try {
    if (key.text == "attention") return read_attention(value, common);
    if (key.text == "mixer") return read_mixer(value, common);
    if (key.text == "kv_cache") return read_kv_cache(value, common);
    if (key.text == "mlp") return read_mlp(value, common);
    if (key.text == "moe") return read_moe(value, common);
    if (key.text == "run" && value.kind == yaml::Kind::sequence && !value.items.empty() &&
        value.items.front().kind == yaml::Kind::mapping) {
      Block block{.kind = BlockKind::shapes};
      read_run(value, common, block);
      return block;
    }
    return read_shape(key, value, common);
  } catch (const std::overflow_error&) {
    yaml::fail(key, "this block's sizes multiply to more than 2^63 - 1");
  }
}

}  // namespace

Format read_format(const Node& node, std::string_view what) {
  const std::string name = yaml::as_text(node, what);
  const std::optional<Format> format = find_format(name);
  if (!format) yaml::fail_unknown(node, "format", name, format_names());
  return *format;
}

Tensor shape_tensor(const Node& key, const Node& shape, const Common& common) {
  if (shape.kind != yaml::Kind::sequence || shape.items.size() != 2) {
    yaml::fail(shape, fmt::format("{}: a shape is [out, in]", key.text));
  }
  return {.name = key.text,
          .role = Role::linear,
          .out = yaml::as_integer(shape.items[0], "out", kSize),
          .in = yaml::as_integer(shape.items[1], "in", kSize),
          .format = common.weights};
}

std::vector<Block> read_layer(Mapping& layer, const Common& common) {
  std::vector<Block> blocks;
  const auto add = [&](const Node& key, const Node& value) {
    blocks.push_back(read_block(key, value, common));
    check_sizes(key, blocks.back());
  };
  for (const auto& [key, value] : layer.node().entries) {
    if (layer.knows(key.text)) continue;
    if (key.text == "repeat" || key.text == "pattern") {
      yaml::fail(key, fmt::format("{} belongs to an entry of layers, not into a pattern", key.text));
    }
    if (key.text != "blocks") {
      add(key, value);
      continue;
    }
    // A layer that runs a kind of block twice lists its blocks, since keys are unique.
    if (value.kind != yaml::Kind::sequence) yaml::fail(value, "blocks must be a list of blocks");
    for (const Node& item : value.items) {
      if (item.kind != yaml::Kind::mapping || item.entries.size() != 1)
        yaml::fail(item, "an item of blocks is one block: attention: {...}, mlp: {...}");
      add(item.entries.front().first, item.entries.front().second);
    }
  }
  if (blocks.empty())
    yaml::fail(layer.node(), "a layer needs a block: attention, mixer, mlp, moe or a shape");
  return blocks;
}

}  // namespace memwall
