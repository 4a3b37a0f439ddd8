// memwall inspect MODEL: its layers, shapes, parameters, bytes, KV bytes per token.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/commands.h"
#include "cli/options.h"
#include "input/error.h"
#include "input/numbers.h"
#include "report/rows.h"
#include "report/text.h"

namespace memwall {
namespace {

struct InspectOptions {
  ModelOptions model;
  std::string context = "1024";
  OutputOptions output;
};

void inspect(const InspectOptions& options, const Invocation& invocation) {
  const OutputFormat format = parse_output_format(options.output.format);
  const std::int64_t context = parse_integer(options.context, "--context", {1, kMostContext});
  const std::vector<Model> models = options.model.load();
  if (models.size() != 1) throw InputError("inspect takes one weight and one KV format");
  const Model& model = models.front();
  const std::string warning = context_warning(model, {context});
  Output output(options.output.output);
  if (!warning.empty()) warn(warning);

  const std::vector<Op> ops = group_equal(lower(model));
  const Step step = cost_step(ops, {.phase = Phase::decode, .batch = 1, .context = context});
  write_result(output, format,
               {.json =
                    [&] {
                      Json json = document("inspect", circumstances_now(invocation.arguments));
                      json["model"] = model_figures(model);
                      json["context"] = context;
                      json["ops"] = ops_figures(step, nullptr);
                      json["warnings"] = warning.empty() ? Json::array() : Json::array({warning});
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

}  // namespace

void add_inspect(CLI::App& app, Invocation& invocation) {
  CLI::App* command = app.add_subcommand("inspect", "A model's layers, shapes, parameters and bytes");
  const auto options = std::make_shared<InspectOptions>();
  options->model.add(*command);
  command->add_option("--context,-c", options->context, "Tokens in the KV cache")->capture_default_str();
  options->output.add(*command);
  command->callback(
      [=, &invocation] { invocation.run = [=, &invocation] { inspect(*options, invocation); }; });
}

}  // namespace memwall
