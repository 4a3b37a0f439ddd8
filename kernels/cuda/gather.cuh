// The bodies of the gathers (gather.h): blocks along x take rows, along y their pieces.
#pragma once

#include "kernels/cuda/gather.h"
#include "kernels/cuda/platform.cuh"
#include "kernels/cuda/vector16.cuh"

namespace memwall::cuda {

struct GatherPlainKernel {
  using Params = GatherParams;
  static constexpr unsigned kThreads = kGatherThreads;
  static MEMWALL_DEVICE void run(const Params& p, std::byte*) {
    const std::int64_t row = block_x();
    if (row >= p.rows) return;
    const auto* from = static_cast<const std::byte*>(p.table) + load(p.ids + row) * p.row_bytes;
    auto* to = static_cast<std::byte*>(p.y) + row * p.row_bytes;
    if (p.vectors) {
      copy<Vec16>(from, to, p.row_bytes);
    } else {
      copy<std::uint16_t>(from, to, p.row_bytes);
    }
  }

 private:
  template <class V>
  static MEMWALL_DEVICE void copy(const std::byte* from, std::byte* to, std::int64_t bytes) {
    const std::int64_t stride = static_cast<std::int64_t>(grid_y()) * kThreads;
    for (std::int64_t i = static_cast<std::int64_t>(block_y()) * kThreads + thread_x();
         i * static_cast<std::int64_t>(sizeof(V)) < bytes; i += stride) {
      store(reinterpret_cast<V*>(to) + i, load(reinterpret_cast<const V*>(from) + i));
    }
  }
};

template <bool FourBits>
struct GatherQuantsKernel {
  using Params = GatherParams;
  static constexpr unsigned kThreads = kGatherThreads;
  static MEMWALL_DEVICE void run(const Params& p, std::byte*) {
    const std::int64_t row = block_x();
    if (row >= p.rows) return;
    const std::int64_t id = load(p.ids + row);
    const auto* quants = static_cast<const std::byte*>(p.table) + id * p.row_bytes;
    const auto* scales = reinterpret_cast<const Half*>(p.scales) + id * p.scale_pitch;
    Half* y = static_cast<Half*>(p.y) + row * p.width;
    const std::int64_t pieces = 2 * ((p.width + 31) / 32);
    const std::int64_t stride = static_cast<std::int64_t>(grid_y()) * kThreads;
    for (std::int64_t i = static_cast<std::int64_t>(block_y()) * kThreads + thread_x(); i < pieces;
         i += stride) {
      const float scale = widen(load(scales + i / 2));
      float low[8];   // of half a block, in the order of its outputs
      float high[8];  // 8 elements further, of nibbles 16
      if constexpr (FourBits) {
        const Vec8 raw = load(reinterpret_cast<const Vec8*>(quants) + i);
        MEMWALL_UNROLL
        for (int e = 0; e < 8; ++e) {
          const std::uint32_t byte = raw.word[e / 4] >> (8 * (e % 4));
          low[e] = scale * static_cast<float>(static_cast<int>(byte & 15U) - 8);
          high[e] = scale * static_cast<float>(static_cast<int>((byte >> 4) & 15U) - 8);
        }
      } else {
        const Vec16 raw = load(reinterpret_cast<const Vec16*>(quants) + i);
        MEMWALL_UNROLL
        for (int e = 0; e < 8; ++e) {
          low[e] = scale * quant(raw.word[e / 4], e % 4);
          high[e] = scale * quant(raw.word[2 + e / 4], e % 4);
        }
      }
      const std::int64_t first = FourBits ? i / 2 * 32 + i % 2 * 8 : i * 16;
      write(p, low, y, first);
      write(p, high, y, first + (FourBits ? 16 : 8));
    }
  }

 private:
  static MEMWALL_DEVICE float quant(std::uint32_t word, int byte) {
    return static_cast<float>(static_cast<std::int8_t>(word >> (8 * byte)));
  }

  // The eight that the row still has from `first` on.
  static MEMWALL_DEVICE void write(const Params& p, const float (&values)[8], Half* y, std::int64_t first) {
    if (p.vectors) {
      if (first < p.width) store(reinterpret_cast<Vec16*>(y + first), narrow_vector<Half>(values));
      return;
    }
    MEMWALL_UNROLL
    for (int e = 0; e < 8; ++e) {
      Half rounded{};
      narrow(values[e], &rounded);
      if (first + e < p.width) store(y + first + e, rounded);
    }
  }
};

template <class Run>
void dispatch(const GatherLaunch& launch, Run&& run) {
  switch (launch.format) {
    case GatherFormat::plain:
      return run.template operator()<GatherPlainKernel>(launch.geometry, launch.params);
    case GatherFormat::q8_0:
      return run.template operator()<GatherQuantsKernel<false>>(launch.geometry, launch.params);
    case GatherFormat::q4_0:
      return run.template operator()<GatherQuantsKernel<true>>(launch.geometry, launch.params);
  }
}

}  // namespace memwall::cuda
