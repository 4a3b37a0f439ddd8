// A GPU as a device of the measuring session.
#pragma once

#include <memory>
#include <optional>

#include "bench/device.h"
#include "cuda/card_match.h"
#include "cuda/runtime.h"

namespace memwall::cuda {

// `card`: what the GPU should reach, for reports.
std::unique_ptr<Device> make_device(std::unique_ptr<Gpu> gpu, const Versions& versions = {},
                                    const std::optional<CardMatch>& card = std::nullopt);

}  // namespace memwall::cuda
