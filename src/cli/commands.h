// One function a command: it adds the command's options to the parser and, when the command is the one
// chosen, leaves what to run in the invocation.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace memwall {

struct Invocation {
  std::vector<std::string> arguments;
  std::function<void()> run = {};
  int status = 0;
};

void add_baseline(CLI::App& app, Invocation& invocation);
void add_inspect(CLI::App& app, Invocation& invocation);
void add_estimate(CLI::App& app, Invocation& invocation);
void add_measure(CLI::App& app, Invocation& invocation);
void add_models(CLI::App& app, Invocation& invocation);
void add_cards(CLI::App& app, Invocation& invocation);
void add_devices(CLI::App& app, Invocation& invocation);

}  // namespace memwall
