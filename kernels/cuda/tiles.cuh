// Products of small tiles on tensor cores, and what brings tiles into their registers. The twins for the host
// are exact lane by lane.
#pragma once

#include "kernels/cuda/values.cuh"

namespace memwall::cuda {

#ifndef __CUDACC__
namespace detail {
// What the lanes of a warp show each other: each brings a row and sees all.
template <std::size_t Words, class See>
void show_warp(const std::uint64_t (&own)[Words], See see) {
  see(reinterpret_cast<const std::uint64_t(*)[Words]>(HostThread::current()->show(own, Words)));
}
}  // namespace detail
#endif

// c += a b over the warp, a of 16 x 16, b of 16 x 8, T (Half, BFloat16), summed in f32. Lane 4 g + t holds
//   a[0]: row g, columns 2 t and 2 t + 1; a[1]: row g + 8; a[2] and a[3]: 8 columns further;
//   b0: column g, rows 2 t and 2 t + 1; b1: 8 rows further;
//   c[0] and c[1]: row g, columns 2 t and 2 t + 1; c[2] and c[3]: row g + 8.
// bf16 from sm_80 on: before, there is no such instruction, and kernels that use it are not launched.
template <class T>
MEMWALL_DEVICE void multiply_tile(float (&c)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                                  std::uint32_t b1) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  if constexpr (kIsBrain<T>) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  } else {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  }
#elif defined(__CUDACC__)
  if constexpr (!kIsBrain<T>) {
    asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(b0));
    asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[2]), "r"(a[3]), "r"(b1));
  }
#else
  const std::uint64_t own[6] = {a[0], a[1], a[2], a[3], b0, b1};
  detail::show_warp(own, [&](const auto& shown) {
    const unsigned row = lane() / 4;
    const unsigned column = lane() % 4 * 2;
    for (unsigned i = 0; i < 4; ++i) {
      for (unsigned k = 0; k < 16; k += 2) {
        const auto& of_row = shown[row * 4 + k % 8 / 2];
        const auto& of_column = shown[(column + i % 2) * 4 + k % 8 / 2];
        const Pair x = unpack<T>(static_cast<std::uint32_t>(of_row[k / 8 * 2 + i / 2]));
        const Pair w = unpack<T>(static_cast<std::uint32_t>(of_column[4 + k / 8]));
        c[i] += x.lo * w.lo + x.hi * w.hi;
      }
    }
  });
#endif
}

// The transpose of 8 x 8 half words over the warp: lane 4 g + t brings columns 2 t and 2 t + 1 of row g, and
// gets rows 2 t and 2 t + 1 of column g.
MEMWALL_DEVICE std::uint32_t transpose_tile(std::uint32_t word) {
#ifdef __CUDACC__
  std::uint32_t turned;
  asm("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(turned) : "r"(word));
  return turned;
#else
  const std::uint64_t own[1] = {word};
  std::uint32_t turned = 0;
  detail::show_warp(own, [&](const auto& shown) {
    for (unsigned i = 0; i < 2; ++i) {
      const std::uint64_t row = shown[(lane() % 4 * 2 + i) * 4 + lane() / 8][0];
      turned |= static_cast<std::uint32_t>(row >> (16 * (lane() / 4 % 2)) & 0xFFFFU) << (16 * i);
    }
  });
  return turned;
#endif
}

// Four 8 x 8 matrices of half words from shared memory: lane 8 m + r brings the address of row r of matrix m,
// 16 bytes, aligned; lane 4 g + t gets in word[m] columns 2 t and 2 t + 1 of row g or, `Transposed`, rows 2 t
// and 2 t + 1 of column g.
template <bool Transposed>
MEMWALL_DEVICE void load_tiles(std::uint32_t (&word)[4], const std::byte* row) {
#ifdef __CUDACC__
  const auto from = static_cast<unsigned>(__cvta_generic_to_shared(row));
  if constexpr (Transposed) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(word[0]), "=r"(word[1]), "=r"(word[2]), "=r"(word[3])
                 : "r"(from)
                 : "memory");
  } else {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(word[0]), "=r"(word[1]), "=r"(word[2]), "=r"(word[3])
                 : "r"(from)
                 : "memory");
  }
#else
  const std::uint64_t own[1] = {reinterpret_cast<std::uintptr_t>(row)};
  detail::show_warp(own, [&](const auto& shown) {
    for (unsigned m = 0; m < 4; ++m) {
      word[m] = 0;
      for (unsigned i = 0; i < 2; ++i) {
        const unsigned of_row = Transposed ? lane() % 4 * 2 + i : lane() / 4;
        const unsigned column = Transposed ? lane() / 4 : lane() % 4 * 2 + i;
        const auto* halves = reinterpret_cast<const std::uint16_t*>(shown[8 * m + of_row][0]);
        word[m] |= static_cast<std::uint32_t>(halves[column]) << (16 * i);
      }
    }
  });
#endif
}

}  // namespace memwall::cuda
