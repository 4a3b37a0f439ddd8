#include "kernels/cuda/router.h"

namespace memwall::cuda {
namespace {

constexpr std::int64_t kWord = 4;

}  // namespace

bool can_route(std::int64_t experts, std::int64_t per_token) {
  const std::int64_t words = ArchLimits().shared_a_block / kWord;
  return per_token >= 1 && per_token <= experts && experts <= words - per_token;
}

RouterLaunch router_launch(LogitType type, const RouterParams& params) {
  RouterLaunch launch;
  launch.type = type;
  launch.params = params;
  launch.geometry.threads = kWarp;
  launch.geometry.grid_x = static_cast<unsigned>(params.rows);
  launch.geometry.shared_bytes = static_cast<unsigned>((params.experts + params.per_token) * kWord);
  return launch;
}

}  // namespace memwall::cuda
