// The command line before it is parsed: what is misspelt or missing is named itself.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace memwall {

// Throws InputError, in one line, for a command that is missing or unknown, an option before the command, an
// unknown option (with the nearest), a flag with a value, an option without its value, an argument too many,
// and a required argument or option that is missing. `arguments` starts with the program's name. --help and
// --version pass.
void check_arguments(const CLI::App& app, const std::vector<std::string>& arguments);

}  // namespace memwall
