// One task of every kind that a GPU runs, for the tests of a whole device: the fake one, and a real one.
#pragma once

#include <string>
#include <vector>

#include "bench/device.h"

namespace memwall::cuda {

struct DeviceTask {
  std::string name;
  Task task;
  // A combination of ops that a device may have no kernel for; every other task it must run.
  bool optional = false;
};

enum class TaskSize { small, real };  // small enough to emulate, or as models have them

std::vector<DeviceTask> device_tasks(TaskSize size);

}  // namespace memwall::cuda
