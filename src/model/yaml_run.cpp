#include "model/yaml_run.h"

#include <fmt/format.h>

#include <string>
#include <unordered_set>

#include "model/yaml_blocks.h"

namespace memwall {
namespace {

using yaml::Mapping;
using yaml::Node;

constexpr Range kSize{1, std::int64_t{1} << 31};
constexpr Range kCount{1, std::int64_t{1} << 50};
constexpr Range kBytes{0, std::int64_t{1} << 62};

KvState read_kv_state(const Node& node) {
  Mapping map(node, "attention");
  KvState state;
  state.heads = map.integer("heads", kSize);
  state.kv_heads = map.integer_or("kv_heads", kSize, state.heads);
  if (state.heads % state.kv_heads != 0) {
    yaml::fail(node,
               fmt::format("heads ({}) must be a multiple of kv_heads ({})", state.heads, state.kv_heads));
  }
  state.d_k = map.integer("head_dim", kSize);
  state.d_v = map.integer_or("v_head_dim", kSize, state.d_k);
  state.window = map.integer_or("window", kSize, 0);
  state.chunk = map.integer_or("chunk", kSize, 0);
  state.top_k = map.integer_or("top_k", kSize, 0);
  if (state.window > 0 && state.chunk > 0)
    yaml::fail(node, "a layer slides (window) or is chunked, not both");
  state.rotary = map.flag_or("rotary", true);
  state.shared = map.flag_or("shared_kv", false);
  map.finish();
  return state;
}

LatentState read_latent_state(const Node& node) {
  Mapping map(node, "latent");
  LatentState state;
  state.heads = map.integer("heads", kSize);
  state.rank = map.integer("rank", {0, kSize.high});
  state.rope = map.integer_or("rope", kSize, 0);
  if (state.rank + state.rope == 0) yaml::fail(node, "latent needs a rank, or rope where all is rotary");
  state.d_nope = map.integer_or("nope", kSize, 0);
  state.d_v = map.integer_or("v_head_dim", kSize, 0);
  state.window = map.integer_or("window", kSize, 0);
  state.top_k = map.integer_or("top_k", kSize, 0);
  state.every = map.integer_or("every", kSize, 1);
  map.finish();
  return state;
}

IndexerState read_indexer_state(const Node& node) {
  Mapping map(node, "indexer");
  IndexerState state;
  state.heads = map.integer("heads", kSize);
  state.width = map.integer("head_dim", kSize);
  state.every = map.integer_or("every", kSize, 1);
  map.finish();
  return state;
}

RecurrentState read_recurrent_state(const Node& node) {
  Mapping map(node, "recurrent");
  RecurrentState state;
  state.elements = map.integer_or("elements", kCount, 0);
  state.element_bytes = map.integer_or("element_bytes", {1, 8}, 4);
  state.conv_elements = map.integer_or("conv_elements", kCount, 0);
  state.flops = map.integer_or("flops", kCount, 0);
  if (state.elements == 0 && state.conv_elements == 0)
    yaml::fail(node, "recurrent needs elements, conv_elements or both");
  map.finish();
  return state;
}

Role read_role(Mapping& map) {
  const Node* word = map.optional("role");
  if (word == nullptr) return Role::linear;
  return read_choice<Role>(*word, "role",
                           {{"linear", Role::linear},
                            {"embedding", Role::embedding},
                            {"positions", Role::positions},
                            {"lm_head", Role::lm_head},
                            {"router", Role::router}});
}

// What a small tensor is: parameters, or a bias that stands for itself.
bool is_bias(Mapping& map) {
  const Node* word = map.optional("role");
  return word != nullptr &&
         read_choice<bool>(*word, "the role of parameters", {{"parameter", false}, {"bias", true}});
}

// What a decode step reads of the tensors from `first` on: where it is not said, a row of a table, the chosen
// ones of experts, and all of anything else.
void read_reading(Mapping& map, std::size_t first, Block& block) {
  std::optional<Read> stated;
  if (const Node* word = map.optional("read")) {
    stated = read_choice<Read>(*word, "read",
                               {{"always", Read::always},
                                {"gathered", Read::gathered},
                                {"per_expert", Read::per_expert},
                                {"never", Read::never}});
    if (*stated == Read::per_expert && block.kind != BlockKind::moe)
      yaml::fail(*word, "read: per_expert belongs into a moe");
  }
  for (std::size_t i = first; i < block.tensors.size(); ++i) {
    Tensor& tensor = block.tensors[i];
    const bool table = tensor.role == Role::embedding || tensor.role == Role::positions;
    tensor.read = stated.value_or(tensor.copies > 1 ? Read::per_expert
                                  : table           ? Read::gathered
                                                    : Read::always);
  }
}

// experts: copies of the tensors from `first` on; bytes: what the first takes in the file, where that is not
// what its format makes.
void read_copies_and_bytes(Mapping& map, std::size_t first, Block& block) {
  if (const Node* node = map.optional("experts")) {
    if (block.kind != BlockKind::moe) yaml::fail(*node, "experts: N belongs to a tensor of a moe");
    const std::int64_t copies = yaml::as_integer(*node, "experts", {1, 1 << 20});
    for (std::size_t i = first; i < block.tensors.size(); ++i) {
      block.tensors[i].copies = copies;
      if (block.tensors[i].role == Role::linear) block.tensors[i].role = Role::expert;
    }
  }
  block.tensors[first].stored_bytes = map.integer_or("bytes", kBytes, -1);
}

// The format a tensor of that role has where it states none.
Format& usual_format(Common& common, Role role) {
  const bool table = role == Role::embedding || role == Role::positions || role == Role::lm_head;
  return table ? common.head : role == Role::linear || role == Role::expert ? common.weights : common.small;
}

// A tensor: [out, in], or a mapping with shape, norm or parameters.
void read_tensor(const Node& key, const Node& value, const Common& common, Block& block) {
  if (value.kind == yaml::Kind::sequence) {
    block.tensors.push_back(shape_tensor(key, value, common));
    return;
  }
  Mapping map(value, key.text);
  Common own = common;
  const std::size_t first = block.tensors.size();
  if (const Node* shape = map.optional("shape")) {
    const Role role = read_role(map);
    if (const Node* format = map.optional("weights"))
      usual_format(own, role) = read_format(*format, "weights");
    Tensor tensor = shape_tensor(key, *shape, own);
    tensor.role = role;
    tensor.format = usual_format(own, role);
    block.tensors.push_back(tensor);
    if (map.flag_or("bias", false)) {
      block.tensors.push_back(
          {.name = key.text + ".bias", .role = Role::bias, .out = tensor.out, .format = common.small});
    }
  } else if (map.optional("norm") != nullptr) {
    NormKind kind = common.norm == NormKind::none ? NormKind::rms : common.norm;
    if (const Node* word = map.optional("kind")) {
      kind = read_choice<NormKind>(
          *word, "kind",
          {{"rms", NormKind::rms}, {"layer", NormKind::layer}, {"layer_no_bias", NormKind::layer_no_bias}});
    }
    if (const Node* format = map.optional("weights")) own.small = read_format(*format, "weights");
    add_norm(block, own, key.text, map.integer("norm", kSize), map.integer_or("rows", kSize, 1), kind);
    if (kind == NormKind::layer && !map.flag_or("bias", true)) block.tensors.pop_back();
  } else if (map.optional("parameters") != nullptr) {
    if (const Node* format = map.optional("weights")) own.small = read_format(*format, "weights");
    add_parameter(block, own, key.text, map.integer("parameters", {0, kCount.high}));
    if (is_bias(map)) block.tensors.back().role = Role::bias;
  } else {
    yaml::fail(value, fmt::format("{} needs a shape ([out, in]), norm (its width) or parameters (how many)",
                                  key.text));
  }
  read_copies_and_bytes(map, first, block);
  read_reading(map, first, block);
  if (map.flag_or("tied", false)) {
    // A tied lm_head's values are the embedding's, its bias is its own.
    const std::size_t end = block.tensors[first].role == Role::lm_head ? first + 1 : block.tensors.size();
    for (std::size_t i = first; i < end; ++i) block.tensors[i].tied = true;
  }
  map.finish();
}

// `names`: of the tensors so far.
void read_step(const Node& item, const Common& common, std::unordered_set<std::string>& names, Block& block) {
  if (item.kind != yaml::Kind::mapping || item.entries.size() != 1)
    yaml::fail(item,
               "an item of run is one tensor or state: NAME: [out, in], attention: {...}, latent: {...}");
  const auto& [key, value] = item.entries.front();
  if (key.text == "attention") return block.place(read_kv_state(value));
  if (key.text == "latent") return block.place(read_latent_state(value));
  if (key.text == "indexer") return block.place(read_indexer_state(value));
  if (key.text == "recurrent") return block.place(read_recurrent_state(value));
  const std::size_t first = block.tensors.size();
  read_tensor(key, value, common, block);
  for (std::size_t i = first; i < block.tensors.size(); ++i) {
    if (!names.insert(block.tensors[i].name).second)
      yaml::fail(key, fmt::format("{} is there twice", block.tensors[i].name));
  }
}

}  // namespace

void read_run(const Node& run, const Common& common, Block& block) {
  if (run.kind != yaml::Kind::sequence || run.items.empty())
    yaml::fail(run, "must be a list of tensors and states in the order they run");
  std::unordered_set<std::string> names;
  for (const Tensor& tensor : block.tensors) names.insert(tensor.name);
  for (const Node& item : run.items) read_step(item, common, names, block);
}

Block read_mixer(const Node& node, const Common& common) {
  Mapping map(node, "mixer");
  Block block{.kind = BlockKind::mixer};
  block.name = map.text("name");
  read_run(map.require("run"), common, block);
  map.finish();
  return block;
}

std::optional<Block> read_written_out(BlockKind kind, Mapping& map, const Common& common) {
  const Node* run = map.optional("run");
  if (run == nullptr) return std::nullopt;
  Block block{.kind = kind};
  block.name = map.text_or("name", "");
  if (kind == BlockKind::moe) block.experts_per_token = map.integer("per_token", {1, 1 << 20});
  if (kind != BlockKind::attention) {
    block.gated = map.flag_or("gated", true);
    block.activation = read_activation(map);
  }
  read_run(*run, common, block);
  for (const Tensor& tensor : block.tensors) {
    if (tensor.read == Read::per_expert && tensor.copies < block.experts_per_token) {
      yaml::fail(*run, fmt::format("{} has {} experts, of which a token cannot use {}", tensor.name,
                                   tensor.copies, block.experts_per_token));
    }
  }
  map.finish();
  return block;
}

ActivationKind read_activation(Mapping& map) {
  const Node* node = map.optional("activation");
  if (node == nullptr) return ActivationKind::silu;
  return read_choice<ActivationKind>(
      *node, "activation",
      {{"silu", ActivationKind::silu}, {"gelu", ActivationKind::gelu}, {"relu", ActivationKind::relu}});
}

}  // namespace memwall
