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

// A quant from a scaled value. ggml casts as it is; where scale and value are not finite, or too small for
// 1/d, that cast is undefined, and here it saturates (NaN becomes 0).
int quant(float value, int low, int high) {
  if (std::isnan(value)) return 0;
  return static_cast<int>(std::clamp(value, static_cast<float>(low), static_cast<float>(high)));
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

// ggml-quants.c, quantize_row_q8_0_ref: d = max|x| / 127, q = round(x / d), halves away from zero.
void pack_q8_block(const float* x, std::uint8_t* block) {
  float largest = 0.0F;
  for (std::int64_t i = 0; i < kBlock; ++i) largest = std::max(largest, std::fabs(x[i]));
  const float d = largest / 127.0F;
  const float inverse = d != 0.0F ? 1.0F / d : 0.0F;
  store_scale(d, block);
  for (std::int64_t i = 0; i < kBlock; ++i) {
    block[2 + i] = static_cast<std::uint8_t>(quant(std::round(x[i] * inverse), -127, 127));
  }
}

// ggml-quants.c, quantize_row_q4_0_ref: d = (the value of largest magnitude) / -8, q = floor(x / d + 8.5),
// at most 15, so that this value is always a quant of 0 and exact.
void pack_q4_block(const float* x, std::uint8_t* block) {
  float largest = 0.0F;
  float extreme = 0.0F;
  for (std::int64_t i = 0; i < kBlock; ++i) {
    if (largest < std::fabs(x[i])) {
      largest = std::fabs(x[i]);
      extreme = x[i];
    }
  }
  const float d = extreme / -8.0F;
  const float inverse = d != 0.0F ? 1.0F / d : 0.0F;
  store_scale(d, block);
  for (std::int64_t i = 0; i < kBlock / 2; ++i) {
    const int low = quant(x[i] * inverse + 8.5F, 0, 15);
    const int high = quant(x[i + kBlock / 2] * inverse + 8.5F, 0, 15);
    block[2 + i] = static_cast<std::uint8_t>(low | (high << 4));
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
