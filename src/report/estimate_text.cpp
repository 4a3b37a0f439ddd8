#include <fmt/format.h>

#include <algorithm>

#include "format/units.h"
#include "report/text.h"

namespace memwall {

namespace {

std::string ops_table(const Estimate& e, const Style& style) {
  Table table({{"op", Align::left},
               {"count"},
               {"shape"},
               {"format", Align::left},
               {"moves"},
               {"FLOPs"},
               {"FLOP/B"},
               {"bound", Align::left},
               {"at least"}});
  for (std::size_t i = 0; i < e.step.ops->size(); ++i) {
    const Op& op = (*e.step.ops)[i];
    const Cost& cost = e.step.costs[i];
    const OpPrediction& p = e.prediction.ops[i];
    const Tone tone = op.fusible ? Tone::dim : Tone::plain;
    table.row({{op.name, tone},
               {fmt::format("{}", op.count()), tone},
               {shape_text(op), tone},
               {format_text(op), tone},
               {human_bytes(cost.bytes()), tone},
               {human_flops(cost.flops), tone},
               {significant(cost.intensity(), 3), tone},
               bound_cell(p.bound),
               {human_time(p.ceiling_s), tone}});
  }
  return table.render(style);
}

std::string reads_table(const Estimate& e, const Style& style) {
  const Cost& total = e.step.total;
  Table table({{"a step moves", Align::left}, {""}, {"bytes"}, {"share"}, {"at least"}});
  const auto row = [&](const char* name, double bytes) {
    if (bytes <= 0) return;
    table.row({name, human_bytes(bytes), thousands(bytes),
               fmt::format("{:.1f} %", 100 * bytes / total.compulsory_bytes()),
               human_time(bytes / e.card->bytes_per_s())});
  };
  row("weights", total.weight_bytes);
  row("KV cache, read", total.kv_read_bytes);
  row("KV cache, written", total.kv_write_bytes);
  row("state", total.state_bytes);
  table.rule();
  row("in all", total.compulsory_bytes());
  return table.render(style);
}

// The assumption behind an expectation is part of the figure.
std::string moe_note(const Estimate& e) {
  for (std::size_t i = 0; i < e.step.ops->size(); ++i) {
    const auto* expert = std::get_if<ExpertWork>(&(*e.step.ops)[i].work);
    if (expert == nullptr) continue;
    return fmt::format(
        "experts    {} of {} a layer touched, in expectation under even, independent routing\n",
        significant(e.step.costs[i].experts_touched, 3), expert->total);
  }
  return "";
}

std::string why(const Prediction& p) {
  const bool below = p.intensity < p.ridge;
  const bool memory = p.ceiling.bound == Bound::memory;
  // The ridge is one type's; where ops compute in several, the bound may lie on its other side.
  return fmt::format("{} FLOP/byte, {} the ridge of {} ({}){} {} bounds it", significant(p.intensity, 4),
                     below ? "below" : "at or above", significant(p.ridge, 4), compute_type_name(p.peak.type),
                     below == memory ? ":" : ", but ops of other types make the difference:",
                     memory ? "memory" : "arithmetic");
}

std::string speeds(const Speed& speed, std::int64_t batch) {
  std::string text = fmt::format("{} tokens/s", significant(speed.tokens_per_s, 5));
  if (batch > 1) text += fmt::format(", {} a user", significant(speed.tokens_per_s_per_user, 4));
  return text + fmt::format(", {} a step", human_time(speed.ms_per_step / 1e3));
}

std::string one_text(const Estimate& e, const Style& style) {
  const Workload& w = e.step.workload;
  std::string text =
      style.apply(Tone::bold, fmt::format("{} on {}", e.model->title, e.card->title)) +
      fmt::format("\nbatch {}, context {}, weights {} (lm_head {}), KV {}\n\n", w.batch, w.context,
                  format_name(e.model->weights), format_name(e.model->head), kv_format_name(e.model->kv));
  text += ops_table(e, style) + "\n" + reads_table(e, style) + "\n";
  text += moe_note(e);
  text += fmt::format("intensity  {}\n", why(e.prediction));
  text += style.apply(Tone::bold, fmt::format("ceiling    {}", speeds(e.prediction.ceiling, w.batch))) +
          fmt::format("  (no run can be faster)\n");
  text += fmt::format("expected   {}  ({}–{}{})\n", speeds(e.prediction.expected, w.batch),
                      significant(e.prediction.expected.low_tokens_per_s, 3),
                      significant(e.prediction.expected.high_tokens_per_s, 3),
                      e.card->achievable.provisional ? ", provisional constants" : "");
  if (e.prefill) {
    text += fmt::format("prefill    {} prompt tokens: first token after {}, at the least {}\n",
                        e.prefill_step->workload.context, human_time(e.prefill->expected.ms_per_step / 1e3),
                        human_time(e.prefill->ceiling.ms_per_step / 1e3));
  }
  text += fmt::format("memory     {} of {}: {}\n", human_gib(e.memory.required_bytes),
                      human_gib(e.memory.capacity_bytes),
                      e.memory.fits() ? "fits" : style.apply(Tone::bad, "does not fit"));
  if (e.step.total.weight_bytes > 0 && e.prediction.weights_fit_cache) {
    text +=
        style.apply(Tone::warn,
                    "The weights fit the last cache: memory does not bound a step that finds them there.") +
        "\n";
  }
  return text;
}

// What a row of a grid was asked for.
struct GridKey {
  const char* title;
  Align align;
  std::string (*of)(const Estimate&);
};

const GridKey kGridKeys[] = {
    {"card", Align::left, [](const Estimate& e) { return e.card->name; }},
    {"weights", Align::left, [](const Estimate& e) { return format_name(e.model->weights); }},
    {"KV", Align::left, [](const Estimate& e) { return std::string(kv_format_name(e.model->kv)); }},
    {"batch", Align::right, [](const Estimate& e) { return fmt::format("{}", e.step.workload.batch); }},
    {"context", Align::right, [](const Estimate& e) { return fmt::format("{}", e.step.workload.context); }},
};

std::string grid_text(const std::vector<Estimate>& estimates, const Style& style) {
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
  bool prefill = false;
  for (const Estimate& e : estimates) prefill = prefill || e.prefill.has_value();
  std::vector<Table::Column> columns;
  for (const GridKey& key : varying) columns.push_back({key.title, key.align});
  for (const char* title : {"moves", "FLOP/byte"}) columns.push_back({title});
  columns.push_back({"bound", Align::left});
  for (const char* title : {"ceiling", "expected", "GiB"}) columns.push_back({title});
  columns.push_back({"fits", Align::left});
  if (prefill) columns.push_back({"TTFT"});
  Table table(columns);
  for (const Estimate& e : estimates) {
    std::vector<Table::Cell> cells;
    for (const GridKey& key : varying) cells.emplace_back(key.of(e));
    cells.emplace_back(human_bytes(e.step.total.compulsory_bytes()));
    cells.emplace_back(significant(e.prediction.intensity, 3));
    cells.push_back(bound_cell(e.prediction.ceiling.bound));
    cells.emplace_back(significant(e.prediction.ceiling.tokens_per_s, 4));
    cells.emplace_back(significant(e.prediction.expected.tokens_per_s, 3));
    cells.emplace_back(significant(e.memory.required_bytes / kGiB, 3));
    cells.emplace_back(e.memory.fits() ? "yes" : "no", e.memory.fits() ? Tone::plain : Tone::bad);
    if (prefill) cells.emplace_back(e.prefill ? human_time(e.prefill->expected.ms_per_step / 1e3) : "");
    table.row(std::move(cells));
  }
  return style.apply(Tone::bold, first.model->title) + "\n" + common +
         "ceiling and expected in tokens/s\n\n" + table.render(style);
}

}  // namespace

std::string estimate_text(const std::vector<Estimate>& estimates, bool with_ops, const Style& style) {
  if (estimates.size() == 1) return one_text(estimates.front(), style);
  std::string text = grid_text(estimates, style);
  if (with_ops) {
    for (const Estimate& e : estimates) text += "\n" + one_text(e, style);
  }
  return text;
}

}  // namespace memwall
