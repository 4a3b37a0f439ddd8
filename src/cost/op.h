// The operations of a step: what a layer runs, in order, with the shapes that decide its cost.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "format/format.h"
#include "model/model.h"

namespace memwall {

enum class OpKind : std::uint8_t { linear, attention, expert, router, recurrent, elementwise, embedding };
std::string_view op_kind_name(OpKind kind);

// y[rows, out] = x[rows, in] W^T (+ b).
struct LinearWork {
  std::int64_t out = 0;
  std::int64_t in = 0;
  Format format{};
  bool bias = false;
  Format bias_format{};
  std::int64_t stored_bytes = -1;  // of weight and bias, where a file says; -1: as the formats take
  bool last_token_only = false;    // lm_head: in prefill only each sequence's last token needs logits

  std::int64_t weight_bytes() const;  // of weight and bias

  bool operator==(const LinearWork&) const = default;
};

// A linear over all experts' logits, and the choice of the `per_token` best.
struct RouterWork {
  LinearWork linear;  // out: the experts
  std::int64_t per_token = 0;

  bool operator==(const RouterWork&) const = default;
};

// One linear of every expert, of which a token uses `per_token`.
struct ExpertWork {
  LinearWork each;
  std::int64_t total = 0;
  std::int64_t per_token = 0;
  std::int64_t idle = 0;  // outputs of the router that stand for no expert (LongCat)

  bool operator==(const ExpertWork&) const = default;
};

// Attention over the KV cache.
struct AttentionWork {
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t d_k = 0;
  std::int64_t d_v = 0;
  std::int64_t window = 0;
  KvFormat kv = KvFormat::bf16;
  std::int64_t chunk = 0;
  std::int64_t top_k = 0;
  bool shared = false;            // writes nothing: an earlier layer did
  std::int64_t weight_bytes = 0;  // of sinks

  bool operator==(const AttentionWork&) const = default;
};

// Attention over latents, absorbed in decode.
struct LatentWork {
  LatentState state;
  KvFormat kv = KvFormat::bf16;
  std::int64_t weight_bytes = 0;

  bool operator==(const LatentWork&) const = default;
};

// The scores of sparse attention: every query head against every cached key.
struct IndexerWork {
  IndexerState state;
  KvFormat kv = KvFormat::bf16;
  std::int64_t weight_bytes = 0;

  bool operator==(const IndexerWork&) const = default;
};

// One step of a recurrence, its convolution and its small parameters included.
struct RecurrentWork {
  RecurrentState state;
  std::int64_t weight_bytes = 0;

  bool operator==(const RecurrentWork&) const = default;
};

enum class ElementwiseFunction : std::uint8_t {
  rms_norm,
  layer_norm,
  rotary,
  activate,  // y = f(gate) * up where gated, else f(up)
  add,       // the residual
  combine,   // the experts' outputs of a token, weighted and summed
};

// An operation on rows of `width` elements, `rows_per_token` of them a token.
struct ElementwiseWork {
  ElementwiseFunction function = ElementwiseFunction::add;
  std::int64_t width = 0;
  std::int64_t rows_per_token = 1;
  std::int64_t inputs = 1;   // rows read for a row written
  std::int64_t weights = 0;  // elements of weight and bias, read once
  Format weight_format{};
  std::int64_t stored_bytes = -1;  // of them, where a file says; -1: as the format takes
  std::int64_t flops_per_element = 1;
  ActivationKind activation = ActivationKind::silu;
  bool last_token_only = false;

  std::int64_t weight_bytes() const;

  bool operator==(const ElementwiseWork&) const = default;
};

// Rows gathered from a table of `rows` x `width`.
struct EmbeddingWork {
  std::int64_t rows = 0;
  std::int64_t width = 0;
  Format format{};

  bool operator==(const EmbeddingWork&) const = default;
};

using Work = std::variant<LinearWork, RouterWork, ExpertWork, AttentionWork, LatentWork, IndexerWork,
                          RecurrentWork, ElementwiseWork, EmbeddingWork>;

struct Op {
  std::string name;  // "q_proj", "attention", "attn_norm"
  Work work;
  std::vector<std::int32_t> layers;  // empty outside the layers
  bool fusible = false;              // a good engine runs it inside a neighbour: no launch of its own
  bool joins_previous = false;       // one launch with the op before it (k and v with q, up with gate)

  OpKind kind() const;
  std::int64_t count() const { return layers.empty() ? 1 : static_cast<std::int64_t>(layers.size()); }
};

// The linear inside a linear, router or expert op; null for the others.
const LinearWork* linear_of(const Work& work);

// The ops of a decode or prefill step of `model`, block by block in model order; an op stands for all the
// layers of its block.
std::vector<Op> lower(const Model& model);

// A view for people: ops equal but for their layers become one, at the first one's place.
std::vector<Op> group_equal(const std::vector<Op>& ops);

}  // namespace memwall
