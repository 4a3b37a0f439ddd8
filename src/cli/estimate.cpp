// memwall estimate MODEL --card CARD: ceiling and expected speed, per layer; no hardware needed.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/commands.h"
#include "cli/options.h"
#include "cli/stream.h"
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

// Of a grid: streamed, or held whole for a table.
constexpr std::uint64_t kMostStreamed = 10'000'000;
constexpr std::uint64_t kMostInTable = 10'000;

// The points of the grid, one after the other.
struct Grid {
  std::vector<Lowered> models;
  std::vector<Card> cards;
  std::vector<std::int64_t> batches;
  std::vector<std::int64_t> contexts;
  std::optional<std::int64_t> prompt;

  void each(const std::function<void(const Estimate&)>& take) const;
};

void Grid::each(const std::function<void(const Estimate&)>& take) const {
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
          take(e);
        }
      }
    }
  }
}

// All but its results.
Json estimate_json(const Grid& grid, std::uint64_t results, const std::vector<std::string>& warnings,
                   const Invocation& invocation) {
  Json json = document("estimate", circumstances_now(invocation.arguments));
  json["model"] = model_figures(grid.models.front().model);
  json["cards"] = Json::array();
  for (const Card& card : grid.cards) json["cards"].push_back(card_figures(card));
  json["results"] = Json::array();
  // A single result's ops stand at the top, as inspect's do; --ops gives each result its own.
  if (results == 1) {
    grid.each([&](const Estimate& only) { json["ops"] = ops_figures(only.step, &only.prediction); });
  }
  json["warnings"] = warnings;
  return json;
}

// A row a result; with ops a row an op, led by its result's.
void each_row(const Estimate& e, bool with_ops, const std::function<void(const Json&)>& take) {
  const Json result = estimate_figures(e, false);
  if (!with_ops) return take(flatten(result));
  for (const Json& op : ops_figures(e.step, &e.prediction)) {
    Json row;
    for (const char* key : {"card", "model", "batch", "context", "weights", "kv"}) row[key] = result[key];
    row.update(flatten(op));
    take(row);
  }
}

void write_estimates(const Grid& grid, std::uint64_t results, const EstimateOptions& options,
                     OutputFormat format, const std::vector<std::string>& warnings,
                     const Invocation& invocation, Output& output) {
  if (format == OutputFormat::table) {
    std::vector<Estimate> estimates;
    grid.each([&](const Estimate& e) { estimates.push_back(e); });
    return write_result(output, format, {.json = {}, .rows = {}, .text = [&](const Style& style) {
                                           return estimate_text(estimates, options.ops, style);
                                         }});
  }
  if (format == OutputFormat::json) {
    grid.each([](const Estimate&) {});  // sizes that cannot be counted are refused before anything is written
    release_notices();
    return write_json(output, estimate_json(grid, results, warnings, invocation), "results",
                      [&](const std::function<void(const Json&)>& take) {
                        grid.each([&](const Estimate& e) { take(estimate_figures(e, options.ops)); });
                      });
  }
  release_notices();
  write_rows(output, format, [&](const std::function<void(const Json&)>& take) {
    grid.each([&](const Estimate& e) { each_row(e, options.ops, take); });
  });
}

// Refuses too many results before any list is expanded into models and cards. Throws InputError.
void require_countable(const EstimateOptions& options, OutputFormat format, const Grid& grid) {
  const bool table = format == OutputFormat::table;
  require_combinations({{"cards", items_of(options.cards)},
                        {"weight formats", items_of(options.model.weights)},
                        {"KV formats", items_of(options.model.kv)},
                        {"batches", grid.batches.size()},
                        {"contexts", grid.contexts.size()}},
                       table ? kMostInTable : kMostStreamed,
                       table ? "a table (10,000,000: --format csv, md or json)" : "estimate");
}

void estimate(const EstimateOptions& options, const Invocation& invocation) {
  const OutputFormat format = options.output.chosen();
  Grid grid;
  grid.batches = options.workload.batches();
  grid.contexts = options.workload.contexts();
  if (!options.prompt.empty()) grid.prompt = parse_count(options.prompt, "--prompt", {1, kMostContext});
  require_countable(options, format, grid);
  for (Model& model : options.model.load()) {
    std::vector<Op> ops = group_equal(lower(model));
    grid.models.push_back({std::move(model), std::move(ops)});
  }
  grid.cards = parse_cards(options.cards, "--card");
  Output output(options.output.output);

  std::vector<std::int64_t> longest = grid.contexts;
  if (grid.prompt) longest.push_back(*grid.prompt);
  std::vector<std::string> warnings = warn_of(grid.models.front().model, longest);
  for (const Card& card : grid.cards) {
    for (const std::string& sentence : card.assumed) {
      warnings.push_back(fmt::format("{}: {}", card.name, sentence));
      if (format != OutputFormat::table) warn(warnings.back());  // the text itself says it
    }
  }
  const std::uint64_t results =
      grid.cards.size() * grid.models.size() * grid.batches.size() * grid.contexts.size();
  write_estimates(grid, results, options, format, warnings, invocation, output);
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
