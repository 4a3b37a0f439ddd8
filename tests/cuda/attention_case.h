// Attention's operands on the host with random contents, and the same in float64.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/cuda/attention.h"
#include "tests/cuda/gpu_vector.h"

namespace memwall::cuda {

struct AttentionCase {
  // `one_row`: values are the first d_v elements of the keys. `chosen`: of what is held, evenly, the newest
  // among them.
  AttentionCase(const AttentionShape& shape, bool with_chosen, bool with_turn, bool with_one_row = false);

  void point(AttentionParams& params, std::int64_t partial_floats, std::int64_t counters);
  void forget_outputs();
  // The largest error of an output over its tolerance; also checks the newest token's row.
  double worst_error() const;
  bool counters_are_zero() const;

  AttentionShape shape;
  bool one_row;
  GpuVector<std::byte> k;
  GpuVector<std::byte> v;
  GpuVector<std::byte> q;
  GpuVector<std::byte> new_k;
  GpuVector<std::byte> new_v;
  GpuVector<std::byte> y;
  std::vector<std::int32_t> chosen;
  std::vector<float> cosines;
  std::vector<float> sines;
  std::vector<float> partials;
  std::vector<unsigned> counters;

 private:
  std::vector<double> row(const GpuVector<std::byte>& cache, std::int64_t width, std::int64_t head,
                          std::int64_t token) const;
  double activation(const GpuVector<std::byte>& from, std::int64_t i) const;
  // A row of d_k activations, as a query or a new key is used.
  std::vector<double> turned(const GpuVector<std::byte>& from, std::int64_t row) const;
  double rounding() const;  // of what is multiplied, relatively
};

}  // namespace memwall::cuda
