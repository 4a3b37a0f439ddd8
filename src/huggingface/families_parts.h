// What several families' functions use. A family reads its keys through these, so that a size that makes no
// sense is one clear error wherever it is read.
#pragma once

#include <array>
#include <functional>
#include <string>
#include <vector>

#include "huggingface/family.h"
#include "model/recurrent_blocks.h"

namespace memwall {

inline constexpr Switch kAlways{nullptr, true};
inline constexpr Switch kNever{nullptr, false};

// Layers with an indexer of their own, or with an earlier one's choice.
inline constexpr std::array kIndexerKinds = {"full", "shared"};
// What layer_types calls layers whose attention an indexer serves.
inline const std::vector<const char*> kIndexedKinds = {"full_attention", "indexed_attention",
                                                       "deepseek_sparse_attention"};

// A size: from 1 to 2^31. Throws InputError for others, and the one without a fallback where it is missing.
std::int64_t size_at(const Config& config, Names names);
std::int64_t size_or(const Config& config, Names names, std::int64_t fallback);
// The same, where 0 stands for none.
std::int64_t size_or_none(const Config& config, Names names, std::int64_t fallback = 0);
// A number, or "auto" (or nothing) for what follows from the others.
std::int64_t size_or_auto(const Config& config, Names names, std::int64_t automatic);
// `factor` of `whole`, rounded down; throws InputError where factor is not from 0 to 1000.
std::int64_t scaled(const Config& config, const char* name, double factor, std::int64_t whole);

// What per_layer_config sets for a layer under a key, else the fallback.
std::int64_t layer_override(const Config& config, std::int32_t layer, const char* key, std::int64_t fallback);

bool is_full_attention(const std::string& type);  // in the words of the several families
// Where the config lists no types: full attention where the rule holds, else `other`.
void type_layers(Plan& plan, const std::function<bool(std::int32_t)>& full,
                 const char* other = "linear_attention");
// Which layers a list of indices names, counted from `first`. Throws InputError for one that is no layer.
std::vector<bool> named_layers(const Config& config, Names names, const Plan& plan, std::int64_t first = 0);

void all_biases(Plan& plan, bool on);
void bias_by(const Config& config, Plan& plan, const char* key, bool fallback);  // one key for all linears
void add_embedding_norm(Plan& plan);  // of the embedded tokens, before the layers
void all_moe(Plan& plan);             // every layer has experts
void check_heads(const Config& config, const AttentionSpec& spec);

// Layers that are nothing but their mixer.
std::vector<Block> nothing(const Config& config, const Plan& plan, const LayerPlan& layer);

// Takes a tensor out, or adds tensors behind the last state: what gates or scales its output.
void remove_tensor(Block& block, const std::string& name);
void insert_after_states(Block& block, const std::vector<Tensor>& tensors);
// The tensors of a later use: read again, but stored by the first.
void mark_tied(Block& block);

// Bytes an element of a recurrence's state takes: f32 unless the config says otherwise.
std::int64_t state_width(const Config& config);
MambaSpec read_mamba(const Config& config, const Plan& plan);
Mamba2Spec read_mamba2(const Config& config, const Plan& plan);
MlaSpec read_mla(const Config& config, const Plan& plan);
// Delta attention with a decay a channel (Kimi Linear, arXiv 2510.26692); its decay and its gate each by two
// narrow linears, or by a full one.
Block kimi_delta_block(const Config& config, const Plan& plan, bool low_rank_decay, bool low_rank_gate);

// Hyper-connections (arXiv 2409.19606): hc_mult copies of the residual stream, mixed before and after a
// block. `combines`: the copies are mixed with each other too.
std::vector<Tensor> hyper_connection(const Config& config, const Plan& plan, const std::string& name,
                                     bool combines = true);
// What makes one of the copies, after the layers.
void add_hyper_head(const Config& config, Plan& plan);

}  // namespace memwall
