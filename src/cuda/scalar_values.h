// Values in device memory as the host brings them there and sees them: for operands and their checks against
// float64.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "cuda/context.h"
#include "format/format.h"

namespace memwall::cuda {

// The scalar that a plain float format, or f8_e4m3, stores; none for the others.
std::optional<ScalarType> scalar_type(Format format);

// What makes random words floats of that type.
RandomBits random_bits(ScalarType type);

// The scalar at `from`, on the host, widened exactly; its address need not be aligned.
double widen_scalar(ScalarType type, const std::byte* from);

// `count` scalars from `from` on, widened so.
std::vector<double> download_values(Gpu& gpu, ScalarType type, const void* from, std::int64_t count);
// From the `first` of them on.
std::vector<double> download_values(Gpu& gpu, ScalarType type, const void* from, std::int64_t first,
                                    std::int64_t count);

// Half a unit in the last place of a number of magnitude 1 to 2: the relative error of a rounded output.
double half_ulp(ScalarType type);

// What a tensor core loses of a running sum of products of that type, beyond f32's own rounding. Those of
// 8-bit floats keep 14 bits of it: 2^-13, lost at each of k / 32 steps of a sum that stays at a few roots of
// k, in all up to 2^-10 of the sum of magnitudes. 0 for the others.
double running_sum_loss(ScalarType type, double sum_of_magnitudes);

// The values in a buffer of their own.
template <class T>
Buffer uploaded(Gpu& gpu, const std::vector<T>& values) {
  const auto bytes = static_cast<std::int64_t>(values.size() * sizeof(T));
  Buffer buffer(gpu, bytes);
  gpu.upload(buffer.data(), values.data(), bytes);
  return buffer;
}

// Fills with NaN (in every float format), so that an output left out does not pass for an old one. Memory as
// for fill_random.
void poison(Gpu& gpu, void* data, std::int64_t bytes);

// The next multiple of 256 bytes, where copies and arrays begin. Throws std::overflow_error.
std::int64_t aligned_256(std::int64_t bytes);

}  // namespace memwall::cuda
