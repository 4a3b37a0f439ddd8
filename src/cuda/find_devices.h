// Every device of a machine, and why it has no GPU where it has none.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bench/device.h"
#include "card/card.h"
#include "cuda/card_match.h"
#include "cuda/open_device.h"
#include "cuda/runtime.h"

namespace memwall {

struct FoundGpu {
  cuda::GpuProperties properties;
  std::optional<cuda::CardMatch> card;
  std::int64_t free_bytes = 0;
  cuda::Clocks clocks;        // now
  std::string does_not_open;  // why, where it does not: then nothing is known of free memory and clocks
};

struct FoundDevices {
  DeviceInfo cpu;
  std::vector<FoundGpu> gpus;
  std::string why_no_gpu;                  // where there is none
  std::optional<cuda::Versions> versions;  // where the CUDA backend was loaded
};

// Opens each GPU in turn. What fails is told in the result.
FoundDevices find_devices(const DeviceSources& sources, const std::vector<Card>& cards);

}  // namespace memwall
