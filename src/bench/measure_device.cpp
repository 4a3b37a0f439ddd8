// What a session finds of the device: its memory, its arithmetic, the cost of a launch.
#include <fmt/format.h>

#include <algorithm>

#include "bench/measure.h"
#include "bench/probes.h"
#include "bench/statistics.h"
#include "bench/unstable.h"
#include "format/units.h"

namespace memwall {
namespace {

StoppingRule probe_rule() { return {.min_samples = 10, .min_time_s = 0.3, .max_time_s = 1.0}; }
// Best samples, not medians, are what bounds: as many as find a quiet moment.
StoppingRule arithmetic_rule() { return {.min_samples = 30, .min_time_s = 0.1, .max_time_s = 0.3}; }
StoppingRule stream_rule() { return {.min_samples = 7, .min_time_s = 0.1, .max_time_s = 0.25}; }

ComputeType compute_type(const MatmulTask& task, bool cpu) {
  if (cpu) return ComputeType::f32;
  switch (task.format.kind) {
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

// What the CPU's kernels multiply an op in: integer formats in bytes, all else in f32.
ComputeType cpu_compute_type(const Work& work) {
  Card card;
  for (const ComputeType type : {ComputeType::f32, ComputeType::f16, ComputeType::bf16})
    card.peaks[type].tflops = 1;
  card.peaks[ComputeType::int8].tflops = 2;
  card.quantises_activations = true;
  return peak_for(card, work).type == ComputeType::int8 ? ComputeType::int8 : ComputeType::f32;
}

// Sizes whose reads tell a launch's cost from its bytes: from far below a slice of the probe up to it.
constexpr std::int64_t kFitRange = std::int64_t{1} << 15;
constexpr std::int64_t kFitStep = 8;
constexpr std::int64_t kLeastFitBytes = 1024;

// Each process that placed the read probe, from 0.
std::string ceiling_unit(int number) {
  return number == 0 ? "read bandwidth" : fmt::format("read bandwidth, placed anew {}", number);
}

}  // namespace

Card card_of(const DeviceFigures& figures, bool writes) {
  Card card;
  card.name = figures.info.kind;
  card.title = figures.info.name;
  card.bandwidth_GBps =
      writes ? std::max(figures.best_read_GBps, figures.best_traffic_GBps) : figures.best_read_GBps;
  card.capacity_GiB = static_cast<double>(figures.info.available_bytes) / kGiB;
  card.l2_MiB = static_cast<double>(figures.info.last_level_bytes) / kMiB;
  const auto peak = [&](ComputeType type, double gflops) {
    card.peaks[type] = {.tflops = gflops / 1e3, .accumulate = "f32", .source = "measured"};
  };
  for (const auto& [type, found] : figures.peaks) peak(type, found.GFLOPs);
  if (!figures.info.gpu) {
    // Kernels may widen 16-bit operands to f32, and do where the CPU has nothing faster.
    for (const ComputeType type : {ComputeType::f32, ComputeType::f16, ComputeType::bf16})
      peak(type, std::max(figures.peak_GFLOPs, 1e3 * card.peaks[type].tflops));
    card.quantises_activations = true;
  }
  card.achievable.class_name = "measured";
  return card;
}

// Any kernel of the run may have been the fastest of its type, so that no share of a peak passes 100 %.
void Session::note_rates(const Task& task, const Measurement& m) {
  const double median = m.flops / m.seconds.median / 1e9;
  const double gflops = figures_.info.gpu ? median : m.flops / m.fastest / 1e9;
  ComputeType type = ComputeType::f32;
  if (const auto* arithmetic = std::get_if<ArithmeticTask>(&task)) type = arithmetic->type;
  if (const auto* op = std::get_if<OpTask>(&task)) type = cpu_compute_type(op->work);
  if (figures_.info.gpu) {
    figures_.peak_GFLOPs = std::max(figures_.peak_GFLOPs, gflops);
    const auto* matmul = std::get_if<MatmulTask>(&task);
    if (matmul == nullptr) return;
    type = compute_type(*matmul, false);
  } else if (type == ComputeType::f32) {
    figures_.peak_GFLOPs = std::max(figures_.peak_GFLOPs, gflops);
  }
  ArithmeticPeak& peak = figures_.peaks[type];
  if (gflops > peak.GFLOPs) peak = {gflops, median, m.variant};
}

// What earlier processes placed and sampled counts, whether or not this one places a probe of its own.
void Session::note_ceilings() {
  for (ceilings_ = 0; const Outcome* outcome = ledger_.find(ceiling_unit(ceilings_)); ++ceilings_) {
    plan_.end(ceiling_unit(ceilings_));
    note(*outcome);
    note_placed(*outcome);
  }
}

void Session::note_placed(const Outcome& outcome) {
  last_ceiling_failed_ = !outcome.failed.empty();
  if (!outcome.probe || !figures_.read_variant.empty()) return;
  figures_.read_variant = outcome.probe->variant;
  figures_.huge_page_share = outcome.probe->huge_page_share;
}

bool Session::has_ceiling() const { return ceilings_ > 0 && !last_ceiling_failed_; }

// Where a process failed to place it, no later one tries.
ReadCeiling* Session::ceiling() {
  if (ceiling_) return &*ceiling_;
  constexpr double kSeconds = 0.5;  // to place the buffer and choose a variant
  if (counts_only_) {
    if (ceilings_++ == 0) perform(ceiling_unit(0), kSeconds, {});
    return nullptr;
  }
  if (device_ == nullptr || last_ceiling_failed_) return nullptr;
  // A variant that failed an earlier process is not run again; one that passed runs unwatched.
  const auto trial = [&](const std::string& variant, const std::function<void()>& run) {
    const std::string unit = read_probe_unit(variant);
    if (const Outcome* known = ledger_.find(unit)) return known->failed.empty() && failure_of(run).empty();
    const Outcome* outcome = perform(unit, kSeconds, [&](Outcome&) { run(); });
    return outcome != nullptr && outcome->failed.empty();
  };
  const Outcome* outcome = perform(ceiling_unit(ceilings_), kSeconds, [&](Outcome& placed) {
    ceiling_.emplace(*device_, trial);
    placed.probe = PlacedProbe{ceiling_->variant(), ceiling_->huge_share()};
  });
  if (outcome == nullptr) return nullptr;
  ++ceilings_;
  note_placed(*outcome);
  return ceiling_ ? &*ceiling_ : nullptr;
}

void Session::probe() {
  note_ceilings();
  if (ceilings_ == 0) ceiling();
  for (const StreamPattern pattern :
       {StreamPattern::copy, StreamPattern::scale, StreamPattern::add, StreamPattern::triad}) {
    for (const bool nontemporal : {false, true}) {
      const StreamTask task = stream_probe(figures_.info, pattern, nontemporal);
      const std::string unit =
          fmt::format("{} bandwidth{}", stream_name(pattern), nontemporal ? ", non-temporal" : "");
      if (const auto m = measurement(unit, task, true, {.rule = stream_rule()})) {
        const double share =
            m->of_read_bandwidth ? m->of_read_bandwidth->median * task.traffic(figures_.info) : 0;
        const double rate = m->bytes / m->seconds.median / 1e9;
        figures_.streams.push_back(
            {task, rate, share, rate * task.traffic(figures_.info), unstable_probe_because(*m)});
        figures_.best_traffic_GBps = std::max(figures_.best_traffic_GBps, m->bytes / m->fastest / 1e9);
      }
    }
  }
  for (const StreamFigure& stream : figures_.streams) {
    if (stream.task.nontemporal) continue;
    if (stream.task.pattern == StreamPattern::copy) figures_.copy_GBps = stream.GBps;
    if (stream.task.pattern == StreamPattern::triad) figures_.triad_GBps = stream.GBps;
  }
  for (const MatmulTask& task : peak_tasks(figures_.info))
    measurement("GEMM peak, " + format_name(task.format), task, false, {.rule = probe_rule()});
  for (const ComputeType type : kProbedTypes) {
    if (figures_.info.gpu) break;
    measurement(fmt::format("arithmetic peak, {}", compute_type_name(type)), ArithmeticTask{type}, false,
                {.rule = arithmetic_rule()});
  }
  if (figures_.info.costly_launches) fit_launches();
}

void Session::fit_launches() {
  std::vector<LaunchSample> samples;
  const std::int64_t slice = figures_.info.read_slice_bytes;
  for (std::int64_t bytes = std::max(kLeastFitBytes, slice / kFitRange); bytes <= slice; bytes *= kFitStep) {
    const auto m = measurement(fmt::format("the cost of a launch, {} bytes", bytes),
                               StreamTask{.bytes = bytes}, false, {.rule = stream_rule()});
    if (m) samples.push_back({m->bytes, m->seconds.median});
  }
  figures_.launch_fit = fit_launch(samples);
}

DeviceFigures Session::figures() const {
  DeviceFigures figures = figures_;
  if (!read_samples_.empty()) {
    figures.read_GBps = summarize(read_samples_).median / 1e9;
    figures.best_read_GBps = *std::max_element(read_samples_.begin(), read_samples_.end()) / 1e9;
    figures.best_traffic_GBps = std::max(figures.best_traffic_GBps, figures.best_read_GBps);
    figures.peak_GBps = std::max(figures.peak_GBps, figures.best_read_GBps);
    figures.streams.insert(
        figures.streams.begin(),
        {{.bytes = figures_.info.read_slice_bytes}, figures.read_GBps, 1, figures.read_GBps});
  }
  return figures;
}

}  // namespace memwall
