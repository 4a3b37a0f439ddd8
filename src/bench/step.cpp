#include "bench/step.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>

#include "bench/interrupt.h"
#include "bench/quiet_samples.h"
#include "format/checked.h"
#include "format/units.h"
#include "input/error.h"

namespace memwall {
namespace {

constexpr std::size_t kLeastSamples = 3;

// A step of a large model takes a second, and a second one is timed launch by launch beside each: the time
// limit decides, and three steps are the least.
StoppingRule step_rule() { return {.min_samples = 10, .min_time_s = 0.5, .max_time_s = 8.0}; }

// Of samples that others held up, taken again.
constexpr double kMostDiscardedSeconds = 3.0;

// To tell which of two ways is the faster; a few samples do.
StoppingRule fusion_rule() { return {.min_samples = 5, .min_time_s = 0.02, .max_time_s = 0.2}; }

std::size_t index_of(OpKind kind) { return static_cast<std::size_t>(kind); }

// The read bandwidth around a step: the mean time of slices, an eighth of the step's on either side, since a
// lone slice is over before a drift that the step sees.
double read_rate(ReadCeiling& ceiling, std::int64_t slices) {
  double seconds_a_byte = 0;
  for (std::int64_t i = 0; i < slices; ++i) seconds_a_byte += 1 / ceiling.sample();
  return static_cast<double>(slices) / seconds_a_byte;
}

std::int64_t slices_beside(double step_seconds, const ReadCeiling& ceiling) {
  const double slice = static_cast<double>(ceiling.sample_bytes()) / ceiling.median();
  return std::clamp<std::int64_t>(std::llround(step_seconds / 8 / slice), 1, 8);
}

double sum(const std::vector<StepKind>& kinds, double StepKind::*member, bool memory_only = false) {
  return std::accumulate(kinds.begin(), kinds.end(), 0.0, [&](double total, const StepKind& kind) {
    return memory_only && !kind.reads_memory() ? total : total + kind.*member;
  });
}

double gib(std::int64_t bytes) { return static_cast<double>(bytes) / kGiB; }

}  // namespace

std::int64_t WholeStep::launches() const {
  return std::accumulate(kinds.begin(), kinds.end(), std::int64_t{0},
                         [](std::int64_t total, const StepKind& kind) { return total + kind.launches; });
}

std::int64_t WholeStep::barriers() const {
  return std::accumulate(kinds.begin(), kinds.end(), std::int64_t{0},
                         [](std::int64_t total, const StepKind& kind) {
                           return total + (kind.reads_memory() ? kind.launches : 0);
                         });
}

double WholeStep::launch_seconds() const { return sum(kinds, &StepKind::seconds); }

double WholeStep::alone_seconds() const { return sum(kinds, &StepKind::alone_seconds); }

WholeStep::Difference WholeStep::difference() const {
  const double alone = sum(kinds, &StepKind::alone_seconds, true);
  const double inside = sum(kinds, &StepKind::seconds, true);
  return {.memory_ops = inside - alone,
          .small_ops = (launch_seconds() - inside) - (alone_seconds() - alone),
          .rest = seconds.median - launch_seconds()};
}

StepRunner::StepRunner(Device& device, const std::vector<Op>& ops, std::int64_t memory_bytes,
                       std::uint64_t seed)
    : device_(device),
      unfused_(plan_step(ops)),
      plan_(unfused_),
      memory_bytes_(memory_bytes),
      seed_(seed),
      placed_(plan_.parts.size()) {}

// Fuses what the device can fuse and what then takes less time than its ops one by one. The candidates are
// timed cold, as ops are; nothing else is placed meanwhile, since a model may fill the memory.
void StepRunner::fuse(const Workload& workload, const std::vector<const Measurement*>& alone,
                      const FusionTimer& timer) {
  std::vector<StepFusion> found;
  const auto fuses = [&](const std::vector<std::size_t>& members) {
    StepPart part;
    double parts_seconds = 0;
    for (const std::size_t member : members) {
      if (alone[member] == nullptr) return false;
      parts_seconds += alone[member]->seconds.median;
      part.ops.push_back(unfused_.parts[member].ops.front());
    }
    const Task task = part.task(workload);
    if (device_.variants(task).empty() || interrupted()) return false;
    placed_.clear();
    const Footprint footprint = device_.footprint(task);
    const std::int64_t needed = checked_add(placed_bytes(footprint, cold_copies(footprint, device_.info())),
                                            ReadCeiling::bytes(device_.info()));
    if (needed > memory_bytes_) return false;
    const SamplerSettings settings{.rule = fusion_rule(), .pair_with_ceiling = false, .seed = seed_};
    const auto m = timer
                       ? timer(fmt::format("{} ({})", part.name(), fmt::join(members, ", ")), task, settings)
                       : measure_task(device_, task, nullptr, settings);
    constexpr double kWorthwhile = 0.99;  // less is noise
    if (!m || m->seconds.median > kWorthwhile * parts_seconds) return false;
    found.push_back({part.name(), members, 0, m->seconds.median, parts_seconds});
    return true;
  };
  StepPlan plan = fuse_plan(unfused_, fuses);
  for (StepFusion& fusion : found) {
    for (const StepPart& part : plan.parts) {
      if (part.members == fusion.members) fusion.launches += part.count;
    }
  }
  plan_ = std::move(plan);
  fusions_ = std::move(found);
  placed_.resize(plan_.parts.size());
}

StepFootprints StepRunner::footprints(const Workload& workload) const {
  StepFootprints footprints;
  for (const StepPart& part : plan_.parts) {
    const Task task = part.task(workload);
    const bool runs = !device_.variants(task).empty();
    footprints.push_back(runs ? std::optional(device_.footprint(task)) : std::nullopt);
  }
  return footprints;
}

StepHolding StepRunner::holding(const Workload& workload) const try {
  const std::int64_t probe = ReadCeiling::bytes(device_.info());
  const std::int64_t cold = least_cold_bytes(device_.info());
  const StepFootprints footprints = this->footprints(workload);
  if (auto holding = fullest_holding(plan_, footprints, memory_bytes_ - probe, cold)) return *holding;
  const StepHolding least = least_holding(plan_, footprints, cold);
  throw InputError(fmt::format(
      "--step: a step of batch {}, {} tokens needs {:.2f} GiB at least ({} of {} layers and the read probe), "
      "and {:.2f} GiB may be used",
      workload.batch, workload.context, gib(least.bytes + probe), least.layers_held, plan_.layers,
      gib(memory_bytes_)));
} catch (const std::overflow_error&) {
  throw InputError(
      "--step: this step needs more memory than can be counted; ask for a smaller batch or context");
}

// Keeps what an earlier workload placed where it is the same; the rest is freed before anything new is
// placed.
void StepRunner::place(const Workload& workload, const StepHolding& holding,
                       const std::vector<bool>& left_out) {
  std::vector<Placed> wanted(plan_.parts.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const StepPart& part = plan_.parts[i];
    if (std::any_of(part.members.begin(), part.members.end(),
                    [&](std::size_t member) { return member < left_out.size() && left_out[member]; }))
      continue;
    const bool experts = std::holds_alternative<ExpertWork>(part.main().work);
    wanted[i].task = part.task(workload, holding.all_experts && experts);
    wanted[i].matrices = holding.copies[i] * holding.matrices_a_copy[i];
    if (placed_[i].operands && placed_[i].matrices == wanted[i].matrices &&
        same_task(placed_[i].task, wanted[i].task)) {
      wanted[i].operands = std::move(placed_[i].operands);
    }
  }
  placed_ = std::move(wanted);
  for (Placed& part : placed_) {
    if (part.matrices > 0 && !part.operands && !interrupted())
      part.operands = device_.place(part.task, part.matrices, seed_);
  }
}

std::vector<StepRunner::Ready> StepRunner::ready(const StepHolding& holding, std::int64_t step) const {
  std::vector<Ready> launches;
  for (const StepLaunch& launch : plan_.launches) {
    if (!placed_[launch.part].operands) continue;
    launches.push_back({.operands = placed_[launch.part].operands.get(),
                        .variant = variants_[launch.part],
                        .turn = turn_of(holding, launch, step),
                        .part = launch.part});
  }
  return launches;
}

// Experts as they were drawn, all else as the cost counts it.
double StepRunner::bytes(const Ready& launch, const Workload& workload) const {
  const StepPart& part = plan_.parts[launch.part];
  if (std::holds_alternative<ExpertWork>(part.main().work)) return launch.operands->cold_bytes(launch.turn);
  return std::accumulate(part.ops.begin(), part.ops.end(), 0.0, [&](double total, const Op& op) {
    return total + cost_of(op.work, workload).compulsory_bytes();
  });
}

double StepRunner::step_bytes(const std::vector<Ready>& launches, const Workload& workload) const {
  return std::accumulate(launches.begin(), launches.end(), 0.0,
                         [&](double total, const Ready& launch) { return total + bytes(launch, workload); });
}

std::vector<StepKind> StepRunner::kinds_of(const std::vector<Ready>& launches,
                                           const Workload& workload) const {
  std::vector<StepKind> kinds(kKinds);
  for (std::size_t i = 0; i < kKinds; ++i) kinds[i].kind = static_cast<OpKind>(i);
  for (const Ready& launch : launches) {
    StepKind& kind = kinds[index_of(plan_.parts[launch.part].kind())];
    ++kind.launches;
    kind.bytes += bytes(launch, workload);
  }
  return kinds;
}

// The variant that was fastest alone, by name: what a task can run depends on its workload. What is fused has
// one.
void StepRunner::choose_variants(const std::vector<const Measurement*>& alone) {
  variants_.assign(plan_.parts.size(), 0);
  for (std::size_t i = 0; i < plan_.parts.size(); ++i) {
    const Measurement* own = alone[plan_.parts[i].members.front()];
    if (!placed_[i].operands || own == nullptr || plan_.parts[i].fused()) continue;
    const std::vector<Variant> variants = device_.variants(placed_[i].task);
    const auto chosen = std::find_if(variants.begin(), variants.end(),
                                     [&](const Variant& v) { return v.name == own->variant; });
    if (chosen != variants.end()) variants_[i] = static_cast<std::size_t>(chosen - variants.begin());
  }
}

void StepRunner::check() const {
  for (std::size_t i = 0; i < placed_.size(); ++i) {
    if (!placed_[i].operands || interrupted()) continue;
    const Check check = placed_[i].operands->check(variants_[i]);
    if (check.passed() || interrupted()) continue;  // an interrupt leaves a long launch undone
    throw RunError(fmt::format(
        "{} is wrong in the whole step: an output is {:.3g} times its tolerance away from float64",
        plan_.parts[i].name(), check.worst));
  }
}

// Seconds a step; every launch looks for an interrupt, as a step of a large model takes a second.
double StepRunner::time_steps(const std::vector<Ready>& launches, std::int64_t steps) {
  const double seconds = device_.time([&] {
    for (std::int64_t i = 0; i < steps; ++i) {
      for (const Ready& launch : launches) {
        if (interrupted()) return;
        launch.operands->launch(launch.variant, launch.turn);
      }
    }
  });
  return seconds / static_cast<double>(steps);
}

// One by one; where a launch costs about as much as the clock can tell, those of a kind together.
StepRunner::ByKind StepRunner::time_launches(const std::vector<Ready>& launches) {
  ByKind seconds{};
  if (device_.info().costly_launches) {
    for (std::size_t kind = 0; kind < kKinds && !interrupted(); ++kind) {
      const auto own = [&](const Ready& launch) { return index_of(plan_.parts[launch.part].kind()) == kind; };
      if (std::none_of(launches.begin(), launches.end(), own)) continue;
      seconds[kind] = device_.time([&] {
        for (const Ready& launch : launches) {
          if (own(launch)) launch.operands->launch(launch.variant, launch.turn);
        }
      });
    }
    return seconds;
  }
  for (const Ready& launch : launches) {
    if (interrupted()) break;
    seconds[index_of(plan_.parts[launch.part].kind())] +=
        device_.time([&] { launch.operands->launch(launch.variant, launch.turn); });
  }
  return seconds;
}

StepRunner::Samples StepRunner::sample(const Workload& workload, const StepHolding& holding,
                                       std::int64_t steps, ReadCeiling& ceiling, double seconds_a_sample) {
  const std::int64_t slices = slices_beside(seconds_a_sample, ceiling);
  StoppingCriterion criterion(step_rule());
  Samples samples;
  QuietSamples quiet(device_, kMostDiscardedSeconds);
  for (std::int64_t step = 0; !criterion.finished();) {
    std::vector<Ready> launches = ready(holding, ++step);
    quiet.begin();
    const double before = read_rate(ceiling, slices);
    const double seconds = time_steps(launches, steps);
    const double after = read_rate(ceiling, slices);
    const double bytes = step_bytes(launches, workload);
    // A step beside it has the clock read between its launches, so it is not the one that is reported.
    launches = ready(holding, ++step);
    const ByKind by_kind = time_launches(launches);
    if (interrupted()) break;  // what it cut short is no sample
    const double rate = 2 / (1 / before + 1 / after);
    const double probed = static_cast<double>(2 * slices * ceiling.sample_bytes()) / rate;
    const double cost =
        probed + seconds * static_cast<double>(steps) + std::accumulate(by_kind.begin(), by_kind.end(), 0.0);
    if (!quiet.keep(cost)) {
      for (std::int64_t i = 0; i < 2 * slices; ++i) ceiling.forget_last();
      continue;
    }
    samples.bytes.push_back(bytes);
    samples.rates.push_back(rate);
    samples.shares.push_back(bytes / seconds / samples.rates.back());
    for (std::size_t i = 0; i < kKinds; ++i) samples.by_kind[i].push_back(by_kind[i]);
    criterion.add(seconds, cost);
  }
  samples.disturbance = quiet.end();
  samples.seconds = criterion.samples();
  samples.stop = criterion.finished().value_or(StopReason::interrupted);
  return samples;
}

std::optional<WholeStep> StepRunner::run(const Workload& workload,
                                         const std::vector<const Measurement*>& alone, ReadCeiling& ceiling,
                                         const StepSettings& settings) {
  WholeStep whole;
  fuse(workload, alone, settings.timer);
  whole.fusions = fusions_;
  whole.costly_launches = device_.info().costly_launches;
  whole.holding = holding(workload);
  whole.layers = plan_.layers;
  place(workload, whole.holding, settings.left_out);
  choose_variants(alone);
  check();
  if (interrupted()) return std::nullopt;
  const std::vector<Ready> first = ready(whole.holding, 0);
  if (first.empty()) return std::nullopt;
  whole.partial = first.size() < plan_.launches.size();
  whole.kinds = kinds_of(first, workload);
  whole.barrier_seconds = device_.barrier_seconds();

  time_steps(first, 1);  // warms up
  const double warm = time_steps(first, 1);
  whole.steps_per_sample = launches_a_sample(warm);
  const Samples samples = sample(workload, whole.holding, whole.steps_per_sample, ceiling,
                                 warm * static_cast<double>(whole.steps_per_sample));
  if (samples.seconds.size() < kLeastSamples) return std::nullopt;
  whole.stop = samples.stop;
  whole.disturbance = samples.disturbance;
  whole.seconds = summarize(samples.seconds);
  whole.fastest = *std::min_element(samples.seconds.begin(), samples.seconds.end());
  whole.bytes = std::accumulate(samples.bytes.begin(), samples.bytes.end(), 0.0) /
                static_cast<double>(samples.bytes.size());
  whole.cold = whole.bytes >= static_cast<double>(least_cold_bytes(device_.info()));
  whole.of_read_bandwidth = summarize(samples.shares);
  for (std::size_t i = 0; i < kKinds; ++i) whole.kinds[i].seconds = summarize(samples.by_kind[i]).median;
  whole.read_rate = summarize(samples.rates).median;
  double paired_bytes = 0;
  double probe_seconds = 0;  // of reading as many bytes by the probes beside the parts
  for (std::size_t i = 0; i < unfused_.parts.size(); ++i) {
    if (alone[i] == nullptr) continue;
    const Measurement& m = *alone[i];
    const double count = static_cast<double>(unfused_.parts[i].count);
    whole.kinds[index_of(unfused_.parts[i].kind())].alone_seconds += count * m.seconds.median;
    if (!m.of_read_bandwidth) continue;
    paired_bytes += count * m.bytes;
    probe_seconds += count * m.seconds.median * m.of_read_bandwidth->median;
  }
  if (probe_seconds > 0) whole.parts_read_rate = paired_bytes / probe_seconds;
  std::erase_if(whole.kinds,
                [](const StepKind& kind) { return kind.launches == 0 && kind.alone_seconds == 0; });
  return whole;
}

}  // namespace memwall
