// From the word after --device to a device that is open.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "bench/device.h"
#include "cuda/runtime.h"

namespace memwall {

// "auto", "cpu" or "cuda:N", N being CUDA's own numbering.
struct DeviceChoice {
  enum class Kind { automatic, cpu, cuda };
  Kind kind = Kind::automatic;
  int index = 0;
};
// Throws InputError for another word.
DeviceChoice parse_device(const std::string& word);

// What opening a device asks of the machine; the tests bring machines of their own.
struct DeviceSources {
  std::function<std::unique_ptr<cuda::Runtime>()> load_runtime;  // throws RunError
  std::function<bool()> nvidia_here;
  std::function<void(const std::string&)> notice;  // a line on standard error
};
// This machine's.
DeviceSources device_sources(std::function<void(const std::string&)> notice);

// cpu: the CPU; CUDA's module is not loaded.
// cuda:N: that GPU. Throws InputError where there is none of that number, or where `cpu` asks for threads,
// CPUs or a placement of memory; RunError where the GPU is there and does not open. auto: the GPU cuda:0
// where there is one that opens, else the CPU. A notice says why, but where nothing suggests that there could
// be one: no NVIDIA device and a build without CUDA. Where `cpu` asks for threads, CPUs or a placement of
// memory, the CPU is meant. A GPU without cuBLAS gives a notice, too.
std::unique_ptr<Device> open_device(const std::string& word, const CpuSettings& cpu,
                                    const DeviceSources& sources);

}  // namespace memwall
