// GEMM on panels of q8_0, q4_0 and int4 in whole numbers, for prefill. Of a few panels a stretch of k is
// brought into bytes once for all rows of x, into the first-level cache, and multiplied by x's quants: byte
// dot products, summed in 32 bits over a block of 32, then scaled in f32. x is read as quantise() leaves it.
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
constexpr std::size_t kGemmBlocks = 16;  // of k, a pass: 8 KiB a panel
constexpr std::size_t kBlockQuants = kBlock * kPanel;

// A stretch of one panel, ready to be multiplied many times.
struct KeptPanel {
  std::int8_t* quants;  // [blocks][8][16][4], as ByteDot keeps them
  float* scales;        // [blocks][16]
  float* zeros;         // [blocks][16]: zero point times scale, where the format has zero points
};
constexpr std::size_t kKeptFloats = kGemmBlocks * (kBlockQuants / sizeof(float) + 2 * kPanel);

HWY_INLINE KeptPanel kept_panel(float* scratch, std::size_t index) {
  float* at = scratch + index * kKeptFloats;
  float* scales = at + kGemmBlocks * kBlockQuants / sizeof(float);
  return {reinterpret_cast<std::int8_t*>(at), scales, scales + kGemmBlocks * kPanel};
}

#if MEMWALL_HAS_BYTE_DOT

void keep_signed(const std::uint8_t* quants, std::int8_t* HWY_RESTRICT kept) {
  const Bytes d;
  for (std::size_t i = 0; i < kBlockQuants; i += kLanes * 4) {
    hn::StoreU(ByteDot::keep(hn::LoadU(d, reinterpret_cast<const std::int8_t*>(quants) + i)), d, kept + i);
  }
}

void keep_nibbles(const std::uint8_t* quants, std::int8_t* HWY_RESTRICT kept) {
  const Bytes d;
  const hn::Repartition<std::uint16_t, Words> d16;
  const VB mask = hn::Set(d, 15);
  for (std::size_t i = 0; i < kBlockQuants / 2; i += kLanes * 4) {
    const VB pairs = hn::LoadU(d, reinterpret_cast<const std::int8_t*>(quants) + i);
    hn::StoreU(hn::And(pairs, mask), d, kept + i);
    hn::StoreU(hn::And(hn::BitCast(d, hn::ShiftRight<4>(hn::BitCast(d16, pairs))), mask), d,
               kept + kBlockQuants / 2 + i);
  }
}

HWY_INLINE VB four_of(const std::int8_t* x) {
  std::int32_t four = 0;
  std::memcpy(&four, x, sizeof four);
  return hn::BitCast(Bytes(), hn::Set(Words(), four));
}

// What is kept: 8 bits with their sign, 4 bits less 8, 4 bits whose zero point is taken away in f32.
struct KeptSigned {
  static constexpr std::int32_t kOffset = ByteDot::kSignedOffset;
  static constexpr bool kZeros = false;
  static HWY_INLINE void add(ByteDot& dot, VB weights, VB x) { dot.add_kept(weights, x); }
};
struct KeptNibbles {
  static constexpr std::int32_t kOffset = 8;
  static constexpr bool kZeros = false;
  static HWY_INLINE void add(ByteDot& dot, VB weights, VB x) { dot.add(weights, x); }
};
struct KeptAboveZero : KeptNibbles {
  static constexpr std::int32_t kOffset = 0;
  static constexpr bool kZeros = true;
};

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

void keep_signed(const std::uint8_t* quants, std::int8_t* HWY_RESTRICT kept) {
  std::memcpy(kept, quants, kBlockQuants);
}

void keep_nibbles(const std::uint8_t* quants, std::int8_t* HWY_RESTRICT kept) {
  for (std::size_t i = 0; i < kBlockQuants / 2; ++i) {
    kept[i] = static_cast<std::int8_t>(quants[i] & 15);
    kept[kBlockQuants / 2 + i] = static_cast<std::int8_t>(quants[i] >> 4);
  }
}

struct KeptSigned {
  static constexpr std::int32_t kOffset = 0;
  static constexpr bool kZeros = false;
};
struct KeptNibbles {
  static constexpr std::int32_t kOffset = 8;
  static constexpr bool kZeros = false;
};
struct KeptAboveZero {
  static constexpr std::int32_t kOffset = 0;
  static constexpr bool kZeros = true;
};

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

// Blocks [first, first + count) of panel `index`.
template <class Kept>
void keep(const Linear& op, const PanelLayout& layout, std::int64_t index, std::size_t first,
          std::size_t count, const KeptPanel& to) {
  const std::uint8_t* panel = static_cast<const std::uint8_t*>(op.panels) + index * layout.bytes;
  for (std::size_t b = 0; b < count; ++b) {
    const auto block = static_cast<std::int64_t>(first + b);
    const std::uint8_t* group = panel + block / layout.blocks_per_group * layout.group_bytes;
    const std::uint8_t* quants =
        group + layout.quants_at + block % layout.blocks_per_group * layout.block_bytes;
    std::int8_t* kept = to.quants + b * kBlockQuants;
    if (op.format.kind == FormatKind::q8_0) {
      keep_signed(quants, kept);
    } else {
      keep_nibbles(quants, kept);
    }
    float* scales = to.scales + b * kPanel;
    float* zeros = to.zeros + b * kPanel;
    panel_scales(op.format, group, scales, zeros);
    if constexpr (Kept::kZeros) {
      for (std::size_t r = 0; r < kPanel; ++r) zeros[r] *= scales[r];
    }
  }
}

// y's tile becomes (first pass: the bias, else itself) plus the sums. `rows` of x are there, `panels` panels.
HWY_INLINE void add_to_tile(const Linear& op, std::size_t row, std::size_t rows, std::int64_t panel,
                            std::size_t panels, bool first_pass,
                            const VF (&sums)[kGemmRows][kGemmPanels][kParts]) {
  const F32 d;
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t p = 0; p < panels; ++p) {
      const std::int64_t column = (panel + static_cast<std::int64_t>(p)) * kPanelRows;
      float* y = op.y + static_cast<std::int64_t>(row + r) * op.out + column;
      const std::int64_t width = std::min(kPanelRows, op.out - column);
      const float* before = first_pass ? (op.bias != nullptr ? op.bias + column : nullptr) : y;
      if (width == kPanelRows) {
        for (std::size_t v = 0; v < kParts; ++v) {
          VF sum = sums[r][p][v];
          if (before != nullptr) sum = hn::Add(sum, hn::LoadU(d, before + v * kLanes));
          hn::StoreU(sum, d, y + v * kLanes);
        }
      } else {
        float last[kPanel];
        for (std::size_t v = 0; v < kParts; ++v) hn::StoreU(sums[r][p][v], d, last + v * kLanes);
        for (std::int64_t i = 0; i < width; ++i) y[i] = last[i] + (before != nullptr ? before[i] : 0.0F);
      }
    }
  }
}

template <class Kept, std::size_t P = kGemmPanels>
void multiply_panels(const Linear& op, const Quantised& x, std::int64_t panel, std::size_t panels,
                     const KeptPanel* kept, std::size_t first, std::size_t blocks) {
  if constexpr (P > 1) {
    if (panels < P) return multiply_panels<Kept, P - 1>(op, x, panel, panels, kept, first, blocks);
  }
  const std::size_t rows = static_cast<std::size_t>(op.rows);
  for (std::size_t row = 0; row < rows; row += kGemmRows) {
    const std::size_t here = std::min(kGemmRows, rows - row);
    std::size_t indices[kGemmRows];  // the last row again where there is none, for nobody
    for (std::size_t r = 0; r < kGemmRows; ++r) indices[r] = row + std::min(r, here - 1);
    VF sums[kGemmRows][kGemmPanels][kParts];
    multiply_kept<Kept, P>(kept, x, indices, first, blocks, sums);
    add_to_tile(op, row, here, panel, P, first == 0, sums);
  }
}

template <class Kept>
void gemm_kept(const Linear& op, std::int64_t first, std::int64_t last, float* scratch) {
  const PanelLayout layout = panel_layout(op.format, op.in);
  const Quantised x(op.prepared, op.rows, layout.blocks);
  const auto blocks = static_cast<std::size_t>(layout.blocks);
  KeptPanel kept[kGemmPanels];
  for (std::size_t p = 0; p < kGemmPanels; ++p) kept[p] = kept_panel(scratch, p);
  for (std::int64_t panel = first; panel < last; panel += static_cast<std::int64_t>(kGemmPanels)) {
    const std::size_t panels = std::min(kGemmPanels, static_cast<std::size_t>(last - panel));
    for (std::size_t b = 0; b < blocks; b += kGemmBlocks) {
      const std::size_t count = std::min(kGemmBlocks, blocks - b);
      for (std::size_t p = 0; p < panels; ++p) {
        keep<Kept>(op, layout, panel + static_cast<std::int64_t>(p), b, count, kept[p]);
      }
      multiply_panels<Kept>(op, x, panel, panels, kept, b, count);
    }
  }
}

void gemm_integer(const Linear& op, std::int64_t first, std::int64_t last, float* scratch) {
  if (op.format.kind == FormatKind::q8_0) return gemm_kept<KeptSigned>(op, first, last, scratch);
  if (op.format.zero_points) return gemm_kept<KeptAboveZero>(op, first, last, scratch);
  gemm_kept<KeptNibbles>(op, first, last, scratch);
}

std::int64_t gemm_integer_scratch() { return static_cast<std::int64_t>(kGemmPanels * kKeptFloats); }

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
