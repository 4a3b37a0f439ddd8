// Which instruction sets the SIMD kernels are compiled for. Included before any header of Highway's.
//
// Every translation unit with kernels is compiled once for each target, so each costs build time: on x86,
// AVX-512 (AVX3), AVX2, SSE4 and whatever the compiler's own baseline is. A unit that defines
// MEMWALL_WANT_BYTE_DOT gets AVX3_DL as well, whose VNNI sums byte products in one instruction; f32
// activations have no use for it. The bits 0 to 14 are x86's; 14 is SSE2, a baseline that Highway 1.0.3 does
// not have yet. Targets without a fixed vector length (SVE, RVV) are left out because the kernels keep arrays
// of vectors.
#pragma once

#ifdef MEMWALL_WANT_BYTE_DOT
#define HWY_WANT_AVX3_DL 1
#define MEMWALL_DOT_TARGETS HWY_AVX3_DL
#else
#define MEMWALL_DOT_TARGETS 0
#endif

#define HWY_DISABLED_TARGETS                                                                                 \
  ((0x7FFFLL & ~(MEMWALL_DOT_TARGETS | HWY_AVX3 | HWY_AVX2 | HWY_SSE4 | (1LL << 14))) | HWY_SVE | HWY_SVE2 | \
   HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
