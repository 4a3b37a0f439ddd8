#include "kernels/cuda/elementwise.h"

#include "format/checked.h"

namespace memwall::cuda {
namespace {

template <class... Pointers>
bool aligned(const Pointers*... pointers) {
  return ((reinterpret_cast<std::uintptr_t>(pointers) % 16 == 0) && ...);
}

// A thread an item. Items of 2^38 and more do not fit a GPU's memory.
Geometry flat(std::int64_t items) {
  Geometry geometry;
  geometry.threads = kFlatThreads;
  if (items > 0) geometry.grid_x = static_cast<unsigned>(div_up(items, kFlatThreads));
  return geometry;
}

constexpr std::int64_t kEight = 8;  // 16-bit elements of a vector

}  // namespace

ElementwiseLaunch elementwise_launch(ElementwiseType type, NormParams params) {
  params.vectors = params.width % kEight == 0 && aligned(params.x, params.weight, params.bias, params.y);
  Geometry geometry;
  if (norm_by_warp(params.width)) {
    geometry.threads = kNormWarpThreads;
    geometry.grid_x = static_cast<unsigned>(div_up(params.rows, kNormWarpThreads / kWarp));
  } else {
    geometry.threads = kNormBlockThreads;
    geometry.grid_x = static_cast<unsigned>(params.rows);
    geometry.shared_bytes = 2 * kNormBlockThreads / kWarp * sizeof(float);
  }
  return {type, params, geometry};
}

ElementwiseLaunch elementwise_launch(ElementwiseType type, RotaryParams params) {
  const std::int64_t half = params.width / 2;
  // Both halves of an odd row cannot be aligned.
  params.vectors = params.width % (2 * kEight) == 0 && aligned(params.x, params.cosines, params.sines);
  return {type, params, flat(params.rows * (params.vectors ? half / kEight : half))};
}

ElementwiseLaunch elementwise_launch(ElementwiseType type, ActivateParams params) {
  params.vectors = aligned(params.gate, params.up, params.y) ? params.elements / kEight : 0;
  return {type, params, flat(params.vectors + params.elements - params.vectors * kEight)};
}

ElementwiseLaunch elementwise_launch(ElementwiseType type, AddParams params) {
  const std::int64_t each = type == ElementwiseType::f32 ? 4 : kEight;
  params.vectors = aligned(params.a, params.b, params.y) ? params.elements / each : 0;
  return {type, params, flat(params.vectors + params.elements - params.vectors * each)};
}

ElementwiseLaunch elementwise_launch(ElementwiseType type, CombineParams params) {
  params.vectors = params.width % kEight == 0 && aligned(params.x, params.y);
  return {type, params, flat(params.rows * (params.vectors ? params.width / kEight : params.width))};
}

}  // namespace memwall::cuda
