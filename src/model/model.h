// A decoder-only language model as blocks of tensors and state: what every reader of model files builds
// and all that the byte and FLOP counts are made from. It knows no card and no kernel.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "format/format.h"

namespace memwall {

enum class Role : std::uint8_t { embedding, positions, lm_head, linear, router, expert, norm, bias };

// What a decode step reads of a tensor.
enum class Read : std::uint8_t {
  always,      // all of it
  gathered,    // a row a token: an embedding table
  per_expert,  // the copies whose experts were chosen
};

struct Tensor {
  std::string name;  // as in Hugging Face checkpoints: "q_proj", "q_proj.bias"
  Role role = Role::linear;
  std::int64_t out = 0;     // rows; the length of a vector
  std::int64_t in = 1;      // columns; 1 for a vector
  std::int64_t copies = 1;  // one an expert
  Format format;
  Read read = Read::always;
  bool tied = false;  // its values are another tensor's: read, but stored there

  std::int64_t elements() const;  // of all copies, stored or tied. Throws std::overflow_error.
  std::int64_t bytes() const;     // the same in its format
};

// What a block keeps of a sequence between steps: K and V of every token.
struct State {
  std::int64_t kv_heads = 0;
  std::int64_t d_k = 0;
  std::int64_t d_v = 0;
  std::int64_t window = 0;  // tokens read back at most; 0: all
};

enum class NormKind : std::uint8_t { none, rms, layer, layer_no_bias };
enum class ActivationKind : std::uint8_t { silu, gelu, relu };

enum class BlockKind : std::uint8_t {
  embedding,  // token (and position) tables, before the layers
  attention,
  mlp,
  moe,
  shapes,    // linears given by their shapes
  kv_cache,  // attention over a cache, its projections given as shapes
  head,      // final norm and lm_head, after the layers
};

// One block and the layers it stands for. Blocks that share a layer run in the order of Model::blocks.
struct Block {
  BlockKind kind = BlockKind::shapes;
  std::vector<std::int32_t> layers{};  // ascending; empty for embedding and head
  std::vector<Tensor> tensors{};       // in the order the step reads them
  std::optional<State> state{};
  std::int64_t heads = 0;  // query heads of attention
  bool rotary = false;
  NormKind norm = NormKind::none;
  bool gated = false;  // of mlp and moe
  ActivationKind activation = ActivationKind::silu;
  std::int64_t experts_per_token = 0;  // of moe

  const Tensor* find(const std::string& name) const;
};

// The parameter count the publisher states.
struct Published {
  std::int64_t parameters = 0;
  std::int64_t buffers = 0;  // stored values among them that are no parameters
  std::string buffers_are;
  std::string source;
};

struct Model {
  std::string name;
  std::string title;
  std::string architecture;
  std::string source;
  std::string file;  // where it was read
  std::vector<std::string> aliases;
  std::optional<Published> published;
  std::int64_t hidden_size = 0;  // 0: not stated (explicit shapes only)
  std::int64_t vocab_size = 0;   // 0: no vocabulary
  std::int64_t max_context = 0;  // 0: unknown
  std::int32_t layers = 0;
  Format weights;  // the linears' format
  Format head;     // the lm_head's and the embedding's
  KvFormat kv = KvFormat::bf16;
  std::vector<Block> blocks;
};

struct ParameterCount {
  std::int64_t total = 0;      // stored, tied tensors once
  std::int64_t embedding = 0;  // token table and learned positions
  std::int64_t active = 0;     // read by a batch-1 decode step; gathered rows left out
};
// Throws std::overflow_error.
ParameterCount count_parameters(const Model& model);

// Bytes of the whole checkpoint, and of what a batch-1 decode step reads of it.
std::int64_t stored_bytes(const Model& model);
std::int64_t read_bytes(const Model& model);

// KV bytes a token adds, summed over layers, windows ignored.
std::int64_t kv_bytes_per_token(const Model& model);

// KV bytes of one sequence of `context` tokens: a windowed layer keeps its window only.
std::int64_t kv_cache_bytes(const Model& model, std::int64_t context);

// The model stored as `weights`: linears and experts take that format; norms, biases and routers are
// 16-bit (the model's own 16-bit format, else bf16 for bf16 weights and f16 for others); lm_head and
// embedding follow or stay 16-bit as keeps_16bit_head says, unless `head` names their format.
// docs/model-format.md states the rule.
Model with_weights(Model model, std::optional<Format> weights, std::optional<Format> head);

}  // namespace memwall
