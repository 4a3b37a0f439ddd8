// The products that GEMM and prefill attention are made of: a tile of outputs kept in registers. Highway's
// per-target header.
#if defined(MEMWALL_KERNELS_CPU_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MEMWALL_KERNELS_CPU_TILE_INL_H_
#undef MEMWALL_KERNELS_CPU_TILE_INL_H_
#else
#define MEMWALL_KERNELS_CPU_TILE_INL_H_
#endif

#include <cstddef>

#include "hwy/highway.h"
#include "kernels/cpu/widen-inl.h"

HWY_BEFORE_NAMESPACE();
namespace memwall::cpu::HWY_NAMESPACE {

constexpr std::size_t kTileWidth = 16;                   // columns of a panel: [k][16] f32
constexpr std::size_t kTileParts = kTileWidth / kLanes;  // vectors of them

// kTileRows rows of x, kTilePanels panels. 24 accumulators where there are 32 registers, 12 where there
// are 16.
constexpr std::size_t kTilePanels = kTileParts == 1 ? 2 : 1;
constexpr std::size_t kTileRows = kTileParts == 1 ? 12 : kTileParts == 2 ? 6 : HWY_ARCH_ARM ? 6 : 3;

using TileSums = VF[kTileRows][kTilePanels][kTileParts];

HWY_INLINE void clear_tile(TileSums& sums) {
  for (auto& row : sums) {
    for (auto& panel : row) {
      for (VF& sum : panel) sum = hn::Zero(F32());
    }
  }
}

// sums += x times P panels, over `count` k's; x's element at row r and k lies at r * kRowStep + k *
// kStep. Steps that are known leave one register to hold an address: with those of 12 rows worked out at run
// time, prefill attention took 1.15 times as long (Zen 5).
template <std::size_t kRowStep, std::size_t kStep, std::size_t P = kTilePanels>
HWY_INLINE void multiply_tile(const float* HWY_RESTRICT x, const float* const* panels, std::size_t count,
                              TileSums& sums) {
  const F32 d;
  for (std::size_t k = 0; k < count; ++k) {
    VF w[P][kTileParts];
    for (std::size_t t = 0; t < P; ++t) {
      for (std::size_t p = 0; p < kTileParts; ++p) {
        w[t][p] = hn::LoadU(d, panels[t] + k * kTileWidth + p * kLanes);
      }
    }
    for (std::size_t r = 0; r < kTileRows; ++r) {
      const VF value = hn::Set(d, x[r * kRowStep + k * kStep]);
      for (std::size_t t = 0; t < P; ++t) {
        for (std::size_t p = 0; p < kTileParts; ++p)
          sums[r][t][p] = hn::MulAdd(w[t][p], value, sums[r][t][p]);
      }
    }
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace memwall::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
