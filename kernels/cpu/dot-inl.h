// The dot products that linear layers and attention scores share. Highway's per-target header.
#if defined(MEMWALL_KERNELS_CPU_DOT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MEMWALL_KERNELS_CPU_DOT_INL_H_
#undef MEMWALL_KERNELS_CPU_DOT_INL_H_
#else
#define MEMWALL_KERNELS_CPU_DOT_INL_H_
#endif

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "hwy/highway.h"
#include "kernels/cpu/widen-inl.h"

HWY_BEFORE_NAMESPACE();
namespace memwall::cpu::HWY_NAMESPACE {

constexpr std::size_t kTileRows = 4;
constexpr std::size_t kTileColumns = 4;

#if HWY_TARGET != HWY_SCALAR
// The sum of a vector's 128-bit parts.
template <class D>
HWY_INLINE hn::Vec<hn::CappedTag<float, 4>> fold_to_128(D d, hn::Vec<D> v) {
  if constexpr (hn::MaxLanes(d) == 4) {
    return v;
  } else {
    const hn::Half<D> half;
    return fold_to_128(half, hn::Add(hn::LowerHalf(half, v), hn::UpperHalf(half, v)));
  }
}
#endif

// Stores the sums of four vectors' lanes. Four at once take a third of the shuffles of one after the other.
HWY_INLINE void store_sums4(VF a, VF b, VF c, VF d, float* HWY_RESTRICT out) {
  const F32 tag;
#if HWY_TARGET == HWY_SCALAR
  hn::StoreU(a, tag, out);
  hn::StoreU(b, tag, out + 1);
  hn::StoreU(c, tag, out + 2);
  hn::StoreU(d, tag, out + 3);
#else
  // Within each 128 bits: [a b a b], [c d c d], then [a b c d].
  const hn::Repartition<double, F32> pairs;
  const VF ab = hn::Add(hn::InterleaveLower(tag, a, b), hn::InterleaveUpper(tag, a, b));
  const VF cd = hn::Add(hn::InterleaveLower(tag, c, d), hn::InterleaveUpper(tag, c, d));
  const auto ab2 = hn::BitCast(pairs, ab);
  const auto cd2 = hn::BitCast(pairs, cd);
  const VF abcd = hn::Add(hn::BitCast(tag, hn::InterleaveLower(pairs, ab2, cd2)),
                          hn::BitCast(tag, hn::InterleaveUpper(pairs, ab2, cd2)));
  hn::StoreU(fold_to_128(tag, abcd), hn::CappedTag<float, 4>(), out);
#endif
}

// Asks for a part of what will be read after these rows: the hardware's own prefetching starts anew at every
// row. With the next rows of the matrix, on Zen 4 with one thread, where a plain read reached 31 GB/s, it
// took f16 from 20 to 22 GB/s for one column and from 16 to 25 for four, q8_0 from 13 to 21 and f32 from 25
// to 26. It asks for the second-level cache. The first level instead was slower (f16 17), and so were a fixed
// 1 or 2 KiB ahead within each row (16 to 21); a second hint, 512 bytes ahead to the first level, gained 5 %
// for f16 and lost 10 % for f32. Past the end of the allocation the hint does nothing.
HWY_INLINE void prefetch(const std::uint8_t* next, std::size_t bytes) {
#if HWY_COMPILER_GCC || HWY_COMPILER_CLANG
  for (std::size_t i = 0; i < bytes; i += 64) __builtin_prefetch(next + i, 0, 2);
#endif
}

// out[c * R + r] = dot(row r, column c of x) for R rows, `stride` bytes apart, and C columns, `ldx` floats
// apart; `next` is what to prefetch meanwhile, as long as the rows. `out` has room for R * C rounded up to 4.
// Each output is summed in the same order whatever R is, so how rows are split between calls and threads does
// not change a bit of the result.
template <class Rows, std::size_t R, std::size_t C>
HWY_INLINE void dot_tile(const std::uint8_t* rows, std::size_t stride, const std::uint8_t* next,
                         const float* x, std::size_t ldx, std::size_t in, float* HWY_RESTRICT out) {
  const F32 d;
  // With few columns two chains a dot product hide the latency of multiply-add; scaled blocks have their own.
  constexpr std::size_t kChains = !Rows::kScaled && C <= 2 && kVectors >= 2 ? 2 : 1;
  constexpr std::size_t kSums = R * C;
  constexpr bool kPrefetch = R > 1;
  VF sums[kChains][(kSums + 3) / 4 * 4];
  for (auto& chain : sums) {
    for (VF& sum : chain) sum = hn::Zero(d);
  }

  const auto add_block = [&](const std::uint8_t* block, std::size_t row_stride, const float* column,
                             std::size_t column_stride) HWY_ATTR {
    for (std::size_t r = 0; r < R; ++r) {
      VF weights[kVectors];
      Rows::load_block(block + r * row_stride, weights);
      if constexpr (Rows::kScaled) {
        const VF scale = Rows::scale(block + r * row_stride);
        for (std::size_t c = 0; c < C; ++c) {
          VF sum = hn::Mul(weights[0], hn::LoadU(d, column + c * column_stride));
          for (std::size_t j = 1; j < kVectors; ++j) {
            sum = hn::MulAdd(weights[j], hn::LoadU(d, column + c * column_stride + j * kLanes), sum);
          }
          sums[0][c * R + r] = hn::MulAdd(scale, sum, sums[0][c * R + r]);
        }
      } else {
        for (std::size_t j = 0; j < kVectors; ++j) {
          for (std::size_t c = 0; c < C; ++c) {
            VF& sum = sums[j % kChains][c * R + r];
            sum = hn::MulAdd(weights[j], hn::LoadU(d, column + c * column_stride + j * kLanes), sum);
          }
        }
      }
    }
  };

  const std::size_t blocks = in / kBlock;
  for (std::size_t b = 0; b < blocks; ++b) {
    if constexpr (kPrefetch) prefetch(next + b * R * Rows::kBlockBytes, R * Rows::kBlockBytes);
    add_block(rows + b * Rows::kBlockBytes, stride, x + b * kBlock, ldx);
  }

  // The rest, padded with zeros in both x and (where rows are not padded already) the weights, so that
  // nothing is read past a row's end and a NaN or infinity beyond it cannot leak in.
  if (const std::size_t rest = in % kBlock; rest != 0) {
    alignas(64) float columns[C * kBlock] = {};
    for (std::size_t c = 0; c < C; ++c) {
      std::memcpy(columns + c * kBlock, x + c * ldx + blocks * kBlock, rest * sizeof(float));
    }
    if constexpr (Rows::kScaled) {
      add_block(rows + blocks * Rows::kBlockBytes, stride, columns, kBlock);
    } else {
      alignas(64) std::uint8_t weights[R * Rows::kBlockBytes] = {};
      for (std::size_t r = 0; r < R; ++r) {
        std::memcpy(weights + r * Rows::kBlockBytes, rows + r * stride + blocks * Rows::kBlockBytes,
                    rest * Rows::kBytes);
      }
      add_block(weights, Rows::kBlockBytes, columns, kBlock);
    }
  }

  for (std::size_t i = 0; i < kSums; ++i) {
    for (std::size_t chain = 1; chain < kChains; ++chain) sums[0][i] = hn::Add(sums[0][i], sums[chain][i]);
  }
  for (std::size_t i = 0; i < kSums; i += 4) {
    store_sums4(sums[0][i], sums[0][i + 1], sums[0][i + 2], sums[0][i + 3], out + i);
  }
}

// out[c * R + r], as dot_tile, in tiles that fit the registers: 16 sums need more than 16 of them.
template <class Rows, std::size_t R, std::size_t C>
HWY_INLINE void dot_rows(const std::uint8_t* rows, std::size_t stride, const std::uint8_t* next,
                         const float* x, std::size_t ldx, std::size_t in, float* HWY_RESTRICT out) {
#if HWY_ARCH_X86 && HWY_TARGET >= HWY_AVX2
  constexpr bool kSplit = C > 2 && R == 4;
#else
  constexpr bool kSplit = false;
#endif
  if constexpr (kSplit) {
    float part[(C * 2 + 3) / 4 * 4];
    for (std::size_t r = 0; r < R; r += 2) {
      dot_tile<Rows, 2, C>(rows + r * stride, stride, next + r * stride, x, ldx, in, part);
      for (std::size_t c = 0; c < C; ++c) {
        out[c * R + r] = part[c * 2];
        out[c * R + r + 1] = part[c * 2 + 1];
      }
    }
  } else {
    dot_tile<Rows, R, C>(rows, stride, next, x, ldx, in, out);
  }
}

// The same for a number of columns known at run time, 1 to kTileColumns.
template <class Rows, std::size_t R>
HWY_INLINE void dot_columns(const std::uint8_t* rows, std::size_t stride, const std::uint8_t* next,
                            const float* x, std::size_t ldx, std::size_t columns, std::size_t in,
                            float* HWY_RESTRICT out) {
  switch (columns) {
    case 1:
      return dot_rows<Rows, R, 1>(rows, stride, next, x, ldx, in, out);
    case 2:
      return dot_rows<Rows, R, 2>(rows, stride, next, x, ldx, in, out);
    case 3:
      return dot_rows<Rows, R, 3>(rows, stride, next, x, ldx, in, out);
    default:
      return dot_rows<Rows, R, 4>(rows, stride, next, x, ldx, in, out);
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace memwall::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
