#include "cuda/cache.h"

#include <algorithm>
#include <cmath>

#include "format/checked.h"

namespace memwall::cuda {

std::optional<KvElement> kv_element(KvFormat format) {
  switch (format) {
    case KvFormat::f32:
      return KvElement::f32;
    case KvFormat::f16:
      return KvElement::f16;
    case KvFormat::bf16:
      return KvElement::bf16;
    case KvFormat::f8_e4m3:
      return KvElement::f8_e4m3;
    default:
      break;
  }
  return std::nullopt;
}

ScalarType scalar_type(KvElement element) {
  switch (element) {
    case KvElement::f32:
      return ScalarType::f32;
    case KvElement::f16:
      return ScalarType::f16;
    case KvElement::bf16:
      return ScalarType::bf16;
    case KvElement::f8_e4m3:
      break;
  }
  return ScalarType::f8_e4m3;
}

ScalarType activation_type(KvElement element) {
  if (element == KvElement::f32) return ScalarType::f32;
  return element == KvElement::bf16 ? ScalarType::bf16 : ScalarType::f16;
}

CacheCopies::CacheCopies(Context& context, KvElement element, std::int64_t width, std::int64_t heads,
                         std::int64_t tokens, std::int64_t copies, std::uint64_t seed)
    : copies_(copies),
      stride_(copy_bytes(element, width, heads, tokens)),
      buffer_(context.gpu, checked_mul(stride_, copies)) {
  fill_random(context.gpu, buffer_.data(), buffer_.bytes(), random_bits(scalar_type(element)), seed);
}

std::int64_t CacheCopies::copy_bytes(KvElement element, std::int64_t width, std::int64_t heads,
                                     std::int64_t tokens) {
  return aligned_256(checked_mul(checked_mul(heads, tokens), kv_pitch(element, width)));
}

HostRows::HostRows(Gpu& gpu, KvElement element, std::int64_t width, const std::byte* first, std::int64_t rows)
    : element_(element),
      pitch_(kv_pitch(element, width)),
      bytes_(download<std::byte>(gpu, first, rows * pitch_)) {}

double HostRows::at(std::int64_t row, std::int64_t element) const {
  return widen_scalar(scalar_type(element_),
                      bytes_.data() + row * pitch_ + element * kv_element_bytes(element_));
}

void launch_staged(Gpu& gpu, const LatentLaunch& launch) {
  gpu.launch(launch);
  if (launch.params.parts > 1) gpu.launch(merge_launch(launch));
}

void turn_pairs(std::vector<double>& row, const std::vector<float>& cosines,
                const std::vector<float>& sines) {
  const std::size_t half = row.size() / 2;
  for (std::size_t i = 0; i < half; ++i) {
    const double a = row[i];
    const double b = row[i + half];
    const auto cosine = static_cast<double>(cosines[i]);
    const auto sine = static_cast<double>(sines[i]);
    row[i] = a * cosine - b * sine;
    row[i + half] = b * cosine + a * sine;
  }
}

void ReferenceAttention::compare(Comparison& comparison, const std::vector<std::int32_t>& rows,
                                 const std::vector<double>& y) const {
  const auto width = static_cast<std::int64_t>(query.size());
  const double rounding = half_ulp(type);
  std::vector<double> scores;
  double score_error = 0;
  for (const std::int32_t row : rows) {
    double dot = 0;
    double magnitudes = 0;
    double squares = 0;
    for (std::int64_t i = 0; i < width; ++i) {
      const double product = query[static_cast<std::size_t>(i)] * keys.at(row, i);
      dot += product;
      magnitudes += std::abs(product);
      squares += product * product;
    }
    scores.push_back(dot * scale);
    // Rounded elements err independently of one another.
    const double turned = query_rounded ? 3 * rounding * std::sqrt(squares) : 0;
    score_error = std::max(score_error, (dot_tolerance(width, magnitudes) + turned) * scale);
  }
  const double highest = scores.empty() ? 0 : *std::max_element(scores.begin(), scores.end());
  std::vector<double> result(y.size());
  std::vector<double> magnitude(y.size());
  double sum = 0;
  for (std::size_t t = 0; t < rows.size(); ++t) {
    const double weight = std::exp(scores[t] - highest);
    sum += weight;
    for (std::size_t i = 0; i < y.size(); ++i) {
      const double value = values.at(rows[t], static_cast<std::int64_t>(i));
      result[i] += weight * value;
      magnitude[i] += weight * std::abs(value);
    }
  }
  if (rows.empty()) sum = 1;
  for (std::size_t i = 0; i < y.size(); ++i) {
    // A score's error moves its weight by as much, relatively; weights and outputs are rounded; the sum over
    // tokens adds its own.
    const double tolerance = (2 * score_error + rounding) * magnitude[i] / sum +
                             rounding * std::abs(result[i]) / sum +
                             dot_tolerance(static_cast<std::int64_t>(rows.size()), magnitude[i] / sum);
    comparison.add(y[i], result[i] / sum, tolerance);
  }
}

}  // namespace memwall::cuda
