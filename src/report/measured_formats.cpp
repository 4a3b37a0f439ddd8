// Several steps, of one model in several formats, batches or lengths: the closing table.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "bench/unstable.h"
#include "report/measured.h"
#include "report/text.h"

namespace memwall {

std::optional<double> share_of_read(const MeasuredStep& step) {
  if (step.whole && step.whole->of_read_bandwidth) return step.whole->of_read_bandwidth->median;
  double probe_seconds = 0;  // of reading as many bytes by the probes beside the ops
  for (const MeasuredOp& op : step.ops) {
    if (!op.measurement || op.measurement->read_rate <= 0) continue;
    probe_seconds += op.measurement->bytes / op.measurement->read_rate * static_cast<double>(op.op.count());
  }
  const double seconds = step.measured_seconds();
  if (probe_seconds <= 0 || seconds <= 0) return std::nullopt;
  return probe_seconds / seconds;
}

std::string summary_text(const std::vector<MeasuredStep>& decode, const std::vector<MeasuredStep>& prefill,
                         const DeviceFigures& device, const Style& style) {
  Table table({{"weights", Align::left},
               {"KV", Align::left},
               {"phase", Align::left},
               {"batch"},
               {"tokens"},
               {"tokens/s"},
               {"of read"},
               {"predicted"},
               {"flags", Align::left}});
  for (const std::vector<MeasuredStep>* steps : {&decode, &prefill}) {
    for (const MeasuredStep& step : *steps) {
      const bool is_decode = step.workload.phase == Phase::decode;
      const double seconds = step.whole ? step.whole->seconds.median : step.measured_seconds();
      const bool partial = step.whole ? step.whole->partial : step.partial();
      const std::optional<double> share = is_decode ? share_of_read(step) : std::nullopt;
      const bool unstable = !(step.whole ? unstable_because(*step.whole) : unstable_because(step)).empty();
      std::vector<std::string> flags = flags_of(step, device);
      if (step.whole) {
        for (const std::string& flag : flags_of(*step.whole)) {
          if (std::find(flags.begin(), flags.end(), flag) == flags.end()) flags.push_back(flag);
        }
      }
      table.row({step.weights,
                 step.kv,
                 is_decode ? "decode" : "prefill",
                 fmt::format("{}", step.workload.batch),
                 fmt::format("{}", step.workload.context),
                 partial || seconds <= 0
                     ? "–"
                     : significant(static_cast<double>(step.workload.rows()) / seconds, 4),
                 !share     ? ""
                 : unstable ? "unstable"
                            : fmt::format("{:.0f} %", 100 * *share),
                 step.predicted.ops.empty() ? "" : significant(step.predicted.ceiling.tokens_per_s, 4),
                 {fmt::format("{}", fmt::join(flags, ", ")), Tone::warn}});
    }
  }
  return style.apply(Tone::bold, "Side by side") + "\n\n" + table.render(style);
}

}  // namespace memwall
