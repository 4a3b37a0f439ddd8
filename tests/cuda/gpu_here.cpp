#include "tests/cuda/gpu_here.h"

#include <cstdlib>
#include <utility>

#include "cuda/load.h"
#include "input/error.h"

namespace memwall::cuda {
namespace {

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// Hidden on purpose.
bool hides_all() {
  if (std::getenv("CUDA_VISIBLE_DEVICES") == nullptr) return false;
  const std::string visible = environment("CUDA_VISIBLE_DEVICES");
  return visible.empty() || visible == "-1";
}

}  // namespace

bool gpu_required() {
  const std::string value = environment("MEMWALL_REQUIRE_GPU");
  return !value.empty() && value != "0";
}

GpuHere find_gpu(const DeviceSources& sources, bool required) {
  GpuHere here;
  const bool expected = sources.nvidia_here();
  const auto none = [&](bool failure, const std::string& why) {
    (failure || required ? here.failed : here.skipped) = why;
    here.gpu.reset();
    return std::move(here);
  };
  if (!expected && !required) return none(false, "this machine has no NVIDIA device or driver");
  try {
    here.runtime = sources.load_runtime();
    if (here.runtime->device_count() == 0) return none(expected && !hides_all(), "CUDA sees no device");
    here.gpu = here.runtime->open(0);
  } catch (const NoModule& error) {
    return none(false, error.what());
  } catch (const RunError& error) {
    return none(expected, error.what());
  }
  return here;
}

}  // namespace memwall::cuda
