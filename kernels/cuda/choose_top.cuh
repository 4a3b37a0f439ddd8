// The choice of the highest scores of a sequence, by one block: their digits are counted from the highest
// down until the lowest chosen score is known, then the chosen are written in their order.
#pragma once

#include "kernels/cuda/indexer.h"
#include "kernels/cuda/values.cuh"

namespace memwall::cuda {

struct ChooseKernel {
  using Params = IndexerParams;
  static constexpr unsigned kThreads = kChooseThreads;
  static constexpr unsigned kWarps = kThreads / kWarp;

  static MEMWALL_DEVICE void run(const Params& p, std::byte* shared) {
    auto* bins = reinterpret_cast<unsigned*>(shared);
    unsigned* above =
        bins + kChooseBins;            // a warp's share of the scores: how many lie above the lowest chosen
    unsigned* equal = above + kWarps;  // and how many are equal to it
    unsigned* found = equal + kWarps;  // {digits of the lowest chosen score, how many of its equals}
    const float* scores = p.scores + static_cast<std::int64_t>(block_x()) * p.keys;
    std::uint32_t lowest = 0;
    auto wanted = static_cast<unsigned>(p.count);
    for (int pass = 0; pass < 3; ++pass) {
      const unsigned shift = pass == 0 ? 21U : pass == 1 ? 10U : 0U;
      const unsigned bits = pass == 2 ? 10U : 11U;
      for (unsigned i = thread_x(); i < kChooseBins; i += kThreads) bins[i] = 0;
      sync_threads();
      count_digits(p, scores, pass == 0, lowest, shift, bits, bins);
      sync_threads();
      if (warp() == 0) find_digit(bins, 1U << bits, wanted, found);
      sync_threads();
      lowest = lowest << bits | found[0];
      wanted = found[1];
    }
    write_chosen(p, scores, lowest, wanted, above, equal);
  }

 private:
  // Unsigned numbers in the scores' order; both zeros are one.
  static MEMWALL_DEVICE std::uint32_t rank_of(float score) {
    const std::uint32_t bits = float_as_bits(score);
    if ((bits & 0x7FFFFFFFU) == 0) return 0x80000000U;
    if ((bits & 0x7FFFFFFFU) > 0x7F800000U) return 0xFFFFFFFFU;
    return (bits & 0x80000000U) != 0 ? ~bits : bits | 0x80000000U;
  }

  // Of the scores whose higher digits are `lowest`.
  static MEMWALL_DEVICE void count_digits(const Params& p, const float* scores, bool all,
                                          std::uint32_t lowest, unsigned shift, unsigned bits,
                                          unsigned* bins) {
    constexpr int kFlight = 4;
    constexpr auto kStep = static_cast<int>(kThreads);
    for (int i = static_cast<int>(thread_x()); i < p.keys; i += kFlight * kStep) {
      float score[kFlight];
      MEMWALL_UNROLL
      for (int f = 0; f < kFlight; ++f)
        score[f] = i < p.keys - f * kStep ? load(scores + i + f * kStep) : 0.0F;
      MEMWALL_UNROLL
      for (int f = 0; f < kFlight; ++f) {
        const std::uint32_t digits = rank_of(score[f]) >> shift;
        if (i < p.keys - f * kStep && (all || digits >> bits == lowest))
          add_shared(bins + (digits & ((1U << bits) - 1)), 1);
      }
    }
  }

  // The bin, from the highest down, with which `wanted` are reached, and how many of its scores are wanted.
  // One warp.
  static MEMWALL_DEVICE void find_digit(const unsigned* bins, unsigned count, unsigned wanted,
                                        unsigned* found) {
    const unsigned each = count / kWarp;
    const unsigned top = count - lane() * each;  // this lane's bins end here
    unsigned own = 0;
    for (unsigned i = 1; i <= each; ++i) own += bins[top - i];
    unsigned before = own;  // in this lane's bins and the higher ones
    for (unsigned step = 1; step < static_cast<unsigned>(kWarp); step *= 2) {
      const unsigned higher = shuffle(before, lane() >= step ? lane() - step : lane());
      if (lane() >= step) before += higher;
    }
    before -= own;
    if (before >= wanted || before + own < wanted) return;
    unsigned left = wanted - before;
    unsigned bin = top - 1;
    while (bins[bin] < left) left -= bins[bin--];
    found[0] = bin;
    found[1] = left;
  }

  // All scores above `lowest`, and of its equals the first `wanted`. A warp writes those of a piece of the
  // scores.
  static MEMWALL_DEVICE void write_chosen(const Params& p, const float* scores, std::uint32_t lowest,
                                          unsigned wanted, unsigned* above, unsigned* equal) {
    const int steps = (p.keys + static_cast<int>(kThreads) - 1) / static_cast<int>(kThreads);
    const int first = static_cast<int>(warp()) * steps * kWarp + static_cast<int>(lane());
    unsigned higher = 0;
    unsigned equals = 0;
    for (int s = 0; s < steps; ++s) {
      const int i = first + s * kWarp;
      const std::uint32_t rank = i < p.keys ? rank_of(load(scores + i)) : 0U;
      higher += count_bits(ballot(i < p.keys && rank > lowest));
      equals += count_bits(ballot(i < p.keys && rank == lowest));
    }
    if (lane() == 0) {
      above[warp()] = higher;
      equal[warp()] = equals;
    }
    sync_threads();
    higher = 0;
    equals = 0;
    for (unsigned w = 0; w < warp(); ++w) {
      higher += above[w];
      equals += equal[w];
    }
    std::int32_t* to = p.chosen + static_cast<std::int64_t>(block_x()) * p.count;
    unsigned place = higher + (equals < wanted ? equals : wanted);
    const std::uint32_t before = (1U << lane()) - 1;
    for (int s = 0; s < steps; ++s) {
      const int i = first + s * kWarp;
      const std::uint32_t rank = i < p.keys ? rank_of(load(scores + i)) : 0U;
      const std::uint32_t equal_lanes = ballot(i < p.keys && rank == lowest);
      const bool taken =
          i < p.keys &&
          (rank > lowest || (rank == lowest && equals + count_bits(equal_lanes & before) < wanted));
      const std::uint32_t taken_lanes = ballot(taken);
      if (taken) store(to + place + count_bits(taken_lanes & before), static_cast<std::int32_t>(i));
      place += count_bits(taken_lanes);
      equals += count_bits(equal_lanes);
    }
  }
};

}  // namespace memwall::cuda
