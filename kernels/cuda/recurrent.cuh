// The bodies of the recurrent layers' kernels (recurrent.h).
#pragma once

#include "kernels/cuda/recurrent.h"
#include "kernels/cuda/values.cuh"

namespace memwall::cuda {

namespace recurrent {

// Elements i and i + 1 of packed bf16 words; i is even.
template <int Elements>
MEMWALL_DEVICE void widen_words(const std::uint32_t* words, float (&values)[Elements]) {
  MEMWALL_UNROLL
  for (int i = 0; i < Elements; i += 2) {
    const Pair pair = widen_bfloats(words[i / 2]);
    values[i] = pair.lo;
    values[i + 1] = pair.hi;
  }
}

// `Elements` bf16 values from `from` on, aligned to all of them.
template <int Elements>
MEMWALL_DEVICE void load_bfloats(const BFloat16* from, float (&values)[Elements]) {
  if constexpr (Elements == 8) {
    const Vec16 v = load(reinterpret_cast<const Vec16*>(from));
    widen_words(v.word, values);
  } else if constexpr (Elements == 4) {
    const Vec8 v = load(reinterpret_cast<const Vec8*>(from));
    widen_words(v.word, values);
  } else {
    values[0] = widen(load(from));
  }
}

template <int Elements>
MEMWALL_DEVICE void store_bfloats(BFloat16* to, const float (&values)[Elements]) {
  if constexpr (Elements == 8) {
    Vec16 v;
    MEMWALL_UNROLL
    for (int i = 0; i < 4; ++i) v.word[i] = narrow_bfloats(values[2 * i], values[2 * i + 1]);
    store(reinterpret_cast<Vec16*>(to), v);
  } else {
    BFloat16 v;
    narrow(values[0], &v);
    store(to, v);
  }
}

// The sum over `Lanes` neighbouring lanes; each of them gets it.
template <int Lanes>
MEMWALL_DEVICE float sum_of_lanes(float value) {
  MEMWALL_UNROLL
  for (unsigned mask = Lanes / 2; mask > 0; mask /= 2) value += shuffle_xor(value, mask);
  return value;
}

}  // namespace recurrent

// A warp holds kRows rows in registers, 16 bytes of a row a lane: `Vectors` times as many rows as 32 lanes
// cover. The rows of a warp share a key and a query.
template <RecurrentKind Kind, bool Narrow, int Vectors>
struct StateUpdateKernel {
  using Params = StateUpdateParams;
  static constexpr unsigned kThreads = kRecurrentThreads;
  static constexpr int kWidth = recurrent_width(Kind);
  static constexpr int kElements = Narrow ? 8 : 4;  // a lane's of a row
  static constexpr int kLanes = kWidth / kElements;
  static constexpr int kRowsAtOnce = kWarp / kLanes;
  static constexpr int kVectorsApart = kRowsAtOnce * kLanes;  // from a lane's row to its next
  static constexpr int kRows = recurrent_rows_a_warp(Kind, Narrow, Vectors);
  static constexpr bool kSelective = Kind == RecurrentKind::selective;
  static_assert(kSelective || kRecurrentHeadRows % kRows == 0, "a warp's rows are of one head");

  static MEMWALL_DEVICE void run(const Params& p, std::byte*) {
    const std::int64_t tile = (static_cast<std::int64_t>(block_x()) * (kThreads / kWarp) + warp()) * kRows;
    if (tile >= p.rows) return;
    const int first = static_cast<int>(tile) + static_cast<int>(lane()) / kLanes;
    for (int sequence = static_cast<int>(block_y()); sequence < p.sequences;
         sequence += static_cast<int>(grid_y()))
      update(p, sequence, kSelective ? 0 : static_cast<int>(tile) / kRecurrentHeadRows, first);
  }

 private:
  static MEMWALL_DEVICE int column() { return static_cast<int>(lane()) % kLanes * kElements; }
  static MEMWALL_DEVICE std::int64_t offset(int row) {
    return static_cast<std::int64_t>(row) * kWidth + column();
  }

  static MEMWALL_DEVICE void update(const Params& p, int sequence, int head, int first) {
    auto* state = reinterpret_cast<Vec16*>(static_cast<std::byte*>(p.state) + sequence * p.state_stride) +
                  offset(first) / kElements;
    Vec16 raw[Vectors];
    std::uint32_t rates[Vectors][kElements / 2];
    MEMWALL_UNROLL
    for (int v = 0; v < Vectors; ++v) {
      const int row = first + v * kRowsAtOnce;
      raw[v] = Vec16{};
      if (row < p.rows) raw[v] = load_streaming(state + v * kVectorsApart);
    }
    if constexpr (kSelective) {
      MEMWALL_UNROLL
      for (int v = 0; v < Vectors; ++v) load_rates(p, first + v * kRowsAtOnce, rates[v]);
    }
    float s[Vectors][kElements];
    int valid[Vectors];  // of the lane's elements; fewer than all in the last row
    MEMWALL_UNROLL
    for (int v = 0; v < Vectors; ++v) {
      const std::int64_t left = p.elements - offset(first + v * kRowsAtOnce);
      valid[v] = left < kElements ? static_cast<int>(left) : kElements;
      widen_state(raw[v], s[v]);
      MEMWALL_UNROLL
      for (int i = 0; i < kElements; ++i) s[v][i] = i < valid[v] ? s[v][i] : 0.0F;
    }
    for (int token = 0; token < p.tokens; ++token) {
      const int at = sequence * p.tokens + token;
      step(p, at % p.sets, at, head, first, valid, rates, s);
    }
    MEMWALL_UNROLL
    for (int v = 0; v < Vectors; ++v) {
      const int row = first + v * kRowsAtOnce;
      if (row < p.rows) store_streaming(state + v * kVectorsApart, narrow_state(s[v]));
    }
  }

  // One token: y and the rows' next values.
  static MEMWALL_DEVICE void step(const Params& p, int set, int at, int head, int first,
                                  const int (&valid)[Vectors],
                                  const std::uint32_t (&rates)[Vectors][kElements / 2],
                                  float (&s)[Vectors][kElements]) {
    const std::int64_t heads_before = static_cast<std::int64_t>(set) * p.heads + head;
    const std::int64_t rows_before = static_cast<std::int64_t>(set) * p.rows;
    float k[kElements];
    float q[kElements];
    recurrent::load_bfloats(static_cast<const BFloat16*>(p.k) + heads_before * kWidth + column(), k);
    recurrent::load_bfloats(static_cast<const BFloat16*>(p.q) + heads_before * kWidth + column(), q);
    float decay[Vectors];
    float value[Vectors];  // what k is multiplied with
    MEMWALL_UNROLL
    for (int v = 0; v < Vectors; ++v) {
      const int row = first + v * kRowsAtOnce;
      const bool there = row < p.rows;
      value[v] = there ? widen(load(static_cast<const BFloat16*>(p.v) + rows_before + row)) : 0.0F;
      if constexpr (kSelective) {
        decay[v] = there ? load(p.decay + rows_before + row) : 0.0F;
        value[v] *= decay[v];
      } else {
        decay[v] = v == 0 ? load(p.decay + heads_before) : decay[0];
      }
    }
    if constexpr (Kind == RecurrentKind::delta) {
      const float beta = load(p.beta + heads_before);
      MEMWALL_UNROLL
      for (int v = 0; v < Vectors; ++v) {
        float dot = 0;
        MEMWALL_UNROLL
        for (int i = 0; i < kElements; ++i) dot += s[v][i] * k[i];
        value[v] = beta * (value[v] - decay[v] * recurrent::sum_of_lanes<kLanes>(dot));
      }
    }
    MEMWALL_UNROLL
    for (int v = 0; v < Vectors; ++v) {
      float factors[kElements];
      if constexpr (kSelective) {
        recurrent::widen_words(rates[v], factors);
        MEMWALL_UNROLL
        for (int i = 0; i < kElements; ++i) factors[i] = exponential(decay[v] * factors[i]);
      } else {
        MEMWALL_UNROLL
        for (int i = 0; i < kElements; ++i) factors[i] = decay[v];
      }
      float sum = 0;
      MEMWALL_UNROLL
      for (int i = 0; i < kElements; ++i) {
        s[v][i] = i < valid[v] ? factors[i] * s[v][i] + value[v] * k[i] : 0.0F;
        sum += s[v][i] * q[i];
      }
      sum = recurrent::sum_of_lanes<kLanes>(sum);
      const int row = first + v * kRowsAtOnce;
      if (column() == 0 && row < p.rows) {
        BFloat16 y;
        narrow(sum, &y);
        store(static_cast<BFloat16*>(p.y) + static_cast<std::int64_t>(at) * p.rows + row, y);
      }
    }
  }

  static MEMWALL_DEVICE void load_rates(const Params& p, int row, std::uint32_t (&words)[kElements / 2]) {
    MEMWALL_UNROLL
    for (int w = 0; w < kElements / 2; ++w) words[w] = 0;
    if (row >= p.rows) return;
    const std::int64_t vector = offset(row) / kElements;
    if constexpr (Narrow) {
      const Vec16 v = load_streaming(static_cast<const Vec16*>(p.rates) + vector);
      MEMWALL_UNROLL
      for (int w = 0; w < 4; ++w) words[w] = v.word[w];
    } else {
      const Vec8 v = load_streaming(static_cast<const Vec8*>(p.rates) + vector);
      words[0] = v.word[0];
      words[1] = v.word[1];
    }
  }

  static MEMWALL_DEVICE void widen_state(const Vec16& raw, float (&s)[kElements]) {
    if constexpr (Narrow) {
      recurrent::widen_words(raw.word, s);
    } else {
      MEMWALL_UNROLL
      for (int i = 0; i < 4; ++i) s[i] = bits_as_float(raw.word[i]);
    }
  }

  static MEMWALL_DEVICE Vec16 narrow_state(const float (&s)[kElements]) {
    Vec16 raw;
    MEMWALL_UNROLL
    for (int w = 0; w < 4; ++w)
      raw.word[w] = Narrow ? narrow_bfloats(s[kElements / 4 * w], s[kElements / 4 * w + kElements / 8])
                           : float_as_bits(s[w]);
    return raw;
  }
};

// `Channels` neighbouring channels a thread: 8, or 1 where rows are not 16-byte aligned.
template <int Channels>
struct ShortConvKernel {
  using Params = ShortConvParams;
  static constexpr unsigned kThreads = kRecurrentThreads;
  static constexpr int kMostTaps = 4;

  static MEMWALL_DEVICE void run(const Params& p, std::byte*) {
    const std::int64_t thread = static_cast<std::int64_t>(block_x()) * kThreads + thread_x();
    if (block_y() == 0) read_rest(p, thread);
    if (thread * Channels >= p.channels) return;
    const int channel = static_cast<int>(thread) * Channels;
    float weights[kMostTaps][Channels];  // the newest input's first
    MEMWALL_UNROLL
    for (int t = 0; t < kMostTaps; ++t) {
      if (t < p.taps)
        recurrent::load_bfloats(
            static_cast<const BFloat16*>(p.weights) + (p.taps - 1 - t) * p.channels + channel, weights[t]);
    }
    for (int sequence = static_cast<int>(block_y()); sequence < p.sequences;
         sequence += static_cast<int>(grid_y()))
      convolve(p, sequence, channel, weights);
  }

 private:
  static MEMWALL_DEVICE std::int64_t row(const Params& p, int index) {
    return static_cast<std::int64_t>(index) * p.channels;
  }

  static MEMWALL_DEVICE void convolve(const Params& p, int sequence, int channel,
                                      const float (&weights)[kMostTaps][Channels]) {
    auto* state =
        reinterpret_cast<BFloat16*>(static_cast<std::byte*>(p.state) + sequence * p.state_stride) + channel;
    float inputs[kMostTaps][Channels];  // the newest first
    MEMWALL_UNROLL
    for (int t = 1; t < kMostTaps; ++t) {
      if (t < p.taps) recurrent::load_bfloats(state + (p.taps - 1 - t) * p.channels, inputs[t]);
    }
    for (int token = 0; token < p.tokens; ++token) {
      const int at = sequence * p.tokens + token;
      recurrent::load_bfloats(static_cast<const BFloat16*>(p.x) + row(p, at % p.sets) + channel, inputs[0]);
      float sums[Channels];
      MEMWALL_UNROLL
      for (int c = 0; c < Channels; ++c) sums[c] = weights[0][c] * inputs[0][c];
      MEMWALL_UNROLL
      for (int t = 1; t < kMostTaps; ++t) {
        if (t >= p.taps) continue;
        MEMWALL_UNROLL
        for (int c = 0; c < Channels; ++c) sums[c] += weights[t][c] * inputs[t][c];
      }
      recurrent::store_bfloats(static_cast<BFloat16*>(p.y) + row(p, at) + channel, sums);
      MEMWALL_UNROLL
      for (int t = kMostTaps - 1; t > 0; --t) {
        if (t >= p.taps) continue;
        MEMWALL_UNROLL
        for (int c = 0; c < Channels; ++c) inputs[t][c] = inputs[t - 1][c];
      }
    }
    MEMWALL_UNROLL
    for (int t = 1; t < kMostTaps; ++t) {
      if (t < p.taps) recurrent::store_bfloats(state + (p.taps - 1 - t) * p.channels, inputs[t]);
    }
  }

  static MEMWALL_DEVICE void read_rest(const Params& p, std::int64_t thread) {
    const std::int64_t vectors = p.rest_words / 4;
    const std::int64_t threads = static_cast<std::int64_t>(grid_x()) * kThreads;
    std::uint32_t bits = 0;
    for (std::int64_t i = thread; i < vectors; i += threads) {
      const Vec16 v = load_streaming(reinterpret_cast<const Vec16*>(p.rest) + i);
      bits ^= v.word[0] ^ v.word[1] ^ v.word[2] ^ v.word[3];
    }
    if (thread < p.rest_words % 4) bits ^= load_streaming(p.rest + vectors * 4 + thread);
    // So that the loads stay. Whether it comes true does not matter.
    if (bits == 0x5EEDC0DEU) store(p.sink, bits);
  }
};

template <class Run>
void dispatch(const RecurrentLaunch& launch, Run&& run) {
  const auto update = [&](auto kernel) {
    run.template operator()<decltype(kernel)>(launch.geometry, launch.state);
  };
  const auto convolve = [&](auto kernel) {
    run.template operator()<decltype(kernel)>(launch.geometry, launch.convolution);
  };
  const bool narrow = launch.narrow;
  const bool many = launch.vectors > 1;
  const auto go = [&](auto f1, auto f4, auto b1, auto b4) {
    if (narrow) return many ? update(b4) : update(b1);
    return many ? update(f4) : update(f1);
  };
  switch (launch.kind) {
    case RecurrentKind::decay: {
      constexpr auto kKind = RecurrentKind::decay;
      return go(StateUpdateKernel<kKind, false, 1>(), StateUpdateKernel<kKind, false, 4>(),
                StateUpdateKernel<kKind, true, 1>(), StateUpdateKernel<kKind, true, 4>());
    }
    case RecurrentKind::delta: {
      constexpr auto kKind = RecurrentKind::delta;
      return go(StateUpdateKernel<kKind, false, 1>(), StateUpdateKernel<kKind, false, 4>(),
                StateUpdateKernel<kKind, true, 1>(), StateUpdateKernel<kKind, true, 4>());
    }
    case RecurrentKind::selective: {
      constexpr auto kKind = RecurrentKind::selective;
      return go(StateUpdateKernel<kKind, false, 1>(), StateUpdateKernel<kKind, false, 4>(),
                StateUpdateKernel<kKind, true, 1>(), StateUpdateKernel<kKind, true, 4>());
    }
    case RecurrentKind::convolution:
      return many ? convolve(ShortConvKernel<8>()) : convolve(ShortConvKernel<1>());
  }
}

}  // namespace memwall::cuda
