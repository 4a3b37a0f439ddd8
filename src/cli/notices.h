// Notes and warnings on standard error. Until the arguments and the input have proved right they wait, so
// that what is wrong stays one line.
#pragma once

#include <string>

namespace memwall {

// A line on standard error: what a reader should know, and what should worry them.
void note(const std::string& message);
void warn(const std::string& message);

// From here on: prints what has waited, in order, and lets later ones pass at once. For a command to call
// once nothing can be refused any more.
void release_notices();

}  // namespace memwall
