#include "bench/cpu_cache.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "format/checked.h"
#include "kernels/cpu/attention_shape.h"

namespace memwall {
namespace {

// Sign, mantissa and the lowest exponent bits stay random; the rest of the exponent is fixed.
struct BitMask {
  std::uint64_t keep;
  std::uint64_t set;
};

BitMask mask_of(KvFormat format) {
  switch (format) {
    case KvFormat::f32:
      return {0x81ffffff81ffffffULL, 0x3e0000003e000000ULL};
    case KvFormat::f16:
      return {0x8fff8fff8fff8fffULL, 0x3000300030003000ULL};
    case KvFormat::bf16:
      return {0x81ff81ff81ff81ffULL, 0x3e003e003e003e00ULL};
    case KvFormat::f8_e4m3:
      return {0x9f9f9f9f9f9f9f9fULL, 0x2020202020202020ULL};
    case KvFormat::int8:
      break;
  }
  return {~std::uint64_t{0}, 0};
}

void fill_bits(std::byte* data, std::int64_t bytes, KvFormat format, std::uint64_t seed) {
  constexpr std::int64_t kChunk = 512;
  std::uint64_t words[kChunk];
  const BitMask mask = mask_of(format);
  for (std::int64_t at = 0; at < bytes; at += kChunk * 8) {
    fill_random_bits(std::span(words), seed, static_cast<std::uint64_t>(at / 8));
    for (std::uint64_t& word : words) word = (word & mask.keep) | mask.set;
    std::memcpy(data + at, words, static_cast<std::size_t>(std::min(kChunk * 8, bytes - at)));
  }
}

// Positive and between 2^-9 and 2^-7, keeping the random bits of the mantissa.
void fix_scales(std::byte* scales, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    std::uint16_t scale = 0;
    std::memcpy(&scale, scales + 2 * i, sizeof scale);
    scale = static_cast<std::uint16_t>((scale & 0x0fff) | 0x1800);
    std::memcpy(scales + 2 * i, &scale, sizeof scale);
  }
}

}  // namespace

std::int64_t CacheShape::bytes() const { return checked_mul(heads, layout.bytes(tokens)); }

void fill_random_cache(ThreadPool& pool, const CacheShape& shape, std::int64_t parts, std::byte* data,
                       std::uint64_t seed) {
  const std::int64_t unit = shape.layout.order == cpu::KvOrder::rows ? 1 : cpu::kPanelTokens;
  const std::int64_t unit_bytes = shape.layout.bytes(unit);
  pool.split(shape.heads * parts, 1, [&](int, std::int64_t first, std::int64_t last) {
    for (std::int64_t task = first; task < last; ++task) {
      const cpu::TokenRange range = cpu::part_of(0, shape.tokens, parts, task % parts);
      const std::int64_t units = (range.last - range.first + unit - 1) / unit;
      std::byte* start = data + task / parts * shape.head_bytes() + range.first / unit * unit_bytes;
      fill_bits(start, units * unit_bytes, shape.layout.format,
                seed + static_cast<std::uint64_t>(task) * 7919);
      if (shape.layout.format != KvFormat::int8) continue;
      for (std::int64_t u = 1; u <= units; ++u) fix_scales(start + u * unit_bytes - 2 * unit, unit);
    }
  });
}

std::vector<std::byte> random_cache_row(KvFormat format, std::int64_t width, std::uint64_t seed) {
  std::vector<std::byte> row(static_cast<std::size_t>(kv_vector_bytes(format, width)));
  fill_bits(row.data(), static_cast<std::int64_t>(row.size()), format, seed);
  if (format == KvFormat::int8) fix_scales(row.data() + width, 1);
  return row;
}

// Selection sampling: Knuth, The Art of Computer Programming, volume 2, 3.4.2, algorithm S.
std::vector<std::int32_t> draw_tokens(std::int64_t seqs, std::int64_t first, std::int64_t count,
                                      std::int64_t k, std::uint64_t seed) {
  std::vector<std::int32_t> chosen;
  chosen.reserve(static_cast<std::size_t>(seqs * std::min(k, count)));
  for (std::int64_t seq = 0; seq < seqs; ++seq) {
    std::int64_t wanted = std::min(k, count);
    for (std::int64_t i = 0; i < count && wanted > 0; ++i) {
      std::uint64_t bits = 0;
      fill_random_bits(std::span(&bits, 1), seed, static_cast<std::uint64_t>(seq * count + i));
      const double uniform = static_cast<double>(bits >> 11) * 0x1p-53;
      if (static_cast<double>(count - i) * uniform >= static_cast<double>(wanted)) continue;
      chosen.push_back(static_cast<std::int32_t>(first + i));
      --wanted;
    }
  }
  return chosen;
}

std::vector<std::int32_t> token_range(std::int64_t first, std::int64_t last) {
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(std::max<std::int64_t>(0, last - first)));
  std::iota(tokens.begin(), tokens.end(), static_cast<std::int32_t>(first));
  return tokens;
}

void ReferenceAttention::compare(Comparison& comparison, std::span<const std::int32_t> tokens,
                                 const float* y) const {
  std::vector<float> vector(static_cast<std::size_t>(std::max(keys.width, values.width)));
  std::vector<double> scores;
  double score_error = 0;
  for (const std::int32_t token : tokens) {
    cpu::read_kv(keys, k, token, vector.data());
    double dot = 0;
    double magnitudes = 0;
    for (std::int64_t i = 0; i < keys.width; ++i) {
      const double product =
          static_cast<double>(q[i]) * static_cast<double>(vector[static_cast<std::size_t>(i)]);
      dot += product;
      magnitudes += std::abs(product);
    }
    scores.push_back(dot * scale);
    score_error = std::max(score_error, dot_tolerance(keys.width, magnitudes) * scale);
  }
  const double highest = scores.empty() ? 0 : *std::max_element(scores.begin(), scores.end());
  double sum = 0;
  std::vector<double> result(static_cast<std::size_t>(width));
  std::vector<double> magnitude(result.size());
  for (std::size_t t = 0; t < tokens.size(); ++t) {
    const double weight = std::exp(scores[t] - highest);
    sum += weight;
    cpu::read_kv(values, v, tokens[t], vector.data());
    for (std::size_t i = 0; i < result.size(); ++i) {
      result[i] += weight * static_cast<double>(vector[i]);
      magnitude[i] += weight * std::abs(static_cast<double>(vector[i]));
    }
  }
  if (tokens.empty()) sum = 1;
  for (std::size_t i = 0; i < result.size(); ++i) {
    // A score's error moves its weight by as much, relatively; the sum over tokens adds its own.
    const double tolerance = 2 * score_error * magnitude[i] / sum +
                             dot_tolerance(static_cast<std::int64_t>(tokens.size()), magnitude[i] / sum);
    comparison.add(static_cast<double>(y[i]), result[i] / sum, tolerance);
  }
}

}  // namespace memwall
