#include "kernels/cuda/quantize.h"

#include <algorithm>
#include <stdexcept>

#include "format/checked.h"

namespace memwall::cuda {
namespace {

constexpr std::int64_t kPiece = 8;  // 16-bit elements of 16 bytes

bool aligned(const void* pointer, std::uintptr_t bytes) {
  return reinterpret_cast<std::uintptr_t>(pointer) % bytes == 0;
}

void require_16_bits(ActivationType activations) {
  if (activations == ActivationType::f32)
    throw std::invalid_argument("activations of 32 bits are not quantised");
}

Geometry blocks(std::int64_t count) {
  Geometry geometry;
  geometry.grid_x = static_cast<unsigned>(std::max<std::int64_t>(count, 1));
  geometry.threads = kQuantizeThreads;
  geometry.shared_bytes = kQuantizeThreads / kWarp * sizeof(float);
  return geometry;
}

}  // namespace

std::vector<QuantizeLaunch> quantize_launches(QuantizeRule rule, ActivationType activations,
                                              QuantizeParams params) {
  require_16_bits(activations);
  if (rule == QuantizeRule::f8_tensor) {
    params.width = checked_mul(params.rows, params.width);
    params.rows = 1;
  }
  params.vectors = params.width % kPiece == 0 && aligned(params.x, 16) && aligned(params.codes, 8);
  if (rule == QuantizeRule::i8_rows || params.width <= kOneBlockElements)
    return {{QuantizeStep::rows, rule, activations, params, blocks(params.rows)}};
  const std::int64_t pieces = params.vectors ? params.width / kPiece : params.width;
  params.part_count =
      static_cast<unsigned>(std::min<std::int64_t>(div_up(pieces, kQuantizeThreads), kMostPartials));
  const Geometry geometry = blocks(params.part_count);
  return {{QuantizeStep::largest, rule, activations, params, geometry},
          {QuantizeStep::tensor, rule, activations, params, geometry}};
}

QuantizeLaunch scale_sums_launch(ActivationType activations, ScaleSumsParams params) {
  require_16_bits(activations);
  params.vectors = params.out % 4 == 0 && aligned(params.sums, 16) && aligned(params.column_scales, 16) &&
                   aligned(params.y, 16);
  const std::int64_t pieces = params.vectors ? params.out / 4 : params.out;
  Geometry geometry;
  geometry.threads = kScaleSumsThreads;
  geometry.grid_x = static_cast<unsigned>(std::max<std::int64_t>(div_up(pieces, kScaleSumsThreads), 1));
  // More rows than y has blocks for go round.
  constexpr std::int64_t kMostBlocks = 65535;
  geometry.grid_y = static_cast<unsigned>(std::clamp<std::int64_t>(params.rows, 1, kMostBlocks));
  return {QuantizeStep::scale_sums, QuantizeRule::i8_rows, activations, params, geometry};
}

}  // namespace memwall::cuda
