// Rotary embeddings and weighted sums of rows.
#include <cstddef>

#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/highway_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/elementwise_rows.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
//
#include "hwy/highway.h"
#include "kernels/cpu/elementwise-inl.h"

HWY_BEFORE_NAMESPACE();
namespace memwall::cpu::HWY_NAMESPACE {

void rotary(float* x, const float* cosines, const float* sines, std::size_t heads, std::size_t dim) {
  const F32 d;
  const std::size_t half = dim / 2;
  for (std::size_t head = 0; head < heads; ++head) {
    float* low = x + head * dim;
    float* high = low + half;
    std::size_t i = 0;
    for (; i + kLanes <= half; i += kLanes) {
      const VF a = hn::LoadU(d, low + i);
      const VF b = hn::LoadU(d, high + i);
      const VF c = hn::LoadU(d, cosines + i);
      const VF s = hn::LoadU(d, sines + i);
      hn::StoreU(hn::NegMulAdd(b, s, hn::Mul(a, c)), d, low + i);
      hn::StoreU(hn::MulAdd(a, s, hn::Mul(b, c)), d, high + i);
    }
    for (; i < half; ++i) {
      const float a = low[i];
      const float b = high[i];
      low[i] = a * cosines[i] - b * sines[i];
      high[i] = b * cosines[i] + a * sines[i];
    }
  }
}

// Columns [column, column + V * kLanes) of one row of y; every input is read once, and y written once.
template <std::size_t V>
HWY_INLINE void combine_columns(const float* x, const float* shares, std::size_t inputs, std::size_t width,
                                std::size_t column, float* y) {
  const F32 d;
  VF sums[V];
  for (VF& sum : sums) sum = hn::Zero(d);
  for (std::size_t i = 0; i < inputs; ++i) {
    const VF share = hn::Set(d, shares[i]);
    const float* in = x + i * width + column;
    for (std::size_t v = 0; v < V; ++v) sums[v] = hn::MulAdd(share, hn::LoadU(d, in + v * kLanes), sums[v]);
  }
  for (std::size_t v = 0; v < V; ++v) hn::StoreU(sums[v], d, y + column + v * kLanes);
}

void combine(const float* x, const float* shares, std::size_t inputs, std::size_t width, float* y,
             std::size_t rows) {
  constexpr std::size_t kUnroll = 4;
  for (std::size_t row = 0; row < rows; ++row) {
    const float* in = x + row * inputs * width;
    float* out = y + row * width;
    std::size_t c = 0;
    for (; c + kUnroll * kLanes <= width; c += kUnroll * kLanes)
      combine_columns<kUnroll>(in, shares, inputs, width, c, out);
    for (; c + kLanes <= width; c += kLanes) combine_columns<1>(in, shares, inputs, width, c, out);
    for (; c < width; ++c) {
      float sum = 0.0F;
      for (std::size_t i = 0; i < inputs; ++i) sum += shares[i] * in[i * width + c];
      out[c] = sum;
    }
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace memwall::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace memwall::cpu {

HWY_EXPORT(rotary);
HWY_EXPORT(combine);

// Su et al., "RoFormer", arXiv:2104.09864, with halves paired as Hugging Face's rotate_half does.
void rotary(float* x, const float* cosines, const float* sines, std::int64_t heads, std::int64_t dim,
            std::int64_t first, std::int64_t last) {
  if (last <= first) return;
  HWY_DYNAMIC_DISPATCH(rotary)
  (x + first * heads * dim, cosines, sines, static_cast<std::size_t>((last - first) * heads),
   static_cast<std::size_t>(dim));
}

void combine(const float* x, const float* shares, std::int64_t inputs, std::int64_t width, float* y,
             std::int64_t first, std::int64_t last) {
  if (last <= first) return;
  HWY_DYNAMIC_DISPATCH(combine)
  (x + first * inputs * width, shares, static_cast<std::size_t>(inputs), static_cast<std::size_t>(width),
   y + first * width, static_cast<std::size_t>(last - first));
}

}  // namespace memwall::cpu
#endif  // HWY_ONCE
