// Cost under a card's roofline: times, bounds, tokens/s, and whether it fits.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "card/card.h"
#include "cost/cost.h"

namespace memwall {

// Which term of a time is the largest.
enum class Bound : std::uint8_t { memory, compute, overhead };
std::string_view bound_name(Bound bound);

struct Peak {
  ComputeType type = ComputeType::f32;
  double flops_per_s = 0;
};

// P: the card's fastest dense peak among the types that kernels for the format can compute in. f32: f32;
// f16: f16; bf16: bf16, else f16; f8: f8, else 16-bit; ggml's 8-bit and smaller integers, whose kernels
// may quantise activations: int8 or 16-bit; int4 groups, weight-only: 16-bit; fp4: f4, f8 or 16-bit. Where
// kernels quantise activations (Card::quantises_activations), all that is stored in 8 bits and fewer, but f8,
// may be multiplied as integers, too.
Peak peak_for(const Card& card, Format format);
// The same for attention over a KV cache: f8 in f8 where the card can, int8 widened to 16-bit.
Peak peak_for(const Card& card, KvFormat format);
// The one of an op: its weights' or its cache's; elementwise ops count at the 16-bit peak.
Peak peak_for(const Card& card, const Work& work);

struct Speed {
  double ms_per_step = 0;
  double tokens_per_s = 0;
  double tokens_per_s_per_user = 0;
  Bound bound = Bound::memory;
};

// Of `tokens` tokens a step for `users` sequences, one step taking `seconds`.
Speed speed_of(double seconds, double tokens, double users, Bound bound);

// Whether kernels for the op multiply ggml's blocks, of its weights or of its cache: at what rate is not
// known while no engine's profile says so.
bool multiplies_ggml_blocks(const Work& work);

// The rate of ggml's blocks is expected to be that of kernels that widen them, the 16-bit peak with the
// card's compute_share, and is known within this factor, up and down. Published prompts lie on both sides of
// it: llama.cpp on an RTX 3090 reads 3491 tokens/s of an 8B in q6_K (ggml-org/llama.cpp#7860, 512 a batch),
// and on an RTX 4090 5470 in q5_0 (#7716); at 14 GFLOP a token that is 49 and 77 TFLOP/s, 0.81 and 0.55 of
// it, and 0.17 and 0.12 of the cards' int8 peaks, at which they might run. Twice the larger deviation, as
// kernels change from one card and version to the next.
constexpr double kGgmlRateFactor = 4;

struct ExpectedSpeed : Speed {
  double low_tokens_per_s = 0;
  double high_tokens_per_s = 0;
  bool provisional = false;   // constants of a class, or a rate that is not known
  double unknown_factor = 1;  // kGgmlRateFactor where that rate moves the figure, and low and high with it
};

struct OpPrediction {
  Peak peak;
  double ceiling_s = 0;               // max(least bytes / W, FLOPs / P), of all copies
  double ceiling_even_routing_s = 0;  // the same with the experts that even routing touches
  // Hockney's t0 + max(bytes / W_inf, FLOPs / P_inf), of all copies; P_inf of ggml's blocks as above
  double expected_s = 0;
  Bound bound = Bound::memory;  // of the ceiling
};

// The share of a card that engines leave alone: vLLM plans with 0.9 to 0.92 of it (gpu_memory_utilization in
// its config/cache.py), and drivers show less than the datasheet states.
constexpr double kKeptBack = 0.1;

// Tokens beyond the window that llama.cpp holds of a sliding layer: a micro-batch (n_ubatch;
// llama_kv_cache_iswa).
constexpr std::int64_t kMicroBatch = 512;

// Memory that a step needs, at the least: no allocator's slack, no engine's own buffers.
struct MemoryFit {
  double required_bytes =
      0;                // weights, KV and state of B sequences of S tokens, the largest op's activations
  double kv_bytes = 0;  // of that: sliding layers hold their window and no more
  double kv_micro_batch_bytes = 0;       // the cache where they hold a micro-batch besides
  double kv_full_bytes = 0;              // and where an engine pages all layers alike, at the full context
  std::optional<double> capacity_bytes;  // nothing where the card's file does not say

  std::optional<bool> fits() const;              // nothing where the capacity is unknown
  std::optional<double> headroom_bytes() const;  // capacity less what is required
  // Fits on paper, but reaches into what engines leave alone, or does not fit with all layers paged alike.
  bool tight() const;
};

struct Prediction {
  std::vector<OpPrediction> ops;   // in the step's order
  Peak peak;                       // of the format that carries most FLOPs
  double ridge = 0;                // FLOP/byte: that peak over the bandwidth
  double intensity = 0;            // FLOPs over compulsory bytes, experts under even routing
  Speed ceiling;                   // max(least compulsory bytes / W, sum FLOPs / P): whatever the routing is
  Speed ceiling_even_routing;      // the same of the experts that even routing touches: no bound, as real
                                   // routing is uneven; equal to the ceiling where there are no experts
  ExpectedSpeed expected;          // the sum over kernels, experts under even routing
  bool weights_fit_cache = false;  // DRAM does not bound weights that stay in the last cache
};

Prediction predict(const Step& step, const Card& card);

// One op alone.
OpPrediction predict_op(const Op& op, const Cost& cost, const Card& card);

MemoryFit memory_fit(const Model& model, const Step& step, const Card& card);

}  // namespace memwall
