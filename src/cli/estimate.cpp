// memwall estimate MODEL --card CARD: ceiling and expected speed, per layer; no hardware needed.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/commands.h"
#include "cli/options.h"
#include "input/error.h"
#include "input/numbers.h"
#include "report/rows.h"
#include "report/text.h"

namespace memwall {
namespace {

struct EstimateOptions {
  ModelOptions model;
  WorkloadOptions workload;
  OutputOptions output;
  std::string cards;
  std::string prompt;
  bool ops = false;
};

// A model and its ops, which the results of its workloads share.
struct Lowered {
  Model model;
  std::vector<Op> ops;
};

std::vector<Estimate> estimate_all(const std::vector<Lowered>& models, const std::vector<Card>& cards,
                                   const std::vector<std::int64_t>& batches,
                                   const std::vector<std::int64_t>& contexts,
                                   std::optional<std::int64_t> prompt) {
  std::vector<Estimate> estimates;
  for (const Card& card : cards) {
    for (const Lowered& lowered : models) {
      for (const std::int64_t batch : batches) {
        std::optional<Step> prefill_step;
        if (prompt) {
          prefill_step =
              cost_step(lowered.ops, {.phase = Phase::prefill, .batch = batch, .context = *prompt});
        }
        for (const std::int64_t context : contexts) {
          Estimate e;
          e.model = &lowered.model;
          e.card = &card;
          e.step = cost_step(lowered.ops, {.phase = Phase::decode, .batch = batch, .context = context});
          e.prediction = predict(e.step, card);
          e.memory = memory_fit(lowered.model, e.step, card);
          if (prefill_step) {
            e.prefill_step = prefill_step;
            e.prefill = predict(*prefill_step, card);
          }
          estimates.push_back(std::move(e));
        }
      }
    }
  }
  return estimates;
}

Json estimate_json(const std::vector<Estimate>& estimates, const std::vector<Lowered>& models,
                   const std::vector<Card>& cards, bool with_ops, const std::vector<std::string>& warnings,
                   const Invocation& invocation) {
  Json json = document("estimate", circumstances_now(invocation.arguments));
  json["model"] = model_figures(models.front().model);
  json["cards"] = Json::array();
  for (const Card& card : cards) json["cards"].push_back(card_figures(card));
  json["results"] = Json::array();
  for (const Estimate& e : estimates) json["results"].push_back(estimate_figures(e, with_ops));
  // A single result's ops stand at the top, as inspect's do; --ops gives each result its own.
  if (estimates.size() == 1) json["ops"] = ops_figures(estimates.front().step, &estimates.front().prediction);
  json["warnings"] = warnings;
  return json;
}

// A row a result; with ops a row an op, led by its result's.
std::vector<Json> estimate_rows(const std::vector<Estimate>& estimates, bool with_ops) {
  std::vector<Json> rows;
  for (const Estimate& e : estimates) {
    const Json result = estimate_figures(e, false);
    if (!with_ops) {
      rows.push_back(flatten(result));
      continue;
    }
    for (const Json& op : ops_figures(e.step, &e.prediction)) {
      Json row;
      for (const char* key : {"card", "model", "batch", "context", "weights", "kv"}) row[key] = result[key];
      row.update(flatten(op));
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

void estimate(const EstimateOptions& options, const Invocation& invocation) {
  const OutputFormat format = parse_output_format(options.output.format);
  const std::vector<std::int64_t> batches = options.workload.batches();
  const std::vector<std::int64_t> contexts = options.workload.contexts();
  std::optional<std::int64_t> prompt;
  if (!options.prompt.empty()) prompt = parse_integer(options.prompt, "--prompt", {1, kMostContext});
  std::vector<Lowered> models;
  for (Model& model : options.model.load()) {
    std::vector<Op> ops = group_equal(lower(model));
    models.push_back({std::move(model), std::move(ops)});
  }
  std::vector<Card> cards;
  for (const std::string& name : split_list(options.cards, "--card")) cards.push_back(find_card(name));
  Output output(options.output.output);

  std::vector<std::int64_t> longest = contexts;
  if (prompt) longest.push_back(*prompt);
  const std::vector<std::string> warnings = warn_of(models.front().model, longest);

  const std::vector<Estimate> estimates = estimate_all(models, cards, batches, contexts, prompt);
  write_result(
      output, format,
      {.json = [&] { return estimate_json(estimates, models, cards, options.ops, warnings, invocation); },
       .rows = [&] { return estimate_rows(estimates, options.ops); },
       .text = [&](const Style& style) { return estimate_text(estimates, options.ops, style); }});
}

}  // namespace

void add_estimate(CLI::App& app, Invocation& invocation) {
  CLI::App* command = app.add_subcommand("estimate", "Ceiling and expected speed on a card, per layer");
  const auto options = std::make_shared<EstimateOptions>();
  options->model.add(*command);
  command->add_option("--card", options->cards, "A card (`memwall cards`), its alias or a card YAML; a list")
      ->required();
  options->workload.add(*command);
  command->add_option("--prompt", options->prompt,
                      "Also estimate the prefill of a prompt of this many tokens");
  command->add_flag("--ops", options->ops, "Per-layer rows for every result");
  options->output.add(*command);
  command->callback(
      [=, &invocation] { invocation.run = [=, &invocation] { estimate(*options, invocation); }; });
}

}  // namespace memwall
