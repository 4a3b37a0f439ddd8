// memwall measure MODEL: real kernels at the model's shapes on this device, beside the prediction.
#include "bench/measure.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "bench/interrupt.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/run_session.h"
#include "format/checked.h"
#include "input/error.h"
#include "input/numbers.h"
#include "model/weight_assignment.h"
#include "report/measured.h"
#include "report/rows.h"

namespace memwall {
namespace {

struct MeasureOptions {
  ModelOptions model;
  WorkloadOptions workload;
  OutputOptions output;
  std::string prompt = "512";
  std::string seed = std::to_string(kDefaultSeed);
  DeviceOptions device;
  bool ops = false;
  bool step = false;
};

constexpr const char* kRepeats =
    "A step's layers repeat: each distinct shape was measured once, over rotating cold copies, and "
    "multiplied by its count.";

// The baselines at half their own command's size: here they are the frame, not the picture.
BaselineSettings small_baselines(const DeviceInfo& device, std::uint64_t seed) {
  const Format f16{FormatKind::f16, 0, false};
  return {.n = device.matmul_n,
          .formats = {f16},
          .sweep_format = f16,
          .sweep_to = device.matmul_n / 2,
          .seconds_a_kernel = 0.6,
          .seconds_a_size = 0.03,
          .seed = seed};
}

MeasureSettings settings_of(const MeasureOptions& options) {
  MeasureSettings settings;
  settings.batches = options.workload.batches();
  settings.contexts = options.workload.contexts();
  settings.prompts = parse_counts(options.prompt, "--prompt", {0, kMostContext});
  std::erase(settings.prompts, 0);
  settings.memory_bytes = options.device.memory_bytes();
  settings.whole_steps = options.step;
  settings.seed = parse_seed(options.seed);
  return settings;
}

// Before any model is built in so many formats: each workload takes seconds.
void require_few_steps(const MeasureOptions& options, const MeasureSettings& settings) {
  const auto items = [](const std::string& list) { return static_cast<std::int64_t>(items_of(list)); };
  const auto lengths = static_cast<std::int64_t>(settings.contexts.size() + settings.prompts.size());
  const std::int64_t steps =
      checked_mul(checked_mul(items(options.model.weights), items(options.model.kv)),
                  checked_mul(static_cast<std::int64_t>(settings.batches.size()), lengths));
  if (steps <= kMostMeasuredSteps) return;
  throw InputError(fmt::format(
      "{} workloads (--weights × --kv × --batch × --context and --prompt) are more than the {} that one run "
      "measures; ask for fewer",
      steps, kMostMeasuredSteps));
}

MeasuredModel measured_model(const Model& model) {
  return {.ops = lower(model),
          .weights = weights_label(model),
          .head_weights = format_name(model.head),
          .kv = std::string(kv_format_name(model.kv))};
}

Json measure_json(const Session& session, const std::vector<Model>& models, std::uint64_t seed,
                  const std::vector<std::string>& warnings, const Invocation& invocation) {
  const DeviceFigures figures = session.figures();
  Json json = document("measure", circumstances_now(invocation.arguments));
  json["device"] = device_figures(figures);
  json["memory_bound_bytes"] = session.memory_bytes();
  json["model"] = model_figures(models.front());
  if (models.size() > 1) {
    json["models"] = Json::array();
    for (const Model& model : models) json["models"].push_back(model_figures(model));
  }
  json["seed"] = seed;
  json["method"] = kRepeats;
  json["baselines"] = baselines_figures(session.baselines(), figures, figures.ridge());
  json["decode"] = Json::array();
  for (const MeasuredStep& step : session.decode())
    json["decode"].push_back(measured_step_figures(step, figures));
  json["prefill"] = Json::array();
  for (const MeasuredStep& step : session.prefill())
    json["prefill"].push_back(measured_step_figures(step, figures));
  if (session.stopped()) json["incomplete"] = true;
  json["warnings"] = warnings;
  return json;
}

// A row a step; with ops a row an op, led by its step's.
std::vector<Json> measure_rows(const Session& session, bool with_ops) {
  const DeviceFigures device = session.figures();
  const bool incomplete = session.stopped();
  std::vector<Json> rows;
  const auto add = [&](const char* phase, const std::vector<MeasuredStep>& steps) {
    for (const MeasuredStep& step : steps) {
      const Json figures = measured_step_figures(step, device);
      if (!with_ops) {
        Json row = {{"phase", phase}};
        row.update(flatten(figures));
        if (incomplete) row["incomplete"] = true;
        rows.push_back(std::move(row));
        continue;
      }
      for (const Json& op : figures["ops"]) {
        Json row = {{"phase", phase}};
        for (const char* key : {"batch", "context", "weights", "kv"}) row[key] = figures[key];
        row.update(flatten(op));
        if (incomplete) row["incomplete"] = true;
        rows.push_back(std::move(row));
      }
    }
  };
  add("decode", session.decode());
  add("prefill", session.prefill());
  if (rows.empty() && incomplete)
    rows.push_back(Json::object({{"incomplete", true}}));  // interrupted before the first row
  return rows;
}

std::string measure_text(const Session& session, const std::vector<Model>& models, std::uint64_t seed,
                         const Style& style) {
  const DeviceFigures figures = session.figures();
  std::string text = style.apply(Tone::bold, models.front().title);
  for (const Model& model : models) {
    text += style.apply(Tone::bold, fmt::format(", weights {} (lm_head {}), KV {}", weights_label(model),
                                                format_name(model.head), kv_format_name(model.kv)));
  }
  text += " on " + device_text(figures, style) + "\n";
  for (const MeasuredStep& step : session.decode()) text += measured_step_text(step, figures, style) + "\n";
  for (const MeasuredStep& step : session.prefill()) text += measured_step_text(step, figures, style) + "\n";
  if (session.decode().size() > 1 || session.prefill().size() > 1)
    text += summary_text(session.decode(), session.prefill(), figures, style) + "\n";
  if (!session.baselines().pairs.empty() && figures.read_GBps > 0 && figures.peak_GFLOPs > 0) {
    text += baselines_text(session.baselines(), figures, {figures.ridge(), "measured here"}, std::nullopt,
                           style) +
            "\n";
  }
  text += fmt::format("{} Weights, inputs and experts are drawn from seed {}.\n", kRepeats, seed);
  if (session.stopped()) {
    text += style.apply(Tone::bad, fmt::format("incomplete: {}; what was measured until then is above",
                                               session.shortage().value_or("interrupted"))) +
            "\n";
  }
  return text;
}

std::vector<MeasuredStep> all_steps(const Session& session) {
  std::vector<MeasuredStep> steps = session.decode();
  steps.insert(steps.end(), session.prefill().begin(), session.prefill().end());
  return steps;
}

// What is said of the figures: printed at the end, and in the result.
std::vector<std::string> warnings_of(const Session& session, std::vector<std::string> warnings) {
  const auto add = [&](const std::vector<std::string>& more) {
    for (const std::string& line : more) {
      if (std::find(warnings.begin(), warnings.end(), line) == warnings.end()) warnings.push_back(line);
    }
  };
  add(impossible_figures(session.figures(), session.decode()));
  add(impossible_figures(session.figures(), session.prefill()));
  add(unstable_warnings(session.figures(), session.baselines(), all_steps(session)));
  add(slowed_warnings(session.decode()));
  add(huge_page_warnings(session.figures(), session.decode()));
  if (session.shortage()) add({"out of memory: " + *session.shortage()});
  return warnings;
}

void measure(const MeasureOptions& options, Invocation& invocation) {
  // What is wrong with the arguments is said before a device is opened, and that before anything is probed.
  const OutputFormat format = options.output.chosen();
  const MeasureSettings settings = settings_of(options);
  require_few_steps(options, settings);
  // To the end, so that a signal while the result is written does not lose it.
  const InterruptGuard guard;
  Output output(options.output.output);
  const std::vector<Model> models = options.model.load();
  std::vector<MeasuredModel> formats;
  for (const Model& model : models) formats.push_back(measured_model(model));
  std::vector<std::int64_t> longest = settings.contexts;
  longest.insert(longest.end(), settings.prompts.begin(), settings.prompts.end());
  const std::vector<std::string> printed = warn_of(models.front(), longest);

  const std::uint64_t seed = settings.seed;
  const auto result = [&](const Session& session, const std::vector<std::string>& warnings) {
    return Result{.json = [&] { return measure_json(session, models, seed, warnings, invocation); },
                  .rows = [&] { return measure_rows(session, options.ops); },
                  .text = [&](const Style& style) { return measure_text(session, models, seed, style); }};
  };
  std::function<void(const Session&)> checkpoint;
  if (output.is_file())
    checkpoint = [&](const Session& session) {
      write_snapshot(output, format, result(session, warnings_of(session, printed)));
    };
  const FinishedSession done =
      run_session(options.device, {.check =
                                       [&](const Session& session) {
                                         for (const MeasuredModel& model : formats)
                                           session.require_memory(model.ops, settings);
                                         session.require_memory(small_baselines(session.info(), seed));
                                       },
                                   .accepted = {},
                                   .run =
                                       [&](Session& session) {
                                         session.probe();
                                         // The models come last: what bounds them is the best of the whole
                                         // run.
                                         if (!session.stopped())
                                           session.run_baselines(small_baselines(session.info(), seed));
                                         for (const MeasuredModel& model : formats) {
                                           if (!session.stopped()) session.run_model(model, settings);
                                         }
                                       },
                                   .checkpoint = checkpoint});
  const Session& session = *done.session;
  std::vector<std::string> warnings = printed;
  warnings.insert(warnings.end(), done.warnings.begin(), done.warnings.end());
  warnings = warnings_of(session, std::move(warnings));
  for (std::size_t i = printed.size(); i < warnings.size(); ++i) warn(warnings[i]);
  write_result(output, format, result(session, warnings));
  const bool unstable =
      !unstable_warnings(session.figures(), session.baselines(), all_steps(session)).empty();
  if (session.shortage() || done.failed || (options.device.strict && unstable)) invocation.status = 1;
  if (interrupted()) invocation.status = 130;
}

}  // namespace

void add_measure(CLI::App& app, Invocation& invocation) {
  CLI::App* command = app.add_subcommand("measure", "Real kernels at a model's shapes on this device");
  const auto options = std::make_shared<MeasureOptions>();
  options->model.add(*command);
  options->workload.add(*command);
  command->add_option("--prompt", options->prompt, "Tokens of the prefill; a list, 0 for none")
      ->capture_default_str();
  command->add_flag("--step", options->step,
                    "Run whole decode steps, too: all layers that fit in memory, in model order");
  command->add_flag("--ops", options->ops, "With --format csv or md: a row an op, not a row a step");
  command->add_option("--seed", options->seed, "Of all random draws: weights, inputs, the routing of experts")
      ->capture_default_str();
  options->device.add(*command);
  options->output.add(*command);
  command->callback(
      [=, &invocation] { invocation.run = [=, &invocation] { measure(*options, invocation); }; });
}

}  // namespace memwall
