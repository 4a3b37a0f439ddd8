// The element types of a KV cache as f32 vectors. Highway's per-target header.
//
// Beside widen-inl.h's types: what load() gives, times kFactor, are the values; where kScaled a token's
// f16 scale multiplies them too; kCold where they come from memory and are worth asking for early.
#if defined(MEMWALL_KERNELS_CPU_KV_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MEMWALL_KERNELS_CPU_KV_INL_H_
#undef MEMWALL_KERNELS_CPU_KV_INL_H_
#else
#define MEMWALL_KERNELS_CPU_KV_INL_H_
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "format/format.h"
#include "hwy/highway.h"
#include "kernels/cpu/widen-inl.h"

HWY_BEFORE_NAMESPACE();
namespace memwall::cpu::HWY_NAMESPACE {

template <class Rows>
struct KvFloat : Rows {
  static constexpr float kFactor = 1.0F;
  static constexpr bool kScaled = false;
  static constexpr bool kCold = true;
};

// f32 that were widened just now.
struct KvWidened : KvFloat<RowsF32> {
  static constexpr bool kCold = false;
};

struct KvInt8 {
  static constexpr std::size_t kBytes = 1;
  static constexpr float kFactor = 1.0F;
  static constexpr bool kScaled = true;
  static constexpr bool kCold = true;
  static HWY_INLINE VF load(const std::uint8_t* p) {
    const hn::RebindToSigned<F32> di;
    const auto bytes = hn::LoadU(hn::Rebind<std::int8_t, F32>(), reinterpret_cast<const std::int8_t*>(p));
    return hn::ConvertTo(F32(), hn::PromoteTo(di, bytes));
  }
};

struct KvE4m3 {
  static constexpr std::size_t kBytes = 1;
  static constexpr float kFactor = kF8Factor;
  static constexpr bool kScaled = false;
  static constexpr bool kCold = true;
  static HWY_INLINE VF load(const std::uint8_t* p) {
    return widen_f16(hn::BitCast(U16Half(), f8_as_f16_exactly(hn::Rebind<std::int16_t, F32>(), p)));
  }
};

// Calls visit with the type of that format's elements.
template <class Visitor>
HWY_INLINE void with_kv_type(KvFormat format, const Visitor& visit) {
  switch (format) {
    case KvFormat::f32:
      return visit(KvFloat<RowsF32>());
    case KvFormat::f16:
      return visit(KvFloat<RowsF16>());
    case KvFormat::bf16:
      return visit(KvFloat<RowsBf16>());
    case KvFormat::f8_e4m3:
      return visit(KvE4m3());
    case KvFormat::int8:
      return visit(KvInt8());
    default:
      HWY_ABORT("no kernel reads this KV format: has_kv() says which");
  }
}

// Up to kLanes elements, zeros after them; nothing is read past the last.
template <class Kv>
HWY_INLINE VF load_some(const std::uint8_t* p, std::size_t count) {
  if (count >= kLanes) return Kv::load(p);
  alignas(64) std::uint8_t padded[kLanes * Kv::kBytes] = {};
  std::memcpy(padded, p, count * Kv::kBytes);
  return Kv::load(padded);
}

// The f16 scales of `count` tokens, a multiple of kLanes.
HWY_INLINE void widen_scales(const std::uint8_t* scales, std::size_t count, float* HWY_RESTRICT out) {
  for (std::size_t i = 0; i < count; i += kLanes) {
    hn::StoreU(widen_f16(load_u16(scales + 2 * i)), F32(), out + i);
  }
}

// A row of a cache in rows (kv_cache.h), its scale applied. `out` has room for width rounded up to kLanes,
// and is zero there.
template <class Kv>
HWY_INLINE void widen_kv_row(const std::uint8_t* row, std::size_t width, float* HWY_RESTRICT out) {
  const F32 d;
  VF scale = hn::Set(d, Kv::kFactor);
  if constexpr (Kv::kScaled) scale = block_scale(row + width * Kv::kBytes);
  for (std::size_t i = 0; i < width; i += kLanes) {
    VF values = load_some<Kv>(row + i * Kv::kBytes, width - i);
    if constexpr (Kv::kScaled || Kv::kFactor != 1.0F) values = hn::Mul(values, scale);
    hn::StoreU(values, d, out + i);
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace memwall::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
