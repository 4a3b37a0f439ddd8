// What an op moves and computes: pure arithmetic. docs/formulas.md derives every formula.
#pragma once

#include <cstdint>
#include <vector>

#include "cost/op.h"

namespace memwall {

enum class Phase : std::uint8_t { decode, prefill };

// `batch` sequences; in decode each has `context` tokens in its cache and gains one, in prefill each is a
// prompt of `context` tokens.
struct Workload {
  Phase phase = Phase::decode;
  std::int64_t batch = 1;
  std::int64_t context = 1024;

  std::int64_t rows() const { return phase == Phase::decode ? batch : batch * context; }
};

// The largest batch and context a workload may have: counts stay exact in a double (below 2^53 bytes a
// layer for every shape of today's models).
constexpr std::int64_t kMostBatch = 1'000'000;
constexpr std::int64_t kMostContext = 1'000'000'000;

// Bytes and FLOPs. Doubles, because expert bytes are expectations; all else is a whole number, exact up
// to 2^53.
struct Cost {
  double weight_bytes = 0;  // weights, norms and biases, each read once a step; experts under even routing
  // The same with the fewest experts that any routing can touch: what a ceiling may count.
  double weight_bytes_least = 0;
  double kv_read_bytes = 0;
  double kv_write_bytes = 0;
  double state_bytes = 0;
  double activation_bytes = 0;  // 16 bits an element; gathered embedding rows are counted here
  double flops = 0;
  double experts_touched = 0;  // in expectation, of one layer; 0 where there are none

  double kv_bytes() const { return kv_read_bytes + kv_write_bytes; }
  // What an engine cannot avoid moving, as activations may stay on chip: under even routing, and whatever the
  // routing is.
  double compulsory_bytes() const { return weight_bytes + kv_bytes() + state_bytes; }
  double least_compulsory_bytes() const { return weight_bytes_least + kv_bytes() + state_bytes; }
  double bytes() const { return compulsory_bytes() + activation_bytes; }
  double least_bytes() const { return least_compulsory_bytes() + activation_bytes; }
  double intensity() const { return bytes() > 0 ? flops / bytes() : 0; }

  Cost times(double count) const;  // experts_touched stays one layer's
  Cost& operator+=(const Cost& other);
};

// One layer's copy of the op.
Cost cost_of(const Work& work, const Workload& workload);

// A multiply-add a weight and row, an add a bias.
double linear_flops(const LinearWork& linear, std::int64_t rows);

// E (1 - (1 - k/E)^tokens): experts that `tokens` tokens touch in expectation under even, independent
// routing of k of E. Between k and E.
double experts_touched(std::int64_t experts, std::int64_t per_token, double tokens);

// The fewest that any tokens can touch, all choosing alike: k, less the choices that run no expert (`idle` of
// the router's outputs).
std::int64_t least_experts(const ExpertWork& work);

// Tokens a sequence of `context` tokens keeps for later steps: min(context, window); of a chunked layer those
// of the running chunk.
std::int64_t tokens_kept(const AttentionWork& attention, std::int64_t context);

// Cached tokens a decode step's query reads: min(context, window); context mod chunk in a chunked layer;
// min(context, top_k) where attention is sparse.
std::int64_t effective_context(const AttentionWork& attention, std::int64_t context);

// Query-key pairs of one sequence's causal prefill of `tokens` tokens: the triangle, capped by the window.
double causal_pairs(std::int64_t tokens, std::int64_t window);

// The same for an attention: windowed, chunked or sparse.
double attention_pairs(const AttentionWork& attention, std::int64_t tokens);

// A step: its ops and what all the layers' copies of each cost.
struct Step {
  Workload workload;
  const std::vector<Op>* ops = nullptr;  // not owned
  std::vector<Cost> costs{};
  Cost total{};
};

Step cost_step(const std::vector<Op>& ops, const Workload& workload);

// The step where the routing is known to be even, as that of experts drawn at random is: its least bytes are
// then its expected ones.
Step under_even_routing(Step step);

}  // namespace memwall
