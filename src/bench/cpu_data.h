// Random operands for the CPU's kernels, and comparing outputs with float64.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "bench/device.h"
#include "bench/memory.h"
#include "bench/thread_pool.h"

namespace memwall {

// Which bits of random words stay and which are set.
struct BitMask {
  std::uint64_t keep = ~std::uint64_t{0};
  std::uint64_t set = 0;
};

// Of f32, bf16 or f16: sign, the two lowest exponent bits and the mantissa stay random, the rest of the
// exponent is fixed, so that magnitudes lie in [1/8, 2).
BitMask float_mask(FormatKind kind);

// Random bits under the mask, from word `first_word` of the sequence on; the tail that fills no word takes a
// part of one.
void fill_masked_bits(std::byte* data, std::int64_t bytes, std::uint64_t seed, std::uint64_t first_word,
                      BitMask mask);

// Makes `count` f16 scales out of random bits, `stride` bytes apart: positive, from 2^-9 to 2^-7.
void make_scales(std::byte* first, std::int64_t count, std::int64_t stride);

// Fills `rows` packed rows of `in` weights from `buffer` on with random values of magnitude 1/8 to 2
// (quantised formats: random codes under such scales). Never zeros, never NaN or infinite. Each worker
// fills the rows it will read.
void fill_random_weights(ThreadPool& pool, Format format, std::int64_t rows, std::int64_t in,
                         std::byte* buffer, std::uint64_t seed);

// The same in the CPU's panels (kernels/cpu/panel_layout.h), trailing scales included; each worker fills the
// panels it will read.
void fill_random_panels(ThreadPool& pool, Format format, std::int64_t out, std::int64_t in, std::byte* buffer,
                        std::uint64_t seed);

// Uniform in [-1, 1).
std::vector<float> random_floats(std::size_t count, std::uint64_t seed);
std::vector<std::uint16_t> random_bf16(std::size_t count, std::uint64_t seed);

// Accumulates a Check: each compared output adds its error over its tolerance.
class Comparison {
 public:
  void add(double value, double reference, double tolerance) {
    ++check_.outputs;
    const double error = std::abs(value - reference) / tolerance;
    // A NaN must fail the check: neither it nor what is compared behind it may drop it.
    if (!std::isnan(check_.worst) && !(error <= check_.worst)) check_.worst = error;
  }
  Check result() const { return check_; }

 private:
  Check check_;
};

// Up to `most` indices spread over [0, count), the first and the last among them.
std::vector<std::int64_t> sample_indices(std::int64_t count, std::int64_t most);

// The error a sum of `terms` f32 products may show: rounding errors add up like a random walk, so
// 4 sqrt(K) half-ulps of the sum of magnitudes, far less than the loss of one term.
double dot_tolerance(std::int64_t terms, double sum_of_magnitudes);

// bias + the dot product of the weights and as many activations, in float64, and its tolerance.
struct ReferenceDot {
  double value = 0;
  double tolerance = 0;
  double magnitudes = 0;  // the sum of the products' and the bias's
};
ReferenceDot reference_dot(const std::vector<float>& weights, const std::vector<float>& x, double bias);

}  // namespace memwall
