// The clocks and what slows them, from NVML, the driver's management library, loaded where it is there.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "cuda/runtime.h"

namespace memwall::cuda {

// NVML's clocks event reasons, by name; the bit of an idle GPU has none.
std::vector<std::string> slowed_by(std::uint64_t reasons);

class Nvml {
 public:
  // Finds the library's functions by name; null for what it has not.
  using Lookup = std::function<void*(const char* name)>;

  // In libnvidia-ml.so.1. Never throws for a missing library or device: clocks() says why there are none.
  explicit Nvml(const std::string& pci_id);
  Nvml(const std::string& pci_id, const Lookup& lookup);
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  Clocks clocks() const;

 private:
  void open(const std::string& pci_id, const Lookup& lookup);

  void* library_ = nullptr;  // dlopen's
  std::string why_not_;
  void* device_ = nullptr;
  bool initialised_ = false;

  // The prototypes of nvml.h (driver 580's API reference); 0 is success. These functions have not changed
  // since NVML 4, but for the two ending in _v2 and the last, which NVML 12.535 renamed from
  // nvmlDeviceGetCurrentClocksThrottleReasons.
  int (*init_)() = nullptr;
  int (*shutdown_)() = nullptr;
  const char* (*error_string_)(int) = nullptr;
  int (*driver_version_)(char* version, unsigned length) = nullptr;
  int (*by_pci_id_)(const char* pci_id, void** device) = nullptr;
  int (*clock_)(void* device, int kind, unsigned* MHz) = nullptr;
  int (*temperature_)(void* device, int sensor, unsigned* celsius) = nullptr;
  int (*power_)(void* device, unsigned* milliwatts) = nullptr;
  int (*reasons_)(void* device, unsigned long long* reasons) = nullptr;
};

}  // namespace memwall::cuda
