#include "cuda/scalar_values.h"

#include <cmath>

#include "format/checked.h"
#include "kernels/cpu/pack.h"

namespace memwall::cuda {
namespace {

template <class Bits, class Widen>
std::vector<double> widened(Gpu& gpu, const void* from, std::int64_t count, Widen widen) {
  const std::vector<Bits> bits = download<Bits>(gpu, from, count);
  std::vector<double> values;
  values.reserve(bits.size());
  for (const Bits b : bits) values.push_back(static_cast<double>(widen(b)));
  return values;
}

}  // namespace

std::optional<ScalarType> scalar_type(Format format) {
  switch (format.kind) {
    case FormatKind::f32:
      return ScalarType::f32;
    case FormatKind::f16:
      return ScalarType::f16;
    case FormatKind::bf16:
      return ScalarType::bf16;
    case FormatKind::f8_e4m3:
      return ScalarType::f8_e4m3;
    default:
      return std::nullopt;
  }
}

RandomBits random_bits(ScalarType type) {
  switch (type) {
    case ScalarType::f32:
      return kFloat32;
    case ScalarType::f16:
      return kFloat16;
    case ScalarType::bf16:
      return kBFloat16;
    case ScalarType::f8_e4m3:
      return kF8E4M3;
    case ScalarType::i8:
      break;
  }
  return kAnyBits;
}

std::vector<double> download_values(Gpu& gpu, ScalarType type, const void* from, std::int64_t count) {
  switch (type) {
    case ScalarType::f32:
      return widened<float>(gpu, from, count, [](float value) { return value; });
    case ScalarType::f16:
      return widened<std::uint16_t>(gpu, from, count, cpu::f16_to_f32);
    case ScalarType::bf16:
      return widened<std::uint16_t>(gpu, from, count, cpu::bf16_to_f32);
    case ScalarType::f8_e4m3:
      return widened<std::uint8_t>(gpu, from, count, cpu::f8_e4m3_to_f32);
    case ScalarType::i8:
      break;
  }
  return widened<std::int8_t>(gpu, from, count, [](std::int8_t value) { return value; });
}

double half_ulp(ScalarType type) {
  const int significand = type == ScalarType::f32    ? 24
                          : type == ScalarType::f16  ? 11
                          : type == ScalarType::bf16 ? 8
                                                     : 4;
  return std::ldexp(1.0, -significand);
}

double running_sum_loss(ScalarType type, double sum_of_magnitudes) {
  return type == ScalarType::f8_e4m3 ? sum_of_magnitudes / 1024 : 0;
}

void poison(Gpu& gpu, void* data, std::int64_t bytes) {
  fill_random(gpu, data, bytes, {.keep = 0, .set = ~std::uint32_t{0}}, 1);
}

std::int64_t aligned_256(std::int64_t bytes) { return checked_add(bytes, 255) / 256 * 256; }

}  // namespace memwall::cuda
