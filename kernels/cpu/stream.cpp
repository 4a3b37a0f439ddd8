#include "kernels/cpu/stream.h"

#include <cstddef>
#include <stdexcept>

#include "kernels/cpu/highway_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/stream.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
//
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace memwall::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using F32 = hn::CappedTag<float, 16>;
using VF = hn::Vec<F32>;
constexpr std::size_t kLanes = hn::MaxLanes(F32());

// kStreams equal parts of `count` floats, read side by side, and what is left over after them. What was tried
// on 256 MiB in huge pages with one thread (Zen 4, AVX-512, medians in GB/s of one interleaved run): 4, 8 and
// 16 accumulators 26.0, 26.3 and 25.8, so memory is the bound; prefetches 1, 4 and 16 KiB ahead 24.3, 24.6
// and 23.2. Two streams gave 26.9, four 27.5 and eight 21.0.
template <std::size_t kStreams>
float sum_streams(const float* HWY_RESTRICT a, std::size_t count) {
  const F32 d;
  constexpr std::size_t kUnroll = kStreams >= 8 ? 1 : 8 / kStreams;  // 8 chains cover an adder's latency
  constexpr std::size_t kStep = kUnroll * kLanes;
  VF sums[kStreams][kUnroll];
  for (auto& stream : sums) {
    for (VF& sum : stream) sum = hn::Zero(d);
  }
  const std::size_t part = count / kStreams / kStep * kStep;
  for (std::size_t i = 0; i < part; i += kStep) {
    for (std::size_t s = 0; s < kStreams; ++s) {
      for (std::size_t u = 0; u < kUnroll; ++u) {
        sums[s][u] = hn::Add(sums[s][u], hn::LoadU(d, a + s * part + i + u * kLanes));
      }
    }
  }
  VF total = hn::Zero(d);
  for (const auto& stream : sums) {
    for (const VF& sum : stream) total = hn::Add(total, sum);
  }
  float result = hn::GetLane(hn::SumOfLanes(d, total));
  for (std::size_t i = part * kStreams; i < count; ++i) result += a[i];
  return result;
}

float sum(const float* a, std::size_t count, int streams) {
  switch (streams) {
    case 1:
      return sum_streams<1>(a, count);
    case 2:
      return sum_streams<2>(a, count);
    case 4:
      return sum_streams<4>(a, count);
    default:
      return sum_streams<8>(a, count);
  }
}

// Ordinary stores, four vectors a step; a plain loop would become memcpy, which bypasses the cache.
void copy(const float* HWY_RESTRICT a, float* HWY_RESTRICT b, std::size_t count) {
  const F32 d;
  std::size_t i = 0;
  for (; i + 4 * kLanes <= count; i += 4 * kLanes) {
    const VF v0 = hn::LoadU(d, a + i);
    const VF v1 = hn::LoadU(d, a + i + kLanes);
    const VF v2 = hn::LoadU(d, a + i + 2 * kLanes);
    const VF v3 = hn::LoadU(d, a + i + 3 * kLanes);
    hn::StoreU(v0, d, b + i);
    hn::StoreU(v1, d, b + i + kLanes);
    hn::StoreU(v2, d, b + i + 2 * kLanes);
    hn::StoreU(v3, d, b + i + 3 * kLanes);
  }
  for (; i < count; ++i) b[i] = a[i];
}

void triad(const float* HWY_RESTRICT a, const float* HWY_RESTRICT b, float* HWY_RESTRICT c, float s,
           std::size_t count) {
  const F32 d;
  const VF factor = hn::Set(d, s);
  std::size_t i = 0;
  for (; i + 2 * kLanes <= count; i += 2 * kLanes) {
    const VF v0 = hn::MulAdd(factor, hn::LoadU(d, b + i), hn::LoadU(d, a + i));
    const VF v1 = hn::MulAdd(factor, hn::LoadU(d, b + i + kLanes), hn::LoadU(d, a + i + kLanes));
    hn::StoreU(v0, d, c + i);
    hn::StoreU(v1, d, c + i + kLanes);
  }
  for (; i < count; ++i) c[i] = a[i] + s * b[i];
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace memwall::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace memwall::cpu {

HWY_EXPORT(sum);
HWY_EXPORT(copy);
HWY_EXPORT(triad);

float read(const float* a, std::int64_t first, std::int64_t last, int streams) {
  if (streams != 1 && streams != 2 && streams != 4 && streams != 8) {
    throw std::invalid_argument("a read takes 1, 2, 4 or 8 streams");
  }
  if (last <= first) return 0.0F;
  return HWY_DYNAMIC_DISPATCH(sum)(a + first, static_cast<std::size_t>(last - first), streams);
}

void copy(const float* a, float* b, std::int64_t first, std::int64_t last) {
  if (last <= first) return;
  HWY_DYNAMIC_DISPATCH(copy)(a + first, b + first, static_cast<std::size_t>(last - first));
}

void triad(const float* a, const float* b, float* c, float s, std::int64_t first, std::int64_t last) {
  if (last <= first) return;
  HWY_DYNAMIC_DISPATCH(triad)(a + first, b + first, c + first, s, static_cast<std::size_t>(last - first));
}

}  // namespace memwall::cpu
#endif  // HWY_ONCE
