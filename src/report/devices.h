// What `memwall devices` tells of the devices of this machine.
#pragma once

#include <string>
#include <vector>

#include "cuda/find_devices.h"
#include "report/json.h"
#include "report/table.h"

namespace memwall {

// What auto takes: "cuda:0" where it opens, else "cpu".
std::string automatic_device(const FoundDevices& found);

// devices[], a row each: the CPU first.
std::vector<Json> device_rows(const FoundDevices& found);
// {auto, devices[], cuda.{available, why_not, driver, runtime, cublas, cublasLt, no_cublas}}.
Json devices_figures(const FoundDevices& found);
std::string devices_text(const FoundDevices& found, const Style& style);

// "2 threads pinned, one a physical core (CPUs 0-1)"; hardware threads that share cores, and NUMA nodes, are
// told.
std::string threads_text(const DeviceInfo& info);

}  // namespace memwall
