#include "bench/measure.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>

#include "bench/device_lost.h"
#include "bench/interrupt.h"
#include "bench/out_of_memory.h"
#include "bench/probes.h"
#include "format/checked.h"
#include "format/units.h"
#include "input/error.h"

namespace memwall {
namespace {

// Between the least and the most that sampling takes, and as much as placing and checking operands does.
double expected_seconds(const StoppingRule& rule) { return 0.2 + (rule.min_time_s + rule.max_time_s) / 2; }

}  // namespace

Session::Session(Device& device, std::int64_t memory_bytes, ProgressCallback progress, Ledger ledger)
    : device_(&device),
      memory_bytes_(memory_bytes),
      progress_(std::move(progress)),
      ledger_(std::move(ledger)) {
  figures_.info = device.info();
  if (memory_bytes_ == 0) memory_bytes_ = figures_.info.available_bytes / 4;
  if (memory_bytes_ > figures_.info.available_bytes) {
    throw InputError(fmt::format("--memory: {:.2f} GiB is more than the {:.2f} GiB that are free",
                                 static_cast<double>(memory_bytes_) / kGiB,
                                 static_cast<double>(figures_.info.available_bytes) / kGiB));
  }
}

Session::Session(const DeviceInfo& info, std::int64_t memory_bytes, Ledger ledger)
    : memory_bytes_(memory_bytes > 0 ? memory_bytes : info.available_bytes / 4), ledger_(std::move(ledger)) {
  figures_.info = info;
}

// A task runs beside the read probe's buffer.
void Session::note_need(Need& largest, const Task& task, const std::string& name) const {
  if (device_->variants(task).empty()) return;
  const Footprint footprint = device_->footprint(task);
  std::int64_t needed = checked_add(placed_bytes(footprint, cold_copies(footprint, figures_.info)),
                                    ReadCeiling::bytes(figures_.info));
  const double launch_bytes =
      static_cast<double>(footprint.copy_bytes) * static_cast<double>(footprint.least_copies);
  if (const auto read = same_size_read(figures_.info, launch_bytes); read && footprint.cold) {
    const Footprint beside = device_->footprint(*read);
    needed = checked_add(needed, placed_bytes(beside, cold_copies(beside, figures_.info)));
  }
  if (needed > largest.bytes) largest = {needed, name};
}

void Session::require(const std::function<void(Need&)>& note_tasks) const {
  if (device_ == nullptr) return;  // whoever measured what is in the ledger has asked
  Need largest;
  try {
    note_need(largest, stream_probe(figures_.info, StreamPattern::copy), "the copy probe");
    note_need(largest, stream_probe(figures_.info, StreamPattern::triad), "the triad probe");
    for (const MatmulTask& task : peak_tasks(figures_.info)) note_need(largest, task, "the GEMM peak");
    note_tasks(largest);
  } catch (const std::overflow_error&) {
    throw InputError(
        "this workload needs more memory than can be counted; ask for a smaller batch or context");
  }
  if (largest.bytes <= memory_bytes_) return;
  throw InputError(fmt::format(
      "--memory: {:.2f} GiB are too few: {} needs {:.2f} GiB (cold copies and the read probe)",
      static_cast<double>(memory_bytes_) / kGiB, largest.name, static_cast<double>(largest.bytes) / kGiB));
}

void Session::require_memory(const std::vector<Op>& ops, const MeasureSettings& settings) const {
  require([&](Need& largest) {
    const auto note_step = [&](const Workload& workload) {
      for (const Op& op : ops) {
        const Task task = OpTask{op.work, workload};
        const char* phase = workload.phase == Phase::decode ? "decode" : "prefill";
        note_need(
            largest, task,
            fmt::format("{} ({}, batch {}, {} tokens)", op.name, phase, workload.batch, workload.context));
      }
    };
    for (const std::int64_t batch : settings.batches) {
      for (const std::int64_t context : settings.contexts) note_step({Phase::decode, batch, context});
      for (const std::int64_t prompt : settings.prompts) note_step({Phase::prefill, batch, prompt});
    }
  });
  if (!settings.whole_steps || device_ == nullptr) return;
  const StepRunner runner(*device_, ops, whole_step_memory(settings));
  for (const std::int64_t batch : settings.batches) {
    for (const std::int64_t context : settings.contexts) runner.holding({Phase::decode, batch, context});
  }
}

// A step wants the whole model, so it may take more than an op does. The eighth left over is the
// system's and the other programs'.
std::int64_t Session::whole_step_memory(const MeasureSettings& settings) const {
  const std::int64_t available = figures_.info.available_bytes;
  return settings.memory_bytes > 0 ? settings.memory_bytes : available - available / 8;
}

bool Session::stopped() const {
  return (device_ != nullptr && interrupted()) || shortage_.has_value() || exhausted_;
}

void Session::note(const Outcome& outcome) {
  read_samples_.insert(read_samples_.end(), outcome.read_samples.begin(), outcome.read_samples.end());
  if (!outcome.shortage.empty()) shortage_ = outcome.shortage;
}

WorkPlan Session::plan_of(const DeviceInfo& info, const std::function<void(Session&)>& run) {
  Session session(info, 0, {});
  session.counts_only_ = true;
  try {
    run(session);
  } catch (const std::exception&) {  // what fails will say so when it runs; so much is known of its progress
  }
  return std::move(session.plan_);
}

const Outcome* Session::perform(const std::string& unit, double seconds,
                                const std::function<void(Outcome&)>& work) {
  if (counts_only_) {
    static const Outcome nothing;
    plan_.add(unit, seconds);
    return &nothing;
  }
  if (const Outcome* known = ledger_.find(unit)) {
    plan_.end(unit);
    note(*known);
    return known;
  }
  if (device_ == nullptr) exhausted_ = true;
  if (stopped()) return nullptr;
  if (progress_) progress_(unit, plan_.state());
  Outcome outcome;
  // A shortage of the system's memory ends the run as an interrupt does: with what it has. A GPU's is the
  // unit's own: what it needed is given back, and the next may need less.
  try {
    outcome.failed = failure_of([&] { work(outcome); });
  } catch (const OutOfMemory& error) {
    (figures_.info.gpu ? outcome.failed : outcome.shortage) = error.what();
  } catch (const std::bad_alloc&) {
    outcome.shortage = "the system has no more memory to give";
  }
  if (ceiling_) {
    const std::vector<double>& samples = ceiling_->samples();
    outcome.read_samples.assign(samples.begin() + static_cast<std::ptrdiff_t>(samples_taken_), samples.end());
    samples_taken_ = samples.size();
  }
  // What an interrupt cut short has no outcome; what was sampled beside it is true all the same.
  if (interrupted() && !outcome.measurement && !outcome.whole && !outcome.probe) {
    note(outcome);
    return nullptr;
  }
  note(outcome);
  plan_.end(unit);
  ledger_.add(unit, std::move(outcome));
  const Outcome* found = ledger_.find(unit);
  if (observer_.ends) observer_.ends(unit, *found);
  return found;
}

// Those of the unit, and the reads' of every unit: an op's read beside it is the probe's kernel, and so is a
// read of another size.
std::vector<VariantFigure> Session::lost_variants(const std::string& unit, const Task& task) const {
  std::vector<VariantFigure> lost = ledger_.lost(unit);
  const auto* stream = std::get_if<StreamTask>(&task);
  for (VariantFigure read : ledger_.lost_reads()) {
    if (stream != nullptr && stream->pattern == StreamPattern::read)
      read.name = read.name.substr(kReadBeside.size());
    lost.push_back(std::move(read));
  }
  return lost;
}

const Outcome* Session::measure(const std::string& unit, const Task& task, bool paired,
                                SamplerSettings settings) {
  ReadCeiling* beside = paired && ledger_.find(unit) == nullptr ? ceiling() : nullptr;
  settings.pair_with_ceiling = beside != nullptr;
  settings.lost = lost_variants(unit, task);
  settings.tries = observer_.tries;
  const bool hot = settings.hot;
  const Outcome* outcome = perform(unit, expected_seconds(settings.rule), [&](Outcome& found) {
    found.measurement = measure_task(*device_, task, beside, settings);
  });
  if (outcome == nullptr || !outcome->measurement) return outcome;
  const Measurement& m = *outcome->measurement;
  note_rates(task, m);
  if (!hot) figures_.peak_GBps = std::max(figures_.peak_GBps, m.bytes / m.fastest / 1e9);
  return outcome;
}

std::optional<Measurement> Session::measurement(const std::string& unit, const Task& task, bool paired,
                                                SamplerSettings settings) {
  const Outcome* outcome = measure(unit, task, paired, std::move(settings));
  return outcome != nullptr ? outcome->measurement : std::nullopt;
}

}  // namespace memwall
