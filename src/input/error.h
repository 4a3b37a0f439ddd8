// The two ways a command fails. Libraries throw these; only main prints and exits.
#pragma once

#include <stdexcept>
#include <string>

namespace memwall {

// The input or the arguments are wrong: exit status 2. The message says what is wrong and what would be
// right, on one line, and starts with FILE:LINE:COLUMN where there is one.
class InputError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The run failed though the input was right: exit status 1.
class RunError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace memwall
