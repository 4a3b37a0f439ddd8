// Families that no table has: what they are taken for, and when they are refused.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "huggingface/family.h"

namespace memwall {
namespace {

// Words in a key that tell of parts whose bytes no common rule gives: states, experts, loops, latents,
// tables, widths and heads of their own.
constexpr std::array kBeyondRules = {
    "mamba",     "ssm",        "conv",          "rwkv",      "lora",        "linear_",    "lru",
    "hc_",       "hyper",      "delta",         "recurren",  "retention",   "lstm",       "loop",
    "cycle",     "ut_steps",   "expert",        "is_moe",    "moe_hidden",  "moe_latent", "latent",
    "per_layer", "per_depth",  "memory",        "mem_",      "adapter",     "altup",      "laurel",
    "index_",    "indexer",    "ngram",         "engram",    "hash",        "swa_",       "head_dim",
    "head_size", "heads_per",  "gate_",         "gating",    "_gate",       "cross_att",  "shared_",
    "hybrid",    "interleave", "block_type",    "k_eq_v",    "double_wide", "encoder",    "decoder_layers",
    "ffn_mult",  "_size_mlp",  "mlp_ratio",     "expansion", "diffusion",   "mask_block", "shared_head",
    "lowrank",   "low_rank",   "num_kv_shared", "cca_",      "compress"};

// Keys that have one of these words but are every configuration's.
constexpr std::array kNotBeyond = {"add_cross_attention",          "cross_attention_hidden_size",
                                   "encoder_no_repeat_ngram_size", "no_repeat_ngram_size",
                                   "tie_encoder_decoder",          "num_expert_group"};

[[noreturn]] void refuse(const Config& config, const std::string& why) {
  config.fail(
      fmt::format("model_type '{}' is not known, and {}; describe the model in YAML, or point at its "
                  "safetensors or GGUF file",
                  excerpt(config.type()), why));
}

}  // namespace

// What an unknown family is taken for: Llama, with what the keys say. Saved configurations leave out what is
// transformers' default, so an lm_head of which nothing is said is tied.
const Family& unknown_family() {
  static const Family family{.types = {}, .tied = true, .sliding = Sliding::by_switch};
  return family;
}

// An unknown family is read only where its keys leave no more open than small tensors.
void refuse_beyond_rules(const Config& config) {
  const std::string activation =
      config.text_or({"hidden_act", "hidden_activation", "activation_function", "activation"}, "");
  if (activation.find("silu") == std::string::npos && activation.find("swi") == std::string::npos) {
    refuse(config,
           fmt::format("whether its MLP is gated does not follow from hidden_act '{}'", excerpt(activation)));
  }
  std::vector<std::string> beyond;
  for (const std::string& key : config.unasked()) {
    const auto holds = [&](const char* word) { return key.find(word) != std::string::npos; };
    if (std::any_of(kBeyondRules.begin(), kBeyondRules.end(), holds) &&
        std::find(kNotBeyond.begin(), kNotBeyond.end(), key) == kNotBeyond.end()) {
      beyond.push_back(key);
    }
  }
  if (beyond.empty()) return;
  if (beyond.size() > 6) beyond.resize(6);
  refuse(config,
         fmt::format("its keys {} tell of parts that no common rule covers", fmt::join(beyond, ", ")));
}

std::vector<std::string> unknown_family_warnings(const Config& config) {
  std::vector<std::string> warnings = {fmt::format(
      "model_type '{}' is not known: read as a decoder with Llama's layout", excerpt(config.type()))};
  const std::vector<std::string> unasked = config.unasked();
  if (!unasked.empty()) warnings[0] += fmt::format("; keys not understood: {}", fmt::join(unasked, ", "));
  if (!config.outer_flag("tie_word_embeddings") && !config.has({"tie_word_embeddings", "tie_embeddings"})) {
    warnings.emplace_back(
        "the configuration does not say whether the lm_head is tied to the embedding: it is taken to be");
  }
  return warnings;
}

std::string unread_keys_warning(const Config& config) {
  const std::vector<std::string> keys = config.unasked_sizes();
  if (keys.empty()) return "";
  return fmt::format(
      "model_type '{}' is known, but not with the key{} {}: what {} counted, so figures are approximate",
      excerpt(config.type()), keys.size() > 1 ? "s" : "", fmt::join(keys, ", "),
      keys.size() > 1 ? "they tell of is not" : "it tells of is not");
}

}  // namespace memwall
