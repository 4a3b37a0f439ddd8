// A router's choice among its logits.
#pragma once

#include <cstdint>

#include "kernels/cuda/geometry.h"

namespace memwall::cuda {

// Of the logits, as the router's linear writes them.
enum class LogitType : std::uint8_t { f32, f16, bf16 };

// For each row of `experts` logits the `per_token` largest in falling order, ties to the lower index and a
// NaN last, and the softmax over those; indices and weights are [rows, per_token]. 1 <= per_token <= experts.
struct RouterParams {
  const void* logits = nullptr;
  std::int32_t* indices = nullptr;
  float* weights = nullptr;
  std::int64_t rows = 0;
  std::int32_t experts = 0;
  std::int32_t per_token = 0;
};

struct RouterLaunch {
  LogitType type = LogitType::bf16;
  RouterParams params{};
  Geometry geometry{};
};

// Whether the kernel can: it holds a row's logits and choices in shared memory.
bool can_route(std::int64_t experts, std::int64_t per_token);

// With its geometry: a warp a row, a block each, so that few rows reach as many multiprocessors.
RouterLaunch router_launch(LogitType type, const RouterParams& params);

}  // namespace memwall::cuda
