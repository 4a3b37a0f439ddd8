// The norms: one row after another, each read from the first-level cache after its first pass.
#include <cmath>
#include <cstddef>

#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/highway_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/elementwise_norms.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
//
#include "hwy/highway.h"
#include "kernels/cpu/elementwise-inl.h"

HWY_BEFORE_NAMESPACE();
namespace memwall::cpu::HWY_NAMESPACE {

// The sum of f(x[i]): four chains hide an addition's latency, and round less than one.
template <class F>
HWY_INLINE float sum_of(const float* x, std::size_t width, F f) {
  constexpr std::size_t kChains = 4;
  const F32 d;
  VF sums[kChains];
  for (VF& sum : sums) sum = hn::Zero(d);
  std::size_t i = 0;
  for (; i + kChains * kLanes <= width; i += kChains * kLanes) {
    for (std::size_t c = 0; c < kChains; ++c) sums[c] = f(hn::LoadU(d, x + i + c * kLanes), sums[c]);
  }
  for (; i + kLanes <= width; i += kLanes) sums[0] = f(hn::LoadU(d, x + i), sums[0]);
  if (const std::size_t rest = width - i; rest != 0) {
    // What pads the last vector must not count, whatever f makes of it.
    const VF last = f(load_first(x + i, rest), hn::Zero(d));
    sums[1] = hn::Add(sums[1], hn::IfThenElseZero(hn::FirstN(d, rest), last));
  }
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(sums[0], sums[1]), hn::Add(sums[2], sums[3]))));
}

// y[i] = (x[i] - mean) * scale * weight[i] + bias[i].
template <bool kMean, bool kBias>
HWY_INLINE void scale_row(const float* x, float mean, float scale, const std::uint16_t* weight,
                          const std::uint16_t* bias, std::size_t width, float* y) {
  const F32 d;
  const VF means = hn::Set(d, mean);
  const VF scales = hn::Set(d, scale);
  const auto scaled = [&](VF v, VF w) HWY_ATTR {
    if constexpr (kMean) v = hn::Sub(v, means);
    return hn::Mul(hn::Mul(v, scales), w);
  };
  std::size_t i = 0;
  for (; i + kLanes <= width; i += kLanes) {
    VF v = scaled(hn::LoadU(d, x + i), load_bf16(weight + i));
    if constexpr (kBias) v = hn::Add(v, load_bf16(bias + i));
    hn::StoreU(v, d, y + i);
  }
  if (i == width) return;
  const std::size_t rest = width - i;
  VF v = scaled(load_first(x + i, rest), load_first_bf16(weight + i, rest));
  if constexpr (kBias) v = hn::Add(v, load_first_bf16(bias + i, rest));
  store_first(v, y + i, rest);
}

void rms_norm(const float* x, const std::uint16_t* weight, std::size_t width, float* y, std::size_t rows) {
  constexpr float kEpsilon = 1e-6F;
  for (std::size_t row = 0; row < rows; ++row) {
    const float* in = x + row * width;
    const float squares = sum_of(in, width, [](VF v, VF sum) HWY_ATTR { return hn::MulAdd(v, v, sum); });
    const float scale = 1.0F / std::sqrt(squares / static_cast<float>(width) + kEpsilon);
    scale_row<false, false>(in, 0.0F, scale, weight, nullptr, width, y + row * width);
  }
}

void layer_norm(const float* x, const std::uint16_t* weight, const std::uint16_t* bias, std::size_t width,
                float* y, std::size_t rows) {
  constexpr float kEpsilon = 1e-5F;
  const F32 d;
  for (std::size_t row = 0; row < rows; ++row) {
    const float* in = x + row * width;
    float* out = y + row * width;
    const float sum = sum_of(in, width, [](VF v, VF s) HWY_ATTR { return hn::Add(v, s); });
    const float mean = sum / static_cast<float>(width);
    const float squares = sum_of(in, width, [&](VF v, VF s) HWY_ATTR {
      const VF off = hn::Sub(v, hn::Set(d, mean));
      return hn::MulAdd(off, off, s);
    });
    const float scale = 1.0F / std::sqrt(squares / static_cast<float>(width) + kEpsilon);
    if (bias != nullptr) {
      scale_row<true, true>(in, mean, scale, weight, bias, width, out);
    } else {
      scale_row<true, false>(in, mean, scale, weight, bias, width, out);
    }
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace memwall::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace memwall::cpu {

HWY_EXPORT(rms_norm);
HWY_EXPORT(layer_norm);

// Zhang and Sennrich, "Root Mean Square Layer Normalization", arXiv:1910.07467.
void rms_norm(const float* x, const std::uint16_t* weight, std::int64_t width, float* y, std::int64_t first,
              std::int64_t last) {
  if (last <= first) return;
  HWY_DYNAMIC_DISPATCH(rms_norm)
  (x + first * width, weight, static_cast<std::size_t>(width), y + first * width,
   static_cast<std::size_t>(last - first));
}

// Ba, Kiros and Hinton, "Layer Normalization", arXiv:1607.06450. The variance is taken about the mean in a
// second pass: mean(x^2) - mean(x)^2 cancels where the mean is large.
void layer_norm(const float* x, const std::uint16_t* weight, const std::uint16_t* bias, std::int64_t width,
                float* y, std::int64_t first, std::int64_t last) {
  if (last <= first) return;
  HWY_DYNAMIC_DISPATCH(layer_norm)
  (x + first * width, weight, bias, static_cast<std::size_t>(width), y + first * width,
   static_cast<std::size_t>(last - first));
}

}  // namespace memwall::cpu
#endif  // HWY_ONCE
