#include "tests/cuda/attention_case.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "kernels/cpu/pack.h"

namespace memwall::cuda {
namespace {

// Of magnitude 1/8 to 2.
float random_value(std::mt19937& random) {
  const float magnitude =
      std::ldexp(1 + std::ldexp(static_cast<float>(random() % 8), -3), static_cast<int>(random() % 4) - 3);
  return random() % 2 == 0 ? magnitude : -magnitude;
}

void put(KvElement element, std::byte* to, float value) {
  if (element == KvElement::f32) std::memcpy(to, &value, sizeof value);
  const std::uint16_t half = element == KvElement::bf16 ? cpu::f32_to_bf16(value) : cpu::f32_to_f16(value);
  if (element == KvElement::f16 || element == KvElement::bf16) std::memcpy(to, &half, sizeof half);
  if (element == KvElement::f8_e4m3) *to = static_cast<std::byte>(cpu::f32_to_f8_e4m3(value));
}

double get(KvElement element, const std::byte* from) {
  float value = 0;
  std::uint16_t half = 0;
  if (element == KvElement::f32) std::memcpy(&value, from, sizeof value);
  if (element == KvElement::f16 || element == KvElement::bf16) std::memcpy(&half, from, sizeof half);
  if (element == KvElement::f16) value = cpu::f16_to_f32(half);
  if (element == KvElement::bf16) value = cpu::bf16_to_f32(half);
  if (element == KvElement::f8_e4m3) value = cpu::f8_e4m3_to_f32(static_cast<std::uint8_t>(*from));
  return static_cast<double>(value);
}

KvElement activation_of(KvElement element) {
  return element == KvElement::f8_e4m3 ? KvElement::f16 : element;
}

GpuVector<std::byte> random_elements(KvElement element, std::int64_t count, unsigned seed) {
  std::mt19937 random(seed);
  const int bytes = kv_element_bytes(element);
  GpuVector<std::byte> values(static_cast<std::size_t>(count * bytes));
  for (std::int64_t i = 0; i < count; ++i) put(element, values.data() + i * bytes, random_value(random));
  return values;
}

}  // namespace

AttentionCase::AttentionCase(const AttentionShape& s, bool with_chosen, bool with_turn, bool with_one_row)
    : shape(s), one_row(with_one_row) {
  const KvElement act = activation_of(s.element);
  const std::int64_t rows = s.seqs * s.kv_heads * s.held;
  const int bytes = kv_element_bytes(s.element);
  k = random_elements(s.element, rows * kv_pitch(s.element, s.d_k) / bytes, 1);
  if (!one_row) v = random_elements(s.element, rows * kv_pitch(s.element, s.d_v) / bytes, 2);
  q = random_elements(act, s.seqs * s.heads * s.d_k, 3);
  new_k = random_elements(act, s.seqs * s.kv_heads * s.d_k, 4);
  if (!one_row) new_v = random_elements(act, s.seqs * s.kv_heads * s.d_v, 5);
  y.resize(static_cast<std::size_t>(s.seqs * s.heads * s.d_v * kv_element_bytes(act)));
  for (std::int64_t seq = 0; with_chosen && seq < s.seqs; ++seq) {
    for (std::int64_t i = 0; i < s.read; ++i)
      chosen.push_back(static_cast<std::int32_t>(s.read == 1 ? s.held - 1 : i * (s.held - 1) / (s.read - 1)));
  }
  std::mt19937 random(6);
  for (std::int64_t i = 0; with_turn && i < s.d_k / 2; ++i) {
    const double angle = static_cast<double>(random() % 1000) / 100;
    cosines.push_back(static_cast<float>(std::cos(angle)));
    sines.push_back(static_cast<float>(std::sin(angle)));
  }
}

void AttentionCase::point(AttentionParams& p, std::int64_t partial_floats, std::int64_t counter_count) {
  p.k = k.data();
  p.v = one_row ? nullptr : v.data();
  p.q = q.data();
  p.new_k = new_k.data();
  p.new_v = one_row ? nullptr : new_v.data();
  p.y = y.data();
  p.chosen = chosen.empty() ? nullptr : chosen.data();
  p.cosines = cosines.empty() ? nullptr : cosines.data();
  p.sines = sines.empty() ? nullptr : sines.data();
  partials.assign(static_cast<std::size_t>(partial_floats), std::nanf(""));
  counters.assign(static_cast<std::size_t>(counter_count), 0);
  p.partials = partials.data();
  p.arrived = counters.data();
}

void AttentionCase::forget_outputs() { std::fill(y.begin(), y.end(), std::byte{0xFF}); }

bool AttentionCase::counters_are_zero() const {
  return std::all_of(counters.begin(), counters.end(), [](unsigned c) { return c == 0; });
}

std::vector<double> AttentionCase::row(const GpuVector<std::byte>& cache, std::int64_t width,
                                       std::int64_t head, std::int64_t token) const {
  std::vector<double> values;
  const std::byte* from = cache.data() + (head * shape.held + token) * kv_pitch(shape.element, width);
  for (std::int64_t i = 0; i < width; ++i)
    values.push_back(get(shape.element, from + i * kv_element_bytes(shape.element)));
  return values;
}

double AttentionCase::activation(const GpuVector<std::byte>& from, std::int64_t i) const {
  const KvElement act = activation_of(shape.element);
  return get(act, from.data() + i * kv_element_bytes(act));
}

std::vector<double> AttentionCase::turned(const GpuVector<std::byte>& from, std::int64_t index) const {
  std::vector<double> values;
  for (std::int64_t i = 0; i < shape.d_k; ++i) values.push_back(activation(from, index * shape.d_k + i));
  const std::size_t half = cosines.size();
  for (std::size_t i = 0; i < half; ++i) {
    const double a = values[i];
    const double b = values[i + half];
    const auto cosine = static_cast<double>(cosines[i]);
    const auto sine = static_cast<double>(sines[i]);
    values[i] = a * cosine - b * sine;
    values[i + half] = b * cosine + a * sine;
  }
  return values;
}

double AttentionCase::rounding() const {
  if (shape.element == KvElement::f32) return 0x1p-22;
  return shape.element == KvElement::bf16 ? 0x1p-8 : 0x1p-11;
}

double AttentionCase::worst_error() const {
  const double own = rounding();
  double worst = 0;
  const auto note = [&](double value, double expected, double tolerance) {
    const double error = std::abs(value - expected) / tolerance;
    if (!(error <= worst)) worst = error;
  };
  const std::int64_t kv_heads = shape.seqs * shape.kv_heads;
  for (std::int64_t head = 0; head < kv_heads; ++head) {
    // The newest token.
    const std::vector<double> stored = row(k, shape.d_k, head, shape.held - 1);
    const std::vector<double> brought = turned(new_k, head);
    const double step = shape.element == KvElement::f8_e4m3 ? 0x1p-4 : 1.01 * own + 0x1p-22;
    for (std::size_t i = 0; i < stored.size(); ++i)
      note(stored[i], brought[i], 1.001 * step * std::abs(brought[i]) + (cosines.empty() ? 1e-30 : 0.002));
    for (std::int64_t i = 0; !one_row && i < shape.d_v; ++i)
      note(row(v, shape.d_v, head, shape.held - 1)[static_cast<std::size_t>(i)],
           activation(new_v, head * shape.d_v + i), 1e-30);
    for (std::int64_t g = 0; g < shape.group(); ++g) {
      const std::vector<double> query = turned(q, head * shape.group() + g);
      std::vector<double> scores;
      std::vector<std::int64_t> tokens;
      double score_error = 0;
      for (std::int64_t i = 0; i < shape.read; ++i) {
        tokens.push_back(chosen.empty()
                             ? shape.held - shape.read + i
                             : chosen[static_cast<std::size_t>(head / shape.kv_heads * shape.read + i)]);
        const std::vector<double> key = row(k, shape.d_k, head, tokens.back());
        double dot = 0;
        double squares = 0;
        for (std::size_t d = 0; d < key.size(); ++d) {
          dot += key[d] * query[d];
          squares += key[d] * key[d] * query[d] * query[d];
        }
        scores.push_back(dot / std::sqrt(static_cast<double>(shape.d_k)));
        // A turned query is rounded, each element by itself.
        const double turn = cosines.empty() ? 0 : 3 * own;
        score_error =
            std::max(score_error, (turn + 0x1p-20) * std::sqrt(squares / static_cast<double>(shape.d_k)));
      }
      const double highest = scores.empty() ? 0 : *std::max_element(scores.begin(), scores.end());
      std::vector<double> sums(static_cast<std::size_t>(shape.d_v));
      std::vector<double> magnitudes(sums.size());
      double total = 0;
      for (std::size_t i = 0; i < scores.size(); ++i) {
        const double weight = std::exp(scores[i] - highest);
        total += weight;
        const std::vector<double> value =
            one_row ? row(k, shape.d_k, head, tokens[i]) : row(v, shape.d_v, head, tokens[i]);
        for (std::size_t d = 0; d < sums.size(); ++d) {
          sums[d] += weight * value[d];
          magnitudes[d] += weight * std::abs(value[d]);
        }
      }
      for (std::size_t d = 0; d < sums.size(); ++d) {
        const double expected = total > 0 ? sums[d] / total : 0;
        const double magnitude = total > 0 ? magnitudes[d] / total : 0;
        // Weights and outputs are rounded, and a score's error moves its weight by as much.
        const double tolerance = own * (magnitude + std::abs(expected)) + 2 * score_error * magnitude + 1e-30;
        note(activation(y, (head * shape.group() + g) * shape.d_v + static_cast<std::int64_t>(d)), expected,
             tolerance);
      }
    }
  }
  return worst;
}

}  // namespace memwall::cuda
