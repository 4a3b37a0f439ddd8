#include "bench/measure.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <new>

#include "bench/interrupt.h"
#include "bench/op_task.h"
#include "bench/out_of_memory.h"
#include "bench/topology.h"
#include "format/checked.h"
#include "format/units.h"
#include "input/error.h"

namespace memwall {
namespace {

// Samples of the sampling rules: CRAFT of bandwidth figures says 10 samples and half a second at least.
StoppingRule decode_rule() { return {.min_samples = 10, .min_time_s = 0.5, .max_time_s = 1.5}; }
// Compute-bound kernels vary little; long ones end at the limit with the floor's three samples.
StoppingRule prefill_rule() { return {.min_samples = 5, .min_time_s = 0.3, .max_time_s = 1.0}; }
// Microseconds a launch, thousands of launches a sample: a tenth of a second is many samples.
StoppingRule elementwise_rule() { return {.min_samples = 10, .min_time_s = 0.05, .max_time_s = 0.3}; }
StoppingRule shortened(StoppingRule rule) {
  rule.min_time_s /= 4;
  rule.max_time_s /= 4;
  return rule;
}
StoppingRule probe_rule() { return {.min_samples = 10, .min_time_s = 0.3, .max_time_s = 1.0}; }
// Best samples, not medians, are what bounds: as many as find a quiet moment.
StoppingRule arithmetic_rule() { return {.min_samples = 30, .min_time_s = 0.1, .max_time_s = 0.3}; }
StoppingRule stream_rule() { return {.min_samples = 7, .min_time_s = 0.1, .max_time_s = 0.25}; }

StreamTask stream_probe(const DeviceInfo& info, StreamPattern pattern, bool nontemporal = false) {
  return {.pattern = pattern, .nontemporal = nontemporal, .bytes = info.read_slice_bytes};
}

// GEMMs whose rates are the arithmetic peaks. The CPU computes in f32 whatever the storage.
std::vector<MatmulTask> peak_tasks(const Device& device) {
  std::vector<MatmulTask> tasks;
  const bool cpu = !device.info().gpu;
  for (const FormatKind kind : {FormatKind::f32, FormatKind::f16, FormatKind::bf16, FormatKind::f8_e4m3}) {
    if (cpu && kind != FormatKind::f32) break;
    const MatmulTask task{.n = device.info().matmul_n, .format = {kind, 0, false}};
    if (!device.variants(task).empty()) tasks.push_back(task);
  }
  return tasks;
}

// What a CPU's instructions are probed for.
constexpr std::array kProbedTypes = {ComputeType::f32, ComputeType::f16, ComputeType::bf16,
                                     ComputeType::int8};

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

}  // namespace

const char* stream_name(StreamPattern pattern) {
  switch (pattern) {
    case StreamPattern::read:
      return "read";
    case StreamPattern::copy:
      return "copy";
    case StreamPattern::scale:
      return "scale";
    case StreamPattern::add:
      return "add";
    case StreamPattern::triad:
      return "triad";
  }
  return "";
}

bool MeasuredStep::partial() const {
  return std::any_of(ops.begin(), ops.end(),
                     [](const MeasuredOp& op) { return !op.measurement.has_value(); });
}

double MeasuredStep::measured_seconds() const {
  double seconds = 0;
  for (const MeasuredOp& op : ops) {
    if (op.measurement) seconds += op.measurement->seconds.median * static_cast<double>(op.op.count());
  }
  return seconds;
}

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

Session::Session(Device& device, std::int64_t memory_bytes, ProgressCallback progress)
    : device_(device), memory_bytes_(memory_bytes), progress_(std::move(progress)) {
  figures_.info = device.info();
  if (memory_bytes_ == 0) memory_bytes_ = figures_.info.available_bytes / 4;
  if (memory_bytes_ > figures_.info.available_bytes) {
    throw InputError(fmt::format("--memory: {:.2f} GiB is more than the {:.2f} GiB that are free",
                                 static_cast<double>(memory_bytes_) / kGiB,
                                 static_cast<double>(figures_.info.available_bytes) / kGiB));
  }
}

// A task runs beside the read probe's buffer.
void Session::note_need(Need& largest, const Task& task, const std::string& name) const {
  const Footprint footprint = device_.footprint(task);
  std::int64_t needed = checked_add(placed_bytes(footprint, cold_copies(footprint, figures_.info)),
                                    ReadCeiling::bytes(figures_.info));
  const double launch_bytes =
      static_cast<double>(footprint.copy_bytes) * static_cast<double>(footprint.least_copies);
  if (const auto read = same_size_read(figures_.info, launch_bytes); read && footprint.cold) {
    const Footprint beside = device_.footprint(*read);
    needed = checked_add(needed, placed_bytes(beside, cold_copies(beside, figures_.info)));
  }
  if (needed > largest.bytes) largest = {needed, name};
}

void Session::require(const std::function<void(Need&)>& note_tasks) const {
  Need largest;
  try {
    note_need(largest, stream_probe(figures_.info, StreamPattern::copy), "the copy probe");
    note_need(largest, stream_probe(figures_.info, StreamPattern::triad), "the triad probe");
    for (const MatmulTask& task : peak_tasks(device_)) note_need(largest, task, "the GEMM peak");
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
        if (device_.variants(task).empty()) continue;
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
  if (!settings.whole_steps) return;
  const StepRunner runner(device_, ops, whole_step_memory(settings));
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

void Session::announce(const std::string& what) {
  if (progress_) progress_(what, done_, std::max(planned_, done_ + 1));
  ++done_;
}

// A shortage of memory ends the run as an interrupt does: with what it has.
void Session::keep_what_was_measured(const std::function<void()>& work) {
  if (stopped()) return;
  try {
    work();
  } catch (const OutOfMemory& error) {
    shortage_ = error.what();
  } catch (const std::bad_alloc&) {
    shortage_ = "the system has no more memory to give";
  }
}

bool Session::stopped() const { return interrupted() || shortage_.has_value(); }

std::optional<Measurement> Session::run(const Task& task, bool paired, SamplerSettings settings) {
  settings.pair_with_ceiling = paired && ceiling_.has_value();
  std::optional<Measurement> m;
  keep_what_was_measured([&] { m = measure_task(device_, task, ceiling_ ? &*ceiling_ : nullptr, settings); });
  if (!m) return m;
  note_rates(task, *m);
  if (!settings.hot) figures_.peak_GBps = std::max(figures_.peak_GBps, m->bytes / m->fastest / 1e9);
  return m;
}

// Any kernel of the run may have been the fastest of its type, so that no share of a peak passes 100 %.
void Session::note_rates(const Task& task, const Measurement& m) {
  const double gflops = m.flops / m.fastest / 1e9;
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
  if (gflops > peak.GFLOPs) peak = {gflops, m.flops / m.seconds.median / 1e9, m.variant};
}

void Session::probe() {
  announce("read bandwidth");
  keep_what_was_measured([&] { ceiling_.emplace(device_); });
  if (!ceiling_) return;
  figures_.read_variant = ceiling_->variant();
  figures_.huge_page_share = ceiling_->huge_share();
  for (const StreamPattern pattern :
       {StreamPattern::copy, StreamPattern::scale, StreamPattern::add, StreamPattern::triad}) {
    for (const bool nontemporal : {false, true}) {
      const StreamTask task = stream_probe(figures_.info, pattern, nontemporal);
      announce(fmt::format("{} bandwidth{}", stream_name(pattern), nontemporal ? ", non-temporal" : ""));
      if (const auto m = run(task, true, {.rule = stream_rule()})) {
        const double share =
            m->of_read_bandwidth ? m->of_read_bandwidth->median * task.traffic(figures_.info) : 0;
        const double rate = m->bytes / m->seconds.median / 1e9;
        figures_.streams.push_back({task, rate, share, rate * task.traffic(figures_.info)});
        figures_.best_traffic_GBps = std::max(figures_.best_traffic_GBps, m->bytes / m->fastest / 1e9);
      }
    }
  }
  for (const StreamFigure& stream : figures_.streams) {
    if (stream.task.nontemporal) continue;
    if (stream.task.pattern == StreamPattern::copy) figures_.copy_GBps = stream.GBps;
    if (stream.task.pattern == StreamPattern::triad) figures_.triad_GBps = stream.GBps;
  }
  for (const MatmulTask& task : peak_tasks(device_)) {
    announce(fmt::format("GEMM peak, {}", format_name(task.format)));
    run(task, false, {.rule = probe_rule()});
  }
  for (const ComputeType type : kProbedTypes) {
    if (device_.variants(ArithmeticTask{type}).empty()) continue;
    announce(fmt::format("arithmetic peak, {}", compute_type_name(type)));
    run(ArithmeticTask{type}, false, {.rule = arithmetic_rule()});
  }
  if (figures_.info.costly_launches) fit_launches();
}

void Session::fit_launches() {
  announce("the cost of a launch");
  std::vector<LaunchSample> samples;
  const std::int64_t slice = figures_.info.read_slice_bytes;
  for (std::int64_t bytes = std::max(kLeastFitBytes, slice / kFitRange); bytes <= slice; bytes *= kFitStep) {
    const auto m = run(StreamTask{.bytes = bytes}, false, {.rule = stream_rule()});
    if (m) samples.push_back({m->bytes, m->seconds.median});
  }
  figures_.launch_fit = fit_launch(samples);
}

DeviceFigures Session::figures() const {
  DeviceFigures figures = figures_;
  if (ceiling_) {
    figures.read_GBps = ceiling_->median() / 1e9;
    figures.best_read_GBps = ceiling_->fastest() / 1e9;
    figures.best_traffic_GBps = std::max(figures.best_traffic_GBps, figures.best_read_GBps);
    figures.peak_GBps = std::max(figures.peak_GBps, ceiling_->fastest() / 1e9);
    figures.streams.insert(figures.streams.begin(),
                           {{.bytes = ceiling_->slice_bytes()}, figures.read_GBps, 1, figures.read_GBps});
  }
  return figures;
}

MeasuredStep Session::run_step(const MeasuredModel& model, const std::vector<Op>& ops,
                               const Workload& workload, std::uint64_t seed) {
  MeasuredStep measured;
  measured.workload = workload;
  measured.weights = model.weights;
  measured.head_weights = model.head_weights;
  measured.kv = model.kv;
  const Step step = cost_step(ops, workload);
  for (std::size_t i = 0; i < ops.size(); ++i) {
    const Op& op = ops[i];
    const OpTask task = essential_task(op.work, workload);
    const auto known =
        std::find_if(known_.begin(), known_.end(), [&](const Known& k) { return same_task(k.task, task); });
    std::optional<Measurement> measurement;
    if (known != known_.end()) {
      measurement = known->measurement;
    } else if (!stopped()) {
      announce(fmt::format("{} {} batch {}, {} tokens",
                           workload.phase == Phase::decode ? "decode" : "prefill", op.name, workload.batch,
                           workload.context));
      const bool elementwise = op.kind() == OpKind::elementwise || op.kind() == OpKind::embedding;
      SamplerSettings settings;
      settings.rule = elementwise                            ? elementwise_rule()
                      : task.workload.phase == Phase::decode ? decode_rule()
                                                             : prefill_rule();
      // A GPU is steadier than a CPU that others use, too, and has many more ways to try.
      settings.seed = seed;
      if (figures_.info.costly_launches) settings.rule = shortened(settings.rule);
      measurement = run(task, task.workload.phase == Phase::decode, settings);
      if (!stopped() || measurement) known_.push_back({task, measurement});
    }
    measured.ops.push_back({op, step.costs[i], {}, std::move(measurement)});
  }
  return measured;
}

// After all ops of all decode steps, since the model's weights stay placed from one workload to the next.
void Session::run_whole_steps(const std::vector<Op>& ops, const MeasureSettings& settings,
                              std::size_t first) {
  if (!ceiling_) return;
  StepRunner runner(device_, ops, whole_step_memory(settings), settings.seed);
  for (std::size_t i = first; i < decode_.size(); ++i) {
    MeasuredStep& step = decode_[i];
    if (stopped()) return;
    announce(fmt::format("whole steps, batch {}, {} tokens", step.workload.batch, step.workload.context));
    std::vector<const Measurement*> alone;
    for (const MeasuredOp& op : step.ops) alone.push_back(op.measurement ? &*op.measurement : nullptr);
    keep_what_was_measured([&] { step.whole = runner.run(step.workload, alone, *ceiling_); });
    if (step.whole && step.whole->cold)
      figures_.peak_GBps = std::max(figures_.peak_GBps, step.whole->bytes / step.whole->fastest / 1e9);
  }
}

void Session::plan(std::size_t models, const MeasuredModel& model, const MeasureSettings& settings) {
  const std::size_t lengths = settings.contexts.size() + settings.prompts.size();
  planned_ += models * group_equal(model.ops).size() * settings.batches.size() * lengths;
  if (settings.whole_steps) planned_ += models * settings.batches.size() * settings.contexts.size();
}

void Session::run_model(const MeasuredModel& model, const MeasureSettings& settings) {
  const std::vector<Op> grouped = group_equal(model.ops);
  const std::size_t first = decode_.size();
  const auto run = [&](Phase phase, std::int64_t batch, const std::vector<std::int64_t>& tokens,
                       std::vector<MeasuredStep>& into) {
    for (const std::int64_t length : tokens) {
      if (!stopped()) into.push_back(run_step(model, grouped, {phase, batch, length}, settings.seed));
    }
  };
  for (const std::int64_t batch : settings.batches) run(Phase::decode, batch, settings.contexts, decode_);
  if (settings.whole_steps) run_whole_steps(model.ops, settings, first);
  for (const std::int64_t batch : settings.batches) run(Phase::prefill, batch, settings.prompts, prefill_);
  predict_steps();
}

// Of all steps, anew: what bounds them is the best of all that was sampled until now.
void Session::predict_steps() {
  if (!ceiling_ || figures_.peak_GFLOPs <= 0) return;
  if (figures_.info.gpu && !figures_.peaks.contains(ComputeType::f32)) return;  // every format needs one
  const DeviceFigures found = figures();
  for (std::vector<MeasuredStep>* steps : {&decode_, &prefill_}) {
    for (MeasuredStep& measured : *steps) {
      std::vector<Op> ops;
      for (const MeasuredOp& op : measured.ops) ops.push_back(op.op);
      // The experts of a run are drawn evenly, so that much is known of its routing.
      Step step = under_even_routing(cost_step(ops, measured.workload));
      // Alone an op finds its activations in a cache; only what memory must serve bounds it here.
      for (Cost& cost : step.costs) cost.activation_bytes = 0;
      measured.predicted = predict(step, card_of(found, step.total.state_bytes > 0));
      for (std::size_t i = 0; i < measured.ops.size(); ++i)
        measured.ops[i].prediction = measured.predicted.ops[i];
    }
  }
}

}  // namespace memwall
