// Attention without tensor cores, for what they do not multiply (f32; bf16 before sm_80) and for wide or odd
// rows: tiles of tokens staged in shared memory as f32, plain sums. Right first: no loads are in flight while
// it computes.
#pragma once

#include "kernels/cuda/attention_rows.cuh"
#include "kernels/cuda/values.cuh"

namespace memwall::cuda {

template <KvElement E>
struct PlainElement {
  using Element = typename Kv<E>::Element;
  using Activation = typename Kv<E>::Activation;
};
template <>
struct PlainElement<KvElement::f32> {
  using Element = float;
  using Activation = float;
};

// A row's 16 bytes as floats.
MEMWALL_DEVICE void widen_16_bytes(const Vec16& raw, float (&values)[4], float) {
  MEMWALL_UNROLL
  for (int w = 0; w < 4; ++w) values[w] = bits_as_float(raw.word[w]);
}
template <class T>
MEMWALL_DEVICE void widen_16_bytes(const Vec16& raw, float (&values)[8], T) {
  MEMWALL_UNROLL
  for (int w = 0; w < 4; ++w) {
    const Pair two = unpack<T>(raw.word[w]);
    values[2 * w] = two.lo;
    values[2 * w + 1] = two.hi;
  }
}
MEMWALL_DEVICE void widen_16_bytes(const Vec16& raw, float (&values)[16], F8E4M3) {
  MEMWALL_UNROLL
  for (int w = 0; w < 4; ++w) {
    float four[4];
    widen_f8x4(raw.word[w], four);
    MEMWALL_UNROLL
    for (int i = 0; i < 4; ++i) values[4 * w + i] = four[i];
  }
}

template <KvElement E>
struct PlainAttentionKernel {
  using Params = AttentionParams;
  using Element = typename PlainElement<E>::Element;
  using Activation = typename PlainElement<E>::Activation;
  static constexpr unsigned kThreads = kAttentionThreads;
  static constexpr auto kHeads = static_cast<int>(kPlainHeads);
  static constexpr auto kKeys = static_cast<int>(kPlainKeys);
  static constexpr auto kValues = static_cast<int>(kPlainValues);
  static constexpr int kColumns = kValues / static_cast<int>(kThreads);  // of the output, a thread's
  static constexpr int kPitch = kKeys + 1;
  static constexpr unsigned kTileBytes = kTileTokens * kPitch * 4;
  static constexpr unsigned kQueryBytes = kHeads * kKeys * 4;
  static constexpr unsigned kScoreBytes = kHeads * kTileTokens * 4;
  static constexpr unsigned kSharedBytes = kTileBytes + kQueryBytes + kScoreBytes + kHeads * 3 * 4;
  static_assert(kTileBytes >= kHeads * kMostParts * 4 + 16 && kTileBytes >= kHeads * kValues * 4);
  static_assert(kSharedBytes <= 48 << 10);

  static MEMWALL_DEVICE void run(const Params& p, std::byte* shared) {
    auto* tile = reinterpret_cast<float*>(shared);
    auto* queries = reinterpret_cast<float*>(shared + kTileBytes);
    auto* scores = reinterpret_cast<float*>(shared + kTileBytes + kQueryBytes);
    float* statistics = scores + kHeads * kTileTokens;  // {maximum, sum of weights} a head
    float* corrections = statistics + 2 * kHeads;

    const int group = p.group;
    const int blocks = (group + kHeads - 1) / kHeads;  // that share a KV head
    const int block = static_cast<int>(block_x() % static_cast<unsigned>(blocks));
    BlockRows at{};
    at.part = static_cast<int>(block_y());
    at.head = block_x() / static_cast<unsigned>(blocks);
    at.first_row = block * kHeads;
    at.rows = group - at.first_row < kHeads ? group - at.first_row : kHeads;
    at.counter = at.head * blocks + block;
    const std::int64_t begin = static_cast<std::int64_t>(at.part) * p.tiles_each * kTileTokens;
    std::int64_t end = begin + p.tiles_each * kTileTokens;
    if (end > p.read) end = p.read;

    // Each block of a KV head writes the newest token for itself, the same bytes.
    if (at.part == p.parts - 1 && p.new_k != nullptr) append_token<Activation, Element>(p, at.head, kThreads);
    const auto* q = static_cast<const Activation*>(p.q) + (at.head * group + at.first_row) * p.d_k;
    const auto me = static_cast<int>(thread_x());
    MEMWALL_KEEP_LOOP
    for (int i = me; i < at.rows * p.d_k; i += kThreads)
      queries[i] = turned_element(p, q + i / p.d_k * p.d_k, i % p.d_k);
    if (me < kHeads) {
      statistics[2 * me] = kNoScore;
      statistics[2 * me + 1] = 0;
    }
    float sums[kHeads][kColumns] = {};
    for (std::int64_t first = begin; first < end; first += kTileTokens) {
      const int tokens = static_cast<int>(end - first < kTileTokens ? end - first : kTileTokens);
      sync_threads();
      stage(p, at, p.k, p.k_pitch, p.d_k, first, tokens, tile);
      sync_threads();
      MEMWALL_KEEP_LOOP
      for (int i = me; i < at.rows * kTileTokens; i += kThreads) {
        const float* key = tile + i % kTileTokens * kPitch;
        const float* query = queries + i / kTileTokens * p.d_k;
        float sum = 0;
        for (int d = 0; i % kTileTokens < tokens && d < p.d_k; ++d) sum += key[d] * query[d];
        scores[i] = sum * p.scale;
      }
      sync_threads();
      if (me < at.rows) weigh(scores + me * kTileTokens, tokens, statistics + 2 * me, corrections + me);
      stage(p, at, p.v, p.v_pitch, p.d_v, first, tokens, tile);
      sync_threads();
      add_values(p, at, tokens, scores, corrections, tile, sums);
    }
    sync_threads();
    MEMWALL_UNROLL
    for (int h = 0; h < kHeads; ++h) {
      MEMWALL_UNROLL
      for (int c = 0; c < kColumns; ++c) tile[h * kValues + me + c * static_cast<int>(kThreads)] = sums[h][c];
    }
    sync_threads();
    finish_rows<Activation>(p, at, tile, kValues, statistics, kThreads, shared);
  }

 private:
  // Tokens [first, first + tokens) of those read, as floats.
  static MEMWALL_DEVICE void stage(const Params& p, const BlockRows& at, const std::byte* cache, int pitch,
                                   int width, std::int64_t first, int tokens, float* tile) {
    constexpr int kElements = 16 / static_cast<int>(sizeof(Element));
    const int units = pitch / 16;
    MEMWALL_KEEP_LOOP
    for (int i = static_cast<int>(thread_x()); i < tokens * units; i += kThreads) {
      std::int64_t token = p.held - p.read + first + i / units;
      if (p.chosen != nullptr) token = load(p.chosen + at.head / p.kv_heads * p.read + first + i / units);
      const std::byte* row = cache + (at.head * p.held + token) * pitch;
      float values[kElements];
      widen_16_bytes(load_streaming(reinterpret_cast<const Vec16*>(row) + i % units), values, Element{});
      const int column = i % units * kElements;
      MEMWALL_UNROLL
      for (int e = 0; e < kElements; ++e) {
        if (column + e < width) tile[i / units * kPitch + column + e] = values[e];
      }
    }
  }

  static MEMWALL_DEVICE void add_values(const Params& p, const BlockRows& at, int tokens, const float* scores,
                                        const float* corrections, const float* tile,
                                        float (&sums)[kHeads][kColumns]) {
    MEMWALL_UNROLL
    for (int h = 0; h < kHeads; ++h) {
      MEMWALL_UNROLL
      for (int c = 0; c < kColumns; ++c) sums[h][c] *= h < at.rows ? corrections[h] : 0.0F;
    }
    MEMWALL_KEEP_LOOP
    for (int t = 0; t < tokens; ++t) {
      MEMWALL_UNROLL
      for (int c = 0; c < kColumns; ++c) {
        const int column = static_cast<int>(thread_x()) + c * static_cast<int>(kThreads);
        if (column >= p.d_v) continue;
        const float value = tile[t * kPitch + column];
        MEMWALL_UNROLL
        for (int h = 0; h < kHeads; ++h)
          if (h < at.rows) sums[h][c] += scores[h * kTileTokens + t] * value;
      }
    }
  }

  // One head's scores to weights.
  static MEMWALL_DEVICE void weigh(float* scores, int tokens, float* statistics, float* correction) {
    float highest = statistics[0];
    MEMWALL_KEEP_LOOP
    for (int t = 0; t < tokens; ++t) highest = fmaxf(highest, scores[t]);
    *correction = exponential(statistics[0] - highest);
    float sum = statistics[1] * *correction;
    MEMWALL_KEEP_LOOP
    for (int t = 0; t < tokens; ++t) {
      scores[t] = exponential(scores[t] - highest);
      sum += scores[t];
    }
    statistics[0] = highest;
    statistics[1] = sum;
  }
};

template <class Go>
void dispatch_plain(const AttentionLaunch& launch, Go&& go) {
  switch (launch.element) {
    case KvElement::f32:
      return go(PlainAttentionKernel<KvElement::f32>());
    case KvElement::f16:
      return go(PlainAttentionKernel<KvElement::f16>());
    case KvElement::bf16:
      return go(PlainAttentionKernel<KvElement::bf16>());
    case KvElement::f8_e4m3:
      return go(PlainAttentionKernel<KvElement::f8_e4m3>());
  }
}

}  // namespace memwall::cuda
