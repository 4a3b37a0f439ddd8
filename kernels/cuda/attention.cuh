// The body of attention for up to 16 query heads a KV head, on tensor cores. A warp takes 16 tokens at once:
// scores are K (16 tokens) times Q^T (8 heads), outputs V^T (16 elements) times P^T (8 heads), and the bytes
// that lanes load, 16 each, are already the tiles' rows: keys and values go from memory into registers and
// nowhere else. A tile's pieces are loaded one ahead of their use.
#pragma once

#include "kernels/cuda/attention.h"
#include "kernels/cuda/attention_plain.cuh"
#include "kernels/cuda/attention_rows.cuh"
#include "kernels/cuda/kv_values.cuh"
#include "kernels/cuda/tiles.cuh"

namespace memwall::cuda {

// KC and VC: 16-byte loads a lane and token of K (4 lanes share a row's 64 bytes) and V (8 lanes, 128 bytes).
// HT: tiles of 8 query heads.
template <KvElement E, int KC, int VC, int HT>
struct AttentionKernel {
  using Params = AttentionParams;
  using Values = Kv<E>;
  using Tile = typename Values::Tile;
  using Activation = typename Values::Activation;
  static constexpr unsigned kThreads = kAttentionThreads;
  static constexpr int kWarps = kThreads / kWarp;
  // At most 8 loads of K and of V are in flight a lane; a longer row comes in pieces.
  static constexpr int kMostKeys = HT == 1 ? 4 : 3;
  static constexpr int kKPiece = KC <= kMostKeys ? KC : KC / 2;
  static constexpr int kKPieces = KC / kKPiece;
  static constexpr int kVPiece = VC <= 2 ? VC : 2;
  static constexpr int kVPieces = VC / kVPiece;
  static constexpr int kRows = 8 * HT;
  static constexpr int kQueryElements = KC * 4 * Values::kElements;
  // Half words; rows start half a shared memory's width apart, so that 8 lanes of two rows never collide.
  static constexpr int kQueryPitch = kQueryElements + 32;
  static constexpr int kValueTiles = VC * Values::kElements / 2;
  static constexpr int kOutputs = VC * 8 * Values::kElements;
  static constexpr int kOutputPitch = kOutputs + 4;
  static constexpr unsigned kQueryBytes = kRows * kQueryPitch * 2;
  static constexpr unsigned kStatisticsBytes = kWarps * kRows * 2 * 4;
  static constexpr unsigned kLayoutBytes = kQueryBytes + kStatisticsBytes + kRows * kOutputPitch * 4 + 16;
  static constexpr unsigned kMergeBytes = kRows * kMostParts * 4 + 16;
  static constexpr unsigned kSharedBytes = kLayoutBytes > kMergeBytes ? kLayoutBytes : kMergeBytes;
  static_assert(kSharedBytes <= 48 << 10);

  static MEMWALL_DEVICE void run(const Params& p, std::byte* shared) {
    Place at;
    at.part = static_cast<int>(block_y());
    at.head = block_x();
    at.k = p.k + at.head * p.held * p.k_pitch + lane() % 4 * 16;
    at.v = p.v + at.head * p.held * p.v_pitch + lane() / 4 * 16;
    at.begin = at.part * p.tiles_each * kTileTokens;
    at.end = at.begin + p.tiles_each * kTileTokens;
    if (at.end > p.read) at.end = static_cast<int>(p.read);
    if (at.part == p.parts - 1 && p.new_k != nullptr) {
      append_token<Activation, typename Values::Element>(p, at.head, kThreads);
      sync_threads();
    }
    State state;
    const int first = at.begin + static_cast<int>(warp()) * kTileTokens;
    KeyRows rows = key_rows(p, at, first);
    Keys keys = load_keys(p, at, rows, 0);
    stage_queries(p, at, reinterpret_cast<Tile*>(shared));
    sync_threads();
    for (int tile = first; tile < at.end; tile += kWarps * kTileTokens)
      take_tile(p, at, tile, shared, rows, keys, state);
    merge_warps(shared, state);
    finish_rows<Activation>(p, {at.head, at.part, 0, p.group, at.head}, outputs_of(shared), kOutputPitch,
                            statistics_of(shared), kThreads, shared);
  }

 private:
  struct Place {
    int part;
    std::int64_t head;   // of all sequences'
    const std::byte* k;  // of the head, this lane's 16 bytes of a row
    const std::byte* v;
    int begin;  // of the tokens read
    int end;
  };
  struct KeyRows {
    int token[2];  // tokens g and g + 8 of the tile, of those held; -1 beyond the end
  };
  struct Keys {
    Vec16 raw[2][kKPiece];
  };
  struct ValuesLoaded {
    Vec16 raw[4][kVPiece];
  };
  struct State {
    float sums[HT][kValueTiles][4] = {};
    float highest[HT][2];
    float weight[HT][2] = {};  // this lane's tokens'
    MEMWALL_DEVICE State() {
      MEMWALL_UNROLL
      for (int h = 0; h < HT; ++h) highest[h][0] = highest[h][1] = kNoScore;
    }
  };

  static MEMWALL_DEVICE int token_of(const Params& p, const Place& at, int i) {
    if (i >= at.end) return -1;
    if (p.chosen == nullptr) return static_cast<int>(p.held - p.read) + i;
    return load(p.chosen + at.head / p.kv_heads * p.read + i);
  }
  static MEMWALL_DEVICE KeyRows key_rows(const Params& p, const Place& at, int tile) {
    KeyRows rows;
    MEMWALL_UNROLL
    for (int n = 0; n < 2; ++n) rows.token[n] = token_of(p, at, tile + 8 * n + static_cast<int>(lane() / 4));
    return rows;
  }
  static MEMWALL_DEVICE Keys load_keys(const Params& p, const Place& at, const KeyRows& rows, int piece) {
    Keys keys;
    MEMWALL_UNROLL
    for (int c = 0; c < kKPiece; ++c) {
      MEMWALL_UNROLL
      for (int n = 0; n < 2; ++n) {
        const int byte = (piece * kKPiece + c) * 64;
        const bool there = rows.token[n] >= 0 && byte + static_cast<int>(lane() % 4) * 16 < p.k_pitch;
        const std::byte* row = at.k + static_cast<std::int64_t>(rows.token[n]) * p.k_pitch;
        keys.raw[n][c] = there ? load_streaming(reinterpret_cast<const Vec16*>(row + byte)) : Vec16{};
      }
    }
    return keys;
  }
  struct ValueRows {
    int token[4];  // tokens 2 t, 2 t + 1, 2 t + 8, 2 t + 9 of the tile
  };
  static MEMWALL_DEVICE ValueRows value_rows(const Params& p, const Place& at, int tile) {
    ValueRows rows;
    MEMWALL_UNROLL
    for (int n = 0; n < 4; ++n) {
      const int i = tile + static_cast<int>(lane() % 4) * 2 + n % 2 + n / 2 * 8;
      rows.token[n] = token_of(p, at, i);
    }
    return rows;
  }
  static MEMWALL_DEVICE ValuesLoaded load_values(const Params& p, const Place& at, const ValueRows& rows,
                                                 int piece) {
    ValuesLoaded values;
    MEMWALL_UNROLL
    for (int c = 0; c < kVPiece; ++c) {
      MEMWALL_UNROLL
      for (int n = 0; n < 4; ++n) {
        const int byte = (piece * kVPiece + c) * 128;
        const bool there = rows.token[n] >= 0 && byte + static_cast<int>(lane() / 4) * 16 < p.v_pitch;
        const std::byte* row = at.v + static_cast<std::int64_t>(rows.token[n]) * p.v_pitch;
        values.raw[n][c] = there ? load_streaming(reinterpret_cast<const Vec16*>(row + byte)) : Vec16{};
      }
    }
    return values;
  }

  // q as the tiles want it, zeros where there is none.
  static MEMWALL_DEVICE void stage_queries(const Params& p, const Place& at, Tile* staged) {
    const auto* q = static_cast<const Activation*>(p.q) + at.head * p.group * p.d_k;
    MEMWALL_SOME_UNROLL
    for (int i = static_cast<int>(thread_x()); i < kRows * kQueryElements; i += kThreads) {
      const int row = i / kQueryElements;
      const int element = i % kQueryElements;
      Tile value{};
      if (row < p.group && element < p.d_k) narrow(turned_element(p, q + row * p.d_k, element), &value);
      staged[row * kQueryPitch + Values::query_place(element)] = value;
    }
  }

  static MEMWALL_DEVICE void take_tile(const Params& p, const Place& at, int tile, const std::byte* shared,
                                       KeyRows& rows, Keys& keys, State& state) {
    const ValueRows v_rows = value_rows(p, at, tile);
    ValuesLoaded values;
    float scores[HT][4] = {};
    MEMWALL_UNROLL
    for (int piece = 0; piece < kKPieces; ++piece) {
      Keys next;
      if (piece + 1 < kKPieces) {
        next = load_keys(p, at, rows, piece + 1);
      } else {
        values = load_values(p, at, v_rows, 0);
      }
      add_scores(reinterpret_cast<const Tile*>(shared), keys, piece, scores);
      if (piece + 1 < kKPieces) keys = next;
    }
    std::uint32_t weights[HT][2];
    weigh(p, at.end - tile - static_cast<int>(lane() / 4), scores, state, weights);
    MEMWALL_UNROLL
    for (int piece = 0; piece < kVPieces; ++piece) {
      ValuesLoaded next;
      if (piece + 1 < kVPieces) {
        next = load_values(p, at, v_rows, piece + 1);
      } else {
        rows = key_rows(p, at, tile + kWarps * kTileTokens);
        keys = load_keys(p, at, rows, 0);
      }
      add_values(values, piece, weights, state);
      if (piece + 1 < kVPieces) values = next;
    }
  }

  static MEMWALL_DEVICE void add_scores(const Tile* queries, const Keys& keys, int piece,
                                        float (&scores)[HT][4]) {
    MEMWALL_UNROLL
    for (int c = 0; c < kKPiece; ++c) {
      MEMWALL_UNROLL
      for (int two = 0; two < Values::kSteps / 2; ++two) {
        Vec16 q[HT];
        MEMWALL_UNROLL
        for (int h = 0; h < HT; ++h) {
          const int column = ((piece * kKPiece + c) * Values::kSteps / 2 + two) * 32;
          const Tile* row = queries + (8 * h + static_cast<int>(lane() / 4)) * kQueryPitch;
          q[h] = *reinterpret_cast<const Vec16*>(row + column + lane() % 4 * 8);
        }
        MEMWALL_UNROLL
        for (int s = 0; s < 2; ++s) {
          const int step = 2 * two + s;
          const std::uint32_t a[4] = {
              Values::key_low(keys.raw[0][c], step), Values::key_low(keys.raw[1][c], step),
              Values::key_high(keys.raw[0][c], step), Values::key_high(keys.raw[1][c], step)};
          MEMWALL_UNROLL
          for (int h = 0; h < HT; ++h)
            multiply_tile<Tile>(scores[h], a, q[h].word[2 * s], q[h].word[2 * s + 1]);
        }
      }
    }
  }

  // Scores (of tokens g and g + 8, heads 2 t and 2 t + 1) to weights as the second factor of a tile, the sums
  // so far scaled to the new maximum. `left`: tokens from g on.
  static MEMWALL_DEVICE void weigh(const Params& p, int left, float (&scores)[HT][4], State& state,
                                   std::uint32_t (&weights)[HT][2]) {
    float correction[HT][2];
    bool higher = false;
    MEMWALL_UNROLL
    for (int h = 0; h < HT; ++h) {
      MEMWALL_UNROLL
      for (int e = 0; e < 2; ++e) {
        const float a = left > 0 ? scores[h][e] * (p.scale * Values::kFactor) : -INFINITY;
        const float b = left > 8 ? scores[h][2 + e] * (p.scale * Values::kFactor) : -INFINITY;
        float highest = fmaxf(a, b);
        highest = fmaxf(highest, shuffle_xor(highest, 4));
        highest = fmaxf(highest, shuffle_xor(highest, 8));
        highest = fmaxf(highest, shuffle_xor(highest, 16));
        higher = higher || highest > state.highest[h][e];
        highest = fmaxf(highest, state.highest[h][e]);
        correction[h][e] = exponential(state.highest[h][e] - highest);
        state.highest[h][e] = highest;
        scores[h][e] = exponential(a - highest);
        scores[h][2 + e] = exponential(b - highest);
      }
    }
    const bool rescale = ballot(higher) != 0;
    MEMWALL_UNROLL
    for (int h = 0; h < HT; ++h) {
      const std::uint32_t own[2] = {pack<Tile>(scores[h][0], scores[h][1]),
                                    pack<Tile>(scores[h][2], scores[h][3])};
      // Weights as they are multiplied, so that their rounding cancels.
      const Pair a = unpack<Tile>(own[0]);
      const Pair b = unpack<Tile>(own[1]);
      state.weight[h][0] = state.weight[h][0] * correction[h][0] + (a.lo + b.lo);
      state.weight[h][1] = state.weight[h][1] * correction[h][1] + (a.hi + b.hi);
      weights[h][0] = transpose_tile(own[0]);
      weights[h][1] = transpose_tile(own[1]);
      if (!rescale) continue;
      MEMWALL_UNROLL
      for (int m = 0; m < kValueTiles; ++m) {
        MEMWALL_UNROLL
        for (int i = 0; i < 4; ++i) state.sums[h][m][i] *= correction[h][i % 2];
      }
    }
  }

  static MEMWALL_DEVICE void add_values(const ValuesLoaded& v, int piece,
                                        const std::uint32_t (&weights)[HT][2], State& state) {
    MEMWALL_UNROLL
    for (int c = 0; c < kVPiece; ++c) {
      MEMWALL_UNROLL
      for (int i = 0; i < Values::kElements; i += 2) {
        const std::uint32_t a[4] = {Values::value_pair(v.raw[0][c], v.raw[1][c], i),
                                    Values::value_pair(v.raw[0][c], v.raw[1][c], i + 1),
                                    Values::value_pair(v.raw[2][c], v.raw[3][c], i),
                                    Values::value_pair(v.raw[2][c], v.raw[3][c], i + 1)};
        const int tile = ((piece * kVPiece + c) * Values::kElements + i) / 2;
        MEMWALL_UNROLL
        for (int h = 0; h < HT; ++h)
          multiply_tile<Tile>(state.sums[h][tile], a, weights[h][0], weights[h][1]);
      }
    }
  }

  static MEMWALL_DEVICE float* statistics_of(std::byte* shared) {
    return reinterpret_cast<float*>(shared + kQueryBytes);
  }
  static MEMWALL_DEVICE float* outputs_of(std::byte* shared) {
    return reinterpret_cast<float*>(shared + kQueryBytes + kStatisticsBytes);
  }

  // The warps' sums, one after the other, into shared memory; statistics[row] becomes {maximum, sum of
  // weights} of them all.
  static MEMWALL_DEVICE void merge_warps(std::byte* shared, State& state) {
    float* statistics = statistics_of(shared);
    MEMWALL_UNROLL
    for (int h = 0; h < HT; ++h) {
      MEMWALL_UNROLL
      for (int e = 0; e < 2; ++e) {
        float weight = state.weight[h][e];
        weight += shuffle_xor(weight, 4);
        weight += shuffle_xor(weight, 8);
        weight += shuffle_xor(weight, 16);
        if (lane() / 4 != 0) continue;
        float* own = statistics + (warp() * kRows + 8 * h + lane() % 4 * 2 + e) * 2;
        own[0] = state.highest[h][e];
        own[1] = weight;
      }
    }
    sync_threads();
    float share[HT][2];
    float highest = kNoScore;
    float total = 0;
    MEMWALL_UNROLL
    for (int h = 0; h < HT; ++h) {
      MEMWALL_UNROLL
      for (int e = 0; e < 2; ++e) {
        const float most = highest_of(statistics, 8 * h + static_cast<int>(lane() % 4) * 2 + e);
        share[h][e] = exponential(state.highest[h][e] - most);
      }
    }
    const int row = static_cast<int>(thread_x());
    if (row < kRows) {
      highest = highest_of(statistics, row);
      MEMWALL_KEEP_LOOP
      for (int w = 0; w < kWarps; ++w) {
        const float* other = statistics + (w * kRows + row) * 2;
        total += exponential(other[0] - highest) * other[1];
      }
    }
    float* outputs = outputs_of(shared);
    MEMWALL_KEEP_LOOP
    for (unsigned w = 0; w < static_cast<unsigned>(kWarps); ++w) {
      if (warp() == w) put_sums(outputs, state, share, w == 0);
      sync_threads();
    }
    if (row < kRows) {
      statistics[row * 2] = highest;
      statistics[row * 2 + 1] = total;
    }
    sync_threads();
  }
  static MEMWALL_DEVICE float highest_of(const float* statistics, int row) {
    float highest = kNoScore;
    MEMWALL_UNROLL
    for (int w = 0; w < kWarps; ++w) highest = fmaxf(highest, statistics[(w * kRows + row) * 2]);
    return highest;
  }
  static MEMWALL_DEVICE void put_sums(float* outputs, const State& state, const float (&share)[HT][2],
                                      bool first) {
    MEMWALL_UNROLL
    for (int h = 0; h < HT; ++h) {
      MEMWALL_UNROLL
      for (int m = 0; m < kValueTiles; ++m) {
        MEMWALL_UNROLL
        for (int i = 0; i < 4; ++i) {
          const int row = 8 * h + static_cast<int>(lane() % 4) * 2 + i % 2;
          const int chunk = m / (Values::kElements / 2);
          const int element = (chunk * 8 + static_cast<int>(lane() / 4)) * Values::kElements +
                              m % (Values::kElements / 2) * 2 + i / 2;
          float* to = outputs + row * kOutputPitch + element;
          const float value = state.sums[h][m][i] * (share[h][i % 2] * Values::kFactor);
          *to = first ? value : *to + value;
        }
      }
    }
  }
};

// Calls run.template operator()<Kernel>(geometry, params) with the kernel that the launch names.
template <class Run>
void dispatch(const AttentionLaunch& launch, Run&& run) {
  const auto go = [&](auto kernel) {
    run.template operator()<decltype(kernel)>(launch.geometry, launch.params);
  };
  if (launch.plain) return dispatch_plain(launch, go);
  const auto with_width = [&](auto one, auto two) { launch.head_tiles == 1 ? go(one) : go(two); };
  const auto of = [&](auto element, auto bytes) {
    constexpr KvElement kE = decltype(element)::value;
    constexpr int kB = decltype(bytes)::value;  // of an element
    // Elements times bytes over 64 (K) and 128 (V) bytes that a row's lanes load at once.
    switch (launch.width) {
      case AttentionWidth::w64:
        return with_width(AttentionKernel<kE, kB, 1, 1>(), AttentionKernel<kE, kB, 1, 2>());
      case AttentionWidth::w128:
        return with_width(AttentionKernel<kE, 2 * kB, kB, 1>(), AttentionKernel<kE, 2 * kB, kB, 2>());
      case AttentionWidth::w256:
        return go(AttentionKernel<kE, 4 * kB, 2 * kB, 1>());
    }
  };
  using One = std::integral_constant<int, 1>;
  using Two = std::integral_constant<int, 2>;
  switch (launch.element) {
    case KvElement::f16:
      return of(std::integral_constant<KvElement, KvElement::f16>(), Two());
    case KvElement::bf16:
      return of(std::integral_constant<KvElement, KvElement::bf16>(), Two());
    case KvElement::f8_e4m3:
      return of(std::integral_constant<KvElement, KvElement::f8_e4m3>(), One());
    case KvElement::f32:
      return;  // only plain
  }
}

}  // namespace memwall::cuda
