// The named figures of models, ops, predictions and cards, as docs/json.md lists them.
#pragma once

#include <optional>

#include "card/card.h"
#include "cost/cost.h"
#include "model/model.h"
#include "predict/predict.h"
#include "report/json.h"

namespace memwall {

// model.{name, architecture, layers, ..., parameters, bytes}.
Json model_figures(const Model& model);

// An op's shape and cost; times where `prediction` is given.
Json op_figures(const Op& op, const Cost& cost, const OpPrediction* prediction);

// {ms_per_step, tokens_per_s, tokens_per_s_per_user}, and the bound.
Json speed_figures(const Speed& speed);

// bytes.{weights, weights_least, kv, kv_read, kv_write, state, activations, total}.
Json byte_figures(const Cost& total);

// One entry of estimate's results[]: a workload on a card. `prefill` is null where none was asked for.
struct Estimate {
  const Model* model = nullptr;
  const Card* card = nullptr;
  Step step;
  Prediction prediction;
  MemoryFit memory;
  std::optional<Step> prefill_step;
  std::optional<Prediction> prefill;
};
// The expected time to the first token: from the fastest to the slowest, seconds. Of an estimate with a
// prompt.
struct TimeRange {
  double low = 0;
  double high = 0;
};
TimeRange ttft_range_s(const Estimate& estimate);

Json estimate_figures(const Estimate& estimate, bool with_ops);

// memory.{required_GiB, capacity_GiB, fits, headroom_GiB, ...}; null where the capacity is unknown.
Json memory_figures(const MemoryFit& fit);

// Whether some of the step's ops run experts, so that its bytes depend on the routing.
bool has_experts(const Step& step);

// What the speeds of a result are that does not fit.
constexpr const char* kNotARun = "does not fit in the card's memory: no run there has these speeds";

// ops[] of a step under a card.
Json ops_figures(const Step& step, const Prediction* prediction);

Json card_figures(const Card& card);

}  // namespace memwall
