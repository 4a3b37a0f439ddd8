#include "bench/cpu_data.h"

#include <algorithm>
#include <cstring>
#include <span>

#include "kernels/cpu/pack.h"
#include "kernels/cpu/panel_layout.h"

namespace memwall {

BitMask float_mask(FormatKind kind) {
  switch (kind) {
    case FormatKind::f32:
      return {0x81ffffff81ffffffULL, 0x3e0000003e000000ULL};
    case FormatKind::bf16:
      return {0x81ff81ff81ff81ffULL, 0x3e003e003e003e00ULL};
    default:  // f16
      return {0x8fff8fff8fff8fffULL, 0x3000300030003000ULL};
  }
}

void make_scales(std::byte* first, std::int64_t count, std::int64_t stride) {
  for (std::int64_t i = 0; i < count; ++i) {
    std::uint16_t scale = 0;
    std::memcpy(&scale, first + i * stride, sizeof scale);
    scale = static_cast<std::uint16_t>((scale & 0x0fff) | 0x1800);
    std::memcpy(first + i * stride, &scale, sizeof scale);
  }
}

void fill_masked_bits(std::byte* data, std::int64_t bytes, std::uint64_t seed, std::uint64_t first_word,
                      BitMask mask) {
  constexpr std::int64_t kChunk = 512;
  std::uint64_t words[kChunk];
  for (std::int64_t at = 0; at < bytes; at += kChunk * 8) {
    const std::int64_t here = std::min(kChunk * 8, bytes - at);
    fill_random_bits(std::span(words), seed, first_word + static_cast<std::uint64_t>(at / 8));
    for (std::uint64_t& word : words) word = (word & mask.keep) | mask.set;
    std::memcpy(data + at, words, static_cast<std::size_t>(here));
  }
}

void fill_random_weights(ThreadPool& pool, Format format, std::int64_t rows, std::int64_t in,
                         std::byte* buffer, std::uint64_t seed) {
  const std::int64_t row_bytes = storage_bytes(format, 1, in);
  const bool plain = is_plain_float(format);
  const BitMask mask = plain ? float_mask(format.kind) : BitMask{};
  pool.split(rows, 1, [&](int, std::int64_t first, std::int64_t last) {
    std::byte* start = buffer + first * row_bytes;
    const std::int64_t bytes = (last - first) * row_bytes;
    // The sequence starts where no other range's can reach, so that no two ranges share words.
    fill_masked_bits(start, bytes, seed, static_cast<std::uint64_t>(first) << 24, mask);
    const std::int64_t block_bytes = storage_bytes(format, 1, 1);
    if (!plain) make_scales(start, bytes / block_bytes, block_bytes);
  });
}

void fill_random_panels(ThreadPool& pool, Format format, std::int64_t out, std::int64_t in, std::byte* buffer,
                        std::uint64_t seed) {
  const cpu::PanelLayout layout = cpu::panel_layout(format, in);
  // Of f8 every code but the largest exponents, so that none is NaN.
  const bool plain = is_plain_float(format);
  const BitMask mask = plain                     ? float_mask(format.kind)
                       : cpu::is_integer(format) ? BitMask{}
                                                 : BitMask{0xbfbfbfbfbfbfbfbfULL, 0};
  const std::int64_t panels = cpu::panels_of(out);
  pool.split(panels, 1, [&](int, std::int64_t first, std::int64_t last) {
    std::byte* start = buffer + first * layout.bytes;
    const std::int64_t bytes = (last - first) * layout.bytes;
    fill_masked_bits(start, bytes, seed, static_cast<std::uint64_t>(first) << 28, mask);
    if (!cpu::is_integer(format)) return;
    constexpr std::int64_t kScales = cpu::kPanelRows * 2;
    for (std::int64_t group = 0; group < bytes; group += layout.group_bytes) {
      if (format.kind == FormatKind::mxfp4) {
        // E8M0: 2^-15 to 2^-8.
        for (std::int64_t r = 0; r < cpu::kPanelRows; ++r) {
          std::byte& scale = start[group + r];
          scale = (scale & std::byte{0x07}) | std::byte{0x70};
        }
        continue;
      }
      make_scales(start + group, cpu::kPanelRows, 2);
      // Zero points of 16 bits must be numbers, of magnitudes as weights have.
      for (std::int64_t at = kScales; format.wide_zero_points && at < layout.quants_at; at += 2) {
        std::uint16_t zero = 0;
        std::memcpy(&zero, start + group + at, sizeof zero);
        zero = static_cast<std::uint16_t>((zero & 0x03ff) | 0x4800);  // 8 to 16
        std::memcpy(start + group + at, &zero, sizeof zero);
      }
    }
  });
  const std::vector<float> random =
      random_floats(static_cast<std::size_t>(cpu::trailing_scales(format, out, in)), seed + 3);
  for (std::size_t i = 0; i < random.size(); ++i) {
    const float scale = 0.75F + random[i] / 4;
    std::memcpy(buffer + panels * layout.bytes + i * sizeof scale, &scale, sizeof scale);
  }
}

std::vector<float> random_floats(std::size_t count, std::uint64_t seed) {
  std::vector<float> values(count);
  fill_random_floats(values, seed, 0);
  return values;
}

std::vector<std::uint16_t> random_bf16(std::size_t count, std::uint64_t seed) {
  const std::vector<float> values = random_floats(count, seed);
  std::vector<std::uint16_t> bits(count);
  std::transform(values.begin(), values.end(), bits.begin(), cpu::f32_to_bf16);
  return bits;
}

std::vector<std::int64_t> sample_indices(std::int64_t count, std::int64_t most) {
  std::vector<std::int64_t> indices;
  const std::int64_t n = std::min(count, most);
  for (std::int64_t i = 0; i < n; ++i) indices.push_back(n == 1 ? 0 : i * (count - 1) / (n - 1));
  return indices;
}

double dot_tolerance(std::int64_t terms, double sum_of_magnitudes) {
  constexpr double kHalfUlp = 1.0 / (1 << 24);
  return 4 * std::sqrt(static_cast<double>(std::max<std::int64_t>(terms, 16))) * kHalfUlp *
             sum_of_magnitudes +
         1e-30;
}

ReferenceDot reference_dot(const std::vector<float>& weights, const std::vector<float>& x, double bias) {
  double sum = bias;
  double magnitudes = std::abs(bias);
  for (std::size_t k = 0; k < weights.size(); ++k) {
    const double product = static_cast<double>(weights[k]) * static_cast<double>(x[k]);
    sum += product;
    magnitudes += std::abs(product);
  }
  return {sum, dot_tolerance(static_cast<std::int64_t>(weights.size()), magnitudes), magnitudes};
}

}  // namespace memwall
