#include "cli/options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdio>
#include <limits>

#include "bench/device.h"
#include "cost/cost.h"
#include "cuda/load.h"
#include "cuda/open_device.h"
#include "format/format_words.h"
#include "input/error.h"
#include "input/numbers.h"
#include "input/printable.h"
#include "input/suggest.h"
#include "load/load_model.h"
#include "model/weight_assignment.h"
#include "report/rows.h"

namespace memwall {
namespace {

KvFormat parse_kv(const std::string& name) {
  const FormatWord<KvFormat> word = read_kv_format_word(name);
  if (!word.format) throw InputError(fmt::format("--kv: unknown format '{}': {}", name, word.hint));
  if (!word.taken.empty())
    note(fmt::format("--kv: '{}' is taken as {}: {}", name, kv_format_name(*word.format), word.taken));
  return *word.format;
}

// Each once, in the order given; a repeated one gets a note.
template <typename Thing, typename Name>
std::vector<Thing> once_each(const std::vector<Thing>& things, const char* option, Name name_of) {
  std::vector<Thing> kept;
  for (const Thing& thing : things) {
    if (std::find(kept.begin(), kept.end(), thing) == kept.end()) {
      kept.push_back(thing);
    } else {
      note(fmt::format("{}: {} is listed twice and taken once", option, name_of(thing)));
    }
  }
  return kept;
}

}  // namespace

Format parse_weights(const std::string& name, const char* option) {
  const FormatWord<Format> word = read_format_word(name);
  if (!word.format) throw InputError(fmt::format("{}: unknown format '{}': {}", option, name, word.hint));
  if (!word.taken.empty())
    note(fmt::format("{}: '{}' is taken as {}: {}", option, name, format_name(*word.format), word.taken));
  return *word.format;
}

std::vector<std::int64_t> parse_counts(const std::string& text, const char* option, Range range) {
  std::optional<std::int64_t> repeated;
  std::vector<std::int64_t> values = parse_integer_list(text, option, range, &repeated);
  if (repeated) note(fmt::format("{}: {} is listed twice and taken once", option, *repeated));
  return values;
}

std::vector<Card> parse_cards(const std::string& text, const char* option) {
  std::vector<Card> cards;
  for (const std::string& name : split_list(text, option)) {
    std::vector<std::string> notes;
    Card card = find_card(name, &notes);
    for (const std::string& taken : notes) note(fmt::format("{}: {}", option, taken));
    const bool listed =
        std::any_of(cards.begin(), cards.end(), [&](const Card& other) { return other.name == card.name; });
    if (listed) {
      note(fmt::format("{}: {} is listed twice and taken once", option, card.name));
    } else {
      cards.push_back(std::move(card));
    }
  }
  return cards;
}

std::size_t items_of(const std::string& list) {
  const char separator = list.find('=') != std::string::npos ? ';' : ',';
  return static_cast<std::size_t>(std::count(list.begin(), list.end(), separator)) + 1;
}

std::vector<std::string> split_list(const std::string& text, const char* option) {
  std::vector<std::string> items;
  std::size_t start = 0;
  while (true) {
    const std::size_t comma = text.find(',', start);
    items.push_back(text.substr(start, comma == std::string::npos ? comma : comma - start));
    if (items.back().empty()) {
      throw InputError(
          fmt::format("{}: an item of the list is empty; write names with one comma between", option));
    }
    if (comma == std::string::npos) return items;
    start = comma + 1;
  }
}

void OutputOptions::add(CLI::App& command) {
  command.add_option("--format", format,
                     "table, json, csv or md; without: as the ending of --output says, else table");
  command.add_option("--output,-o", output, "Write to this file instead of standard output");
}

namespace {

// "x.JSON": "json"; empty where the name has none.
std::string ending_of(const std::string& path) {
  const std::size_t point = path.rfind('.');
  if (point == std::string::npos || path.find('/', point) != std::string::npos) return "";
  const std::string ending = lower_case(path.substr(point + 1));
  return ending == "markdown" ? "md" : ending;
}

bool names_format(const std::string& ending) { return ending == "json" || ending == "csv" || ending == "md"; }

// Endings of what memwall does not write: a table in such a file surprises.
bool names_other_format(const std::string& ending) {
  constexpr std::array kOthers = {"yaml", "yml", "tsv", "html", "htm", "xml",
                                  "xlsx", "svg", "png", "pdf",  "gz",  "zip"};
  return std::find(kOthers.begin(), kOthers.end(), ending) != kOthers.end();
}

}  // namespace

OutputFormat OutputOptions::chosen() const {
  const std::string ending = ending_of(output);
  if (format.empty()) {
    for (const char* word : {"table", "json", "csv", "md"}) {
      if (output == word)
        throw InputError(
            fmt::format("--output: '{}' is no file's name; did you mean --format {}? (a file of that name: "
                        "--output ./{})",
                        output, output, output));
    }
    if (names_format(ending)) return parse_output_format(ending);
    if (names_other_format(ending))
      note(
          fmt::format("--output: {} is written as a table; --format json, csv or md says otherwise", output));
    return OutputFormat::table;
  }
  const OutputFormat given = parse_output_format(format);
  if (names_format(ending) && parse_output_format(ending) != given)
    note(fmt::format("--output: {} is written as {}, as --format says", output, format));
  return given;
}

void ModelOptions::add(CLI::App& command) {
  command
      .add_option(
          "MODEL", model,
          "A model of the zoo (`memwall models`), a model YAML, a config.json, a folder that holds one, a "
          "safetensors or a GGUF file")
      ->required();
  command.add_option(
      "--weights", weights,
      "Weight format of the linears, e.g. f16, q8_0, q4_k, int4-g128, awq; a list. Or of parts: "
      "experts=mxfp4,rest=q8_0 (attention, mlp, experts, shared_experts, router, lm_head, "
      "embedding, tensors like q_proj or *.down_proj); ';' between alternatives");
  command.add_option("--head-weights", head_weights, "Weight format of lm_head and embedding");
  command.add_option("--kv", kv, "KV cache format, e.g. bf16, f8_e4m3, int8, q8_0; a list");
}

std::vector<Model> ModelOptions::load() const {
  std::optional<Format> head;
  if (!head_weights.empty()) head = parse_weights(head_weights, "--head-weights");
  std::vector<WeightAssignment> assignments = {{}};
  if (!weights.empty()) {
    assignments = parse_weight_assignments(
        weights, "--weights", [](const std::string& name) { return parse_weights(name, "--weights"); });
    assignments = once_each(assignments, "--weights", [](const auto& one) { return one.label(); });
  }
  std::vector<std::optional<KvFormat>> kvs = {std::nullopt};
  if (!kv.empty()) {
    kvs.clear();
    for (const std::string& name : split_list(kv, "--kv")) kvs.push_back(parse_kv(name));
    kvs = once_each(kvs, "--kv", [](const auto& format) { return kv_format_name(*format); });
  }
  std::vector<std::string> notes;
  const Model base = find_model(model, &notes);
  for (const std::string& taken : notes) note(taken);
  std::vector<Model> models;
  for (const WeightAssignment& assignment : assignments) {
    for (const std::optional<KvFormat>& cache : kvs) {
      models.push_back(with_weights(base, assignment, head));
      if (cache) models.back().kv = *cache;
    }
  }
  return models;
}

void WorkloadOptions::add(CLI::App& command) {
  command.add_option("--batch,-b", batch, "Sequences decoded together; a list, e.g. 1,8 or 1-64*2")
      ->capture_default_str();
  command
      .add_option("--context,-c", context, "Tokens in each one's KV cache; a list, e.g. 8k,128k (k = 1024)")
      ->capture_default_str();
}

std::vector<std::int64_t> WorkloadOptions::batches() const {
  return parse_counts(batch, "--batch", {1, kMostBatch});
}

std::vector<std::int64_t> WorkloadOptions::contexts() const {
  return parse_counts(context, "--context", {1, kMostContext});
}

void DeviceOptions::add(CLI::App& command) {
  command
      .add_option("--device", device,
                  "cpu, cuda:N (`memwall devices`), or auto: cuda:0 where there is one, else the CPU")
      ->capture_default_str();
  command.add_option("--threads", threads,
                     "Threads to run on; default one a physical core, or one a CPU of --cpus");
  command.add_option("--cpus", cpus, "CPUs to run on, e.g. 0-3,8; default all that this process may use");
  command
      .add_option("--numa", numa,
                  "local: memory lies on the node of the thread that reads it; interleave: on all in turn")
      ->capture_default_str();
  command.add_option(
      "--memory", memory,
      "Memory to use at most, e.g. 2GiB; default a quarter of what is free, with --step seven eighths");
  command.add_flag("--strict", strict,
                   "Exit with status 1 where figures are unstable, since others used the machine");
}

std::unique_ptr<Device> DeviceOptions::open() const { return open(note, warn); }

bool DeviceOptions::may_be_gpu() const {
  const DeviceChoice choice = parse_device(device);
  const bool names_cpus = !threads.empty() || !cpus.empty() || numa != "local";
  if (choice.kind == DeviceChoice::Kind::automatic && names_cpus) return false;
  return choice.kind != DeviceChoice::Kind::cpu && cuda::has_module();
}

std::unique_ptr<Device> DeviceOptions::open(const std::function<void(const std::string&)>& notice,
                                            const std::function<void(const std::string&)>& warning) const {
  CpuSettings settings;
  constexpr std::int64_t kMostThreads = 65536;
  if (!threads.empty())
    settings.choice.threads = static_cast<int>(parse_integer(threads, "--threads", {1, kMostThreads}));
  if (!cpus.empty()) settings.choice.cpus = parse_cpu_list(cpus, "--cpus");
  if (numa == "interleave") {
    settings.numa = NumaPolicy::interleave;
  } else if (numa != "local") {
    throw InputError(fmt::format("--numa: '{}' is neither local nor interleave", numa));
  }
  std::unique_ptr<Device> opened = open_device(device, settings, device_sources(notice));
  const DeviceInfo& info = opened->info();
  if (settings.numa == NumaPolicy::interleave) {
    if (info.numa_nodes == 1)
      warning("--numa interleave: there is one NUMA node, so nothing to interleave");
    else if (info.numa != settings.numa)
      warning("--numa interleave: the system refuses; memory is local");
  }
  return opened;
}

std::int64_t DeviceOptions::memory_bytes() const {
  return memory.empty() ? 0 : parse_bytes(memory, "--memory");
}

std::uint64_t parse_seed(const std::string& text) {
  return static_cast<std::uint64_t>(
      parse_integer(text, "--seed", {0, std::numeric_limits<std::int64_t>::max()}));
}

std::vector<std::string> warn_of(const Model& model, const std::vector<std::int64_t>& contexts) {
  std::vector<std::string> warnings = model.warnings;
  const std::int64_t longest = *std::max_element(contexts.begin(), contexts.end());
  if (model.max_context > 0 && longest > model.max_context) {
    warnings.push_back(fmt::format("context {} is beyond the {} tokens {} was made for", longest,
                                   model.max_context, model.name));
  }
  for (const std::string& warning : warnings) warn(warning);
  return warnings;
}

namespace {

std::string text_of(const Result& result, OutputFormat format, const Style& style) {
  switch (format) {
    case OutputFormat::json:
      return printable_json(result.json().dump(2, ' ', false, Json::error_handler_t::replace)) + "\n";
    case OutputFormat::csv:
      return to_csv(result.rows());
    case OutputFormat::md:
      return to_markdown(result.rows());
    case OutputFormat::table:
      break;
  }
  return printable_lines(result.text(style), style.colour);
}

}  // namespace

void write_result(Output& output, OutputFormat format, const Result& result) {
  release_notices();
  output.write(text_of(result, format, output.style()));
}

void write_snapshot(Output& output, OutputFormat format, const Result& result) {
  output.snapshot(text_of(result, format, output.style()));
}

}  // namespace memwall
