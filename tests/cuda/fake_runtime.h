// Machines with GPUs of another kind, and machines without: what the program opens in tests.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "cuda/open_device.h"
#include "cuda/runtime.h"
#include "input/error.h"
#include "tests/cuda/fake_gpu.h"

namespace memwall::cuda {

struct FakeMachine {
  std::string no_module = {};  // why the module does not load
  std::string no_driver = {};  // why there is no driver
  int devices = 1;
  std::string does_not_open = {};  // why they do not
  std::string no_cublas = {};      // why it has no cuBLAS
  std::function<std::unique_ptr<Gpu>(int)> make = [](int) { return std::make_unique<FakeGpu>(); };
};

class FakeRuntime final : public Runtime {
 public:
  explicit FakeRuntime(FakeMachine machine) : machine_(std::move(machine)) {}
  int device_count() override {
    if (!machine_.no_driver.empty()) throw RunError(machine_.no_driver);
    return machine_.devices;
  }
  GpuProperties properties(int device) override {
    GpuProperties properties = machine_.make(device)->properties();
    properties.index = device;
    return properties;
  }
  std::unique_ptr<Gpu> open(int device) override {
    if (!machine_.does_not_open.empty()) throw RunError(machine_.does_not_open);
    return machine_.make(device);
  }
  Versions versions() override {
    if (!machine_.no_cublas.empty()) return {"13.0", "13.0", "", "", machine_.no_cublas};
    return {"13.0", "13.0", "13.1.0", "13.1.0", ""};
  }

 private:
  FakeMachine machine_;
};

// That machine, its notices counted in `notices`.
inline DeviceSources sources_of(const FakeMachine& machine, std::vector<std::string>& notices) {
  return {.load_runtime = [machine]() -> std::unique_ptr<Runtime> {
            if (!machine.no_module.empty()) throw RunError(machine.no_module);
            return std::make_unique<FakeRuntime>(machine);
          },
          .nvidia_here = [] { return true; },
          .notice = [&notices](const std::string& line) { notices.push_back(line); }};
}

}  // namespace memwall::cuda
