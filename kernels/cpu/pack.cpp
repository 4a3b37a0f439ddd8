#include "kernels/cpu/pack.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <stdexcept>

namespace memwall::cpu {
namespace {

constexpr std::int64_t kBlock = 32;
constexpr std::int64_t kQ8Bytes = 2 + 32;
constexpr std::int64_t kQ4Bytes = 2 + 16;

[[noreturn]] void refuse(Format format) {
  throw std::invalid_argument("the CPU cannot pack or unpack " + format_name(format));
}

void store_scale(float scale, std::uint8_t* block) {
  const std::uint16_t bits = f32_to_f16(scale);
  std::memcpy(block, &bits, sizeof(bits));
}

float load_scale(const std::uint8_t* block) {
  std::uint16_t bits = 0;
  std::memcpy(&bits, block, sizeof(bits));
  return f16_to_f32(bits);
}

int clamped(float value, int low, int high) {
  if (std::isnan(value)) return 0;
  return static_cast<int>(std::clamp(value, static_cast<float>(low), static_cast<float>(high)));
}

void pack_q8_block(const float* x, std::uint8_t* block) {
  const QuantRule rule(8, false, x, kBlock);
  store_scale(rule.scale(), block);
  for (std::int64_t i = 0; i < kBlock; ++i) block[2 + i] = static_cast<std::uint8_t>(rule.quant(x[i]));
}

void pack_q4_block(const float* x, std::uint8_t* block) {
  const QuantRule rule(4, false, x, kBlock);
  store_scale(rule.scale(), block);
  for (std::int64_t i = 0; i < kBlock / 2; ++i) {
    block[2 + i] = static_cast<std::uint8_t>(rule.quant(x[i]) | (rule.quant(x[i + kBlock / 2]) << 4));
  }
}

void unpack_q8_block(const std::uint8_t* block, float* x) {
  const float d = load_scale(block);
  for (std::int64_t i = 0; i < kBlock; ++i)
    x[i] = static_cast<float>(static_cast<std::int8_t>(block[2 + i])) * d;
}

void unpack_q4_block(const std::uint8_t* block, float* x) {
  const float d = load_scale(block);
  for (std::int64_t i = 0; i < kBlock / 2; ++i) {
    x[i] = static_cast<float>((block[2 + i] & 15) - 8) * d;
    x[i + kBlock / 2] = static_cast<float>((block[2 + i] >> 4) - 8) * d;
  }
}

template <class PackBlock>
void pack_blocks(const float* values, std::int64_t in, std::uint8_t* row, std::int64_t block_bytes,
                 PackBlock pack_block) {
  for (std::int64_t i = 0; i < in; i += kBlock, row += block_bytes) {
    float block[kBlock] = {};
    std::copy_n(values + i, std::min(kBlock, in - i), block);
    pack_block(block, row);
  }
}

template <class UnpackBlock>
void unpack_blocks(const std::uint8_t* row, std::int64_t in, float* values, std::int64_t block_bytes,
                   UnpackBlock unpack_block) {
  for (std::int64_t i = 0; i < in; i += kBlock, row += block_bytes) {
    float block[kBlock];
    unpack_block(row, block);
    std::copy_n(block, std::min(kBlock, in - i), values + i);
  }
}

}  // namespace

std::uint16_t f32_to_f16(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000U;
  const std::uint32_t magnitude = bits & 0x7FFFFFFFU;
  std::uint32_t half = 0;
  if (magnitude > 0x7F800000U) {
    half = 0x7E00U | ((magnitude >> 13) & 0x3FFU);  // a quiet NaN, as much of its payload as fits
  } else if (magnitude >= 0x47800000U) {
    half = 0x7C00U;  // 2^16 and above; what rounds up to 2^16 gets here by carry below
  } else if (magnitude >= 0x38800000U) {
    const std::uint32_t odd = (magnitude >> 13) & 1U;
    half = (magnitude - 0x38000000U + 0xFFFU + odd) >> 13;
  } else if (magnitude >= 0x33000000U) {
    // 2^-25 to 2^-14: subnormal. Shift the 24-bit significand to units of 2^-24 and round the rest.
    const std::uint32_t shift = 126U - (magnitude >> 23);
    const std::uint32_t significand = (magnitude & 0x7FFFFFU) | 0x800000U;
    const std::uint32_t odd = (significand >> shift) & 1U;
    half = (significand + (1U << (shift - 1)) - 1U + odd) >> shift;
  }
  return static_cast<std::uint16_t>(sign | half);
}

float f16_to_f32(std::uint16_t bits) {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000U) << 16;
  const std::uint32_t magnitude = static_cast<std::uint32_t>(bits & 0x7FFFU) << 13;
  std::uint32_t wide = 0;
  if (magnitude > 0x0F800000U) {
    wide = magnitude | 0x7FC00000U;  // NaN, quietened as F16C does
  } else if (magnitude == 0x0F800000U) {
    wide = 0x7F800000U;
  } else if (magnitude >= 0x00800000U) {
    wide = magnitude + 0x38000000U;
  } else {
    wide = std::bit_cast<std::uint32_t>(static_cast<float>(bits & 0x3FFU) * 0x1p-24F);
  }
  return std::bit_cast<float>(sign | wide);
}

std::uint16_t f32_to_bf16(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  if (std::isnan(value))
    return static_cast<std::uint16_t>((bits >> 16) | 0x40U);  // a carry would make it infinite
  const std::uint32_t odd = (bits >> 16) & 1U;
  return static_cast<std::uint16_t>((bits + 0x7FFFU + odd) >> 16);
}

float f8_e4m3_to_f32(std::uint8_t bits) {
  const int exponent = (bits >> 3) & 15;
  const int mantissa = bits & 7;
  if (exponent == 15 && mantissa == 7) return std::copysign(std::nanf(""), (bits & 0x80) != 0 ? -1.0F : 1.0F);
  const float magnitude = exponent == 0 ? std::ldexp(static_cast<float>(mantissa), -9)
                                        : std::ldexp(static_cast<float>(8 + mantissa), exponent - 10);
  return (bits & 0x80) != 0 ? -magnitude : magnitude;
}

std::uint8_t f32_to_f8_e4m3(float value) {
  const int sign = std::signbit(value) ? 0x80 : 0;
  if (std::isnan(value)) return static_cast<std::uint8_t>(sign | 0x7F);
  const float magnitude = std::min(std::fabs(value), kLargestF8E4m3);
  int exponent = 0;
  std::frexp(magnitude, &exponent);  // magnitude = f 2^exponent, f in [1/2, 1)
  // Units of the last of 3 mantissa bits; below 2^-6 they are those of the subnormals.
  const int unit = magnitude > 0 ? std::max(exponent - 4, -9) : -9;
  const int steps = static_cast<int>(std::nearbyint(std::ldexp(magnitude, -unit)));
  // Rounding up to 16 steps carries into the exponent, and 448 is 14 steps of 32: never past it.
  const int code = unit == -9 ? steps : ((unit + 9) << 3) + steps;
  return static_cast<std::uint8_t>(sign | code);
}

std::uint8_t e2m1_code(float doubled) {
  std::uint8_t best = 0;
  for (std::uint8_t code = 1; code < 16; ++code) {
    if (std::fabs(static_cast<float>(kDoubledE2m1[code]) - doubled) <
        std::fabs(static_cast<float>(kDoubledE2m1[best]) - doubled)) {
      best = code;
    }
  }
  return best;
}

float e8m0_half(std::uint8_t code) { return std::ldexp(1.0F, code - 128); }

std::uint8_t e8m0_code(const float* values, std::int64_t count) {
  float largest = 0.0F;
  for (std::int64_t i = 0; i < count; ++i) largest = std::max(largest, std::fabs(values[i]));
  if (largest == 0.0F) return 0;
  if (!std::isfinite(largest)) return 254;
  return static_cast<std::uint8_t>(std::clamp(std::ilogb(largest) - 2 + 127, 0, 254));
}

QuantRule::QuantRule(int bits, bool zero_points, const float* values, std::int64_t count) : bits_(bits) {
  float least = 0.0F;
  float most = 0.0F;
  float extreme = 0.0F;
  for (std::int64_t i = 0; i < count; ++i) {
    least = std::min(least, values[i]);
    most = std::max(most, values[i]);
    if (std::fabs(extreme) < std::fabs(values[i])) extreme = values[i];
  }
  if (bits == 8) {
    scale_ = std::fabs(extreme) / 127.0F;
  } else if (!zero_points) {
    scale_ = extreme / -8.0F;
  } else {
    scale_ = (most - least) / 15.0F;
    zero_ = scale_ > 0 ? static_cast<float>(clamped(std::round(-least / scale_), 0, 15)) : 0.0F;
  }
  if (scale_ != 0.0F) inverse_ = 1.0F / scale_;
}

int QuantRule::quant(float value) const {
  if (bits_ == 8) return clamped(std::round(value * inverse_), -127, 127);
  return clamped(std::floor(value * inverse_ + (zero_ + 0.5F)), 0, 15);
}

void pack_row(Format format, const float* values, std::int64_t in, void* row) {
  std::uint8_t* bytes = static_cast<std::uint8_t*>(row);
  const auto store_all = [&](std::uint16_t (*convert)(float)) {
    for (std::int64_t i = 0; i < in; ++i) {
      const std::uint16_t stored = convert(values[i]);
      std::memcpy(bytes + 2 * i, &stored, sizeof(stored));
    }
  };
  switch (format.kind) {
    case FormatKind::f32:
      std::memcpy(row, values, static_cast<std::size_t>(in) * sizeof(float));
      return;
    case FormatKind::f16:
      return store_all(f32_to_f16);
    case FormatKind::bf16:
      return store_all(f32_to_bf16);
    case FormatKind::q8_0:
      return pack_blocks(values, in, bytes, kQ8Bytes, pack_q8_block);
    case FormatKind::q4_0:
      return pack_blocks(values, in, bytes, kQ4Bytes, pack_q4_block);
    default:
      refuse(format);
  }
}

void unpack_row(Format format, const void* row, std::int64_t in, float* values) {
  const std::uint8_t* bytes = static_cast<const std::uint8_t*>(row);
  const auto load_all = [&](float (*convert)(std::uint16_t)) {
    for (std::int64_t i = 0; i < in; ++i) {
      std::uint16_t stored = 0;
      std::memcpy(&stored, bytes + 2 * i, sizeof(stored));
      values[i] = convert(stored);
    }
  };
  switch (format.kind) {
    case FormatKind::f32:
      std::memcpy(values, row, static_cast<std::size_t>(in) * sizeof(float));
      return;
    case FormatKind::f16:
      return load_all(f16_to_f32);
    case FormatKind::bf16:
      return load_all(bf16_to_f32);
    case FormatKind::q8_0:
      return unpack_blocks(bytes, in, values, kQ8Bytes, unpack_q8_block);
    case FormatKind::q4_0:
      return unpack_blocks(bytes, in, values, kQ4Bytes, unpack_q4_block);
    default:
      refuse(format);
  }
}

}  // namespace memwall::cpu
