// memwall measure MODEL: real kernels at the model's shapes on this device, beside the prediction.
#include "bench/measure.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "bench/interrupt.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/progress.h"
#include "input/error.h"
#include "input/numbers.h"
#include "report/measured.h"
#include "report/rows.h"

namespace memwall {
namespace {

struct MeasureOptions {
  ModelOptions model;
  WorkloadOptions workload;
  OutputOptions output;
  std::string prompt = "512";
  DeviceOptions device;
  bool ops = false;
  bool step = false;
};

constexpr const char* kRepeats =
    "A step's layers repeat: each distinct shape was measured once, over rotating cold copies, and "
    "multiplied by its count.";

// The baselines at half their own command's size: here they are the frame, not the picture.
BaselineSettings small_baselines(const DeviceInfo& device) {
  const Format f16{FormatKind::f16, 0, false};
  return {.n = device.matmul_n,
          .formats = {f16},
          .sweep_format = f16,
          .sweep_to = device.matmul_n / 2,
          .seconds_a_kernel = 0.6,
          .seconds_a_size = 0.03};
}

MeasureSettings settings_of(const MeasureOptions& options) {
  MeasureSettings settings;
  settings.batches = options.workload.batches();
  settings.contexts = options.workload.contexts();
  settings.prompts = parse_integer_list(options.prompt, "--prompt", {0, kMostContext});
  std::erase(settings.prompts, 0);
  settings.memory_bytes = options.device.memory_bytes();
  settings.whole_steps = options.step;
  return settings;
}

Json measure_json(const Session& session, const Model& model, const std::vector<std::string>& warnings,
                  bool incomplete, const Invocation& invocation) {
  const DeviceFigures figures = session.figures();
  Json json = document("measure", circumstances_now(invocation.arguments));
  json["device"] = device_figures(figures);
  json["memory_bound_bytes"] = session.memory_bytes();
  json["model"] = model_figures(model);
  json["method"] = kRepeats;
  json["baselines"] = baselines_figures(session.baselines(), figures, figures.ridge());
  json["decode"] = Json::array();
  for (const MeasuredStep& step : session.decode()) json["decode"].push_back(measured_step_figures(step));
  json["prefill"] = Json::array();
  for (const MeasuredStep& step : session.prefill()) json["prefill"].push_back(measured_step_figures(step));
  if (incomplete) json["incomplete"] = true;
  json["warnings"] = warnings;
  return json;
}

// A row a step; with ops a row an op, led by its step's.
std::vector<Json> measure_rows(const Session& session, bool with_ops, bool incomplete) {
  std::vector<Json> rows;
  const auto add = [&](const char* phase, const std::vector<MeasuredStep>& steps) {
    for (const MeasuredStep& step : steps) {
      const Json figures = measured_step_figures(step);
      if (!with_ops) {
        Json row = {{"phase", phase}};
        row.update(flatten(figures));
        if (incomplete) row["incomplete"] = true;
        rows.push_back(std::move(row));
        continue;
      }
      for (const Json& op : figures["ops"]) {
        Json row = {{"phase", phase}, {"batch", figures["batch"]}, {"context", figures["context"]}};
        row.update(flatten(op));
        if (incomplete) row["incomplete"] = true;
        rows.push_back(std::move(row));
      }
    }
  };
  add("decode", session.decode());
  add("prefill", session.prefill());
  return rows;
}

std::string measure_text(const Session& session, const Model& model, bool incomplete, const Style& style) {
  const DeviceFigures figures = session.figures();
  std::string text = style.apply(Tone::bold, fmt::format("{}, weights {} (lm_head {}), KV {}", model.title,
                                                         format_name(model.weights), format_name(model.head),
                                                         kv_format_name(model.kv))) +
                     " on " + device_text(figures, style) + "\n";
  for (const MeasuredStep& step : session.decode()) text += measured_step_text(step, figures, style) + "\n";
  for (const MeasuredStep& step : session.prefill()) text += measured_step_text(step, figures, style) + "\n";
  if (!session.baselines().pairs.empty() && figures.read_GBps > 0 && figures.peak_GFLOPs > 0) {
    text += baselines_text(session.baselines(), figures, {figures.ridge(), "measured here"}, std::nullopt,
                           style) +
            "\n";
  }
  text += std::string(kRepeats) + "\n";
  if (incomplete)
    text += style.apply(Tone::bad, "incomplete: interrupted; what was measured until then is above") + "\n";
  return text;
}

void measure(const MeasureOptions& options, Invocation& invocation) {
  const OutputFormat format = parse_output_format(options.output.format);
  const MeasureSettings settings = settings_of(options);
  // To the end, so that a signal while the result is written does not lose it.
  const InterruptGuard guard;
  Output output(options.output.output);
  const std::vector<Model> models = options.model.load();
  if (models.size() != 1) throw InputError("measure takes one weight and one KV format");
  const Model& model = models.front();
  const std::vector<Op> ops = lower(model);
  const std::unique_ptr<Device> device = options.device.open();
  Progress progress;
  Session session(
      *device, settings.memory_bytes,
      [&](const std::string& what, std::size_t done, std::size_t of) { progress.show(what, done, of); });
  session.require_memory(ops, settings);
  session.require_memory(small_baselines(device->info()));

  std::vector<std::int64_t> longest = settings.contexts;
  longest.insert(longest.end(), settings.prompts.begin(), settings.prompts.end());
  std::vector<std::string> warnings = warn_of(model, longest);
  const std::size_t printed = warnings.size();

  session.probe();
  // The model comes last: its predictions rest on the peaks of the whole run.
  if (!interrupted()) session.run_baselines(small_baselines(device->info()));
  if (!interrupted()) session.run_model(ops, settings);
  const bool incomplete = interrupted();
  for (const std::string& figure : impossible_figures(session.figures(), session.decode()))
    warnings.push_back(figure);
  for (const std::string& slowed : slowed_warnings(session.decode())) warnings.push_back(slowed);
  for (const std::string& refused : huge_page_warnings(session.figures(), session.decode()))
    warnings.push_back(refused);
  progress.clear();
  for (std::size_t i = printed; i < warnings.size(); ++i) warn(warnings[i]);
  write_result(output, format,
               {.json = [&] { return measure_json(session, model, warnings, incomplete, invocation); },
                .rows = [&] { return measure_rows(session, options.ops, incomplete); },
                .text = [&](const Style& style) { return measure_text(session, model, incomplete, style); }});
  if (incomplete) invocation.status = 130;
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
  options->device.add(*command);
  options->output.add(*command);
  command->callback(
      [=, &invocation] { invocation.run = [=, &invocation] { measure(*options, invocation); }; });
}

}  // namespace memwall
