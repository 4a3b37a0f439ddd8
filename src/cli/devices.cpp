// memwall devices: what this machine can measure on, and why not on a GPU where it cannot.
#include "report/devices.h"

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/commands.h"
#include "cli/options.h"
#include "cuda/find_devices.h"
#include "report/rows.h"

namespace memwall {
namespace {

void devices(const OutputOptions& options, const Invocation& invocation) {
  const OutputFormat format = options.chosen();
  const std::vector<Card> cards = all_cards();
  Output output(options.output);
  const FoundDevices found = find_devices(device_sources(note), cards);
  write_result(output, format,
               {.json =
                    [&] {
                      Json json = document("devices", circumstances_now(invocation.arguments));
                      json.update(devices_figures(found));
                      return json;
                    },
                .rows =
                    [&] {
                      std::vector<Json> rows = device_rows(found);
                      for (Json& row : rows) row = flatten(row);
                      return rows;
                    },
                .text = [&](const Style& style) { return devices_text(found, style); }});
}

}  // namespace

void add_devices(CLI::App& app, Invocation& invocation) {
  CLI::App* command = app.add_subcommand("devices", "The CPU and the GPUs of this machine");
  const auto options = std::make_shared<OutputOptions>();
  options->add(*command);
  command->callback(
      [=, &invocation] { invocation.run = [=, &invocation] { devices(*options, invocation); }; });
}

}  // namespace memwall
