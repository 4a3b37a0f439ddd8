// Searches kernels for races: between threads of a block, and between blocks of a launch.
#pragma once

#include <string>
#include <vector>

#include "bench/device.h"

namespace memwall::cuda {

// What the thread sanitizer has reported so far.
int races_reported();

// Small tasks that launch every kernel, by name.
struct NamedTask {
  std::string name;
  Task task;
};
std::vector<NamedTask> race_tasks();

// Kernels with a race each, and without it: whether exactly the first were reported. Prints what was not.
bool planted_races_are_found();

}  // namespace memwall::cuda
