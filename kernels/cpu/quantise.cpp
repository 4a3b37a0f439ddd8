#include <algorithm>
#include <cstddef>
#include <cstring>

#include "kernels/cpu/highway_targets.h"
#include "kernels/cpu/quantised.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/quantise.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
//
#include "hwy/highway.h"
#include "kernels/cpu/widen-inl.h"

HWY_BEFORE_NAMESPACE();
namespace memwall::cpu::HWY_NAMESPACE {

static_assert(kBlock == kBlockWeights);

struct BlockScale {
  float scale;
  std::int32_t sum;
};

HWY_INLINE BlockScale quantise_block(const float* HWY_RESTRICT x, std::int8_t* HWY_RESTRICT quants) {
  const F32 d;
  const hn::RebindToSigned<F32> di;
  const hn::Rebind<std::int8_t, F32> d8;
  VF values[kVectors];
  VF most = hn::Zero(d);
  VF poison = hn::Zero(d);  // x - x: NaN where x is NaN or infinite, and Max may drop a NaN
  for (std::size_t j = 0; j < kVectors; ++j) {
    values[j] = hn::LoadU(d, x + j * kLanes);
    most = hn::Max(most, hn::Abs(values[j]));
    poison = hn::Add(poison, hn::Sub(values[j], values[j]));
  }
  const float largest = hn::GetLane(hn::MaxOfLanes(d, most)) + hn::GetLane(hn::SumOfLanes(d, poison));
  constexpr float kLeast = 0x1p-119F;
  if (!(largest >= kLeast)) {
    std::memset(quants, 0, kBlockWeights);
    return {largest >= 0 ? 0.0F : largest, 0};  // a NaN stays one
  }
  const VF inverse = hn::Set(d, 127.0F / largest);
  auto sums = hn::Zero(di);
  for (std::size_t j = 0; j < kVectors; ++j) {
    const auto rounded = hn::NearestInt(hn::Mul(values[j], inverse));
    sums = hn::Add(sums, rounded);
    hn::StoreU(hn::DemoteTo(d8, rounded), d8, quants + j * kLanes);
  }
  return {largest / 127.0F, hn::GetLane(hn::SumOfLanes(di, sums))};
}

void quantise(const float* x, std::int64_t in, const Quantised& to, std::int64_t first, std::int64_t last) {
  for (std::int64_t i = first; i < last; ++i) {
    const std::int64_t row = i / to.blocks;
    const std::int64_t at = i % to.blocks * kBlockWeights;
    const float* source = x + row * in + at;
    float padded[kBlockWeights] = {};
    const std::int64_t here = std::clamp<std::int64_t>(in - at, 0, kBlockWeights);
    if (here < kBlockWeights) {
      if (here > 0) std::memcpy(padded, source, static_cast<std::size_t>(here) * sizeof(float));
      source = padded;
    }
    const BlockScale block = quantise_block(source, to.quants + i * kBlockWeights);
    to.scales[i] = block.scale;
    to.sums[i] = block.sum;
    to.scaled_sums[i] = block.scale * static_cast<float>(block.sum);
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace memwall::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace memwall::cpu {

HWY_EXPORT(quantise);

void quantise(const float* x, std::int64_t in, const Quantised& to, std::int64_t first, std::int64_t last) {
  HWY_DYNAMIC_DISPATCH(quantise)(x, in, to, first, last);
}

}  // namespace memwall::cpu
#endif  // HWY_ONCE
