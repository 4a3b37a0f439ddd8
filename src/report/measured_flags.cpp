// What is doubtful in a measurement: flags, which every format of output carries, and the lines that explain
// them.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "bench/unstable.h"
#include "report/measured.h"

namespace memwall {
namespace {

// Noise of the paired shares; what lies above is no noise.
constexpr double kMostShare = 1.03;

// The part of an op's bytes that it reads: a memory may take writes beside its reads, so only the reads are
// held to the read bandwidth. A recurrent state is written as often as it is read.
double read_part(const Cost& cost) {
  const double cold = cost.weight_bytes + cost.kv_bytes() + cost.state_bytes;
  return cold > 0 ? 1 - cost.state_bytes / 2 / cold : 1;
}

bool above_read(const std::optional<Summary>& share, double read) {
  return share && share->ci95 && share->ci95->low * read > kMostShare;
}

// `seconds`: an interval's upper end, so that all of it lies below the bound.
bool passes(double seconds, double bound_seconds) { return seconds * kMostShare < bound_seconds; }

bool passes_bound(const MeasuredOp& op, const DeviceFigures& device) {
  if (!op.measurement || !op.measurement->seconds.ci95) return false;
  if (op.prediction.bound == Bound::compute && !device.peak_bounds(op.prediction.peak.type)) return false;
  return passes(op.measurement->seconds.ci95->high * static_cast<double>(op.op.count()),
                op.prediction.ceiling_s);
}

// Appends those that are not there yet.
void add(std::vector<std::string>& flags, const std::vector<std::string>& more) {
  for (const std::string& flag : more) {
    if (std::find(flags.begin(), flags.end(), flag) == flags.end()) flags.push_back(flag);
  }
}

}  // namespace

bool predicts_bound(const MeasuredStep& step, const DeviceFigures& device) {
  return !step.predicted.ops.empty() &&
         (step.predicted.ceiling.bound == Bound::memory || device.peak_bounds(step.predicted.peak.type));
}

bool passes_bound(const MeasuredStep& step, const DeviceFigures& device) {
  if (!predicts_bound(step, device)) return false;
  const double bound = step.predicted.ceiling.ms_per_step / 1e3;
  if (step.whole && step.whole->cold && !step.whole->partial && step.whole->seconds.ci95 &&
      passes(step.whole->seconds.ci95->high, bound))
    return true;
  if (step.partial()) return false;
  double slowest = 0;
  for (const MeasuredOp& op : step.ops) {
    const Summary& seconds = op.measurement->seconds;
    slowest += (seconds.ci95 ? seconds.ci95->high : seconds.median) * static_cast<double>(op.op.count());
  }
  return passes(slowest, bound);
}

std::vector<std::string> flags_of(const MeasuredOp& op, const DeviceFigures& device) {
  if (!op.measurement) return {"not measured"};
  std::vector<std::string> flags;
  const Measurement& m = *op.measurement;
  if (above_read(m.of_read_bandwidth, read_part(op.cost))) flags.emplace_back("above 103 % of read");
  if (passes_bound(op, device)) flags.emplace_back("above the bound");
  if (!unstable_because(m).empty()) flags.emplace_back("unstable");
  if (m.stop == StopReason::interrupted) flags.emplace_back("interrupted");
  if (m.slowed_samples > 0) flags.emplace_back("slowed");
  return flags;
}

std::vector<std::string> flags_of(const WholeStep& whole) {
  std::vector<std::string> flags;
  if (whole.partial) flags.emplace_back("partial");
  if (whole.cold && above_read(whole.of_read_bandwidth, 1)) flags.emplace_back("above 103 % of read");
  if (!unstable_because(whole).empty()) flags.emplace_back("unstable");
  if (whole.stop == StopReason::interrupted) flags.emplace_back("interrupted");
  if (!whole.cold) flags.emplace_back("not cold");
  return flags;
}

std::vector<std::string> flags_of(const MeasuredStep& step, const DeviceFigures& device) {
  std::vector<std::string> flags;
  if (step.partial()) flags.emplace_back("partial");
  for (const MeasuredOp& op : step.ops) {
    if (op.measurement) add(flags, flags_of(op, device));
  }
  if (passes_bound(step, device)) add(flags, {"above the bound"});
  if (!step.predicted.ops.empty() && !device.info.gpu && !predicts_bound(step, device))
    add(flags, {"unstable"});
  if (memory_drift(step)) add(flags, {"drifted"});
  return flags;
}

std::vector<std::string> flags_of(const Baseline& baseline) {
  std::vector<std::string> flags;
  const Measurement& m = baseline.measurement;
  if (!unstable_because(m).empty()) flags.emplace_back("unstable");
  if (m.stop == StopReason::interrupted) flags.emplace_back("interrupted");
  if (m.slowed_samples > 0) flags.emplace_back("slowed");
  return flags;
}

std::vector<std::string> impossible_figures(const DeviceFigures& device,
                                            const std::vector<MeasuredStep>& steps) {
  std::vector<std::string> found;
  // A probe reads alone: of what an op moves, only the part it reads is held against it.
  const auto look_at = [&](const std::string& what, std::int64_t batch, const std::optional<Summary>& share,
                           double read) {
    if (!above_read(share, read)) return;
    found.push_back(
        fmt::format("{} at batch {} moved its bytes at {:.0f} % ({:.0f}–{:.0f}) of the read bandwidth: "
                    "that cannot be; its operands sit in a cache or the probe was disturbed",
                    what, batch, 100 * share->median, 100 * share->ci95->low, 100 * share->ci95->high));
  };
  for (const MeasuredStep& step : steps) {
    for (const MeasuredOp& op : step.ops) {
      // What others did explains it.
      if (op.measurement && !disturbed_by(op.measurement->disturbance, op.measurement->seconds.n).empty())
        continue;
      if (op.measurement)
        look_at(op.op.name, step.workload.batch, op.measurement->of_read_bandwidth, read_part(op.cost));
      if (passes_bound(op, device)) {
        const double measured = op.measurement->seconds.median * static_cast<double>(op.op.count());
        found.push_back(fmt::format(
            "{} at batch {} took {:.1f} us, and {:.1f} us at least follow from the best samples of the "
            "memory and of the arithmetic: that cannot be; its operands sit in a cache or the "
            "probes were disturbed",
            op.op.name, step.workload.batch, measured * 1e6, op.prediction.ceiling_s * 1e6));
      }
    }
    if (passes_bound(step, device)) {
      found.push_back(fmt::format(
          "the step at batch {}, {} tokens, is faster than the {:.3g} ms that follow from the best samples "
          "of the "
          "memory and of the arithmetic: that cannot be; its operands sit in a cache or the probes were "
          "disturbed",
          step.workload.batch, step.workload.context, step.predicted.ceiling.ms_per_step));
    }
    if (step.whole && step.whole->cold &&
        disturbed_by(step.whole->disturbance, step.whole->seconds.n).empty())
      look_at("the whole step", step.workload.batch, step.whole->of_read_bandwidth, 1);
  }
  if (device.info.gpu && device.info.gpu->card_is_datasheet &&
      device.peak_GBps > device.info.gpu->datasheet_GBps) {
    found.push_back(fmt::format(
        "a sample of {:.0f} GB/s lies above the {:.0f} GB/s of {}'s datasheet: that cannot be; it "
        "was served by a cache, or the card is another",
        device.peak_GBps, device.info.gpu->datasheet_GBps, device.info.gpu->card));
  }
  return found;
}

std::vector<std::string> unstable_warnings(const DeviceFigures& device, const BaselineFigures& baselines,
                                           const std::vector<MeasuredStep>& steps) {
  std::size_t unstable = 0;
  std::string first;
  const auto note = [&](const std::string& what, const std::string& why) {
    if (!why.empty() && unstable++ == 0) first = what + ": " + why;
  };
  for (const StreamFigure& stream : device.streams) note(stream_name(stream.task.pattern), stream.unstable);
  for (const Baseline& baseline : baselines.pairs)
    note(fmt::format("{} {}", baseline.kernel, format_name(baseline.format)),
         unstable_because(baseline.measurement));
  for (const MeasuredStep& step : steps) {
    note("a step", unstable_because(step));
    if (step.whole) note("a whole step", unstable_because(*step.whole));
  }
  if (unstable == 0) return {};
  return {fmt::format("{} unstable, which may be far from those of a quiet machine ({})",
                      unstable == 1 ? "a figure is" : fmt::format("{} figures are", unstable), first)};
}

std::vector<std::string> slowed_warnings(const std::vector<MeasuredStep>& steps) {
  std::set<std::string> reasons;
  std::int64_t slowed = 0;
  std::int64_t samples = 0;
  for (const MeasuredStep& step : steps) {
    for (const MeasuredOp& op : step.ops) {
      if (!op.measurement) continue;
      slowed += op.measurement->slowed_samples;
      samples += static_cast<std::int64_t>(op.measurement->seconds.n);
      reasons.insert(op.measurement->slowed_by.begin(), op.measurement->slowed_by.end());
    }
  }
  if (slowed == 0) return {};
  return {fmt::format("{} of {} samples were taken while the device ran slower than it could: {}", slowed,
                      samples, fmt::join(reasons, ", "))};
}

std::vector<std::string> huge_page_warnings(const DeviceFigures& device,
                                            const std::vector<MeasuredStep>& steps) {
  if (device.info.kind == "cuda") return {};  // huge pages are the CPU's
  constexpr double kLeastShare = 0.5;
  const auto refused = [](const std::string& what, double share) {
    return std::vector<std::string>{
        fmt::format("only {:.0f} % of {} lies on huge pages, which costs bandwidth; "
                    "/sys/kernel/mm/transparent_hugepage/enabled must say always or madvise",
                    100 * share, what)};
  };
  if (device.info.gpu) return {};  // its pages are its driver's
  if (device.read_GBps > 0 && device.huge_page_share < kLeastShare)
    return refused("the read probe's buffer", device.huge_page_share);
  for (const MeasuredStep& step : steps) {
    for (const MeasuredOp& op : step.ops) {
      if (!op.measurement || !op.measurement->huge_page_share) continue;
      if (*op.measurement->huge_page_share < kLeastShare)
        return refused("what " + op.op.name + " reads", *op.measurement->huge_page_share);
    }
  }
  return {};
}

}  // namespace memwall
