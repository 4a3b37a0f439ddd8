// Activations in 8 bits, as the integer kernels read them.
#pragma once

#include <cstdint>

#include "kernels/cpu/panel_layout.h"

namespace memwall::cpu {

// Of `rows` rows of x in blocks of 32, the last one padded with zeros: quants int8 [rows][blocks * 32], then
// for each block its f32 scale (largest / 127), the int32 sum of its quants, and scale * sum as f32, each
// [rows][blocks]. Blocks whose largest magnitude is below 2^-119 become zeros, so that 127 / largest stays
// finite.
struct Quantised {
  std::int64_t blocks = 0;
  std::int8_t* quants = nullptr;
  float* scales = nullptr;
  std::int32_t* sums = nullptr;
  float* scaled_sums = nullptr;

  static std::int64_t bytes(std::int64_t rows, std::int64_t blocks) {
    return rows * blocks * (kBlockWeights + 12);
  }
  Quantised(void* room, std::int64_t rows, std::int64_t block_count)
      : blocks(block_count),
        quants(static_cast<std::int8_t*>(room)),
        scales(reinterpret_cast<float*>(quants + rows * blocks * kBlockWeights)),
        sums(reinterpret_cast<std::int32_t*>(scales + rows * blocks)),
        scaled_sums(reinterpret_cast<float*>(sums + rows * blocks)) {}
};

// Blocks [first, last) of all rows' [rows][blocks], x being [rows, in]. Blocks past `in` become zeros.
void quantise(const float* x, std::int64_t in, const Quantised& to, std::int64_t first, std::int64_t last);

}  // namespace memwall::cpu
