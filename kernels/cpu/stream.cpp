#include "kernels/cpu/stream.h"

#include <cstddef>
#include <cstdint>
#include <stdexcept>

#include "kernels/cpu/highway_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/stream.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
//
#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "kernels/cpu/widen-inl.h"

HWY_BEFORE_NAMESPACE();
namespace memwall::cpu::HWY_NAMESPACE {

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

// What an element of the output is, of vectors and of single floats.
struct Copy {
  static VF vector(F32 d, const float* a, const float*, VF) { return hn::LoadU(d, a); }
  static float scalar(const float* a, const float*, float) { return *a; }
};
struct Scale {
  static VF vector(F32 d, const float* a, const float*, VF s) { return hn::Mul(s, hn::LoadU(d, a)); }
  static float scalar(const float* a, const float*, float s) { return s * *a; }
};
struct Add {
  static VF vector(F32 d, const float* a, const float* b, VF) {
    return hn::Add(hn::LoadU(d, a), hn::LoadU(d, b));
  }
  static float scalar(const float* a, const float* b, float) { return *a + *b; }
};
struct Triad {
  static VF vector(F32 d, const float* a, const float* b, VF s) {
    return hn::MulAdd(s, hn::LoadU(d, b), hn::LoadU(d, a));
  }
  static float scalar(const float* a, const float* b, float s) { return *a + s * *b; }
};

// Four vectors a step; a plain copying loop would become memcpy, which chooses its stores itself.
template <class Pattern, bool kNontemporal>
void write(const float* HWY_RESTRICT a, const float* HWY_RESTRICT b, float* HWY_RESTRICT out, float s,
           std::size_t count) {
  const F32 d;
  const VF factor = hn::Set(d, s);
  std::size_t i = 0;
  if constexpr (kNontemporal) {
    // These stores must be aligned, and leave the core as whole lines only.
    constexpr std::uintptr_t kLine = 64;
    for (; i < count && reinterpret_cast<std::uintptr_t>(out + i) % kLine != 0; ++i) {
      out[i] = Pattern::scalar(a + i, b + i, s);
    }
  }
  for (; i + 4 * kLanes <= count; i += 4 * kLanes) {
    VF v[4];
    for (std::size_t k = 0; k < 4; ++k) {
      v[k] = Pattern::vector(d, a + i + k * kLanes, b + i + k * kLanes, factor);
    }
    for (std::size_t k = 0; k < 4; ++k) {
      if constexpr (kNontemporal) {
        hn::Stream(v[k], d, out + i + k * kLanes);
      } else {
        hn::StoreU(v[k], d, out + i + k * kLanes);
      }
    }
  }
  for (; i < count; ++i) out[i] = Pattern::scalar(a + i, b + i, s);
  if constexpr (kNontemporal) hwy::FlushStream();  // or another thread may read what was there before
}

template <class Pattern>
void write_by(Stores stores, const float* a, const float* b, float* out, float s, std::size_t count) {
  if (stores == Stores::nontemporal) return write<Pattern, true>(a, b, out, s, count);
  write<Pattern, false>(a, b, out, s, count);
}

void copy(const float* a, float* b, std::size_t count, Stores stores) {
  write_by<Copy>(stores, a, a, b, 0, count);
}
void scale(const float* a, float* b, float s, std::size_t count, Stores stores) {
  write_by<Scale>(stores, a, a, b, s, count);
}
void add(const float* a, const float* b, float* c, std::size_t count, Stores stores) {
  write_by<Add>(stores, a, b, c, 0, count);
}
void triad(const float* a, const float* b, float* c, float s, std::size_t count, Stores stores) {
  write_by<Triad>(stores, a, b, c, s, count);
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace memwall::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace memwall::cpu {

HWY_EXPORT(sum);
HWY_EXPORT(copy);
HWY_EXPORT(scale);
HWY_EXPORT(add);
HWY_EXPORT(triad);

bool has_nontemporal_stores() { return HWY_ARCH_X86 != 0; }

float read(const float* a, std::int64_t first, std::int64_t last, int streams) {
  if (streams != 1 && streams != 2 && streams != 4 && streams != 8) {
    throw std::invalid_argument("a read takes 1, 2, 4 or 8 streams");
  }
  if (last <= first) return 0.0F;
  return HWY_DYNAMIC_DISPATCH(sum)(a + first, static_cast<std::size_t>(last - first), streams);
}

void copy(const float* a, float* b, std::int64_t first, std::int64_t last, Stores stores) {
  if (last <= first) return;
  HWY_DYNAMIC_DISPATCH(copy)(a + first, b + first, static_cast<std::size_t>(last - first), stores);
}

void scale(const float* a, float* b, float s, std::int64_t first, std::int64_t last, Stores stores) {
  if (last <= first) return;
  HWY_DYNAMIC_DISPATCH(scale)(a + first, b + first, s, static_cast<std::size_t>(last - first), stores);
}

void add(const float* a, const float* b, float* c, std::int64_t first, std::int64_t last, Stores stores) {
  if (last <= first) return;
  HWY_DYNAMIC_DISPATCH(add)
  (a + first, b + first, c + first, static_cast<std::size_t>(last - first), stores);
}

void triad(const float* a, const float* b, float* c, float s, std::int64_t first, std::int64_t last,
           Stores stores) {
  if (last <= first) return;
  HWY_DYNAMIC_DISPATCH(triad)
  (a + first, b + first, c + first, s, static_cast<std::size_t>(last - first), stores);
}

}  // namespace memwall::cpu
#endif  // HWY_ONCE
