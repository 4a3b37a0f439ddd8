// The body of the indexer's scores (indexer.h), on tensor cores. A warp takes 32 keys at once, straight from
// memory into the tiles' rows, and multiplies them with 8 query heads after the other, which lie in shared
// memory.
#pragma once

#include "kernels/cuda/choose_top.cuh"
#include "kernels/cuda/indexer.h"
#include "kernels/cuda/kv_values.cuh"
#include "kernels/cuda/tiles.cuh"

namespace memwall::cuda {

template <KvElement E>
struct IndexerKernel {
  using Params = IndexerParams;
  using Values = Kv<E>;
  using Tile = typename Values::Tile;
  using Activation = typename Values::Activation;
  static constexpr unsigned kThreads = kIndexerThreads;
  static constexpr int kWarps = kThreads / kWarp;
  static constexpr auto kElements = static_cast<int>(kIndexerWidest);
  static constexpr int kLoads = kElements / (4 * Values::kElements);  // of 16 bytes, a lane and key
  static constexpr int kSteps = kElements / 16;
  static constexpr int kQueryPitch = kElements + 32;
  static constexpr int kKeys = 32;  // that a warp takes at once

  static MEMWALL_DEVICE void run(const Params& p, std::byte* shared) {
    const std::int64_t seq = block_x();
    const auto part = static_cast<int>(block_y());
    const int begin = part * p.tiles_each * kTileTokens;
    int end = begin + p.tiles_each * kTileTokens;
    if (end > p.keys) end = p.keys;
    std::byte* cache = p.cache + seq * p.keys * p.pitch;
    if (part == p.parts - 1 && p.new_key != nullptr) {
      const auto* key = static_cast<const Activation*>(p.new_key) + seq * p.width;
      auto* to = reinterpret_cast<typename Values::Element*>(cache +
                                                             static_cast<std::int64_t>(p.keys - 1) * p.pitch);
      for (int i = static_cast<int>(thread_x()); i < p.width; i += kThreads) {
        typename Values::Element value;
        narrow(widen(load(key + i)), &value);
        store(to + i, value);
      }
      sync_threads();
    }
    const int tiles = (p.heads + 7) / 8;
    auto* queries = reinterpret_cast<Tile*>(shared);
    auto* weights = reinterpret_cast<float*>(shared + tiles * 8 * kQueryPitch * 2);
    int first = begin + static_cast<int>(warp()) * kKeys;
    Keys next = load_keys(p, cache, first, end);
    stage_queries(p, seq, tiles, queries, weights);
    sync_threads();
    for (; first < end; first += kWarps * kKeys) {
      std::uint32_t words[2][kSteps][4];
      to_tiles(next, words);
      next = load_keys(p, cache, first + kWarps * kKeys, end);
      float sums[2][2] = {};  // of keys g and g + 8, and 16 further
      for (int tile = 0; tile < tiles; ++tile) add_heads(queries, weights, tile, words, sums);
      put(p.scores + seq * p.keys, first, end, sums);
    }
  }

 private:
  struct Keys {
    Vec16 raw[4][kLoads];  // of keys g, g + 8, g + 16, g + 24
  };

  static MEMWALL_DEVICE Keys load_keys(const Params& p, const std::byte* cache, int first, int end) {
    Keys keys;
    MEMWALL_UNROLL
    for (int n = 0; n < 4; ++n) {
      const int i = first + 8 * n + static_cast<int>(lane() / 4);
      const std::byte* row = cache + static_cast<std::int64_t>(i) * p.pitch;
      MEMWALL_UNROLL
      for (int c = 0; c < kLoads; ++c) {
        const int byte = c * 64 + static_cast<int>(lane() % 4) * 16;
        keys.raw[n][c] =
            i < end && byte < p.pitch ? load_streaming(reinterpret_cast<const Vec16*>(row + byte)) : Vec16{};
      }
    }
    return keys;
  }

  static MEMWALL_DEVICE void to_tiles(const Keys& keys, std::uint32_t (&words)[2][kSteps][4]) {
    MEMWALL_UNROLL
    for (int s = 0; s < kSteps; ++s) {
      MEMWALL_UNROLL
      for (int n = 0; n < 4; ++n) {
        const Vec16& raw = keys.raw[n][s / Values::kSteps];
        words[n / 2][s][n % 2] = Values::key_low(raw, s % Values::kSteps);
        words[n / 2][s][2 + n % 2] = Values::key_high(raw, s % Values::kSteps);
      }
    }
  }

  // Zeros where there is none.
  static MEMWALL_DEVICE void stage_queries(const Params& p, std::int64_t seq, int tiles, Tile* queries,
                                           float* weights) {
    const auto* q = static_cast<const Activation*>(p.q) + seq * p.heads * p.width;
    for (int i = static_cast<int>(thread_x()); i < tiles * 8 * kElements; i += kThreads) {
      const int head = i / kElements;
      const int element = i % kElements;
      Tile value{};
      if (head < p.heads && element < p.width) value = load(q + head * p.width + element);
      queries[head * kQueryPitch + Values::query_place(element)] = value;
    }
    for (int i = static_cast<int>(thread_x()); i < tiles * 8; i += kThreads)
      weights[i] = i < p.heads ? load(p.weights + seq * p.heads + i) : 0.0F;
  }

  // 8 heads: scores of keys g and g + 8 for heads 2 t and 2 t + 1, weighted.
  static MEMWALL_DEVICE void add_heads(const Tile* queries, const float* weights, int tile,
                                       const std::uint32_t (&words)[2][kSteps][4], float (&sums)[2][2]) {
    const Tile* row = queries + (tile * 8 + static_cast<int>(lane() / 4)) * kQueryPitch + lane() % 4 * 8;
    float scores[2][4] = {};
    MEMWALL_UNROLL
    for (int s = 0; s < kSteps; s += 2) {
      const Vec16 q = *reinterpret_cast<const Vec16*>(row + s * 16);
      MEMWALL_UNROLL
      for (int m = 0; m < 2; ++m) {
        multiply_tile<Tile>(scores[m], words[m][s], q.word[0], q.word[1]);
        multiply_tile<Tile>(scores[m], words[m][s + 1], q.word[2], q.word[3]);
      }
    }
    const float first = weights[tile * 8 + lane() % 4 * 2];
    const float second = weights[tile * 8 + lane() % 4 * 2 + 1];
    MEMWALL_UNROLL
    for (int m = 0; m < 2; ++m) {
      sums[m][0] += first * fmaxf(scores[m][0], 0.0F) + second * fmaxf(scores[m][1], 0.0F);
      sums[m][1] += first * fmaxf(scores[m][2], 0.0F) + second * fmaxf(scores[m][3], 0.0F);
    }
  }

  static MEMWALL_DEVICE void put(float* scores, int first, int end, float (&sums)[2][2]) {
    float own = 0;
    MEMWALL_UNROLL
    for (int n = 0; n < 4; ++n) {
      float sum = sums[n / 2][n % 2];
      sum += shuffle_xor(sum, 1);
      sum += shuffle_xor(sum, 2);
      if (lane() % 4 == static_cast<unsigned>(n)) own = sum;
    }
    const int key = first + static_cast<int>(lane() % 4 * 8 + lane() / 4);
    if (key < end) store(scores + key, own * Values::kFactor);
  }
};

// Calls run.template operator()<Kernel>(geometry, params) with the kernel that the launch names.
template <class Run>
void dispatch(const IndexerLaunch& launch, Run&& run) {
  const auto go = [&](auto kernel) {
    run.template operator()<decltype(kernel)>(launch.geometry, launch.params);
  };
  if (launch.choose) return go(ChooseKernel());
  switch (launch.element) {
    case KvElement::f16:
      return go(IndexerKernel<KvElement::f16>());
    case KvElement::bf16:
      return go(IndexerKernel<KvElement::bf16>());
    case KvElement::f8_e4m3:
      return go(IndexerKernel<KvElement::f8_e4m3>());
    case KvElement::f32:
      return;  // indexer_takes refuses it
  }
}

}  // namespace memwall::cuda
