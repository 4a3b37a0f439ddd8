// Which instruction sets the SIMD kernels are compiled for. Included before any header of Highway's.
//
// Every translation unit with kernels is compiled once for each target, so each costs build time: on x86,
// AVX-512 (AVX3), AVX2, SSE4 and whatever the compiler's own baseline is. The sets beyond AVX3 add integer
// and bf16 dot products, which kernels with f32 activations cannot use. The bits 0 to 14 are x86's; 14 is
// SSE2, a baseline that Highway 1.0.3 does not have yet. Targets without a fixed vector length (SVE, RVV)
// are left out because the kernels keep arrays of vectors.
#pragma once

#define HWY_DISABLED_TARGETS                                                                         \
  ((0x7FFFLL & ~(HWY_AVX3 | HWY_AVX2 | HWY_SSE4 | (1LL << 14))) | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | \
   HWY_SVE2_128 | HWY_RVV)
