#include "kernels/cpu/elementwise.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <stdexcept>

#include "kernels/cpu/linear.h"
#include "kernels/cpu/pack.h"
#include "kernels/cpu/widen.h"

namespace memwall::cpu {
namespace {

// The sum of f(x[i]) in 16 chains, which the compiler can keep in vectors and which round less than one.
template <class F>
float chained_sum(const float* x, std::int64_t width, F f) {
  constexpr std::int64_t kChains = 16;
  float chains[kChains] = {};
  std::int64_t i = 0;
  for (; i + kChains <= width; i += kChains) {
    for (std::int64_t j = 0; j < kChains; ++j) chains[j] += f(x[i + j]);
  }
  for (; i < width; ++i) chains[i % kChains] += f(x[i]);
  float sum = 0.0F;
  for (const float chain : chains) sum += chain;
  return sum;
}

// Whether logit a ranks before b; a NaN ranks last, so that the order is always one.
bool ranks_before(float a, float b) { return a > b || (std::isnan(b) && !std::isnan(a)); }

}  // namespace

// Zhang and Sennrich, "Root Mean Square Layer Normalization", arXiv:1910.07467.
void rms_norm(const float* x, const std::uint16_t* weight, std::int64_t width, float* y, std::int64_t first,
              std::int64_t last) {
  constexpr float kEpsilon = 1e-6F;
  for (std::int64_t row = first; row < last; ++row) {
    const float* in = x + row * width;
    float* out = y + row * width;
    const float mean_square =
        chained_sum(in, width, [](float v) { return v * v; }) / static_cast<float>(width);
    const float scale = 1.0F / std::sqrt(mean_square + kEpsilon);
    for (std::int64_t i = 0; i < width; ++i) out[i] = in[i] * scale * bf16_to_f32(weight[i]);
  }
}

// Ba, Kiros and Hinton, "Layer Normalization", arXiv:1607.06450. The variance is taken about the mean in a
// second pass: mean(x^2) - mean(x)^2 cancels where the mean is large.
void layer_norm(const float* x, const std::uint16_t* weight, const std::uint16_t* bias, std::int64_t width,
                float* y, std::int64_t first, std::int64_t last) {
  constexpr float kEpsilon = 1e-5F;
  for (std::int64_t row = first; row < last; ++row) {
    const float* in = x + row * width;
    float* out = y + row * width;
    const float mean = chained_sum(in, width, [](float v) { return v; }) / static_cast<float>(width);
    const float variance = chained_sum(in, width, [mean](float v) { return (v - mean) * (v - mean); }) /
                           static_cast<float>(width);
    const float scale = 1.0F / std::sqrt(variance + kEpsilon);
    for (std::int64_t i = 0; i < width; ++i) {
      out[i] =
          (in[i] - mean) * scale * bf16_to_f32(weight[i]) + (bias != nullptr ? bf16_to_f32(bias[i]) : 0.0F);
    }
  }
}

// Su et al., "RoFormer", arXiv:2104.09864, with halves paired as Hugging Face's rotate_half does.
void rotary(float* x, const float* cosines, const float* sines, std::int64_t heads, std::int64_t dim,
            std::int64_t first, std::int64_t last) {
  const std::int64_t half = dim / 2;
  for (std::int64_t head = first * heads; head < last * heads; ++head) {
    float* low = x + head * dim;
    float* high = low + half;
    for (std::int64_t i = 0; i < half; ++i) {
      const float a = low[i];
      const float b = high[i];
      low[i] = a * cosines[i] - b * sines[i];
      high[i] = b * cosines[i] + a * sines[i];
    }
  }
}

void gather_rows(Format format, const void* table, const std::int32_t* ids, std::int64_t width, float* y,
                 std::int64_t first, std::int64_t last) {
  if (!has_linear(format)) {
    throw std::invalid_argument("the CPU cannot gather rows of " + format_name(format));
  }
  const std::int64_t row_bytes = storage_bytes(format, 1, width);
  for (std::int64_t row = first; row < last; ++row) {
    widen_row(format, static_cast<const std::uint8_t*>(table) + ids[row] * row_bytes, width, y + row * width);
  }
}

void top_k_softmax(const float* logits, std::int64_t experts, std::int64_t k, std::int32_t* indices,
                   float* weights, std::int64_t first, std::int64_t last) {
  if (k < 1 || k > experts)
    throw std::invalid_argument("top-k needs a k between 1 and the number of experts");
  for (std::int64_t row = first; row < last; ++row) {
    const float* scores = logits + row * experts;
    std::int32_t* best = indices + row * k;
    float* out = weights + row * k;
    // Insertion into a sorted list: k is small, and an equal logit met later stays behind.
    std::int64_t kept = 0;
    for (std::int64_t expert = 0; expert < experts; ++expert) {
      const float score = scores[expert];
      if (kept == k && !ranks_before(score, out[k - 1])) continue;
      std::int64_t place = kept < k ? kept++ : k - 1;
      for (; place > 0 && ranks_before(score, out[place - 1]); --place) {
        out[place] = out[place - 1];
        best[place] = best[place - 1];
      }
      out[place] = score;
      best[place] = static_cast<std::int32_t>(expert);
    }
    const float largest = out[0];
    float sum = 0.0F;
    for (std::int64_t i = 0; i < k; ++i) sum += out[i] = std::exp(out[i] - largest);
    for (std::int64_t i = 0; i < k; ++i) out[i] /= sum;
  }
}

void combine(const float* x, const float* shares, std::int64_t inputs, std::int64_t width, float* y,
             std::int64_t first, std::int64_t last) {
  for (std::int64_t row = first; row < last; ++row) {
    float* out = y + row * width;
    for (std::int64_t i = 0; i < inputs; ++i) {
      const float* in = x + (row * inputs + i) * width;
      const float share = shares[i];
      for (std::int64_t c = 0; c < width; ++c) out[c] = (i == 0 ? 0.0F : out[c]) + share * in[c];
    }
  }
}

}  // namespace memwall::cpu
