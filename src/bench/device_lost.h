// A device that no longer answers.
#pragma once

#include "input/error.h"

namespace memwall {

// Thrown by whatever touches the device: a launch broke its context, or it fell off the bus. Every later call
// of this process fails as well, so that only another process can go on. C++17, since backends include it.
class DeviceLost : public RunError {
 public:
  using RunError::RunError;
};

}  // namespace memwall
