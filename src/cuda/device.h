// A GPU as a device of the measuring session.
#pragma once

#include <memory>
#include <optional>

#include "bench/device.h"
#include "card/card.h"
#include "cuda/runtime.h"

namespace memwall::cuda {

// What the GPU should reach, by its datasheet or else by its attributes.
struct ExpectedCard {
  Card card;
  bool datasheet = false;
};

std::unique_ptr<Device> make_device(std::unique_ptr<Gpu> gpu, const Versions& versions = {},
                                    const std::optional<ExpectedCard>& expected = std::nullopt);

}  // namespace memwall::cuda
