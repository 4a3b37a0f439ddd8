// A way to run a task that turns out not to be one.
#pragma once

#include "input/error.h"

namespace memwall {

// Thrown by a launch: a library offers it for the type, but refuses this shape or device, or fails at it and
// leaves the device usable. Whoever times variants goes on with the others. C++17, since backends include it.
class UnsupportedError : public RunError {
 public:
  using RunError::RunError;
};

}  // namespace memwall
