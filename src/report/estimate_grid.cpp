#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <sstream>
#include <string>

#include "format/units.h"
#include "model/weight_assignment.h"
#include "report/estimate_parts.h"
#include "report/text.h"

namespace memwall {
namespace {

// What a row of a grid was asked for.
struct GridKey {
  const char* title;
  Align align;
  std::string (*of)(const Estimate&);
};

const GridKey kGridKeys[] = {
    {"card", Align::left, [](const Estimate& e) { return e.card->name; }},
    {"weights", Align::left, [](const Estimate& e) { return weights_label(*e.model); }},
    {"KV", Align::left, [](const Estimate& e) { return std::string(kv_format_name(e.model->kv)); }},
    {"batch", Align::right, [](const Estimate& e) { return fmt::format("{}", e.step.workload.batch); }},
    {"context", Align::right, [](const Estimate& e) { return fmt::format("{}", e.step.workload.context); }},
};

// GiB are what is needed at the least, so "yes" has its shades.
Table::Cell fit_cell(const MemoryFit& fit) {
  const std::optional<bool> fits = fit.fits();
  if (!fits) return {"?", Tone::warn};
  if (!*fits) return {"no", Tone::bad};
  return fit.tight() ? Table::Cell("tight", Tone::warn) : Table::Cell("yes");
}

const char* unfit_mark(const Estimate& e) { return e.memory.fits().value_or(true) ? "" : "*"; }

// A row a result. Ranges of many digits leave no room for FLOP/B in 100 columns: it stands in the other
// outputs.
Table speeds_table(const std::vector<Estimate>& estimates, const std::vector<GridKey>& varying, bool routed,
                   bool intensity) {
  std::vector<Table::Column> columns;
  for (const GridKey& key : varying) columns.push_back({key.title, key.align});
  columns.push_back({"moves"});
  if (intensity) columns.push_back({"FLOP/B"});
  columns.push_back({"bound", Align::left});
  columns.push_back({"ceiling"});
  if (routed) columns.push_back({"even"});
  for (const char* title : {"expected", "range", "GiB"}) columns.push_back({title});
  columns.push_back({"fits", Align::left});
  Table table(columns);
  for (const Estimate& e : estimates) {
    std::vector<Table::Cell> cells;
    for (const GridKey& key : varying) cells.emplace_back(key.of(e));
    cells.emplace_back(human_bytes(e.step.total.compulsory_bytes()));
    if (intensity) cells.emplace_back(significant(e.prediction.intensity, 3));
    cells.push_back(bound_cell(e.prediction.ceiling.bound));
    const auto speed = [&](double tokens_per_s, int digits, bool provisional = false) {
      cells.emplace_back((provisional ? "~" : "") + significant(tokens_per_s, digits) + unfit_mark(e));
    };
    speed(e.prediction.ceiling.tokens_per_s, 4);
    if (routed) speed(e.prediction.ceiling_even_routing.tokens_per_s, 4);
    const ExpectedSpeed& expected = e.prediction.expected;
    speed(expected.tokens_per_s, 3, expected.provisional);
    cells.emplace_back(significant(expected.low_tokens_per_s, 3) + "–" +
                       significant(expected.high_tokens_per_s, 3));
    cells.emplace_back(significant(e.memory.required_bytes / kGiB, 3));
    cells.push_back(fit_cell(e.memory));
    table.row(std::move(cells));
  }
  return table;
}

bool narrow(const Table& table) {
  constexpr std::size_t kMostColumns = 100;
  std::istringstream lines(table.render(Style{}));
  for (std::string line; std::getline(lines, line);) {
    if (display_width(line) > kMostColumns) return false;
  }
  return true;
}

// A row a prompt, beside what varies in the rows above.
std::string prompts_table(const std::vector<Estimate>& estimates, const std::vector<GridKey>& varying,
                          const Style& style) {
  std::vector<Table::Column> columns;
  for (const GridKey& key : varying) columns.push_back({key.title, key.align});
  for (const char* title : {"prompt", "at the least", "range", "TTFT expected"}) columns.push_back({title});
  Table table(columns);
  for (const Estimate& e : estimates) {
    if (!e.prefill) continue;
    std::vector<Table::Cell> cells;
    for (const GridKey& key : varying) cells.emplace_back(key.of(e));
    cells.emplace_back(fmt::format("{}", e.prefill_step->workload.context));
    cells.emplace_back(human_time(e.prefill->ceiling.ms_per_step / 1e3) + unfit_mark(e));
    cells.emplace_back(ttft_range_text(e));
    cells.emplace_back((e.prefill->expected.provisional ? "~" : "") +
                       human_time(e.prefill->expected.ms_per_step / 1e3) + unfit_mark(e));
    table.row(std::move(cells));
  }
  return table.render(style);
}

}  // namespace

bool routing_matters(const Step& step) { return step.total.weight_bytes_least < step.total.weight_bytes; }

std::string ttft_range_text(const Estimate& e) {
  const TimeRange range = ttft_range_s(e);
  return human_time(range.low) + "–" + human_time(range.high);
}

std::string estimate_grid_text(const std::vector<Estimate>& estimates, const Style& style) {
  const Estimate& first = estimates.front();
  // What all rows have in common stands above the table, which stays narrow so.
  std::vector<GridKey> varying;
  std::string common;
  for (const GridKey& key : kGridKeys) {
    if (std::all_of(estimates.begin(), estimates.end(),
                    [&](const Estimate& e) { return key.of(e) == key.of(first); })) {
      common += fmt::format("{} {}, ", key.title, key.of(first));
    } else {
      varying.push_back(key);
    }
  }
  const auto any = [&](auto holds) { return std::any_of(estimates.begin(), estimates.end(), holds); };
  const bool prefill = any([](const Estimate& e) { return e.prefill.has_value(); });
  const bool routed = any([](const Estimate& e) { return routing_matters(e.step); });
  const Table whole = speeds_table(estimates, varying, routed, true);
  const std::string table =
      narrow(whole) ? whole.render(style) : speeds_table(estimates, varying, routed, false).render(style);
  const bool unfit = any([](const Estimate& e) { return !e.memory.fits().value_or(true); });
  const bool tight = any([](const Estimate& e) { return e.memory.tight(); });
  std::string text = style.apply(Tone::bold, first.model->title) + "\n" + common +
                     "ceiling and expected in tokens/s, for one token a step\n\n" + table;
  if (prefill) text += "\n" + prompts_table(estimates, varying, style);
  if (routed)
    text += "even: the ceiling were routing even, which moves, FLOP/B and expected assume; no bound\n";
  if (unfit) text += "*: does not fit in the card's memory: no run there has these speeds\n";
  const auto any_expected = [&](auto holds) {
    return any([&](const Estimate& e) {
      return holds(e.prediction.expected) || (e.prefill && holds(e.prefill->expected));
    });
  };
  if (any_expected([](const ExpectedSpeed& s) { return s.provisional; }))
    text += "~: provisional: constants of a class of cards, or a rate that no profile tells\n";
  if (any_expected([](const ExpectedSpeed& s) { return s.unknown_factor > 1; }))
    text += wrapped(fmt::format(
        "how fast ggml formats are multiplied is told by no profile: taken as 16-bit ones, unknown "
        "by a factor of {} either way",
        kGgmlRateFactor));
  if (tight)
    text += "tight: fits on paper, but engines keep a tenth back, or page sliding layers like full ones\n";
  std::vector<const Card*> told;
  for (const Estimate& e : estimates) {
    if (std::find(told.begin(), told.end(), e.card) != told.end()) continue;
    told.push_back(e.card);
    for (const std::string& sentence : e.card->assumed)
      text += wrapped(fmt::format("{}, assumed: {}", e.card->name, sentence));
  }
  return text;
}

}  // namespace memwall
