#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "model/weight_assignment.h"
#include "report/estimate_parts.h"
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
  const bool routed = routing_matters(e.step);
  Table table({{routed ? "under even routing a step moves" : "a step moves", Align::left},
               {""},
               {"bytes"},
               {"share"},
               {routed ? "takes" : "at least"}});
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
  if (routed) row("the least any routing moves", total.least_compulsory_bytes());
  return table.render(style);
}

// The assumption behind an expectation is part of the figure.
std::string moe_note(const Estimate& e) {
  for (std::size_t i = 0; i < e.step.ops->size(); ++i) {
    const auto* expert = std::get_if<ExpertWork>(&(*e.step.ops)[i].work);
    if (expert == nullptr) continue;
    std::string text =
        fmt::format("experts    {} of {} a layer touched, in expectation under even, independent routing",
                    significant(e.step.costs[i].experts_touched, 3), expert->total);
    if (routing_matters(e.step)) text += fmt::format("; {} at least", least_experts(*expert));
    return text + "\n";
  }
  return "";
}

std::string why(const Estimate& e) {
  const Prediction& p = e.prediction;
  const bool below = p.intensity < p.ridge;
  // Intensity and this bound both count the bytes of even routing; the ceiling's may be another.
  const bool memory = p.ceiling_even_routing.bound == Bound::memory;
  // The ridge is one type's; where ops compute in several, the bound may lie on its other side.
  std::string text =
      fmt::format("{} FLOP/byte, {} the ridge of {} ({}){} {} bounds it", significant(p.intensity, 4),
                  below ? "below" : "at or above", significant(p.ridge, 4), compute_type_name(p.peak.type),
                  below == memory ? ":" : ", but ops of other types make the difference:",
                  memory ? "memory" : "arithmetic");
  if (routing_matters(e.step)) {
    text += "\n           under even routing";
    if (p.ceiling.bound != p.ceiling_even_routing.bound)
      text += fmt::format("; {} bounds the ceiling, which counts the least bytes",
                          p.ceiling.bound == Bound::memory ? "memory" : "arithmetic");
  }
  return text;
}

std::string speeds(const Speed& speed, std::int64_t batch) {
  std::string text = fmt::format("{} tokens/s", significant(speed.tokens_per_s, 5));
  if (batch > 1) text += fmt::format(", {} a user", significant(speed.tokens_per_s_per_user, 4));
  return text + fmt::format(", {} a step", human_time(speed.ms_per_step / 1e3));
}

// Why a range is wide: what a rate is taken to be, and how far off that may be.
std::string unknown_rate_line(const ExpectedSpeed& expected) {
  if (expected.unknown_factor <= 1) return "";
  return fmt::format(
      "           no profile says how fast ggml formats are multiplied: taken as 16-bit ones, unknown by\n"
      "           a factor of {} either way\n",
      expected.unknown_factor);
}

// A promise names its terms: drafted tokens that are accepted come on top.
std::string ceiling_lines(const Estimate& e, const Style& style) {
  const std::int64_t batch = e.step.workload.batch;
  const bool fits = e.memory.fits().value_or(true);
  std::string text =
      style.apply(Tone::bold, fmt::format("ceiling    {}", speeds(e.prediction.ceiling, batch)));
  text += fits ? "  (no run is faster, for one token a step)\n"
               : style.apply(Tone::bad, "  (no run's: does not fit)") + "\n";
  if (routing_matters(e.step)) {
    text += fmt::format("even       {}  (under even routing: no bound)\n",
                        speeds(e.prediction.ceiling_even_routing, batch));
  }
  const ExpectedSpeed& expected = e.prediction.expected;
  text += fmt::format("expected   {}  ({}–{}{}{})\n", speeds(expected, batch),
                      significant(expected.low_tokens_per_s, 3), significant(expected.high_tokens_per_s, 3),
                      routing_matters(e.step) ? ", even routing" : "",
                      !expected.provisional     ? ""
                      : routing_matters(e.step) ? ", provisional"  // no room for more
                                                : ", provisional constants");
  text += unknown_rate_line(expected);
  return text;
}

// What is needed, of what there is, and what an engine needs on top.
std::string memory_lines(const Estimate& e, const Style& style) {
  const MemoryFit& fit = e.memory;
  std::string text = fmt::format("memory     at least {}", human_gib(fit.required_bytes));
  const std::optional<bool> fits = fit.fits();
  if (!fits) {
    text += "; the card's capacity is not known\n";
  } else if (!*fits) {
    text +=
        fmt::format(" of {}: {}\n", human_gib(*fit.capacity_bytes), style.apply(Tone::bad, "does not fit"));
    text += "           so the speeds above are not those of a run on one card\n";
  } else {
    text += fmt::format(" of {}: fits{}, {} spare\n", human_gib(*fit.capacity_bytes),
                        fit.tight() ? style.apply(Tone::warn, " on paper") : "",
                        human_gib(*fit.headroom_bytes()));
    if (*fit.headroom_bytes() < kKeptBack * *fit.capacity_bytes)
      text +=
          "           engines keep about a tenth back: vLLM plans with 0.90 to 0.92 of a card\n"
          "           (gpu_memory_utilization), and drivers show less than the datasheet\n";
  }
  if (fit.kv_full_bytes > fit.kv_bytes) {
    text += fmt::format(
        "           the KV cache in it, {}, is of windows alone; llama.cpp holds {} tokens more of\n"
        "           each, {}; an engine that pages all layers alike holds {}\n",
        human_gib(fit.kv_bytes), kMicroBatch, human_gib(fit.kv_micro_batch_bytes),
        human_gib(fit.kv_full_bytes));
  }
  return text;
}

std::string one_text(const Estimate& e, const Style& style) {
  const Workload& w = e.step.workload;
  std::string text =
      style.apply(Tone::bold, fmt::format("{} on {}", e.model->title, e.card->title)) +
      fmt::format("\nbatch {}, context {}, weights {} (lm_head {}), KV {}\n\n", w.batch, w.context,
                  stored_formats(*e.model), format_name(e.model->head), kv_format_name(e.model->kv));
  text += ops_table(e, style) + "\n" + reads_table(e, style) + "\n";
  text += moe_note(e);
  text += fmt::format("intensity  {}\n", why(e));
  text += ceiling_lines(e, style);
  if (e.prefill) {
    const ExpectedSpeed& expected = e.prefill->expected;
    text += wrapped(fmt::format("prefill    {} prompt tokens: first token after {} ({}{}), at the least {}",
                                e.prefill_step->workload.context, human_time(expected.ms_per_step / 1e3),
                                ttft_range_text(e), expected.provisional ? ", provisional" : "",
                                human_time(e.prefill->ceiling.ms_per_step / 1e3)));
    text += unknown_rate_line(expected);
  }
  text += memory_lines(e, style);
  for (const std::string& sentence : e.card->assumed) text += wrapped("assumed    " + sentence);
  if (e.step.total.weight_bytes > 0 && e.prediction.weights_fit_cache) {
    text +=
        style.apply(Tone::warn,
                    "The weights fit the last cache: memory does not bound a step that finds them there.") +
        "\n";
  }
  return text;
}

}  // namespace

std::string estimate_text(const std::vector<Estimate>& estimates, bool with_ops, const Style& style) {
  if (estimates.size() == 1) return one_text(estimates.front(), style);
  std::string text = estimate_grid_text(estimates, style);
  if (with_ops) {
    for (const Estimate& e : estimates) text += "\n" + one_text(e, style);
  }
  return text;
}

}  // namespace memwall
