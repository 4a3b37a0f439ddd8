// GEMM on panels of q8_0, q4_0, int4 and mxfp4 in whole numbers, for prefill. Of a few panels a stretch of k
// is brought into bytes once for all rows of x, into the first-level cache, and multiplied by x's quants:
// byte dot products, summed in 32 bits over a block of 32, then scaled in f32. x is read as quantise() leaves
// it.
#define MEMWALL_WANT_BYTE_DOT
#include <algorithm>
#include <cstddef>

#include "kernels/cpu/highway_targets.h"
#include "kernels/cpu/linear_parts.h"
#include "kernels/cpu/panel_layout.h"
#include "kernels/cpu/quantised.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/linear_gemm_integer.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
//
#include "hwy/highway.h"
#include "kernels/cpu/byte_dot-inl.h"
#include "kernels/cpu/kept_panel-inl.h"
#include "kernels/cpu/panel-inl.h"

HWY_BEFORE_NAMESPACE();
namespace memwall::cpu::HWY_NAMESPACE {

// A tile of outputs: kGemmRows rows of x by kGemmPanels panels. Each has a sum of products and a total in
// f32, 24 registers of 32 in all with one vector a panel; 3 panels by 4 rows load 7 vectors for 12 products,
// 1 by 12 would load 13.
#if MEMWALL_HAS_BYTE_DOT
constexpr std::size_t kGemmPanels = kParts == 1 ? 3 : 1;
constexpr std::size_t kGemmRows = kParts == 1 ? 4 : kParts == 2 || HWY_ARCH_ARM ? 2 : 1;
#else
constexpr std::size_t kGemmPanels = 1;
constexpr std::size_t kGemmRows = 1;
#endif
// Rows of x at a time: what they have summed up to so far stays in one piece in the second-level cache and
// goes to y once. Added up in y, whose rows lie pages apart, the kernel took 1.03 to 1.06 times as long (Zen
// 5, one thread, best of 6 interleaved runs of 7).
constexpr std::size_t kBlockRows = 512 / kGemmRows * kGemmRows;
constexpr std::size_t kSumsWidth = kGemmPanels * kPanel;

#if MEMWALL_HAS_BYTE_DOT

HWY_INLINE VB four_of(const std::int8_t* x) {
  std::int32_t four = 0;
  std::memcpy(&four, x, sizeof four);
  return hn::BitCast(Bytes(), hn::Set(Words(), four));
}

// sums[row][panel][16] = x's rows (from block `first`) times P kept panels.
template <class Kept, std::size_t P>
HWY_INLINE void multiply_kept(const KeptPanel* panels, const Quantised& x,
                              const std::size_t (&rows)[kGemmRows], std::size_t first, std::size_t blocks,
                              VF (&sums)[kGemmRows][kGemmPanels][kParts]) {
  const F32 d;
  for (auto& row : sums) {
    for (auto& panel : row) {
      for (VF& sum : panel) sum = hn::Zero(d);
    }
  }
  for (std::size_t b = 0; b < blocks; ++b) {
    ByteDot dots[kGemmRows][P][kParts];
    std::size_t at[kGemmRows];
    for (std::size_t r = 0; r < kGemmRows; ++r) {
      at[r] = rows[r] * static_cast<std::size_t>(x.blocks) + first + b;
      const VI offset = hn::Set(Words(), -Kept::kOffset * x.sums[at[r]]);
      for (auto& panel : dots[r]) {
        for (ByteDot& dot : panel) dot = ByteDot(offset);
      }
    }
    for (std::size_t g = 0; g < kBlock / 4; ++g) {
      VB weights[P][kParts];
      for (std::size_t p = 0; p < P; ++p) {
        for (std::size_t v = 0; v < kParts; ++v) {
          weights[p][v] =
              hn::LoadU(Bytes(), panels[p].quants + b * kBlockQuants + (g * kParts + v) * kLanes * 4);
        }
      }
      for (std::size_t r = 0; r < kGemmRows; ++r) {
        const VB four = four_of(x.quants + at[r] * kBlock + g * 4);
        for (std::size_t p = 0; p < P; ++p) {
          for (std::size_t v = 0; v < kParts; ++v) Kept::add(dots[r][p][v], weights[p][v], four);
        }
      }
    }
    for (std::size_t p = 0; p < P; ++p) {
      for (std::size_t v = 0; v < kParts; ++v) {
        const VF scale = hn::LoadU(d, panels[p].scales + b * kPanel + v * kLanes);
        for (std::size_t r = 0; r < kGemmRows; ++r) {
          const VF products = hn::ConvertTo(d, dots[r][p][v].total());
          const VF both = hn::Mul(scale, hn::Set(d, x.scales[at[r]]));
          sums[r][p][v] = hn::MulAdd(products, both, sums[r][p][v]);
        }
        if constexpr (Kept::kZeros) {
          const VF zero = hn::LoadU(d, panels[p].zeros + b * kPanel + v * kLanes);
          for (std::size_t r = 0; r < kGemmRows; ++r) {
            sums[r][p][v] = hn::NegMulAdd(zero, hn::Set(d, x.scaled_sums[at[r]]), sums[r][p][v]);
          }
        }
      }
    }
  }
}

#else  // no byte products: plain loops, right and slow

template <class Kept, std::size_t P>
void multiply_kept(const KeptPanel* panels, const Quantised& x, const std::size_t (&rows)[kGemmRows],
                   std::size_t first, std::size_t blocks, VF (&sums)[kGemmRows][kGemmPanels][kParts]) {
  float totals[kPanel] = {};
  for (std::size_t b = 0; b < blocks; ++b) {
    const std::size_t at = rows[0] * static_cast<std::size_t>(x.blocks) + first + b;
    for (std::size_t r = 0; r < kPanel; ++r) {
      std::int32_t sum = -Kept::kOffset * x.sums[at];
      for (std::size_t k = 0; k < kBlock; ++k) {
        sum +=
            panels->quants[b * kBlockQuants + (k / 4 * kPanel + r) * 4 + k % 4] * x.quants[at * kBlock + k];
      }
      totals[r] += static_cast<float>(sum) * x.scales[at] * panels->scales[b * kPanel + r];
      if (Kept::kZeros) totals[r] -= panels->zeros[b * kPanel + r] * x.scaled_sums[at];
    }
  }
  for (std::size_t v = 0; v < kParts; ++v) sums[0][0][v] = hn::LoadU(F32(), totals + v * kLanes);
}

#endif  // MEMWALL_HAS_BYTE_DOT

// sums[row][panel][16], of a tile of rows, become (first pass: 0, else themselves) plus the tile's.
HWY_INLINE void add_to_sums(std::size_t panels, bool first_pass,
                            const VF (&tile)[kGemmRows][kGemmPanels][kParts], float* HWY_RESTRICT sums) {
  const F32 d;
  for (std::size_t r = 0; r < kGemmRows; ++r) {
    for (std::size_t p = 0; p < panels; ++p) {
      for (std::size_t v = 0; v < kParts; ++v) {
        float* at = sums + r * kSumsWidth + p * kPanel + v * kLanes;
        hn::StoreU(first_pass ? tile[r][p][v] : hn::Add(tile[r][p][v], hn::LoadU(d, at)), d, at);
      }
    }
  }
}

// y's rows [row, row + rows) of the panels: their sums plus the bias.
void store_sums(const Linear& op, std::size_t row, std::size_t rows, std::int64_t panel, std::size_t panels,
                const float* HWY_RESTRICT sums) {
  const std::int64_t column = panel * kPanelRows;
  const auto width =
      static_cast<std::size_t>(std::min(static_cast<std::int64_t>(panels) * kPanelRows, op.out - column));
  for (std::size_t r = 0; r < rows; ++r) {
    float* y = op.y + static_cast<std::int64_t>(row + r) * op.out + column;
    const float* from = sums + r * kSumsWidth;
    if (op.bias == nullptr) {
      std::memcpy(y, from, width * sizeof(float));
    } else {
      for (std::size_t i = 0; i < width; ++i) y[i] = from[i] + op.bias[column + static_cast<std::int64_t>(i)];
    }
  }
}

// sums of rows [row, row + rows) of x, over blocks [first, first + blocks).
template <class Kept, std::size_t P = kGemmPanels>
void multiply_panels(const Quantised& x, std::size_t row, std::size_t rows, std::size_t panels,
                     const KeptPanel* kept, std::size_t first, std::size_t blocks, float* sums) {
  if constexpr (P > 1) {
    if (panels < P) return multiply_panels<Kept, P - 1>(x, row, rows, panels, kept, first, blocks, sums);
  }
  for (std::size_t r = 0; r < rows; r += kGemmRows) {
    std::size_t indices[kGemmRows];  // the last row again where there is none, for nobody
    for (std::size_t i = 0; i < kGemmRows; ++i) indices[i] = row + std::min(r + i, rows - 1);
    VF tile[kGemmRows][kGemmPanels][kParts];
    multiply_kept<Kept, P>(kept, x, indices, first, blocks, tile);
    add_to_sums(P, first == 0, tile, sums + r * kSumsWidth);
  }
}

template <class Kept>
void gemm_kept(const Linear& op, std::int64_t first, std::int64_t last, float* scratch) {
  const PanelLayout layout = panel_layout(op.format, op.in);
  const Quantised x(op.prepared, op.rows, layout.blocks);
  const auto blocks = static_cast<std::size_t>(layout.blocks);
  const auto all_rows = static_cast<std::size_t>(op.rows);
  KeptPanel kept[kGemmPanels];
  for (std::size_t p = 0; p < kGemmPanels; ++p) kept[p] = kept_panel(scratch, p);
  float* sums = scratch + kGemmPanels * kKeptFloats;
  for (std::size_t row = 0; row < all_rows; row += kBlockRows) {
    const std::size_t rows = std::min(kBlockRows, all_rows - row);
    for (std::int64_t panel = first; panel < last; panel += static_cast<std::int64_t>(kGemmPanels)) {
      const std::size_t panels = std::min(kGemmPanels, static_cast<std::size_t>(last - panel));
      for (std::size_t b = 0; b < blocks; b += kGemmBlocks) {
        const std::size_t count = std::min(kGemmBlocks, blocks - b);
        for (std::size_t p = 0; p < panels; ++p) {
          keep<Kept>(op, layout, panel + static_cast<std::int64_t>(p), b, count, kept[p]);
        }
        multiply_panels<Kept>(x, row, rows, panels, kept, b, count, sums);
      }
      store_sums(op, row, rows, panel, panels, sums);
    }
  }
}

void gemm_integer(const Linear& op, std::int64_t first, std::int64_t last, float* scratch) {
  if (quants_of(op.format) != Quants::nibbles) return gemm_kept<KeptSigned>(op, first, last, scratch);
  if (op.format.zero_points) return gemm_kept<KeptAboveZero>(op, first, last, scratch);
  gemm_kept<KeptNibbles>(op, first, last, scratch);
}

std::int64_t gemm_integer_scratch() {
  return static_cast<std::int64_t>(kGemmPanels * kKeptFloats + kBlockRows * kSumsWidth);
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace memwall::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace memwall::cpu {

HWY_EXPORT(gemm_integer);
HWY_EXPORT(gemm_integer_scratch);

std::int64_t gemm_integer_scratch_floats() { return HWY_DYNAMIC_DISPATCH(gemm_integer_scratch)(); }

void gemm_integer(const Linear& op, std::int64_t first, std::int64_t last, float* scratch) {
  HWY_DYNAMIC_DISPATCH(gemm_integer)(op, first, last, scratch);
}

}  // namespace memwall::cpu
#endif  // HWY_ONCE
