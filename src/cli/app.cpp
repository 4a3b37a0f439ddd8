#include "cli/app.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <sstream>

#include "cli/arguments.h"
#include "cli/commands.h"
#include "input/error.h"
#include "report/output.h"

namespace memwall {
namespace {

// CLI11's own messages run over several lines; one is enough.
std::string one_line(std::string text) {
  for (char& c : text) {
    if (c == '\n' || c == '\r') c = ' ';
  }
  return text;
}

// An option given as "" would read as one that was not given.
void refuse_empty_values(const CLI::App& command) {
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& value : option->results()) {
      if (value.empty())
        throw InputError(option->get_name() + ": its value is empty; give one, or leave it out");
    }
  }
}

}  // namespace

int run_command_line(const std::vector<std::string>& arguments) {
  CLI::App app("How fast can this LLM decode on this card, and what stops it from going faster?", "memwall");
  app.set_version_flag("--version", "memwall " MEMWALL_VERSION);
  app.require_subcommand(1);
  Invocation invocation{.arguments = arguments};
  add_baseline(app, invocation);
  add_inspect(app, invocation);
  add_estimate(app, invocation);
  add_measure(app, invocation);
  add_models(app, invocation);
  add_cards(app, invocation);
  add_devices(app, invocation);
  check_arguments(app, arguments);

  std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
  if (!reversed.empty()) reversed.pop_back();  // the program's own name
  try {
    app.parse(reversed);
  } catch (const CLI::Success& help_or_version) {
    std::ostringstream text;
    app.exit(help_or_version, text, text);
    Output("").write(text.str());
    return 0;
  } catch (const CLI::ParseError& error) {
    throw InputError(one_line(error.what()) + "; --help shows what is right");
  }
  for (const CLI::App* command : app.get_subcommands()) refuse_empty_values(*command);
  invocation.run();
  return invocation.status;
}

}  // namespace memwall
