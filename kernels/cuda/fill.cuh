// The body of the fill (fill.h).
#pragma once

#include "kernels/cuda/fill.h"
#include "kernels/cuda/platform.cuh"

namespace memwall::cuda {

struct FillKernel {
  using Params = FillParams;
  static constexpr unsigned kThreads = kFillThreads;

  static MEMWALL_DEVICE void run(const Params& p, std::byte*) {
    const std::int64_t words = p.bytes / 4;
    const std::int64_t stride = static_cast<std::int64_t>(grid_x()) * kThreads;
    const std::int64_t first = static_cast<std::int64_t>(block_x()) * kThreads + thread_x();
    for (std::int64_t i = first; i < words; i += stride) store(p.data + i, word(p, i));
    if (first != 0) return;
    const std::uint32_t last = word(p, words);
    for (std::int64_t i = words * 4; i < p.bytes; ++i) {
      store(reinterpret_cast<std::uint8_t*>(p.data) + i, static_cast<std::uint8_t>(last >> (8 * (i % 4))));
    }
  }

 private:
  // SplitMix64 of the index (Steele, Lea and Flood, OOPSLA 2014), its upper half.
  static MEMWALL_DEVICE std::uint32_t word(const Params& p, std::int64_t index) {
    std::uint64_t z =
        p.seed * 0xD1342543DE82EF95ULL + static_cast<std::uint64_t>(index) * 0x9E3779B97F4A7C15ULL;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    return (static_cast<std::uint32_t>((z ^ (z >> 31)) >> 32) & p.keep) | p.set;
  }
};

template <class Run>
void dispatch(const FillLaunch& launch, Run&& run) {
  run.template operator()<FillKernel>(launch.geometry, launch.params);
}

}  // namespace memwall::cuda
