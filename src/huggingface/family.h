// What sets one family of models apart from the common decoder: docs/adding-a-family.md shows how to add
// one. A family is a row of a table; what a row cannot say, its functions do.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "huggingface/config.h"
#include "model/blocks.h"

namespace memwall {

// A property the config may state under `key`; without a key it is fixed.
struct Switch {
  const char* key = nullptr;
  bool fallback = false;
};

// Which layers slide, where the config holds no layer_types.
enum class Sliding : std::uint8_t {
  ignored,    // sliding_window is there, but no layer uses it
  all,        // every layer, where sliding_window is set
  by_switch,  // layers from max_window_layers on, where use_sliding_window is true (Qwen)
  pattern,    // all but every sliding_pattern-th layer
};

struct Plan;
struct LayerPlan;

struct Family {
  std::vector<const char*> types{};  // its names in model_type

  NormKind norm = NormKind::rms;
  NormPlace norm_place = NormPlace::pre;
  bool tied = false;  // where tie_word_embeddings is stated nowhere
  Switch qkv_bias{"attention_bias", false};
  Switch o_bias{"attention_bias", false};
  Switch mlp_bias{"mlp_bias", false};
  bool lm_head_bias = false;
  bool rotary = true;
  bool gated = true;
  bool fused_qkv = false;
  bool fused_gate_up = false;
  Switch parallel{};  // attention and MLP read the same normed input: one norm for both
  QkNorm qk_norm = QkNorm::none;
  Switch qk_norm_if{nullptr, true};  // qk_norm holds where this is true
  Sliding sliding = Sliding::ignored;
  std::int32_t sliding_pattern = 0;  // the default of sliding_window_pattern
  const char* positions = nullptr;   // the key that counts learned positions
  std::int64_t extra_positions = 0;  // rows of the table beyond them
  Switch router_bias{};
  bool shared_gate = false;
  // What a config's layer_types (or layers_block_type) may name; others are refused. Where it is empty, the
  // kinds of attention that every decoder knows.
  std::vector<const char*> layer_kinds{};
  // Lists of experts hold one number for each modality, the text's first, not one for each layer.
  bool lists_modalities = false;
  // Corrects what was read by the common names, before layers are made.
  void (*adjust)(const Config&, Plan&) = nullptr;
  // A layer's token mixer and its feed-forward, where they are not attention and mlp or moe. May return
  // several blocks or none.
  std::vector<Block> (*mixer)(const Config&, const Plan&, const LayerPlan&) = nullptr;
  std::vector<Block> (*feed_forward)(const Config&, const Plan&, const LayerPlan&) = nullptr;
};

// One layer as read, before its blocks are made.
struct LayerPlan {
  std::int32_t index = 0;
  std::string type{};  // of layer_types: "full_attention", "linear_attention"; "" where there is no list
  bool moe = false;
  AttentionSpec attention;
  MlpSpec mlp;
};

// The model as read by the common names.
struct Plan {
  Common common;
  HeadSpec head;
  std::int64_t positions = 0;
  std::int32_t layers = 0;
  AttentionSpec attention;
  MlpSpec mlp;
  MoeSpec moe;                          // experts = 0: none
  std::vector<bool> moe_layers;         // by layer
  std::vector<std::string> types;       // layer_types; empty where there is no list
  std::int64_t extra_vocab = 0;         // rows of the token table that the lm_head lacks
  std::vector<Tensor> embedding_parts;  // behind the token table, before the layers
  std::vector<Tensor> head_parts;       // between the layers and the final norm
  bool lm_head = true;                  // a projection to the vocabulary
  std::vector<Tensor> output_parts;     // between the final norm and the lm_head
  std::vector<std::string> notes;       // what the checkpoint holds besides, or what was assumed
};

// The tables, one a source file.
const std::vector<Family>& dense_families();
const std::vector<Family>& gpt_families();
const std::vector<Family>& layer_norm_families();
const std::vector<Family>& gemma_families();
const std::vector<Family>& per_layer_families();
const std::vector<Family>& moe_families();
const std::vector<Family>& sparse_families();
const std::vector<Family>& latent_families();
const std::vector<Family>& indexed_families();
const std::vector<Family>& hyper_families();
const std::vector<Family>& mamba_families();
const std::vector<Family>& zamba_families();
const std::vector<Family>& linear_families();
const std::vector<Family>& recurrent_families();
const std::vector<Family>& rwkv_families();
const std::vector<Family>& factorized_families();

// What the modelling code takes a key to be where a config of that model_type leaves it out, as JSON text;
// "{}" where nothing is known.
const char* class_defaults(const std::string& model_type);

// The model_type of the language model that a composite model_type has where its text_config names none; any
// other model_type is its own.
std::string wrapped_type(const std::string& model_type);

// Throws InputError where an unknown family is an encoder, or an encoder with a decoder.
void refuse_encoders(const Config& config);
// The same where a decoder's type is stated to be half of an encoder-decoder.
void refuse_cross_attention(const Config& config);

// The family of that model_type; nullptr where none is known.
const Family* find_family(const std::string& model_type);

// What an unknown family is read as; whether its keys tell of more than that (throws InputError), asked after
// all known keys were; and what to say of a model read so.
const Family& unknown_family();
void refuse_beyond_rules(const Config& config);
std::vector<std::string> unknown_family_warnings(const Config& config);
// Of a known family: what to say of keys that state sizes and that nobody read; "" where there are none.
std::string unread_keys_warning(const Config& config);

// The blocks a layer has unless its family says otherwise.
Block common_attention(const Plan& plan, const LayerPlan& layer);
std::vector<Block> common_feed_forward(const Plan& plan, const LayerPlan& layer);

// Adds tensors to a block, right before its first state.
void insert_before_state(Block& block, const std::vector<Tensor>& tensors);

}  // namespace memwall
