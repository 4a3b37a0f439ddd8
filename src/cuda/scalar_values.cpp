#include "cuda/scalar_values.h"

#include <bit>
#include <cmath>
#include <cstring>

#include "format/checked.h"
#include "kernels/cpu/pack.h"

namespace memwall::cuda {

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

double widen_scalar(ScalarType type, const std::byte* from) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, from, static_cast<std::size_t>(scalar_bytes(type)));
  switch (type) {
    case ScalarType::f32:
      return static_cast<double>(std::bit_cast<float>(bits));
    case ScalarType::f16:
      return static_cast<double>(cpu::f16_to_f32(static_cast<std::uint16_t>(bits)));
    case ScalarType::bf16:
      return static_cast<double>(cpu::bf16_to_f32(static_cast<std::uint16_t>(bits)));
    case ScalarType::f8_e4m3:
      return static_cast<double>(cpu::f8_e4m3_to_f32(static_cast<std::uint8_t>(bits)));
    case ScalarType::i8:
      break;
  }
  return static_cast<std::int8_t>(bits);
}

std::vector<double> download_values(Gpu& gpu, ScalarType type, const void* from, std::int64_t count) {
  const auto each = static_cast<std::size_t>(scalar_bytes(type));
  const auto bytes = download<std::byte>(gpu, from, count * scalar_bytes(type));
  std::vector<double> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = widen_scalar(type, bytes.data() + i * each);
  return values;
}

std::vector<double> download_values(Gpu& gpu, ScalarType type, const void* from, std::int64_t first,
                                    std::int64_t count) {
  return download_values(gpu, type, static_cast<const std::byte*>(from) + first * scalar_bytes(type), count);
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
