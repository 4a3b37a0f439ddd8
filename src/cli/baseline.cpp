// memwall baseline: the two kernels at opposite ends, add and matmul; the size sweep; the ridge point.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <iostream>
#include <memory>

#include "bench/interrupt.h"
#include "bench/measure.h"
#include "card/card.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/run_session.h"
#include "input/error.h"
#include "input/numbers.h"
#include "report/measured.h"
#include "report/rows.h"

namespace memwall {
namespace {

struct BaselineOptions {
  OutputOptions output;
  std::string n;  // empty: the device's
  std::string card;
  std::string peak_bw;
  std::string peak_tflops;
  std::string predict;
  bool no_prompt = false;
  std::string seed = std::to_string(kDefaultSeed);
  DeviceOptions device;
};

constexpr Format kF32{FormatKind::f32, 0, false};
constexpr Format kF16{FormatKind::f16, 0, false};
constexpr Format kBf16{FormatKind::bf16, 0, false};

// The ridge from datasheet peaks, where a card or both peaks were given.
std::optional<Ridge> datasheet_ridge(const BaselineOptions& options) {
  const bool own_peaks = !options.peak_bw.empty() || !options.peak_tflops.empty();
  if (own_peaks && !options.card.empty())
    throw InputError("give --card, or --peak-bw and --peak-tflops, not both");
  if (own_peaks) {
    if (options.peak_bw.empty() || options.peak_tflops.empty()) {
      throw InputError("--peak-bw (GB/s) and --peak-tflops (TFLOP/s) go together");
    }
    const double bandwidth = parse_positive(options.peak_bw, "--peak-bw");
    const double tflops = parse_positive(options.peak_tflops, "--peak-tflops");
    return Ridge{tflops * 1e3 / bandwidth, "--peak-tflops over --peak-bw"};
  }
  if (options.card.empty()) return std::nullopt;
  std::vector<std::string> notes;
  const Card card = find_card(options.card, &notes);
  for (const std::string& taken : notes) note("--card: " + taken);
  for (const std::string& sentence : card.assumed) warn(fmt::format("{}: {}", card.name, sentence));
  const Peak peak = peak_for(card, kF16);
  return Ridge{peak.flops_per_s / card.bytes_per_s(),
               fmt::format("{}, {}", card.title, compute_type_name(peak.type))};
}

// Predict first: the reader's own number, before anything runs.
std::optional<double> predicted_ratio(const BaselineOptions& options, std::int64_t n) {
  if (!options.predict.empty()) return parse_positive(options.predict, "--predict");
  if (options.no_prompt || ::isatty(STDIN_FILENO) != 1 || ::isatty(STDOUT_FILENO) != 1) return std::nullopt;
  while (true) {
    std::fputs(
        fmt::format(
            "add: c = a + b; matmul: c = a b; the same {}×{} tensors. How many times longer will matmul "
            "take? ",
            n, n)
            .c_str(),
        stderr);
    std::string line;
    if (!std::getline(std::cin, line) || line.empty()) return std::nullopt;
    try {
      return parse_positive(line, "your answer");
    } catch (const InputError& error) {
      std::fputs(fmt::format("{}; or press Enter to skip\n", error.what()).c_str(), stderr);
    }
  }
}

// What the device is asked to multiply: on a GPU in the fastest types, too.
BaselineSettings settings_on(const DeviceInfo& device, BaselineSettings settings, bool own_n) {
  if (!own_n) settings.n = device.matmul_n * (device.gpu ? 1 : 2);
  settings.sweep_to = settings.n;
  settings.formats = device.gpu ? std::vector<Format>{kF16, kBf16, kF32} : std::vector<Format>{kF16, kF32};
  settings.sweep_format = device.gpu ? kBf16 : kF32;
  return settings;
}

Json ratio_figures(const BaselineFigures& baselines, std::optional<double> predicted) {
  Json json = Json::object();
  for (const Format& format : {kF16, kBf16, kF32}) {
    if (const auto ratio = slowdown(baselines, format)) json[format_name(format)] = number(*ratio);
  }
  if (predicted) json["predicted"] = number(*predicted);
  return json;
}

// Refers to the session and the invocation.
Result baseline_result(const Session& session, const std::optional<Ridge>& datasheet,
                       std::optional<double> predicted, std::uint64_t seed, const Invocation& invocation) {
  const DeviceFigures figures = session.figures();
  const Ridge ridge = datasheet.value_or(Ridge{figures.ridge(), "measured here"});
  const bool incomplete = session.stopped();
  const auto whole = [=, &session, &invocation] {
    Json json = document("baseline", circumstances_now(invocation.arguments));
    json["device"] = device_figures(figures);
    json["ridge"] = {{"flop_per_byte", number(ridge.flop_per_byte)}, {"from", ridge.from}};
    json["seed"] = seed;
    json["matmul_over_add"] = ratio_figures(session.baselines(), predicted);
    json["baselines"] = baselines_figures(session.baselines(), figures, ridge.flop_per_byte);
    if (incomplete) json["incomplete"] = true;
    return json;
  };
  const auto table_rows = [=, &session] {
    std::vector<Json> rows;
    const Json all = baselines_figures(session.baselines(), figures, ridge.flop_per_byte);
    // The peaks and the ridge that the shares and bounds are of, as in JSON.
    const Json device = device_figures(figures);
    for (const char* part : {"all", "sweep"}) {
      const std::vector<Baseline>& baselines =
          part == std::string("all") ? session.baselines().pairs : session.baselines().sweep;
      for (std::size_t i = 0; i < baselines.size(); ++i) {
        Json full = {{"part", part}};
        full.update(flatten(all[part][i]));
        full["variants"] = baseline_ways(baselines[i]);
        full["ridge.flop_per_byte"] = number(ridge.flop_per_byte);
        full["ridge.from"] = ridge.from;
        for (const char* key : {"best_read_GBps", "peak_GBps", "peak_GFLOPs"})
          full[std::string("device.") + key] = device[key];
        if (incomplete) full["incomplete"] = true;
        rows.push_back(std::move(full));
      }
    }
    if (rows.empty() && incomplete) rows.push_back(Json::object({{"incomplete", true}}));
    return rows;
  };
  const auto text = [=, &session](const Style& style) {
    std::string words = device_text(figures, style) + "\n" + streams_text(figures, style) + "\n" +
                        baselines_text(session.baselines(), figures, ridge, predicted, style);
    if (incomplete)
      words += style.apply(Tone::bad, "incomplete: " + session.shortage().value_or("interrupted")) + "\n";
    return words;
  };
  return {.json = whole, .rows = table_rows, .text = text};
}

void baseline(const BaselineOptions& options, Invocation& invocation) {
  const OutputFormat format = options.output.chosen();
  BaselineSettings settings;
  if (!options.n.empty()) settings.n = parse_integer(options.n, "--n", {16, 32768});
  options.device.memory_bytes();  // refused before anything is opened
  settings.seed = parse_seed(options.seed);
  const std::optional<Ridge> ridge = datasheet_ridge(options);
  if (!options.predict.empty()) parse_positive(options.predict, "--predict");
  Output output(options.output.output);
  const bool own_n = !options.n.empty();
  std::optional<double> predicted;
  // From the question to the end, so that a signal while the result is written does not lose it.
  std::optional<InterruptGuard> guard;
  const auto result = [&](const Session& session) {
    return baseline_result(session, ridge, predicted, settings.seed, invocation);
  };
  std::function<void(const Session&)> checkpoint;
  if (output.is_file())
    checkpoint = [&](const Session& session) { write_snapshot(output, format, result(session)); };
  const FinishedSession done = run_session(
      options.device, {.check =
                           [&](const Session& session) {
                             session.require_memory(settings_on(session.info(), settings, own_n));
                           },
                       .accepted =
                           [&](const DeviceInfo& device) {
                             predicted = predicted_ratio(options, settings_on(device, settings, own_n).n);
                             guard.emplace();
                           },
                       .run =
                           [&](Session& session) {
                             session.probe();
                             if (!session.stopped())
                               session.run_baselines(settings_on(session.info(), settings, own_n));
                           },
                       .checkpoint = checkpoint});
  const Session& session = *done.session;
  for (const std::string& warning : done.warnings) warn(warning);
  const std::vector<std::string> unstable = unstable_warnings(session.figures(), session.baselines(), {});
  for (const std::string& warning : unstable) warn(warning);
  for (const std::string& warning : huge_page_warnings(session.figures(), {})) warn(warning);
  if (session.shortage()) warn("out of memory: " + *session.shortage());
  write_result(output, format, result(session));
  if (session.shortage() || done.failed || (options.device.strict && !unstable.empty()))
    invocation.status = 1;
  if (interrupted()) invocation.status = 130;
}

}  // namespace

void add_baseline(CLI::App& app, Invocation& invocation) {
  CLI::App* command = app.add_subcommand("baseline", "The two kernels at opposite ends: add and matmul");
  const auto options = std::make_shared<BaselineOptions>();
  command->add_option("--n", options->n, "Size of the n x n tensors; without: 4096, on a large GPU 8192");
  command->add_option("--card", options->card, "Take the ridge point from this card's datasheet");
  command->add_option("--peak-bw", options->peak_bw, "Datasheet bandwidth in GB/s, for the ridge point");
  command->add_option("--peak-tflops", options->peak_tflops,
                      "Datasheet peak in TFLOP/s, for the ridge point");
  command->add_option("--predict", options->predict, "How many times longer matmul will take than add");
  command->add_flag("--no-prompt", options->no_prompt, "Do not ask for a prediction");
  command->add_option("--seed", options->seed, "Of the tensors' random values")->capture_default_str();
  options->device.add(*command);
  options->output.add(*command);
  command->callback(
      [=, &invocation] { invocation.run = [=, &invocation] { baseline(*options, invocation); }; });
}

}  // namespace memwall
