// The bodies of latent.h. A block of 8 warps stages 16 tokens at a time, copies of the next ones in flight. A
// warp owns 16 query heads and, where several warps own the same ones, every N-th piece of a row: it sums
// scores over its pieces of the keys, the warps exchange their sums, each turns all of them into weights, and
// sums its pieces of the values.
#pragma once

#include "kernels/cuda/attention_rows.cuh"
#include "kernels/cuda/kv_values.cuh"
#include "kernels/cuda/latent.h"
#include "kernels/cuda/tiles.cuh"

namespace memwall::cuda {

// M: tiles of 16 query heads a block.
template <KvElement E, int M>
struct StagedKernel {
  using Params = LatentParams;
  using Values = Kv<E>;
  using Tile = typename Values::Tile;
  using Activation = typename Values::Activation;
  static constexpr unsigned kThreads = kStagedThreads;
  static constexpr int kWarps = kThreads / kWarp;
  static constexpr int N = kWarps / M;  // warps that share a tile of heads
  static constexpr bool kBytes = E == KvElement::f8_e4m3;
  static constexpr int kMostColumns = M == 8 ? 64 : 576;  // of keys
  static constexpr int kMostValues = M == 8 ? 64 : 512;
  static constexpr int kSteps = (kMostColumns / 16 + N - 1) / N;  // of 16 columns, a warp's
  static constexpr int kPairs = kMostValues / 16 / N;             // of tiles of 8 values

  static MEMWALL_DEVICE void run(const Params& p, std::byte* shared) {
    Place at;
    at.tile = p.tile;
    at.pitch = at.tile.columns * 2 + 16;
    const int blocks = (p.group + 16 * M - 1) / (16 * M);
    const auto block = static_cast<int>(block_x() % static_cast<unsigned>(blocks));
    at.row = (block * M + static_cast<int>(warp()) % M) * 16 + static_cast<int>(lane() / 4);
    at.piece = static_cast<int>(warp()) / M;
    at.part = static_cast<int>(block_y());
    at.head = block_x() / static_cast<unsigned>(blocks);
    at.begin = at.part * p.tiles_each * kTileTokens;
    at.end = at.begin + p.tiles_each * kTileTokens;
    if (at.end > p.read) at.end = static_cast<int>(p.read);
    const int tiles = at.end > at.begin ? (at.end - at.begin + kTileTokens - 1) / kTileTokens : 0;

    // Each block of the last part writes the newest token for itself, the same bytes.
    if (at.part == p.parts - 1 && p.new_k != nullptr) {
      append_token<Activation, typename Values::Element>(p, at.head, kThreads);
      sync_threads();
    }
    MEMWALL_KEEP_LOOP
    for (int i = 0; i + 1 < at.tile.stages; ++i) copy_tile(p, at, i, tiles, shared);
    clear_columns(p, at, shared);
    State state;
    load_queries(p, at, state);
    for (int i = 0; i < tiles; ++i) {
      if (at.tile.stages == 4) {
        wait_copies<2>();
      } else {
        wait_copies<0>();
      }
      sync_threads();
      copy_tile(p, at, i + at.tile.stages - 1, tiles, shared);
      const std::byte* tile = stage_of(p, at, i, shared);
      if (kBytes) {
        widen_tile(p, at, tile, shared + kScoreBytes);
        sync_threads();
        tile = shared + kScoreBytes;
      }
      float scores[2][4] = {};
      add_scores(p, at, tile, state, scores);
      exchange(reinterpret_cast<float*>(shared), scores);
      std::uint32_t weights[4];
      weigh(p, at.end - at.begin - i * kTileTokens, scores, state, weights);
      add_values(p, at, tile, weights, state);
    }
    finish(p, at, state);
  }

 private:
  static constexpr unsigned kScoreBytes = kWarps * 8 * kWarp * 4;

  struct Place {
    StagedTile tile;
    int pitch;  // bytes of a row that is multiplied
    int row;    // this lane's first query head of the group; the other is 8 further
    int piece;  // which N-th of a row is this warp's
    int part;
    std::int64_t head;  // of all sequences' KV heads
    int begin;
    int end;
  };
  struct State {
    std::uint32_t queries[kSteps][4];
    float sums[kPairs][2][4] = {};
    float highest[2] = {kNoScore, kNoScore};
    float weight[2] = {0, 0};  // of this lane's tokens
  };

  static MEMWALL_DEVICE std::byte* stage_of(const Params& p, const Place& at, int i, std::byte* shared) {
    const int stage = i & (at.tile.stages - 1);
    if (!kBytes) return shared + kScoreBytes + stage * (kTileTokens * at.pitch);
    return shared + kScoreBytes + kTileTokens * at.pitch + stage * (kTileTokens * (p.k_pitch + p.v_pitch));
  }

  // Starts to copy a tile, a warp two of its tokens. Beyond the last token there are zeros.
  static MEMWALL_DEVICE void copy_tile(const Params& p, const Place& at, int i, int tiles,
                                       std::byte* shared) {
    if (i < tiles) {
      std::byte* stage = stage_of(p, at, i, shared);
      const int k_units = p.k_pitch / 16;
      const int units = k_units + p.v_pitch / 16;
      const int row_bytes = kBytes ? (p.k_pitch + p.v_pitch) : at.pitch;
      const int value_byte = kBytes ? p.k_pitch : at.tile.value_column * 2;
      MEMWALL_KEEP_LOOP
      for (int n = static_cast<int>(warp()); n < kTileTokens; n += kWarps) {
        const int place = at.begin + i * kTileTokens + n;
        const bool there = place < at.end;
        std::int64_t token = p.held - p.read + place;
        if (p.chosen != nullptr && there) token = load(p.chosen + at.head / p.kv_heads * p.read + place);
        const std::byte* key = p.k + (at.head * p.held + token) * p.k_pitch;
        const std::byte* value = p.v + (at.head * p.held + token) * p.v_pitch;
        for (int u = static_cast<int>(lane()); u < units; u += kWarp) {
          const bool of_key = u < k_units;
          std::byte* to = stage + n * row_bytes + (of_key ? u * 16 : value_byte + (u - k_units) * 16);
          if (there) {
            copy_async_16(to, of_key ? key + u * 16 : value + (u - k_units) * 16);
          } else {
            *reinterpret_cast<Vec16*>(to) = Vec16{};
          }
        }
      }
    }
    commit_copies();
  }

  // Keys are filled up to 16 columns: with zeros, in every tile that is multiplied.
  static MEMWALL_DEVICE void clear_columns(const Params& p, const Place& at, std::byte* shared) {
    if (p.d_k % 16 == 0) return;
    const int tiles = kBytes ? 1 : at.tile.stages;
    const auto row = static_cast<int>(thread_x());
    if (row < tiles * kTileTokens)
      *reinterpret_cast<Vec16*>(shared + kScoreBytes + row * at.pitch + p.d_k * 2) = Vec16{};
  }

  static MEMWALL_DEVICE void load_queries(const Params& p, const Place& at, State& state) {
    const auto* q = static_cast<const Activation*>(p.q) + (at.head * p.group + at.row) * p.d_k;
    MEMWALL_UNROLL
    for (int s = 0; s < kSteps; ++s) {
      MEMWALL_UNROLL
      for (int w = 0; w < 4; ++w) {
        const int row = w % 2 * 8;
        const int column = (at.piece + N * s) * 16 + static_cast<int>(lane() % 4) * 2 + w / 2 * 8;
        // d_k is even, so that a pair is never half there.
        const bool there = at.row + row < p.group && column < p.d_k;
        state.queries[s][w] =
            there ? load(reinterpret_cast<const std::uint32_t*>(q + row * p.d_k + column)) : 0U;
      }
    }
  }

  static MEMWALL_DEVICE void widen_tile(const Params& p, const Place& at, const std::byte* raw,
                                        std::byte* tile) {
    const int k_units = p.k_pitch / 16;
    const int units = k_units + p.v_pitch / 16;
    MEMWALL_KEEP_LOOP
    for (int n = static_cast<int>(warp()); n < kTileTokens; n += kWarps) {
      MEMWALL_KEEP_LOOP
      for (int u = static_cast<int>(lane()); u < units; u += kWarp) {
        const Vec16 bytes = *reinterpret_cast<const Vec16*>(raw + n * (units * 16) + u * 16);
        const int column = u < k_units ? u * 16 : at.tile.value_column + (u - k_units) * 16;
        auto* to = reinterpret_cast<Vec16*>(tile + n * at.pitch + column * 2);
        MEMWALL_UNROLL
        for (int half = 0; half < 2; ++half) {
          Vec16 wide;
          MEMWALL_UNROLL
          for (int w = 0; w < 4; ++w) {
            const std::uint32_t four = bytes.word[2 * half + w / 2];
            wide.word[w] = halves_of_f8(byte_perm(four, 0, w % 2 == 0 ? 0x1000U : 0x3020U));
          }
          to[half] = wide;
        }
      }
    }
  }

  static MEMWALL_DEVICE void add_scores(const Params& p, const Place& at, const std::byte* tile,
                                        const State& state, float (&scores)[2][4]) {
    const auto l = static_cast<int>(lane());
    const std::byte* row = tile + (l % 8 + l / 16 * 8) * at.pitch + l / 8 % 2 * 16;
    const int steps = (p.d_k + 15) / 16;
    MEMWALL_UNROLL
    for (int s = 0; s < kSteps; ++s) {
      const int step = at.piece + N * s;
      if (step >= steps) continue;
      std::uint32_t keys[4];
      load_tiles<false>(keys, row + step * 32);
      multiply_tile<Tile>(scores[0], state.queries[s], keys[0], keys[1]);
      multiply_tile<Tile>(scores[1], state.queries[s], keys[2], keys[3]);
    }
  }

  // Sums over the warps that share these heads, in the same order for each. The next tile's barriers keep its
  // scores from overtaking.
  static MEMWALL_DEVICE void exchange(float* all, float (&scores)[2][4]) {
    if (N == 1) return;
    float* heads = all + warp() % M * (N * 8 * kWarp) + lane();
    float* own = heads + warp() / M * (8 * kWarp);
    MEMWALL_UNROLL
    for (int i = 0; i < 8; ++i) own[i * kWarp] = scores[i / 4][i % 4];
    sync_threads();
    MEMWALL_UNROLL
    for (int i = 0; i < 8; ++i) {
      float sum = heads[i * kWarp];
      MEMWALL_UNROLL
      for (int n = 1; n < N; ++n) sum += heads[(n * 8 + i) * kWarp];
      scores[i / 4][i % 4] = sum;
    }
  }

  // Scores (of heads g and g + 8, tokens 2 t, 2 t + 1 and 8 further) to weights, the sums so far scaled to
  // the new maximum. `tokens` are left from this tile on.
  static MEMWALL_DEVICE void weigh(const Params& p, int tokens, float (&scores)[2][4], State& state,
                                   std::uint32_t (&weights)[4]) {
    const float scale = p.scale * Values::kFactor;
    float correction[2];
    bool higher = false;
    MEMWALL_UNROLL
    for (int r = 0; r < 2; ++r) {
      float highest = kNoScore;
      MEMWALL_UNROLL
      for (int i = 0; i < 4; ++i) {
        float& score = scores[i / 2][2 * r + i % 2];
        score = static_cast<int>(lane() % 4) * 2 + i / 2 * 8 + i % 2 < tokens ? score * scale : -INFINITY;
        highest = fmaxf(highest, score);
      }
      highest = fmaxf(highest, shuffle_xor(highest, 1));
      highest = fmaxf(highest, shuffle_xor(highest, 2));
      higher = higher || highest > state.highest[r];
      highest = fmaxf(highest, state.highest[r]);
      correction[r] = exponential(state.highest[r] - highest);
      state.highest[r] = highest;
      state.weight[r] *= correction[r];
      MEMWALL_UNROLL
      for (int n = 0; n < 2; ++n) {
        const std::uint32_t two =
            pack<Tile>(exponential(scores[n][2 * r] - highest), exponential(scores[n][2 * r + 1] - highest));
        const Pair rounded = unpack<Tile>(two);  // as they are multiplied, so that their rounding cancels
        state.weight[r] += rounded.lo + rounded.hi;
        weights[2 * n + r] = two;
      }
    }
    if (ballot(higher) == 0) return;
    MEMWALL_UNROLL
    for (int s = 0; s < kPairs; ++s) {
      MEMWALL_UNROLL
      for (int i = 0; i < 8; ++i) state.sums[s][i / 4][i % 4] *= correction[i % 4 / 2];
    }
  }

  static MEMWALL_DEVICE void add_values(const Params& p, const Place& at, const std::byte* tile,
                                        const std::uint32_t (&weights)[4], State& state) {
    const auto l = static_cast<int>(lane());
    const std::byte* row = tile + (l % 8 + l / 8 % 2 * 8) * at.pitch + at.tile.value_column * 2 + l / 16 * 16;
    const int pairs = (p.d_v + 15) / 16;
    MEMWALL_UNROLL
    for (int s = 0; s < kPairs; ++s) {
      const int pair = at.piece + N * s;
      if (pair >= pairs) continue;
      std::uint32_t values[4];
      load_tiles<true>(values, row + pair * 32);
      multiply_tile<Tile>(state.sums[s][0], weights, values[0], values[1]);
      multiply_tile<Tile>(state.sums[s][1], weights, values[2], values[3]);
    }
  }

  static MEMWALL_DEVICE void finish(const Params& p, const Place& at, State& state) {
    const int all = p.group * p.d_v;
    float* sums = p.partials + at.head * partial_floats_a_head(p);
    float* statistics = sums + static_cast<std::int64_t>(p.parts) * all + at.part * p.group * 2;
    sums += static_cast<std::int64_t>(at.part) * all;
    MEMWALL_UNROLL
    for (int r = 0; r < 2; ++r) {
      float weight = state.weight[r];
      weight += shuffle_xor(weight, 1);
      weight += shuffle_xor(weight, 2);
      const int row = at.row + 8 * r;
      if (row >= p.group) continue;
      if (p.parts > 1 && at.piece == 0 && lane() % 4 == 0) {
        store(statistics + row * 2, state.highest[r]);
        store(statistics + row * 2 + 1, weight);
      }
      const float share = p.parts > 1 ? Values::kFactor : weight > 0 ? Values::kFactor / weight : 0.0F;
      MEMWALL_UNROLL
      for (int i = 0; i < 2 * kPairs; ++i) {
        const int column = (at.piece + N * (i / 2)) * 16 + i % 2 * 8 + static_cast<int>(lane() % 4) * 2;
        if (column >= p.d_v) continue;  // which is even
        const float first = state.sums[i / 2][i % 2][2 * r] * share;
        const float second = state.sums[i / 2][i % 2][2 * r + 1] * share;
        if (p.parts > 1) {
          store(reinterpret_cast<Vec8*>(sums + row * p.d_v + column),
                Vec8{{float_as_bits(first), float_as_bits(second)}});
        } else {
          auto* y = static_cast<Activation*>(p.y) + (at.head * p.group + row) * p.d_v + column;
          store(reinterpret_cast<std::uint32_t*>(y), pack<Activation>(first, second));
        }
      }
    }
  }
};

// One query head's parts to its output, a block.
template <class Activation>
struct MergeKernel {
  using Params = LatentParams;
  static constexpr unsigned kThreads = kMergeThreads;

  static MEMWALL_DEVICE void run(const Params& p, std::byte* shared) {
    const int group = p.group;
    const std::int64_t head = block_x() / static_cast<unsigned>(group);
    const auto row = static_cast<int>(block_x() % static_cast<unsigned>(group));
    const float* sums = p.partials + head * partial_floats_a_head(p);
    const float* statistics = sums + static_cast<std::int64_t>(p.parts) * group * p.d_v + row * 2;
    auto* weights = reinterpret_cast<float*>(shared);
    if (warp() == 0) merge_weights(statistics, group * 2, p.parts, weights);
    sync_threads();
    put_merged<Activation>(p, sums + row * p.d_v, static_cast<std::int64_t>(group) * p.d_v, weights, 1,
                           static_cast<std::int64_t>(block_x()) * p.d_v, kThreads);
  }
};

// Calls run.template operator()<Kernel>(geometry, params) with the kernel that the launch names.
template <class Run>
void dispatch(const LatentLaunch& launch, Run&& run) {
  const auto go = [&](auto kernel) {
    run.template operator()<decltype(kernel)>(launch.geometry, launch.params);
  };
  const auto of = [&](auto element) {
    constexpr KvElement kE = decltype(element)::value;
    if (launch.merge) return go(MergeKernel<typename Kv<kE>::Activation>());
    switch (launch.head_tiles) {
      case 1:
        return go(StagedKernel<kE, 1>());
      case 2:
        return go(StagedKernel<kE, 2>());
      case 4:
        return go(StagedKernel<kE, 4>());
      default:
        return go(StagedKernel<kE, 8>());
    }
  };
  switch (launch.element) {
    case KvElement::f16:
      return of(std::integral_constant<KvElement, KvElement::f16>());
    case KvElement::bf16:
      return of(std::integral_constant<KvElement, KvElement::bf16>());
    case KvElement::f8_e4m3:
      return of(std::integral_constant<KvElement, KvElement::f8_e4m3>());
    case KvElement::f32:
      return;  // attention.h's plain kernel
  }
}

}  // namespace memwall::cuda
