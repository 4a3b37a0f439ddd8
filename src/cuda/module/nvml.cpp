#include "cuda/module/nvml.h"

#include <dlfcn.h>

#include <array>

namespace memwall::cuda {
namespace {

// Of nvml.h: nvmlClockType_t, nvmlTemperatureSensors_t, NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE.
constexpr int kSmClock = 1;
constexpr int kMemoryClock = 2;
constexpr int kGpuTemperature = 0;
constexpr unsigned kVersionLength = 80;

struct Reason {
  std::uint64_t bit;
  const char* name;
};

// Of nvml.h: nvmlClocksEventReason*. 0x1 is an idle GPU.
constexpr std::array kReasons = {
    Reason{0x2, "application clocks"},
    Reason{0x4, "power cap"},
    Reason{0x8, "hardware slowdown"},
    Reason{0x10, "sync boost"},
    Reason{0x20, "software thermal limit"},
    Reason{0x40, "hardware thermal limit"},
    Reason{0x80, "power brake"},
    Reason{0x100, "display clocks"},
};

template <class Function>
void find(const Nvml::Lookup& lookup, const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(lookup(name));
}

}  // namespace

std::vector<std::string> slowed_by(std::uint64_t reasons) {
  std::vector<std::string> names;
  for (const Reason& reason : kReasons)
    if ((reasons & reason.bit) != 0) names.emplace_back(reason.name);
  return names;
}

Nvml::Nvml(const std::string& pci_id) : library_(dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL)) {
  if (library_ == nullptr) {
    const char* words = dlerror();
    why_not_ = "NVML is not there: " + std::string(words == nullptr ? "libnvidia-ml.so.1" : words);
    return;
  }
  open(pci_id, [this](const char* name) { return dlsym(library_, name); });
}

Nvml::Nvml(const std::string& pci_id, const Lookup& lookup) { open(pci_id, lookup); }

Nvml::~Nvml() {
  if (initialised_) shutdown_();
  if (library_ != nullptr) dlclose(library_);
}

void Nvml::open(const std::string& pci_id, const Lookup& lookup) {
  find(lookup, "nvmlInit_v2", init_);
  find(lookup, "nvmlShutdown", shutdown_);
  find(lookup, "nvmlErrorString", error_string_);
  find(lookup, "nvmlDeviceGetHandleByPciBusId_v2", by_pci_id_);
  if (init_ == nullptr || shutdown_ == nullptr || error_string_ == nullptr || by_pci_id_ == nullptr) {
    why_not_ = "NVML lacks a function that memwall needs";
    return;
  }
  // These it may lack: what they tell stays 0.
  find(lookup, "nvmlSystemGetDriverVersion", driver_version_);
  find(lookup, "nvmlDeviceGetClockInfo", clock_);
  find(lookup, "nvmlDeviceGetTemperature", temperature_);
  find(lookup, "nvmlDeviceGetPowerUsage", power_);
  find(lookup, "nvmlDeviceGetCurrentClocksEventReasons", reasons_);
  if (reasons_ == nullptr) find(lookup, "nvmlDeviceGetCurrentClocksThrottleReasons", reasons_);
  if (const int status = init_(); status != 0) {
    why_not_ = "NVML does not start: " + std::string(error_string_(status));
    return;
  }
  initialised_ = true;
  if (const int status = by_pci_id_(pci_id.c_str(), &device_); status != 0)
    why_not_ = "NVML does not know device " + pci_id + ": " + error_string_(status);
}

Clocks Nvml::clocks() const {
  Clocks clocks;
  clocks.available = why_not_.empty();
  clocks.why_not = why_not_;
  if (!initialised_) return clocks;
  std::array<char, kVersionLength> version{};
  if (driver_version_ != nullptr && driver_version_(version.data(), kVersionLength) == 0)
    clocks.driver_version = version.data();
  if (!clocks.available) return clocks;
  unsigned value = 0;
  if (clock_ != nullptr && clock_(device_, kSmClock, &value) == 0) clocks.sm_MHz = static_cast<int>(value);
  if (clock_ != nullptr && clock_(device_, kMemoryClock, &value) == 0)
    clocks.memory_MHz = static_cast<int>(value);
  if (temperature_ != nullptr && temperature_(device_, kGpuTemperature, &value) == 0)
    clocks.temperature_C = static_cast<int>(value);
  if (power_ != nullptr && power_(device_, &value) == 0) clocks.power_W = value * 1e-3;
  unsigned long long reasons = 0;
  if (reasons_ != nullptr && reasons_(device_, &reasons) == 0) clocks.slowed_by = slowed_by(reasons);
  return clocks;
}

}  // namespace memwall::cuda
