#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>

#include "kernels/cpu/attention.h"
#include "kernels/cpu/attention_shape.h"
#include "kernels/cpu/highway_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/attention_decode.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
//
#include "hwy/highway.h"
#include "kernels/cpu/dot-inl.h"
#include "kernels/cpu/softmax-inl.h"

HWY_BEFORE_NAMESPACE();
namespace memwall::cpu::HWY_NAMESPACE {

constexpr std::size_t kTokens = kDecodeTokens;

// One KV head and the `group` query heads that read it. The scratch, in floats: an accumulator of d_v
// (rounded up to kPad) a query head, kTokens scores a query head, then the running maximum and sum of each.
struct Head {
  std::size_t group;
  std::size_t d_k;
  std::size_t d_v;
  std::size_t padded;  // d_v, rounded up
  const float* q;
  float* accumulators;
  float* scores;
  float* maxima;
  float* sums;
};

// V is only prefetched: its block is read once these scores have been through softmax.
template <class Rows>
void score_block(const Head& head, const std::uint8_t* k, const std::uint8_t* v, std::size_t tokens) {
  const std::size_t stride = head.d_k * Rows::kBytes;
  const float scale = 1.0F / std::sqrt(static_cast<float>(head.d_k));
  float dots[kTileRows * kTileColumns];
  for (std::size_t t = 0; t < tokens;) {
    const std::size_t rows = tokens - t >= kTileRows ? kTileRows : 1;
    const std::uint8_t* next = v + t * head.d_v * Rows::kBytes;
    for (std::size_t first = 0; first < head.group; first += kTileColumns) {
      const std::size_t columns = std::min(head.group - first, kTileColumns);
      const float* q = head.q + first * head.d_k;
      if (rows == kTileRows) {
        dot_columns<Rows, kTileRows>(k + t * stride, stride, next, q, head.d_k, columns, head.d_k, dots);
      } else {
        dot_columns<Rows, 1>(k + t * stride, stride, next, q, head.d_k, columns, head.d_k, dots);
      }
      for (std::size_t c = 0; c < columns; ++c) {
        float* scores = head.scores + (first + c) * kTokens + t;
        for (std::size_t r = 0; r < rows; ++r) scores[r] = dots[c * rows + r] * scale;
      }
    }
    t += rows;
  }
}

// Online softmax (Milakov and Gimelshein, arXiv:1805.02867): the scores become exp(score - maximum), and
// what was summed under a lower maximum is scaled down.
HWY_INLINE void softmax_block(const Head& head, std::size_t tokens) {
  const F32 d;
  const std::size_t padded = (tokens + kPad - 1) / kPad * kPad;
  for (std::size_t h = 0; h < head.group; ++h) {
    float* scores = head.scores + h * kTokens;
    std::fill(scores + tokens, scores + padded, kMinusInfinity);
    const float before = head.maxima[h];
    const float largest = std::max(before, max_of(scores, padded));
    // All scores so far may be -inf, and -inf - -inf is NaN; any finite shift gives their exp, 0.
    const float shift = largest == kMinusInfinity ? 0.0F : largest;
    const float sum = exp_and_sum(scores, padded, shift);
    if (largest > before) {
      const float factor = std::exp(before - shift);
      head.sums[h] *= factor;
      float* accumulators = head.accumulators + h * head.padded;
      for (std::size_t i = 0; i < head.padded; i += kLanes) {
        hn::StoreU(hn::Mul(hn::Set(d, factor), hn::LoadU(d, accumulators + i)), d, accumulators + i);
      }
      head.maxima[h] = largest;
    }
    head.sums[h] += sum;
  }
}

// accumulators += weights * V for kCount tokens: one load and one store of an accumulator for kCount of them.
template <class Rows, std::size_t kCount>
HWY_INLINE void weigh_tokens(const Head& head, const std::uint8_t* v, const float* weights) {
  const F32 d;
  const std::size_t stride = head.d_v * Rows::kBytes;
  for (std::size_t i = 0; i < head.d_v; i += kLanes) {
    VF values[kCount];
    const std::size_t rest = std::min(head.d_v - i, kLanes);
    for (std::size_t t = 0; t < kCount; ++t) {
      const std::uint8_t* source = v + t * stride + i * Rows::kBytes;
      if (rest == kLanes) {
        values[t] = Rows::load(source);
      } else {
        alignas(64) std::uint8_t last[kLanes * Rows::kBytes] = {};
        std::memcpy(last, source, rest * Rows::kBytes);
        values[t] = Rows::load(last);
      }
    }
    for (std::size_t h = 0; h < head.group; ++h) {
      float* accumulators = head.accumulators + h * head.padded + i;
      VF sum = hn::LoadU(d, accumulators);
      for (std::size_t t = 0; t < kCount; ++t) {
        sum = hn::MulAdd(hn::Set(d, weights[h * kTokens + t]), values[t], sum);
      }
      hn::StoreU(sum, d, accumulators);
    }
  }
}

template <class Rows>
void decode(const Attention& op, std::int64_t first, std::int64_t last, float* scratch) {
  Head head{};
  head.group = static_cast<std::size_t>(op.heads / op.kv_heads);
  head.d_k = static_cast<std::size_t>(op.d_k);
  head.d_v = static_cast<std::size_t>(op.d_v);
  head.padded = (head.d_v + kPad - 1) / kPad * kPad;
  head.accumulators = scratch;
  head.scores = head.accumulators + head.group * head.padded;
  head.maxima = head.scores + head.group * kTokens;
  head.sums = head.maxima + head.group;
  const std::size_t context = static_cast<std::size_t>(op.context);
  const std::size_t k_bytes = head.d_k * Rows::kBytes;
  const std::size_t v_bytes = head.d_v * Rows::kBytes;

  for (std::int64_t task = first; task < last; ++task) {
    // Tasks go by sequence, then KV head; so do the caches, and (group heads a task) q and y.
    const std::size_t index = static_cast<std::size_t>(task);
    const std::uint8_t* k = static_cast<const std::uint8_t*>(op.k) + index * context * k_bytes;
    const std::uint8_t* v = static_cast<const std::uint8_t*>(op.v) + index * context * v_bytes;
    head.q = op.q + index * head.group * head.d_k;
    std::fill_n(head.accumulators, head.group * head.padded, 0.0F);
    std::fill_n(head.maxima, head.group, kMinusInfinity);
    std::fill_n(head.sums, head.group, 0.0F);

    for (std::size_t t = context - static_cast<std::size_t>(attention_reach(op)); t < context; t += kTokens) {
      const std::size_t tokens = std::min(context - t, kTokens);
      score_block<Rows>(head, k + t * k_bytes, v + t * v_bytes, tokens);
      softmax_block(head, tokens);
      std::size_t i = 0;
      for (; i + 4 <= tokens; i += 4) {
        prefetch(k + (t + kTokens + i) * k_bytes, 4 * k_bytes);
        weigh_tokens<Rows, 4>(head, v + (t + i) * v_bytes, head.scores + i);
      }
      for (; i < tokens; ++i) weigh_tokens<Rows, 1>(head, v + (t + i) * v_bytes, head.scores + i);
    }

    float* y = op.y + index * head.group * head.d_v;
    for (std::size_t h = 0; h < head.group; ++h) {
      for (std::size_t i = 0; i < head.d_v; ++i) {
        y[h * head.d_v + i] = head.accumulators[h * head.padded + i] / head.sums[h];
      }
    }
  }
}

void attention_decode(const Attention& op, std::int64_t first, std::int64_t last, float* scratch) {
  switch (op.kv) {
    case KvFormat::f16:
      return decode<RowsF16>(op, first, last, scratch);
    case KvFormat::bf16:
      return decode<RowsBf16>(op, first, last, scratch);
    default:
      return decode<RowsF32>(op, first, last, scratch);
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace memwall::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace memwall::cpu {

HWY_EXPORT(attention_decode);

bool has_attention(KvFormat format) {
  return format == KvFormat::f32 || format == KvFormat::f16 || format == KvFormat::bf16;
}

void attention_decode(const Attention& op, std::int64_t first, std::int64_t last, float* scratch) {
  check_attention(op);
  HWY_DYNAMIC_DISPATCH(attention_decode)(op, first, last, scratch);
}

std::int64_t attention_scratch_floats(const Attention& op) {
  check_attention(op);
  const std::int64_t maximum_and_sum = 2;
  return op.heads / op.kv_heads * (round_up(op.d_v, kPad) + kDecodeTokens + maximum_and_sum);
}

}  // namespace memwall::cpu
#endif  // HWY_ONCE
