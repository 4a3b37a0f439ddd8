// x in 8 bits, as a library's f8 and int8 products read it: quantised anew by each launch, as an engine must,
// and held to x by the check.
#pragma once

#include <cstdint>
#include <vector>

#include "bench/cpu_data.h"
#include "cuda/context.h"
#include "kernels/cuda/quantize.h"

namespace memwall::cuda {

// What quantises x for a product of that type; f8_e4m3 and i8 alone.
bool reads_quantized_x(ScalarType type);

class QuantizedInput {
 public:
  // Of x [rows, in], of `activations` (f16 or bf16), as `type` (reads_quantized_x).
  QuantizedInput(Gpu& gpu, ScalarType type, ActivationType activations, std::int64_t rows, std::int64_t in);

  // What it allocates.
  static std::int64_t bytes(ScalarType type, std::int64_t rows, std::int64_t in);

  // Launches what quantises x (16-byte aligned), one or two kernels; asynchronous.
  void quantize(const void* x);

  const std::uint8_t* codes() const;  // [rows, in]
  const float* scales() const;        // [rows] for i8, else one

  // Overwrites codes and scales, so that old ones do not pass for new.
  void forget();

  // Row `row` as the product reads it: codes times scale.
  std::vector<float> row(std::int64_t row) const;

  // Adds to the comparison: the scale of that row against the largest magnitude that it stands for, and a
  // sample of the row's values against x within half a step.
  void compare(Comparison& comparison, const void* x, std::int64_t row) const;

 private:
  float scale_of(std::int64_t row) const;
  double largest(const void* x, std::int64_t row) const;

  Gpu& gpu_;
  ScalarType type_;
  ActivationType activations_;
  std::int64_t rows_;
  std::int64_t in_;
  Buffer buffer_;  // scales, partials, codes
};

}  // namespace memwall::cuda
