// What becomes of a linear's sums.
#pragma once

#include "kernels/cuda/linear.h"
#include "kernels/cuda/linear_values.cuh"

namespace memwall::cuda {

MEMWALL_DEVICE float activate(LinearActivation activation, float x) {
  if (activation == LinearActivation::relu) return fmaxf(x, 0.0F);
  if (activation == LinearActivation::none) return x;
  // gelu's tanh form, 0.5 x (1 + tanh(u)), is x / (1 + exp(-2 u)).
  const float u =
      activation == LinearActivation::gelu ? 1.5957691216057308F * (x + 0.044715F * x * x * x) : x;
  return x / (1.0F + exponential(-u));
}

// One output element: row `row` of a segment whose outputs' rows begin at y_row.
template <class X>
struct LinearOutput {
  const LinearParams& p;
  std::int64_t y_row;
  std::int64_t bias_at;  // elements: an expert's

  MEMWALL_DEVICE float with_bias(const LinearSegment& segment, std::int64_t row, float value) const {
    if (segment.bias == nullptr) return value;
    return value + load_as(segment.bias_type, segment.bias, bias_at + row);
  }
  MEMWALL_DEVICE void write(const LinearSegment& segment, std::int64_t row, unsigned column,
                            float value) const {
    const std::int64_t at = (y_row + column) * segment.out + row;
    if (p.residual != nullptr) value += widen(load(static_cast<const X*>(p.residual) + at));
    X narrowed;
    narrow(value, &narrowed);
    store(static_cast<X*>(segment.y) + at, narrowed);
  }
};

}  // namespace memwall::cuda
