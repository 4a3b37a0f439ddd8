// A whole decode step beside the sum of its parts, and where the difference is.
#include <fmt/format.h>

#include <cmath>

#include "bench/unstable.h"
#include "report/measured.h"
#include "report/text.h"

namespace memwall {
namespace {

std::string signed_time(double seconds) { return (seconds < 0 ? "−" : "+") + human_time(std::abs(seconds)); }

std::string holding_text(const WholeStep& whole, const Style& style) {
  const StepHolding& holding = whole.holding;
  std::string text = fmt::format("{} of {} layers held in {}", holding.layers_held, whole.layers,
                                 human_gib(static_cast<double>(holding.bytes)));
  if (holding.layers_held < whole.layers)
    text += style.apply(Tone::warn, "; the model does not fit, so these take turns as the others");
  if (!holding.all_experts)
    text += style.apply(Tone::warn, "; of each layer's experts only as many as a step touches");
  text += "\n";
  if (!whole.cold) {
    text +=
        style.apply(Tone::warn, fmt::format("a step reads {} only: caches serve a part of it, and its GB/s "
                                            "are not the memory's",
                                            human_bytes(whole.bytes))) +
        "\n";
  }
  return text;
}

}  // namespace

std::string whole_step_text(const WholeStep& whole, const Workload& workload, const Style& style) {
  std::string text = style.apply(Tone::bold, "whole step") + ", " + holding_text(whole, style) + "\n";
  Table table({{"kind", Align::left}, {"launches"}, {"moves"}, {"in the step"}, {"alone"}, {"GB/s"}});
  for (const StepKind& kind : whole.kinds) {
    const Tone tone = kind.reads_memory() ? Tone::plain : Tone::dim;
    const bool rate = kind.reads_memory() && kind.seconds > 0;
    table.row({{std::string(op_kind_name(kind.kind)), tone},
               {fmt::format("{}", kind.launches), tone},
               {human_bytes(kind.bytes), tone},
               {kind.seconds > 0 ? human_time(kind.seconds) : "–", tone},
               {kind.alone_seconds > 0 ? human_time(kind.alone_seconds) : "–", tone},
               {rate ? significant(kind.bytes / kind.seconds / 1e9, 3) : "", tone}});
  }
  table.rule();
  const WholeStep::Difference difference = whole.difference();
  table.row({"rest", "", "", signed_time(difference.rest), "", ""});
  table.row({"step", fmt::format("{}", whole.launches()), human_bytes(whole.bytes),
             human_time(whole.seconds.median), human_time(whole.alone_seconds()),
             significant(whole.bytes / whole.seconds.median / 1e9, 3)});
  text += table.render(style) + "\n";

  text += fmt::format("difference  {}: ops that read weights or cache {}, small ops {}, rest {}\n",
                      signed_time(difference.total()), signed_time(difference.memory_ops),
                      signed_time(difference.small_ops), signed_time(difference.rest));
  if (whole.parts_read_rate > 0) {
    text += fmt::format("memory      read at {} GB/s beside the parts, at {} GB/s beside the steps\n",
                        significant(whole.parts_read_rate / 1e9, 3), significant(whole.read_rate / 1e9, 3));
  }
  const std::int64_t paid = whole.costly_launches ? whole.launches() : whole.barriers();
  if (whole.barrier_seconds > 0)
    text +=
        fmt::format("{}    {} × {} = {}, in the step and in its parts alike\n",
                    whole.costly_launches ? "launches" : "barriers", paid, human_time(whole.barrier_seconds),
                    human_time(static_cast<double>(paid) * whole.barrier_seconds));
  for (const StepFusion& fusion : whole.fusions) {
    text += fmt::format("fused       {} × {}: {}, one by one {}\n", fusion.launches, fusion.ops,
                        human_time(fusion.seconds), human_time(fusion.parts_seconds));
  }
  for (const std::string& flag : flags_of(whole)) {
    const bool impossible = flag.starts_with("above");
    if (impossible || flag == "unstable")
      text += style.apply(impossible ? Tone::bad : Tone::warn,
                          impossible ? flag : flag + ": " + unstable_because(whole)) +
              "\n";
  }
  std::string line;
  if (whole.partial) {
    line = fmt::format("step        partial: {} for the ops that have a kernel",
                       human_time(whole.seconds.median));
  } else {
    line = fmt::format("step        {}, {} tokens/s", human_time(whole.seconds.median),
                       significant(static_cast<double>(workload.batch) / whole.seconds.median, 4));
  }
  line += fmt::format(", {} GB/s", significant(whole.bytes / whole.seconds.median / 1e9, 3));
  if (whole.of_read_bandwidth) {
    const Summary& share = *whole.of_read_bandwidth;
    line += fmt::format(", {:.0f} %", 100 * share.median);
    if (share.ci95) line += fmt::format(" ({:.0f}–{:.0f})", 100 * share.ci95->low, 100 * share.ci95->high);
    line += " of the read bandwidth";
  }
  return text + style.apply(whole.partial ? Tone::bad : Tone::bold, line) + "\n";
}

}  // namespace memwall
