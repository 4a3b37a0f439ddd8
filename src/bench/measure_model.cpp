// A model's steps in a measuring session: every distinct op, whole steps, and the predictions beside them.
#include <fmt/format.h>

#include <algorithm>

#include "bench/interrupt.h"
#include "bench/measure.h"
#include "bench/op_task.h"
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
const char* phase_name(Phase phase) { return phase == Phase::decode ? "decode" : "prefill"; }

// ", batch 8, 1024 tokens, weights q8_0, KV f16".
std::string workload_words(const MeasuredModel& model, const Workload& workload) {
  std::string words = fmt::format(", batch {}, {} tokens", workload.batch, workload.context);
  if (!model.weights.empty())
    words += fmt::format(", weights {} (lm_head {})", model.weights, model.head_weights);
  if (!model.kv.empty()) words += fmt::format(", KV {}", model.kv);
  return words;
}

}  // namespace

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

const Session::Known* Session::known(const std::string& unit, const Task& task, bool paired,
                                     const SamplerSettings& settings) {
  const auto found =
      std::find_if(known_.begin(), known_.end(), [&](const Known& k) { return same_task(k.task, task); });
  if (found != known_.end()) return &*found;
  const Outcome* outcome = measure(unit, task, paired, settings);
  if (outcome == nullptr) return nullptr;
  known_.push_back({task, outcome->measurement, outcome->failed});
  return &known_.back();
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
    const bool elementwise = op.kind() == OpKind::elementwise || op.kind() == OpKind::embedding;
    SamplerSettings settings;
    settings.rule = elementwise                            ? elementwise_rule()
                    : task.workload.phase == Phase::decode ? decode_rule()
                                                           : prefill_rule();
    settings.seed = seed;
    // A GPU is steadier than a CPU that others use, too, and has many more ways to try.
    if (figures_.info.costly_launches) settings.rule = shortened(settings.rule);
    // Names repeat where layers differ; places do not.
    const std::string unit = fmt::format("{} {} (op {}){}", phase_name(workload.phase), op.name, i + 1,
                                         workload_words(model, workload));
    measured.ops.push_back({op, step.costs[i], {}, {}, {}});
    if (const Known* found = known(unit, task, task.workload.phase == Phase::decode, settings)) {
      measured.ops.back().measurement = found->measurement;
      measured.ops.back().failed = found->failed;
    }
  }
  return measured;
}

// After all ops of all decode steps, since the model's weights stay placed from one workload to the next.
void Session::run_whole_steps(const MeasuredModel& model, const MeasureSettings& settings,
                              std::size_t first) {
  std::optional<StepRunner> runner;
  for (std::size_t i = first; i < decode_.size(); ++i) {
    MeasuredStep& step = decode_[i];
    if (stopped()) return;
    if (!has_ceiling()) {
      step.whole_failed = "there is no read bandwidth to hold it against";
      continue;
    }
    const std::string words = workload_words(model, step.workload);
    const std::string unit = "whole steps" + words;
    // What earlier units left is known by now, so a probe that cannot be had ends it here.
    ReadCeiling* beside = ledger_.find(unit) != nullptr ? nullptr : ceiling();
    constexpr double kSeconds = 10;  // sampling's limit, and placing a model
    const Outcome* outcome = perform(unit, kSeconds, [&](Outcome& found) {
      if (beside == nullptr) throw RunError("there is no read probe to hold it against");
      if (!runner) runner.emplace(*device_, model.ops, whole_step_memory(settings), settings.seed);
      std::vector<const Measurement*> alone;
      StepSettings step_settings;
      step_settings.timer = [&](const std::string& parts, const Task& task, const SamplerSettings& rule) {
        const Known* candidate = known("fused " + parts + words, task, false, rule);
        return candidate != nullptr ? candidate->measurement : std::nullopt;
      };
      for (const MeasuredOp& op : step.ops) {
        alone.push_back(op.measurement ? &*op.measurement : nullptr);
        step_settings.left_out.push_back(!op.failed.empty());
      }
      found.whole = runner->run(step.workload, alone, *beside, step_settings);
    });
    if (outcome == nullptr) return;
    step.whole = outcome->whole;
    step.whole_failed = outcome->failed;
    if (step.whole && step.whole->cold)
      figures_.peak_GBps = std::max(figures_.peak_GBps, step.whole->bytes / step.whole->fastest / 1e9);
  }
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
  if (settings.whole_steps) run_whole_steps(model, settings, first);
  for (const std::int64_t batch : settings.batches) run(Phase::prefill, batch, settings.prompts, prefill_);
  predict_steps();
}

// Of all steps, anew: what bounds them is the best of all that was sampled until now.
void Session::predict_steps() {
  if (read_samples_.empty() || figures_.peak_GFLOPs <= 0) return;
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
