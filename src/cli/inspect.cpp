// memwall inspect MODEL: its layers, shapes, parameters, bytes, KV bytes per token.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/commands.h"
#include "cli/notices.h"
#include "cli/options.h"
#include "cli/stream.h"
#include "input/error.h"
#include "input/numbers.h"
#include "load/load_model.h"
#include "model/yaml_writer.h"
#include "report/checkpoint_text.h"
#include "report/rows.h"
#include "report/text.h"

namespace memwall {
namespace {

struct InspectOptions {
  ModelOptions model;
  std::string other;
  std::string context = "1024";
  OutputOptions output;
};

Model only_model(const ModelOptions& options) {
  std::vector<Model> models = options.load();
  if (models.size() != 1) throw InputError("inspect takes one weight and one KV format");
  return std::move(models.front());
}

void inspect_one(const Model& model, std::int64_t context, OutputFormat format, Output& output,
                 const Invocation& invocation) {
  const std::vector<std::string> warnings = warn_of(model, {context});
  const std::vector<Op> ops = group_equal(lower(model));
  const Step step = cost_step(ops, {.phase = Phase::decode, .batch = 1, .context = context});
  write_result(output, format,
               {.json =
                    [&] {
                      Json json = document("inspect", circumstances_now(invocation.arguments));
                      json["model"] = model_figures(model);
                      json["context"] = context;
                      json["ops"] = ops_figures(step, nullptr);
                      json["warnings"] = warnings;
                      return json;
                    },
                .rows =
                    [&] {
                      std::vector<Json> rows;
                      for (const Json& op : ops_figures(step, nullptr)) rows.push_back(flatten(op));
                      return rows;
                    },
                .text = [&](const Style& style) { return inspect_text(model, ops, step, style); }});
}

void inspect_two(const Model& a, const Model& b, std::int64_t context, OutputFormat format, Output& output,
                 const Invocation& invocation) {
  std::vector<std::string> warnings = warn_of(a, {context});
  for (const std::string& warning : warn_of(b, {context})) warnings.push_back(warning);
  write_result(output, format,
               {.json =
                    [&] {
                      Json json = document("inspect", circumstances_now(invocation.arguments));
                      json["models"] = {model_figures(a), model_figures(b)};
                      json["context"] = context;
                      json["warnings"] = warnings;
                      return json;
                    },
                .rows =
                    [&] {
                      std::vector<Json> rows;
                      for (const Model* model : {&a, &b}) {
                        Json figures = model_figures(*model);
                        figures.erase("components");
                        figures.erase("extras");
                        rows.push_back(flatten(figures));
                      }
                      return rows;
                    },
                .text = [&](const Style& style) { return inspect_pair_text(a, b, context, style); }});
}

// Safetensors without a config.json: the tensors are all there is to say.
void inspect_tensors(const Checkpoint& checkpoint, OutputFormat format, Output& output,
                     const Invocation& invocation) {
  warn(fmt::format("{}: no config.json beside it: these are its tensors", checkpoint.path));
  // There may be 400,000 of them: one at a time.
  if (format == OutputFormat::json) {
    Json json = document("inspect", circumstances_now(invocation.arguments));
    json["file"] = checkpoint.path;
    json["data_bytes"] = checkpoint.data_bytes;
    json["tensors"] = Json::array();
    release_notices();
    return write_json(output, json, "tensors", [&](const auto& take) {
      for (const StoredTensor& tensor : checkpoint.tensors) take(tensor_figures(tensor));
    });
  }
  if (format != OutputFormat::table) {
    release_notices();
    return write_rows(output, format, [&](const auto& take) {
      for (const StoredTensor& tensor : checkpoint.tensors) {
        Json row = tensor_figures(tensor);
        row["shape"] = fmt::format("{}", fmt::join(tensor.shape, "x"));
        take(row);
      }
    });
  }
  write_result(output, format, {.json = {}, .rows = {}, .text = [&](const Style& style) {
                                  return tensors_text(checkpoint, style);
                                }});
}

void inspect(const InspectOptions& options, const Invocation& invocation) {
  // A model file is no report: only inspect writes one.
  const bool yaml = options.output.format == "yaml" ||
                    (options.output.format.empty() &&
                     (options.output.output.ends_with(".yaml") || options.output.output.ends_with(".yml")));
  if (options.output.format.empty() && options.output.output == "yaml")
    throw InputError(
        "--output: 'yaml' is no file's name; did you mean --format yaml? (a file of that name: --output "
        "./yaml)");
  if (yaml && !options.other.empty()) throw InputError("--format yaml writes one model");
  const OutputFormat format = yaml ? OutputFormat::table : options.output.chosen();
  const std::int64_t context = parse_count(options.context, "--context", {1, kMostContext});
  if (!yaml && options.other.empty()) {
    if (const std::optional<Checkpoint> checkpoint = find_bare_checkpoint(options.model.model)) {
      Output output(options.output.output);
      return inspect_tensors(*checkpoint, format, output, invocation);
    }
  }
  const Model model = only_model(options.model);
  Output output(options.output.output);
  if (yaml) {
    for (const std::string& warning : model.warnings) warn(warning);
    release_notices();
    return output.write(model_yaml(model));
  }
  if (options.other.empty()) return inspect_one(model, context, format, output, invocation);
  ModelOptions other = options.model;
  other.model = options.other;
  inspect_two(model, only_model(other), context, format, output, invocation);
}

}  // namespace

void add_inspect(CLI::App& app, Invocation& invocation) {
  CLI::App* command = app.add_subcommand("inspect", "A model's layers, shapes, parameters and bytes");
  const auto options = std::make_shared<InspectOptions>();
  options->model.add(*command);
  command->add_option("OTHER", options->other, "A second model, to compare with the first");
  command->add_option("--context,-c", options->context, "Tokens in the KV cache")->capture_default_str();
  options->output.add(*command);
  command->get_option("--format")
      ->description(
          "table, json, csv, md, or yaml: a model file; without: as the ending of --output says, else table");
  command->callback(
      [=, &invocation] { invocation.run = [=, &invocation] { inspect(*options, invocation); }; });
}

}  // namespace memwall
