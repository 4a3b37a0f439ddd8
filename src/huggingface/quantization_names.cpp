#include "huggingface/quantization_names.h"

#include <algorithm>
#include <array>
#include <utility>
#include <variant>

namespace memwall {
namespace {

using Texts = std::vector<std::string>;

// Other names of a tensor: of transformers' older families, of remote code, of DeepSeek's and Meta's own
// checkpoints, and of the tensors that two of ours make one of or the other way round.
struct Alias {
  const char* name;
  std::vector<const char*> others;
};

const std::vector<Alias>& aliases() {
  static const std::vector<Alias> all = {
      {"q_proj", {"wq", "query", "q"}},
      {"k_proj", {"wk", "key", "k"}},
      {"v_proj", {"wv", "value", "v"}},
      {"qkv_proj", {"query_key_value", "Wqkv", "wqkv", "c_attn", "W_pack", "att_proj", "qkv"}},
      {"o_proj", {"out_proj", "wo", "dense", "c_proj", "attn_out"}},
      {"attn_gate", {"g_proj", "gate_proj"}},
      {"q_a_proj", {"wq_a", "fused_wqa_wkv"}},
      {"q_b_proj", {"wq_b"}},
      {"kv_proj", {"wkv", "fused_wqa_wkv"}},
      {"o_a_proj", {"wo_a"}},
      {"o_b_proj", {"wo_b"}},
      {"gate_proj", {"w1"}},
      {"up_proj", {"w3", "fc1", "c_fc", "dense_h_to_4h"}},
      {"gate_up_proj", {"dense_h_to_4h", "ff_proj", "w13"}},
      {"down_proj", {"w2", "fc2", "c_proj", "dense_4h_to_h", "ff_out"}},
      {"in_proj_qkvz", {"in_proj_qkv", "in_proj_z"}},
      {"in_proj_ba", {"in_proj_b", "in_proj_a"}},
      {"router", {"gate", "gate.wg", "router.layer", "router.proj"}},
      {"indexer.weights_proj", {"indexers_proj"}},
      {"indexer.q_b_proj", {"indexer.wq_b"}},
      {"indexer.kv_proj", {"indexer.compressor.wkv", "indexer.compressor.fused_wkv_wgate"}},
      {"indexer.gate_proj", {"indexer.compressor.wgate", "indexer.compressor.fused_wkv_wgate"}},
      {"compressor.kv_proj", {"compressor.wkv", "compressor.fused_wkv_wgate"}},
      {"compressor.gate_proj", {"compressor.wgate", "compressor.fused_wkv_wgate"}},
      {"latent_in_proj", {"fc1_latent_proj"}},
      {"latent_out_proj", {"fc2_latent_proj"}},
      {"lm_head", {"output", "embed_out", "ff_out", "output_layer", "head"}},
      {"embed_tokens", {"wte", "word_embeddings", "embed_in", "tok_embeddings", "embedding", "embeddings"}},
  };
  return all;
}

Texts names_of(const std::string& name) {
  Texts all{name};
  for (const Alias& alias : aliases()) {
    if (name == alias.name) all.insert(all.end(), alias.others.begin(), alias.others.end());
  }
  return all;
}

bool any_begins(const std::string& type, std::initializer_list<std::string_view> with) {
  return std::any_of(with.begin(), with.end(), [&](std::string_view one) { return type.rfind(one, 0) == 0; });
}

// The modules that a block's tensors may be inside of.
Texts parents_of(const Block& block, const std::string& type) {
  const bool recurrent = std::any_of(block.states.begin(), block.states.end(), [](const auto& placed) {
    return std::holds_alternative<RecurrentState>(placed.state);
  });
  const bool flat = any_begins(type, {"molmo", "hf_olmo"}) && type != "molmo2";  // all right inside the layer
  switch (block.kind) {
    case BlockKind::mlp:
      if (flat) return {"", "mlp"};
      return {"mlp", "feed_forward", "ffn", "mixer"};
    case BlockKind::moe:
      // Beside the dense "mlp", not in it.
      if (any_begins(type, {"gemma4"})) return {"", "moe"};
      if (any_begins(type, {"granitemoe"})) return {"block_sparse_moe", ""};
      return {"mlp", "block_sparse_moe", "feed_forward", "ffn", "mixer", "moe"};
    case BlockKind::mixer:
    case BlockKind::attention:
      // Kimi's delta attention and MiniMax's lightning attention are called self_attn; other recurrences are
      // told apart from attention by name.
      if (!recurrent) break;
      if (block.name == "kda" || block.name.find("attention") != std::string::npos) break;
      if (any_begins(type, {"qwen", "olmo"})) return {"linear_attn"};
      if (any_begins(type, {"nemotron", "mamba", "falcon_mamba"})) return {"mixer"};
      if (any_begins(type, {"jamba", "bamba", "falcon_h1", "granitemoe", "zamba", "granite"}))
        return {"mamba"};
      if (any_begins(type, {"lfm2"})) return {"conv", "short_conv"};
      return {"linear_attn", "mixer", "mamba", "conv", "short_conv", "temporal_block"};
    default:
      return {""};
  }
  if (flat) return {"", "self_attn"};
  return {"self_attn", "attn", "attention", "self_attention", "mixer"};
}

constexpr std::string_view kExperts = "experts.";
constexpr std::string_view kShared = "shared_expert.";

bool begins(const std::string& text, std::string_view with) { return text.rfind(with, 0) == 0; }

// A tensor's names inside its parent. Experts are asked for as the first of them: a config that names only
// some of a layer's experts is taken to mean all where it names that one.
Texts inner_names(const std::string& name) {
  Texts all;
  const auto add = [&](const char* under, const Texts& names) {
    for (const std::string& one : names) all.push_back(under + one);
  };
  if (begins(name, kExperts)) {
    const Texts names = names_of(name.substr(kExperts.size()));
    for (const char* under : {"experts.0.", "experts."}) add(under, names);
  } else if (name == "shared_expert.gate") {
    all = {"shared_expert_gate", "shared_expert.gate"};
  } else if (begins(name, kShared)) {
    const Texts names = names_of(name.substr(kShared.size()));
    for (const char* under : {"shared_expert.", "shared_experts.", "shared_mlp.", "share_expert."})
      add(under, names);
  } else {
    all = names_of(name);
  }
  return all;
}

bool may_be_quantised(const Tensor& tensor) {
  return tensor.role == Role::linear || tensor.role == Role::expert || tensor.role == Role::router ||
         tensor.role == Role::lm_head || tensor.role == Role::embedding;
}

void add_runs(const std::string& name, std::uint32_t tensor, BlockNames& names) {
  const auto add = [&](auto& map, const std::string& key) {
    std::vector<std::uint32_t>& tensors = map[key];
    if (tensors.empty() || tensors.back() != tensor) tensors.push_back(tensor);
  };
  for (std::size_t first = 0;;) {
    for (std::size_t last = name.find('.', first);; last = name.find('.', last + 1)) {
      const std::string run = name.substr(first, last == std::string::npos ? last : last - first);
      add(names.runs, run);
      if (first == 0) add(names.beginnings, run);
      if (last == std::string::npos) break;
    }
    first = name.find('.', first);
    if (first == std::string::npos) break;
    ++first;
  }
}

std::unique_ptr<BlockNames> make_names(const Block& block, const std::string& type) {
  auto names = std::make_unique<BlockNames>();
  const Texts parents = parents_of(block, type);
  for (std::size_t i = 0; i < block.tensors.size(); ++i) {
    Texts all;
    if (may_be_quantised(block.tensors[i])) {
      for (const std::string& parent : parents) {
        for (const std::string& name : inner_names(block.tensors[i].name)) {
          all.push_back(parent.empty() ? name : parent + "." + name);
          add_runs(all.back(), static_cast<std::uint32_t>(i), *names);
        }
      }
    }
    names->of_tensor.push_back(std::move(all));
  }
  return names;
}

}  // namespace

const BlockNames& NameTable::of(const Block& block) {
  // All that make_names reads.
  std::string key = parents_of(block, type_).front();
  key += std::to_string(static_cast<int>(block.kind));
  for (const Tensor& tensor : block.tensors) {
    key += ' ' + tensor.name + (may_be_quantised(tensor) ? '+' : '-');
  }
  std::unique_ptr<BlockNames>& names = known_[key];
  if (names == nullptr) names = make_names(block, type_);
  return *names;
}

PathRoots path_roots(const std::string& type, bool nested) {
  Texts all = {"", "model."};
  Texts lists = {"layers"};
  const auto add = [&](std::initializer_list<const char*> more) {
    all.insert(all.end(), more.begin(), more.end());
  };
  if (any_begins(type, {"nemotron", "mamba", "falcon_mamba"})) add({"backbone."});
  if (any_begins(type, {"gpt_neox"})) add({"gpt_neox."});
  if (any_begins(type, {"opt"})) add({"model.decoder.", "decoder."});
  if (any_begins(type,
                 {"gpt2", "gptj", "gpt_neo", "gpt_bigcode", "codegen", "falcon", "bloom", "mpt", "chatglm",
                  "dbrx", "exaone", "mixformer", "Refined", "qwen", "olmo", "molmo", "hf_olmo", "RW"})) {
    add({"transformer.", "model.transformer.", "transformer.encoder."});
    lists = layer_lists();
  }
  if (any_begins(type, {"rwkv"})) lists = layer_lists();
  if (nested) {
    add({"language_model.", "language_model.model.", "model.language_model.", "model.language_model.model.",
         "language_model.backbone.", "model.text_model.", "text_model.", "thinker.", "thinker.model.", "llm.",
         "llm.model.", "model.llm."});
  }
  return {.prefixes = std::move(all), .lists = std::move(lists)};
}

const std::vector<std::string>& layer_lists() {
  static const Texts all = {"layers", "h", "blocks"};
  return all;
}

std::string_view without_prefix(std::string_view path) {
  static constexpr std::array<std::string_view, 11> kWords = {
      "model.",       "language_model.", "backbone.", "transformer.encoder.",
      "transformer.", "text_model.",     "llm.",      "decoder.",
      "module.",      "thinker.",        "gpt_neox."};
  for (bool found = true; found;) {
    found = false;
    for (const std::string_view word : kWords) {
      if (path.substr(0, word.size()) != word) continue;
      path.remove_prefix(word.size());
      found = true;
    }
  }
  return path;
}

}  // namespace memwall
