#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "report/devices.h"
#include "report/measured.h"
#include "report/text.h"

namespace memwall {
namespace {

std::string percent(double share) { return fmt::format("{:.0f} %", 100 * share); }

std::string percent_interval(const Summary& share) {
  if (!share.ci95) return percent(share.median);
  return fmt::format("{:.0f} % ({:.0f}–{:.0f})", 100 * share.median, 100 * share.ci95->low,
                     100 * share.ci95->high);
}

// A step's expert ops share one routing, so its first op tells for all.
std::string experts_text(const MeasuredStep& step) {
  for (const MeasuredOp& op : step.ops) {
    const auto* expert = std::get_if<ExpertWork>(&op.op.work);
    if (expert == nullptr || !op.measurement || op.measurement->touched <= 0) continue;
    return fmt::format("experts    {} of {} a layer run, the mean of the routings drawn; {} in expectation\n",
                       significant(op.measurement->touched, 3), expert->total,
                       significant(op.cost.experts_touched, 3));
  }
  return "";
}

std::string rate_or_dash(double value) { return value > 0 ? significant(value, 3) : "–"; }

}  // namespace

std::string device_text(const DeviceFigures& d, const Style& style) {
  const bool gpu = d.info.kind == "cuda";
  std::string text = style.apply(Tone::bold, d.info.name) + "\n";
  if (!gpu) text += threads_text(d.info) + ", ";
  text += d.info.instruction_set + (d.info.blas.empty() ? "" : ", " + d.info.blas) + "\n";
  text += fmt::format("read {} GB/s ({}{}), copy {}, triad {}\n", rate_or_dash(d.read_GBps), d.read_variant,
                      gpu ? "" : fmt::format(", {} on huge pages", percent(d.huge_page_share)),
                      rate_or_dash(d.copy_GBps), rate_or_dash(d.triad_GBps));
  // Shares of a peak are shares of these: the fastest samples of the run.
  text += fmt::format("best samples {} GB/s and {} GFLOP/s", rate_or_dash(d.peak_GBps),
                      rate_or_dash(d.peak_GFLOPs));
  if (d.read_GBps > 0 && d.peak_GFLOPs > 0)
    text += fmt::format("; ridge {} FLOP/byte", significant(d.ridge(), 3));
  return text + "\n";
}

std::string streams_text(const DeviceFigures& device, const Style& style) {
  if (device.streams.empty()) return "";
  Table table(
      {{"pattern", Align::left}, {"stores", Align::left}, {"counted GB/s"}, {"moved GB/s"}, {"of read"}});
  for (const StreamFigure& stream : device.streams) {
    const bool reads = stream.task.pattern == StreamPattern::read;
    table.row({stream_name(stream.task.pattern),
               reads                     ? "none"
               : stream.task.nontemporal ? "non-temporal"
                                         : "ordinary",
               significant(stream.GBps, 3), significant(stream.traffic_GBps(), 3),
               stream.traffic_of_read > 0 && !reads ? percent(stream.traffic_of_read) : ""});
  }
  return style.apply(Tone::bold, "Streams") + "\n\n" + table.render(style) +
         "\ncounted as STREAM does; an ordinary store also reads its line first (write-allocate): moved "
         "counts that too\n";
}

namespace {

// The least share of what the step's cold ops read that lies on huge pages.
std::string huge_pages_text(const MeasuredStep& step) {
  std::optional<double> least;
  for (const MeasuredOp& op : step.ops) {
    if (!op.measurement || !op.measurement->huge_page_share) continue;
    least = std::min(least.value_or(1), *op.measurement->huge_page_share);
  }
  return least ? fmt::format("weights and cache at least {} on huge pages\n", percent(*least)) : "";
}

Table::Cell sweep_bound_cell(const Baseline& matmul, double ridge) {
  const std::string bound = sweep_bound(matmul, ridge);
  if (bound == "cache") return {"cache-resident", Tone::plain};
  return bound_cell(bound == "memory" ? Bound::memory : Bound::compute);
}

}  // namespace

std::string measured_step_text(const MeasuredStep& step, const DeviceFigures& device, const Style& style) {
  const Workload& w = step.workload;
  const bool decode = w.phase == Phase::decode;
  std::string text =
      style.apply(Tone::bold, decode ? fmt::format("decode, batch {}, context {}", w.batch, w.context)
                                     : fmt::format("prefill, batch {}, prompt {}", w.batch, w.context)) +
      "\n\n";
  Table table({{"op", Align::left},
               {"count"},
               {"shape"},
               {"format", Align::left},
               {"FLOP/byte"},
               {"predicted"},
               {"measured"},
               {decode ? "GB/s" : "GFLOP/s"},
               {decode ? "of read" : "of peak"}});
  for (const MeasuredOp& op : step.ops) {
    const Tone tone = op.op.fusible ? Tone::dim : Tone::plain;
    std::vector<Table::Cell> cells = {
        {op.op.name, tone},
        {fmt::format("{}", op.op.count()), tone},
        {shape_text(op.op), tone},
        {format_text(op.op), tone},
        {significant(op.cost.intensity(), 3), tone},
        {op.prediction.ceiling_s > 0 ? human_time(op.prediction.ceiling_s) : "", tone}};
    if (!op.measurement) {
      cells.emplace_back("not_measured", Tone::bad);
      table.row(std::move(cells));
      continue;
    }
    const Measurement& m = *op.measurement;
    cells.emplace_back(human_time(m.seconds.median * static_cast<double>(op.op.count())), tone);
    if (decode) {
      cells.emplace_back(m.bytes > 0 ? significant(m.bytes / m.seconds.median / 1e9, 3) : "", tone);
      cells.emplace_back(m.of_read_bandwidth ? percent_interval(*m.of_read_bandwidth) : "", tone);
    } else {
      const double gflops = m.flops / m.seconds.median / 1e9;
      const bool arithmetic = op.op.kind() != OpKind::elementwise && op.op.kind() != OpKind::embedding;
      cells.emplace_back(arithmetic ? significant(gflops, 3) : "", tone);
      cells.emplace_back(arithmetic && device.peak_GFLOPs > 0 ? percent(gflops / device.peak_GFLOPs) : "",
                         tone);
    }
    table.row(std::move(cells));
  }
  text += table.render(style) + "\n" + experts_text(step) + huge_pages_text(step);
  const double tokens = static_cast<double>(w.rows());
  const double measured = step.measured_seconds();
  const char* unit = decode ? "tokens/s" : "prompt tokens/s";
  if (!step.predicted.ops.empty()) {
    text += fmt::format("predicted  {} a step, {} {} at most ({}-bound at this device's measured peaks)\n",
                        human_time(step.predicted.ceiling.ms_per_step / 1e3),
                        significant(step.predicted.ceiling.tokens_per_s, 4), unit,
                        bound_name(step.predicted.ceiling.bound));
  }
  if (step.partial()) {
    // The sum of some ops is no step's time, so it makes no tokens/s.
    text += style.apply(Tone::bad,
                        fmt::format("measured   partial: {} for the ops that were measured; those marked "
                                    "not_measured are left out",
                                    measured > 0 ? human_time(measured) : "nothing")) +
            "\n";
  } else {
    text += style.apply(Tone::bold, fmt::format("measured   {} a step, {} {}", human_time(measured),
                                                significant(tokens / measured, 4), unit));
    if (!step.predicted.ops.empty()) {
      text += fmt::format("  ({} of the prediction)",
                          percent(step.predicted.ceiling.ms_per_step / 1e3 / measured));
    }
    text += "\n";
  }
  if (step.whole) text += "\n" + whole_step_text(*step.whole, w, style);
  return text;
}

std::string baselines_text(const BaselineFigures& baselines, const DeviceFigures& device, const Ridge& ridge,
                           std::optional<double> predicted_ratio, const Style& style) {
  std::string text;
  if (!baselines.pairs.empty()) {
    Table pairs({{"kernel", Align::left},
                 {"format", Align::left},
                 {"moves"},
                 {"computes"},
                 {"FLOP/byte"},
                 {"time"},
                 {"GB/s"},
                 {"of peak"},
                 {"TFLOP/s"},
                 {"of peak"}});
    for (const Baseline& b : baselines.pairs) {
      const double gflops = b.flops() / b.seconds() / 1e9;
      const double gbps = b.bytes() / b.seconds() / 1e9;
      pairs.row({b.kernel == "add" ? "c = a + b" : "c = a b", format_name(b.format), human_bytes(b.bytes()),
                 human_flops(b.flops()), significant(b.intensity(), 4), human_time(b.seconds()),
                 significant(gbps, 3), fmt::format("{:.1f} %", 100 * gbps / device.peak_GBps),
                 significant(gflops / 1e3, 3), fmt::format("{:.1f} %", 100 * gflops / device.peak_GFLOPs)});
    }
    text +=
        style.apply(Tone::bold, fmt::format("The two kernels at opposite ends, on the same {0}×{0} tensors",
                                            baselines.pairs.front().n)) +
        "\n\n" + pairs.render(style) + "\n";
  }
  std::vector<Format> formats;
  for (const Baseline& b : baselines.pairs) {
    if (b.kernel == "add") formats.push_back(b.format);
  }
  for (const Format& format : formats) {
    const std::optional<double> ratio = slowdown(baselines, format);
    if (!ratio) continue;
    const double work = 2 * static_cast<double>(baselines.pairs.front().n);
    text += fmt::format(
        "{}: matmul takes {} times as long as add, for {} times the arithmetic on the same bytes\n",
        format_name(format), significant(*ratio, 3), significant(work, 4));
    if (predicted_ratio && format == formats.front()) {
      const double off = *ratio / *predicted_ratio;
      text += style.apply(Tone::bold,
                          fmt::format("You said {} times: {}", significant(*predicted_ratio, 3),
                                      std::abs(off - 1) < 0.1
                                          ? std::string("right, within a tenth")
                                          : fmt::format("it is {} times that", significant(off, 3)))) +
              "\n";
    }
  }
  text +=
      fmt::format("\nridge point {} FLOP/byte ({}): below it memory bounds a kernel, above it arithmetic\n",
                  significant(ridge.flop_per_byte, 4), ridge.from);
  if (baselines.sweep.empty()) return text;

  Table sweep({{"n"},
               {"FLOP/byte"},
               {"add GB/s"},
               {"matmul GB/s"},
               {"matmul TFLOP/s"},
               {"of peak"},
               {"matmul's bound", Align::left},
               {"tensors sit in", Align::left}});
  for (std::size_t i = 0; i + 1 < baselines.sweep.size(); i += 2) {
    const Baseline& add = baselines.sweep[i];
    const Baseline& matmul = baselines.sweep[i + 1];
    const double gflops = matmul.flops() / matmul.seconds() / 1e9;
    sweep.row({fmt::format("{}", matmul.n), significant(matmul.intensity(), 4),
               significant(add.bytes() / add.seconds() / 1e9, 3),
               significant(matmul.bytes() / matmul.seconds() / 1e9, 3), significant(gflops / 1e3, 3),
               percent(gflops / device.peak_GFLOPs), sweep_bound_cell(matmul, ridge.flop_per_byte),
               matmul.in_cache.empty() ? "memory" : matmul.in_cache});
  }
  text += "\n" +
          style.apply(Tone::bold,
                      fmt::format("Matmul by size, {}", format_name(baselines.sweep.front().format))) +
          "\n\n" + sweep.render(style);
  return text;
}

}  // namespace memwall
