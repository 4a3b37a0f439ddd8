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

// bytes.{weights, kv, kv_read, kv_write, state, activations, total}.
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
Json estimate_figures(const Estimate& estimate, bool with_ops);

// ops[] of a step under a card.
Json ops_figures(const Step& step, const Prediction* prediction);

Json card_figures(const Card& card);

}  // namespace memwall
