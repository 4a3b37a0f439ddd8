// What bound the kernels that were timed, and what they are shares of.
#include <fmt/format.h>

#include <algorithm>

#include "bench/unstable.h"
#include "predict/verdict.h"
#include "report/measured.h"
#include "report/text.h"

namespace memwall {
namespace {

ComputeType compute_type(Format format) {
  switch (format.kind) {
    case FormatKind::f16:
      return ComputeType::f16;
    case FormatKind::bf16:
      return ComputeType::bf16;
    case FormatKind::f8_e4m3:
      return ComputeType::f8;
    default:
      return ComputeType::f32;
  }
}

// The best sample: what others on the machine cost a launch is no overhead of its own.
double least_seconds(const Measurement& m) { return m.fastest > 0 ? m.fastest : m.seconds.median; }

}  // namespace

double baseline_peak_GFLOPs(const Baseline& baseline, const DeviceFigures& device) {
  if (!device.info.gpu) return device.peak_GFLOPs;
  const auto peak = device.peaks.find(compute_type(baseline.format));
  return peak != device.peaks.end() ? peak->second.GFLOPs : device.peak_GFLOPs;
}

std::string baseline_bound(const Baseline& baseline, const DeviceFigures& device, double ridge) {
  if (!unstable_because(baseline.measurement).empty()) return "";
  const TimedLaunch launch{
      .seconds = least_seconds(baseline.measurement), .bytes = baseline.bytes(), .flops = baseline.flops()};
  const Roofs roofs{.bytes_per_s = device.best_read_GBps * 1e9,
                    .flops_per_s = baseline_peak_GFLOPs(baseline, device) * 1e9};
  if (is_overhead_bound(launch, roofs)) return "overhead";
  if (baseline.intensity() >= ridge) return "compute";
  return baseline.in_cache.empty() ? "memory" : "cache";
}

std::string baseline_ways(const Baseline& baseline) {
  constexpr std::size_t kMost = 4;  // of a GPU's libraries there are dozens
  std::vector<VariantFigure> ways = baseline.measurement.variants;
  std::stable_sort(ways.begin(), ways.end(),
                   [](const VariantFigure& a, const VariantFigure& b) { return a.seconds < b.seconds; });
  std::string text;
  for (std::size_t i = 0; i < std::min(ways.size(), kMost); ++i) {
    text += fmt::format(
        "{}{} {}", text.empty() ? "" : "; ", ways[i].name,
        ways[i].works() ? significant(baseline.flops() / ways[i].seconds / 1e9, 3) + " GFLOP/s" : "failed");
  }
  if (ways.size() > kMost) text += fmt::format("; and {} more", ways.size() - kMost);
  return text;
}

std::optional<Bound> measured_bound(const MeasuredOp& op, const DeviceFigures& device) {
  if (!op.measurement || op.prediction.peak.flops_per_s <= 0 || device.best_read_GBps <= 0)
    return std::nullopt;
  if (!unstable_because(*op.measurement).empty()) return std::nullopt;
  const double count = static_cast<double>(op.op.count());
  const TimedLaunch launch{.seconds = least_seconds(*op.measurement),
                           .bytes = op.cost.bytes() / count,
                           .flops = op.cost.flops / count};
  const Bound bound = bound_of(
      launch, {.bytes_per_s = device.best_read_GBps * 1e9, .flops_per_s = op.prediction.peak.flops_per_s});
  if (bound != Bound::overhead && op.measurement->bytes <= 0) return std::nullopt;
  return bound;
}

std::optional<double> slowdown(const BaselineFigures& baselines, Format format) {
  const auto find = [&](const char* kernel) {
    return std::find_if(baselines.pairs.begin(), baselines.pairs.end(),
                        [&](const Baseline& b) { return b.kernel == kernel && b.format == format; });
  };
  const auto add = find("add");
  const auto matmul = find("matmul");
  if (add == baselines.pairs.end() || matmul == baselines.pairs.end()) return std::nullopt;
  return matmul->seconds() / add->seconds();
}

}  // namespace memwall
