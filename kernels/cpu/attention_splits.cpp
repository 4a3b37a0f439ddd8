// Cutting attention into parts and merging what they come to.
#include <cmath>
#include <limits>
#include <stdexcept>

#include "kernels/cpu/attention_shape.h"

namespace memwall::cpu {

void check_attention(const Attention& op) {
  if (op.context < 1 || op.window < 0 || op.chunk < 0 || op.top_k < 0 || op.kv_heads < 1 || op.heads < 1 ||
      op.heads % op.kv_heads != 0 || op.d_k < 1 || op.d_v < 1) {
    throw std::invalid_argument("attention needs a context, and heads that kv_heads divides");
  }
}

std::int64_t Attention::decode_tokens() const {
  if (chosen != nullptr || top_k > 0) return std::min(top_k, context);
  if (chunk > 0) return context % chunk;
  return window > 0 ? std::min(window, context) : context;
}

std::int64_t attention_splits(std::int64_t heads, std::int64_t tokens, std::int64_t threads) {
  constexpr std::int64_t kLeastTokens = 256;
  const std::int64_t most =
      std::clamp<std::int64_t>(tokens / kLeastTokens, 1, std::max<std::int64_t>(threads, 1));
  std::int64_t best = 1;
  double least = std::numeric_limits<double>::infinity();
  for (std::int64_t splits = 1; splits <= most; ++splits) {
    const std::int64_t tasks = heads * splits;
    const double busiest = static_cast<double>((tasks + threads - 1) / threads);
    const double excess = busiest * static_cast<double>(threads) / static_cast<double>(tasks);
    if (excess < least) {
      best = splits;
      least = excess;
    }
    if (least <= 1.1) break;
  }
  return best;
}

TokenRange part_of(std::int64_t first, std::int64_t last, std::int64_t splits, std::int64_t part) {
  if (first >= last) return {first, first};
  const std::int64_t origin = first / kPanelTokens;
  const std::int64_t panels = (last + kPanelTokens - 1) / kPanelTokens - origin;
  const auto bound = [&](std::int64_t p) {
    return std::clamp((origin + panels * p / splits) * kPanelTokens, first, last);
  };
  return {bound(part), bound(part + 1)};
}

void Partials::merge(const float* parts, std::int64_t splits, std::int64_t first, std::int64_t last,
                     float* y) const {
  for (std::int64_t h = first; h < last; ++h) {
    const auto maximum_and_sum = [&](std::int64_t part) {
      const float* maxima = parts + part * floats() + group * padded() + h;
      return std::pair(maxima[0], maxima[group]);
    };
    float largest = -std::numeric_limits<float>::infinity();
    for (std::int64_t part = 0; part < splits; ++part)
      largest = std::max(largest, maximum_and_sum(part).first);
    // No token, or all of them at -inf: any finite shift will do.
    const float shift = std::isinf(largest) && largest < 0 ? 0.0F : largest;
    float* row = y + (h - first) * width;
    std::fill_n(row, width, 0.0F);
    float total = 0;
    for (std::int64_t part = 0; part < splits; ++part) {
      const auto [maximum, sum] = maximum_and_sum(part);
      const float factor = std::exp(maximum - shift);
      total += sum * factor;
      const float* accumulators = parts + part * floats() + h * padded();
      for (std::int64_t i = 0; i < width; ++i) row[i] += accumulators[i] * factor;
    }
    if (total == 0.0F) continue;
    for (std::int64_t i = 0; i < width; ++i) row[i] /= total;
  }
}

std::int64_t attention_partial_floats(const Attention& op, std::int64_t splits) {
  check_attention(op);
  if (splits <= 1) return 0;
  return op.seqs * op.kv_heads * splits * Partials{op.heads / op.kv_heads, op.d_v}.floats();
}

void attention_merge(const Attention& op, std::int64_t splits, std::int64_t first, std::int64_t last,
                     const float* partials) {
  check_attention(op);
  if (splits <= 1) return;
  const Partials partial{op.heads / op.kv_heads, op.d_v};
  for (std::int64_t head = first; head < last; ++head) {
    partial.merge(partials + head * splits * partial.floats(), splits, 0, partial.group,
                  op.y + head * partial.group * partial.width);
  }
}

}  // namespace memwall::cpu
