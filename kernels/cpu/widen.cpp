#include "kernels/cpu/widen.h"

#include <cstddef>
#include <cstring>

#include "kernels/cpu/highway_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/widen.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
//
#include "hwy/highway.h"
#include "kernels/cpu/widen-inl.h"

HWY_BEFORE_NAMESPACE();
namespace memwall::cpu::HWY_NAMESPACE {

template <class Rows>
HWY_INLINE void widen_block(const std::uint8_t* block, float* HWY_RESTRICT values) {
  VF weights[kVectors];
  Rows::load_block(block, weights);
  if constexpr (Rows::kScaled) {
    const VF scale = Rows::scale(block);
    for (VF& weight : weights) weight = hn::Mul(weight, scale);
  }
  for (std::size_t j = 0; j < kVectors; ++j) hn::StoreU(weights[j], F32(), values + j * kLanes);
}

template <class Rows>
void widen(const std::uint8_t* row, std::size_t in, float* HWY_RESTRICT values) {
  const std::size_t blocks = in / kBlock;
  for (std::size_t b = 0; b < blocks; ++b)
    widen_block<Rows>(row + b * Rows::kBlockBytes, values + b * kBlock);
  const std::size_t rest = in % kBlock;
  if (rest == 0) return;
  alignas(64) float last[kBlock];
  if constexpr (Rows::kScaled) {
    widen_block<Rows>(row + blocks * Rows::kBlockBytes, last);
  } else {
    alignas(64) std::uint8_t padded[Rows::kBlockBytes] = {};
    std::memcpy(padded, row + blocks * Rows::kBlockBytes, rest * Rows::kBytes);
    widen_block<Rows>(padded, last);
  }
  std::memcpy(values + blocks * kBlock, last, rest * sizeof(float));
}

void widen_any(FormatKind kind, const void* row, std::int64_t in, float* values) {
  const std::uint8_t* bytes = static_cast<const std::uint8_t*>(row);
  const std::size_t count = static_cast<std::size_t>(in);
  switch (kind) {
    case FormatKind::f16:
      return widen<RowsF16>(bytes, count, values);
    case FormatKind::bf16:
      return widen<RowsBf16>(bytes, count, values);
    case FormatKind::q8_0:
      return widen<RowsQ8>(bytes, count, values);
    case FormatKind::q4_0:
      return widen<RowsQ4>(bytes, count, values);
    default:
      std::memcpy(values, row, count * sizeof(float));
      return;  // f32
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace memwall::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace memwall::cpu {

HWY_EXPORT(widen_any);

bool can_widen(Format format) {
  return is_plain_float(format) || format.kind == FormatKind::q8_0 || format.kind == FormatKind::q4_0;
}

void widen_row(Format format, const void* row, std::int64_t in, float* values) {
  HWY_DYNAMIC_DISPATCH(widen_any)(format.kind, row, in, values);
}

}  // namespace memwall::cpu
#endif  // HWY_ONCE
