// A decoder-only language model as blocks of tensors and state: what every reader of model files builds
// and all that the byte and FLOP counts are made from. It knows no card and no kernel.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "format/format.h"

namespace memwall {

enum class Role : std::uint8_t {
  embedding,
  positions,
  lm_head,
  linear,
  router,
  expert,
  norm,
  bias,
  parameter,  // small and read by the state's or the next operation: a convolution, a decay, a sink
};

// What a decode step reads of a tensor.
enum class Read : std::uint8_t {
  always,      // all of it
  gathered,    // a row a token: an embedding table
  per_expert,  // the copies whose experts were chosen
  never,       // stored, but of no use to decode: a cross-attention's K projection
};

enum class NormKind : std::uint8_t { none, rms, layer, layer_no_bias };
enum class ActivationKind : std::uint8_t { silu, gelu, relu };

struct Tensor {
  std::string name;  // as in Hugging Face checkpoints: "q_proj", "q_proj.bias"
  Role role = Role::linear;
  std::int64_t out = 0;     // rows; the length of a vector
  std::int64_t in = 1;      // columns; 1 for a vector
  std::int64_t copies = 1;  // one an expert
  Format format{};
  Read read = Read::always;
  bool tied = false;               // its values are another tensor's: read, but stored there
  NormKind norm = NormKind::none;  // of a norm
  std::int64_t rows = 1;           // of a norm: vectors a token it is applied to
  std::int64_t stored_bytes = -1;  // of all copies, where a file's header says; -1: as the format takes

  std::int64_t elements() const;  // of all copies, stored or tied. Throws std::overflow_error.
  std::int64_t bytes() const;     // the same as stored

  bool operator==(const Tensor&) const = default;
};

// K and V of every token. Query heads share the kv_heads.
struct KvState {
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t d_k = 0;
  std::int64_t d_v = 0;
  std::int64_t window = 0;  // tokens read back at most, and kept; 0: all
  std::int64_t chunk = 0;   // tokens of the running chunk are read and kept; 0: no chunks
  std::int64_t top_k = 0;   // tokens read back at most, of all that are kept; 0: all
  bool rotary = false;
  bool shared = false;  // reads the cache of an earlier layer and keeps none of its own

  bool operator==(const KvState&) const = default;
};

// One compressed vector for all heads: multi-head latent attention (DeepSeek-V2, section 2.1). Its last
// `rope` elements carry the positions and are keys only.
struct LatentState {
  std::int64_t heads = 0;
  std::int64_t rank = 0;
  std::int64_t rope = 0;
  std::int64_t d_nope = 0;  // of a head's key and value where prefill expands the latents; 0: never expanded
  std::int64_t d_v = 0;
  std::int64_t window = 0;  // 0: none
  std::int64_t top_k = 0;   // entries read back at most, of all that are kept; 0: all
  std::int64_t every = 1;   // tokens an entry stands for

  bool operator==(const LatentState&) const = default;
};

// The keys by which sparse attention chooses what to read (DeepSeek-V3.2's lightning indexer): all of them
// are read.
struct IndexerState {
  std::int64_t heads = 0;
  std::int64_t width = 0;
  std::int64_t every = 1;  // tokens a key stands for

  bool operator==(const IndexerState&) const = default;
};

// What does not grow with the context: a recurrence's state and the last inputs of its convolution, read
// and written by every step.
struct RecurrentState {
  std::int64_t elements = 0;       // a sequence
  std::int64_t element_bytes = 4;  // recurrences keep f32 unless the config says otherwise
  std::int64_t conv_elements = 0;  // a sequence, 16-bit
  std::int64_t flops = 0;          // a token

  std::int64_t bytes() const;  // a sequence's

  bool operator==(const RecurrentState&) const = default;
};

using State = std::variant<KvState, LatentState, IndexerState, RecurrentState>;

enum class BlockKind : std::uint8_t {
  embedding,  // token (and position) tables, before the layers
  attention,
  mixer,  // any other way to mix tokens: latent attention, recurrences; norms, linears and states in order
  mlp,
  moe,
  shapes,    // linears given by their shapes
  kv_cache,  // attention over a cache, its projections given as shapes
  head,      // final norm and lm_head, after the layers
};

// One block and the layers it stands for. Blocks that share a layer run in the order of Model::blocks.
struct Block {
  // A state and where the step uses it: before the tensor of that index.
  struct Placed {
    State state;
    std::size_t before = 0;

    bool operator==(const Placed&) const = default;
  };

  BlockKind kind = BlockKind::shapes;
  std::vector<std::int32_t> layers{};  // ascending; empty for embedding and head
  std::vector<Tensor> tensors{};       // in the order the step reads them
  std::vector<Placed> states{};        // ascending in `before`
  std::string name{};                  // of a mixer: "mla", "mamba2"
  bool gated = false;                  // of mlp and moe
  ActivationKind activation = ActivationKind::silu;
  std::int64_t experts_per_token = 0;  // of moe

  const Tensor* find(const std::string& name) const;
  // The tensor that a bias is added to: "q_proj" for "q_proj.bias". Null for other tensors, and for a bias
  // that stands alone.
  const Tensor* owner_of(const Tensor& bias) const;
  bool operator==(const Block&) const = default;

  void place(State state) { states.push_back({std::move(state), tensors.size()}); }
};

// The parameter count the publisher states.
struct Published {
  std::int64_t parameters = 0;
  bool rounded = false;      // "7.3B": exact to half a unit of its last digit that is not 0
  std::int64_t buffers = 0;  // stored values among them that are no parameters
  std::string buffers_are;
  std::string source;
};

// What a checkpoint holds that a decode step of the language model does not run: multi-token-prediction
// layers, a vision tower, rotary tables.
struct Extra {
  std::string what;
  std::int64_t tensors = 0;     // 0: how many is not known, as the configuration does not say
  std::int64_t parameters = 0;  // likewise
  std::int64_t bytes = 0;
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
  std::string
      weights_assigned{};  // what --weights gave its parts (model/weight_assignment.h); empty: nothing
  Format head;             // the lm_head's and the embedding's
  KvFormat kv = KvFormat::bf16;
  std::vector<Block> blocks;
  std::vector<Extra> extras;
  // Set where the family is unknown and was read by what its keys usually mean.
  bool approximate = false;
  std::vector<std::string> warnings;  // one line each: what was assumed, what was not understood
};

// By how much the model's count, other values included, differs from the published one; 0 where it lies
// within a rounded one's half unit.
std::int64_t published_difference(const Model& model);

struct ParameterCount {
  std::int64_t total = 0;      // stored, tied tensors once
  std::int64_t embedding = 0;  // token table and learned positions
  std::int64_t active = 0;     // read by a batch-1 decode step; gathered rows left out
};
// Throws std::overflow_error.
ParameterCount count_parameters(const Model& model);

// How many layers a block stands for; 1 outside the layers.
std::int64_t block_count(const Block& block);

// Of `all` (elements or bytes of every copy), what a batch-1 decode step reads.
std::int64_t read_by_one_token(const Block& block, const Tensor& tensor, std::int64_t all);

// Bytes of the model's tensors, and of what a batch-1 decode step reads of it.
std::int64_t stored_bytes(const Model& model);
std::int64_t read_bytes(const Model& model);

// KV bytes a token adds, summed over layers, windows and chunks ignored: K and V, latents, indexer keys.
// One entry for several tokens counts by its share.
std::int64_t kv_bytes_per_token(const Model& model);

// KV bytes of one sequence of `context` tokens: a windowed layer keeps its window and `beyond_window` tokens
// more, a chunked one its running chunk and as many. With `beyond_window` = `context` all layers keep all.
std::int64_t kv_cache_bytes(const Model& model, std::int64_t context, std::int64_t beyond_window = 0);

// Bytes of one sequence's recurrent states, whatever its length.
std::int64_t state_bytes(const Model& model);

// Cached bytes of one entry of a state (one token, or the `every` tokens it stands for); 0 for a recurrence
// and for a shared cache.
std::int64_t entry_bytes(const State& state, KvFormat kv);

// The formats of the linears and experts and the bytes of each, most first.
std::vector<std::pair<Format, std::int64_t>> formats_by_bytes(const Model& model);

// The first of them; nothing where there are no linears.
std::optional<Format> main_format(const Model& model);

// Throws std::overflow_error where a sum that a command may print does not fit; what every reader ends with.
void check_sums(const Model& model);

// Entries of a latent or indexer cache that a sequence of `context` tokens keeps.
std::int64_t entries_kept(const LatentState& state, std::int64_t context);
std::int64_t entries_kept(const IndexerState& state, std::int64_t context);

// The model stored as `weights`: linears and experts take that format; norms, biases and routers are
// 16-bit (the model's own 16-bit format, else bf16 for bf16 weights and f16 for others); lm_head and
// embedding follow or stay 16-bit as keeps_16bit_head says, unless `head` names their format.
// docs/model-format.md states the rule.
Model with_weights(Model model, std::optional<Format> weights, std::optional<Format> head);

}  // namespace memwall
