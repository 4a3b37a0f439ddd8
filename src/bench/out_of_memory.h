// Memory that a measurement needs and the machine does not give: what was measured until then is kept.
#pragma once

#include "input/error.h"

namespace memwall {

class OutOfMemory : public RunError {
 public:
  using RunError::RunError;
};

}  // namespace memwall
