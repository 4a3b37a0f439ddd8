#include "cuda/find_devices.h"

#include <memory>

#include "input/error.h"

namespace memwall {
namespace {

FoundGpu look_at(cuda::Runtime& runtime, int index, const std::vector<Card>& cards) {
  FoundGpu found;
  found.properties.index = index;
  try {
    found.properties = runtime.properties(index);
    found.card = cuda::match_card(found.properties, cards);
    const std::unique_ptr<cuda::Gpu> gpu = runtime.open(index);
    found.free_bytes = gpu->free_bytes();
    found.clocks = gpu->clocks();
  } catch (const RunError& error) {
    found.does_not_open = error.what();
  }
  return found;
}

}  // namespace

FoundDevices find_devices(const DeviceSources& sources, const std::vector<Card>& cards) {
  FoundDevices found;
  found.cpu = make_cpu_device()->info();
  try {
    const std::unique_ptr<cuda::Runtime> runtime = sources.load_runtime();
    const int count = runtime->device_count();
    if (count == 0) found.why_no_gpu = "there is no CUDA device";
    for (int i = 0; i < count; ++i) found.gpus.push_back(look_at(*runtime, i, cards));
    found.versions = runtime->versions();
  } catch (const RunError& error) {
    if (found.gpus.empty()) found.why_no_gpu = error.what();
  }
  return found;
}

}  // namespace memwall
