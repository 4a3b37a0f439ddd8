#include "bench/cpu_cache.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "format/checked.h"
#include "kernels/cpu/attention_shape.h"

namespace memwall {
namespace {

BitMask mask_of(KvFormat format) {
  switch (format) {
    case KvFormat::f32:
      return float_mask(FormatKind::f32);
    case KvFormat::f16:
      return float_mask(FormatKind::f16);
    case KvFormat::bf16:
      return float_mask(FormatKind::bf16);
    case KvFormat::f8_e4m3:
      return {0x9f9f9f9f9f9f9f9fULL, 0x2020202020202020ULL};
    default:
      break;
  }
  return {};
}

constexpr std::int64_t kScaleBytes = 2;

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
      fill_masked_bits(start, units * unit_bytes, seed + static_cast<std::uint64_t>(task) * 7919, 0,
                       mask_of(shape.layout.format));
      if (shape.layout.format != KvFormat::int8) continue;
      for (std::int64_t u = 1; u <= units; ++u)
        make_scales(start + u * unit_bytes - kScaleBytes * unit, unit, kScaleBytes);
    }
  });
}

std::vector<std::byte> random_cache_row(KvFormat format, std::int64_t width, std::uint64_t seed) {
  std::vector<std::byte> row(static_cast<std::size_t>(kv_vector_bytes(format, width)));
  fill_masked_bits(row.data(), static_cast<std::int64_t>(row.size()), seed, 0, mask_of(format));
  if (format == KvFormat::int8) make_scales(row.data() + width, 1, kScaleBytes);
  return row;
}

CacheCopies::CacheCopies(CpuContext& context, const CacheShape& shape, std::int64_t copies,
                         std::int64_t parts, std::uint64_t seed)
    : shape_(shape),
      copies_(copies),
      buffer_(static_cast<std::size_t>(copies * shape.bytes())),
      row_(random_cache_row(shape.layout.format, shape.layout.width, seed + 11)) {
  for (std::int64_t copy = 0; copy < copies; ++copy) {
    fill_random_cache(context.pool, shape, parts, head(copy, 0),
                      seed + static_cast<std::uint64_t>(copy) * 1000003);
  }
  context.huge_share = buffer_.huge_share();
}

void CacheCopies::write(std::int64_t turn, std::int64_t head, std::int64_t token) const {
  cpu::write_kv(shape_.layout, this->head(turn, head), token, row_.data());
}

void CacheCopies::append(std::int64_t turn) const {
  for (std::int64_t head = 0; head < shape_.heads; ++head) write(turn, head, shape_.tokens - 1);
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
