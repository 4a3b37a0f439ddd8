// An op of a step as a task, stripped of what it does not depend on, so that equal tasks compare equal.
#pragma once

#include "bench/device.h"

namespace memwall {

// Only attention cares for the context of a decode step, and what sees the last token of a prompt alone
// runs as in a decode step.
OpTask essential_task(const Work& work, Workload workload);

bool same_task(const OpTask& a, const OpTask& b);
// False for tasks that are no ops.
bool same_task(const Task& a, const Task& b);

}  // namespace memwall
