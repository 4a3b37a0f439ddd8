#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "bench/unstable.h"
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

// The fastest samples of the run: what bounds, and what shares of a peak are shares of.
std::string best_samples_text(const DeviceFigures& d) {
  std::string text = fmt::format("best samples: read {} GB/s", rate_or_dash(d.best_read_GBps));
  std::string ridges;
  for (const auto& [type, peak] : d.peaks) {
    const std::string_view name = compute_type_name(type);
    text += d.info.gpu ? fmt::format(", {} {} TFLOP/s", name, significant(peak.GFLOPs / 1e3, 3))
                       : fmt::format(", {} {} GFLOP/s", name, significant(peak.GFLOPs, 3));
    if (d.best_read_GBps <= 0) continue;
    ridges += fmt::format("{}{} {}", ridges.empty() ? "" : ", ", name,
                          significant(peak.GFLOPs / d.best_read_GBps, 3));
  }
  if (d.info.gpu && !d.peaks.empty()) text += " (GEMM)";
  text += "\n";
  if (!ridges.empty()) text += fmt::format("ridge point: {} FLOP/byte\n", ridges);
  return text;
}

// The read bandwidth beside the step's ops, as their shares have it: the memory of a machine that others use
// drifts, and `predicted` is at the best sample of all.
std::string memory_text(const MeasuredStep& step, const DeviceFigures& device) {
  double bytes = 0;
  double seconds = 0;
  for (const MeasuredOp& op : step.ops) {
    if (!op.measurement || op.measurement->read_rate <= 0) continue;
    const double moved = op.measurement->bytes * static_cast<double>(op.op.count());
    bytes += moved;
    seconds += moved / op.measurement->read_rate;
  }
  if (seconds <= 0 || device.best_read_GBps <= 0) return "";
  std::string text =
      fmt::format("memory     read at {} GB/s beside these ops, at {} GB/s in the run's best sample\n",
                  significant(bytes / seconds / 1e9, 3), significant(device.best_read_GBps, 3));
  if (const auto drift = memory_drift(step)) {
    text += fmt::format(
        "drifted    between {} GB/s beside one op and {} beside another: shares hold, times are of both\n",
        significant(drift->low / 1e9, 3), significant(drift->high / 1e9, 3));
  }
  return text;
}

// A line a flag: which ops have it.
std::string flags_text(const MeasuredStep& step, const DeviceFigures& device, const Style& style) {
  std::vector<std::pair<std::string, std::string>> lines;
  std::vector<std::pair<std::string, std::string>> reasons;  // and the first op of each
  for (const MeasuredOp& op : step.ops) {
    if (!op.measurement) continue;  // its row says so
    for (const std::string& flag : flags_of(op, device)) {
      auto line = std::find_if(lines.begin(), lines.end(), [&](const auto& l) { return l.first == flag; });
      if (line == lines.end()) line = lines.insert(lines.end(), {flag, ""});
      line->second += (line->second.empty() ? "" : ", ") + op.op.name;
    }
    const std::string why = unstable_because(*op.measurement);
    const bool new_one =
        std::none_of(reasons.begin(), reasons.end(), [&](const auto& known) { return known.first == why; });
    if (!why.empty() && new_one) reasons.emplace_back(why, op.op.name);
  }
  std::string text;
  for (const auto& [flag, ops] : lines) {
    const bool impossible = flag.starts_with("above");
    text += style.apply(impossible ? Tone::bad : Tone::warn, flag + ": " + ops) + "\n";
  }
  constexpr std::size_t kMostReasons = 3;
  for (std::size_t i = 0; i < std::min(reasons.size(), kMostReasons); ++i)
    text += fmt::format("           {}: {}\n", reasons[i].second, reasons[i].first);
  return text;
}

// Ops that no roof explains: predict/verdict.h.
std::string overhead_text(const MeasuredStep& step, const DeviceFigures& device) {
  std::string names;
  for (const MeasuredOp& op : step.ops) {
    if (measured_bound(op, device) == Bound::overhead) names += (names.empty() ? "" : ", ") + op.op.name;
  }
  return names.empty()
             ? ""
             : wrapped("overhead   bound by launches and latency, not by memory or arithmetic: " + names);
}

std::string predicted_text(const MeasuredStep& step, const DeviceFigures& device, const char* unit,
                           const Style& style) {
  const Prediction& p = step.predicted;
  const std::string figures =
      fmt::format("predicted  {} a step, {} {}", human_time(p.ceiling.ms_per_step / 1e3),
                  significant(p.ceiling.tokens_per_s, 4), unit);
  // What bounds a step is read off its times, so an unstable one has no verdict.
  if (const std::string why = unstable_because(step); !why.empty())
    return style.apply(Tone::warn, figures + " (no verdict: unstable)") + "\n";
  const std::string by =
      fmt::format("{}-bound by this device's best samples, arithmetic in {}, ridge {} FLOP/byte",
                  bound_name(p.ceiling.bound), compute_type_name(p.peak.type), significant(p.ridge, 3));
  if (passes_bound(step, device)) {
    return style.apply(Tone::bad, figures +
                                      " by this device's best samples, and the measurement passes that: an "
                                      "error to explain, no bound") +
           "\n";
  }
  if (!predicts_bound(step, device))
    return fmt::format("{} ({}; {})\n", figures, by,
                       device.info.gpu ? "of a GEMM, which another kernel may pass"
                                       : "no bound: this machine was busy while its arithmetic was probed");
  return fmt::format("{} at most ({})\n", figures, by);
}

std::string gpu_text(const DeviceInfo& info, const GpuFacts& gpu) {
  std::string text = fmt::format("{}, {} multiprocessors, L2 {}, {} free", info.instruction_set,
                                 gpu.multiprocessors, human_bytes(static_cast<double>(info.l2_bytes)),
                                 human_gib(static_cast<double>(info.available_bytes)));
  if (!gpu.driver.empty()) text += ", driver " + gpu.driver;
  if (!gpu.cuda.empty()) text += ", CUDA " + gpu.cuda;
  if (!info.blas.empty()) text += ", " + info.blas;
  text += "\n";
  if (!gpu.clocks_unknown.empty())
    text += "clocks and throttling are not known: " + gpu.clocks_unknown + "\n";
  return text;
}

}  // namespace

std::string device_text(const DeviceFigures& d, const Style& style) {
  std::string text =
      style.apply(Tone::bold, d.info.name) + "\n" +
      (d.info.gpu ? gpu_text(d.info, *d.info.gpu)
                  : fmt::format("{}, {}, {}\n", threads_text(d.info), d.info.instruction_set, d.info.blas));
  text += fmt::format("read {} GB/s", rate_or_dash(d.read_GBps));
  if (!d.read_variant.empty()) {
    text += fmt::format(" ({}{})", d.read_variant,
                        d.info.gpu ? "" : ", " + percent(d.huge_page_share) + " on huge pages");
  }
  text += fmt::format(", copy {}, triad {}\n", rate_or_dash(d.copy_GBps), rate_or_dash(d.triad_GBps));
  if (d.info.gpu && d.info.gpu->datasheet_GBps > 0 && d.read_GBps > 0) {
    text += fmt::format("{} of the {} GB/s of {}{}\n", percent(d.read_GBps / d.info.gpu->datasheet_GBps),
                        significant(d.info.gpu->datasheet_GBps, 4), d.info.gpu->card,
                        d.info.gpu->card_is_datasheet ? "'s datasheet" : ", by its own attributes");
  }
  if (d.launch_fit) {
    text +=
        fmt::format("a launch costs {} beside {} GB/s: half of them are reached at {}\n",
                    human_time(d.launch_fit->seconds_a_launch),
                    significant(d.launch_fit->bytes_per_s / 1e9, 3), human_bytes(d.launch_fit->half_bytes()));
  }
  return text + best_samples_text(d);
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
               significant(stream.GBps, 3), significant(stream.traffic_GBps, 3),
               !stream.unstable.empty()               ? "unstable"
               : stream.traffic_of_read > 0 && !reads ? percent(stream.traffic_of_read)
                                                      : ""});
  }
  return style.apply(Tone::bold, "Streams") + "\n\n" + table.render(style) +
         "\ncounted as STREAM does; an ordinary store also reads its line first (write-allocate): moved "
         "counts that too\n";
}

namespace {

// A line for each op that has a kernel and no figure.
std::string failed_text(const MeasuredStep& step, const Style& style) {
  std::string text;
  for (const MeasuredOp& op : step.ops) {
    if (!op.failed.empty())
      text += style.apply(Tone::bad, fmt::format("{}: {}", op.op.name, op.failed)) + "\n";
  }
  return text;
}

// The least share of what the step's cold ops read that lies on huge pages.
std::string huge_pages_text(const MeasuredStep& step) {
  std::optional<double> least;
  for (const MeasuredOp& op : step.ops) {
    if (!op.measurement || !op.measurement->huge_page_share) continue;
    least = std::min(least.value_or(1), *op.measurement->huge_page_share);
  }
  return least ? fmt::format("weights and cache at least {} on huge pages\n", percent(*least)) : "";
}

}  // namespace

std::string measured_step_text(const MeasuredStep& step, const DeviceFigures& device, const Style& style) {
  const Workload& w = step.workload;
  const bool decode = w.phase == Phase::decode;
  std::string title = decode ? fmt::format("decode, batch {}, context {}", w.batch, w.context)
                             : fmt::format("prefill, batch {}, prompt {}", w.batch, w.context);
  if (!step.weights.empty()) title += fmt::format(", weights {}, KV {}", step.weights, step.kv);
  std::string text = style.apply(Tone::bold, title) + "\n\n";
  std::vector<Table::Column> columns = {{"op", Align::left},
                                        {"count"},
                                        {"shape"},
                                        {"format", Align::left},
                                        {"FLOP/byte"},
                                        {"predicted"},
                                        {"measured"},
                                        {decode ? "GB/s" : "GFLOP/s"},
                                        {decode ? "of read" : "of peak"}};
  // A GPU has several ways for most ops, and small ones that no launch lets reach the read bandwidth.
  const bool gpu = device.info.gpu.has_value();
  if (gpu && decode) columns.push_back({"of a read its size"});
  if (gpu) columns.push_back({"by", Align::left});
  Table table(std::move(columns));
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
      const bool unstable = !unstable_because(m).empty();
      cells.emplace_back(!m.of_read_bandwidth ? ""
                         : unstable           ? "unstable"
                                              : percent_interval(*m.of_read_bandwidth),
                         tone);
    } else {
      const double gflops = m.flops / m.seconds.median / 1e9;
      const bool arithmetic = op.op.kind() != OpKind::elementwise && op.op.kind() != OpKind::embedding;
      cells.emplace_back(arithmetic ? significant(gflops, 3) : "", tone);
      const double peak = op.prediction.peak.flops_per_s / 1e9;  // of what its format can be computed in
      cells.emplace_back(arithmetic && peak > 0 ? percent(gflops / peak) : "", tone);
    }
    if (gpu && decode)
      cells.emplace_back(m.of_same_size_read ? percent_interval(*m.of_same_size_read) : "", tone);
    if (gpu) cells.emplace_back(m.variant, tone);
    table.row(std::move(cells));
  }
  text += table.render(style) + "\n" + failed_text(step, style) + experts_text(step) + huge_pages_text(step) +
          memory_text(step, device) + overhead_text(step, device) + flags_text(step, device, style);
  const double tokens = static_cast<double>(w.rows());
  const double measured = step.measured_seconds();
  const char* unit = decode ? "tokens/s" : "prompt tokens/s";
  if (!step.predicted.ops.empty()) text += predicted_text(step, device, unit, style);
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
    if (!unstable_because(step).empty()) {
      text += style.apply(Tone::warn, "  unstable");
    } else if (!step.predicted.ops.empty()) {
      text += fmt::format("  ({} of the prediction)",
                          percent(step.predicted.ceiling.ms_per_step / 1e3 / measured));
    }
    text += "\n";
  }
  if (step.whole) text += "\n" + whole_step_text(*step.whole, w, style);
  if (!step.whole_failed.empty())
    text += style.apply(Tone::bad, "whole steps failed: " + step.whole_failed) + "\n";
  return text;
}

}  // namespace memwall
