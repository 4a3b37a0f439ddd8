// The command line: every command, its options, and the errors they share.
#pragma once

#include <string>
#include <vector>

namespace memwall {

// Runs `memwall ARGUMENTS...` and returns its exit status: 0, or 130 when interrupted. Throws InputError
// for arguments or input that are wrong, RunError for a run that failed.
int run_command_line(const std::vector<std::string>& arguments);

}  // namespace memwall
