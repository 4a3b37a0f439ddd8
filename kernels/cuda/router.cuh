// The body of the router's choice (router.h).
#pragma once

#include "kernels/cuda/platform.cuh"
#include "kernels/cuda/router.h"

namespace memwall::cuda {

// A warp takes a row. Logits become words that order as they do; a lane looks after every 32nd of them and
// knows the best of its own, so that a round is two reductions over the warp and, for the winner alone, a
// walk over its share.
template <class T>
struct RouterKernel {
  using Params = RouterParams;
  static constexpr unsigned kThreads = kWarp;
  static MEMWALL_DEVICE void run(const Params& p, std::byte* shared) {
    const std::int64_t row = block_x();
    const auto experts = static_cast<unsigned>(p.experts);
    const auto per_token = static_cast<unsigned>(p.per_token);
    auto* words = reinterpret_cast<std::uint32_t*>(shared);
    auto* scores = reinterpret_cast<float*>(words + experts);
    const T* logits = static_cast<const T*>(p.logits) + row * p.experts;

    constexpr unsigned kInFlight = 4;
    for (unsigned first = lane(); first < experts; first += kInFlight * kWarp) {
      T raw[kInFlight];
      MEMWALL_UNROLL
      for (unsigned u = 0; u < kInFlight; ++u) {
        raw[u] = T{};
        if (first + u * kWarp < experts) raw[u] = load(logits + first + u * kWarp);
      }
      MEMWALL_UNROLL
      for (unsigned u = 0; u < kInFlight; ++u) {
        if (first + u * kWarp < experts) words[first + u * kWarp] = ordered(widen(raw[u]));
      }
    }
    // A lane reads none but its own words.
    Best own = best_of(words, experts);
    float largest = 0.0F;
    float sum = 0.0F;
    for (unsigned rank = 0; rank < per_token; ++rank) {
      const std::uint32_t word = warp_max_word(own.word);
      const std::uint32_t index = warp_min_word(own.word == word ? own.index : ~std::uint32_t{0});
      const float score = logit_of(word);
      if (rank == 0) largest = score;
      const float share = exponential(score - largest);
      sum += share;
      if (own.index == index) {
        words[index] = kTaken;
        own = best_of(words, experts);
      }
      if (lane() == rank % kWarp) {
        scores[rank] = share;
        store(p.indices + row * p.per_token + rank, static_cast<std::int32_t>(index));
      }
    }
    for (unsigned rank = lane(); rank < per_token; rank += kWarp)
      store(p.weights + row * p.per_token + rank, scores[rank] / sum);
  }

 private:
  struct Best {
    std::uint32_t word;
    std::uint32_t index;
  };
  static constexpr std::uint32_t kTaken = 0;
  static constexpr std::uint32_t kNan = 1;  // below minus infinity's 0x007FFFFF
  static constexpr std::uint32_t kSign = 0x80000000U;

  // The best of this lane's, the lowest index of equal ones. Where all are taken, an index that no other has.
  static MEMWALL_DEVICE Best best_of(const std::uint32_t* words, unsigned experts) {
    Best best{kTaken, lane()};
    for (unsigned e = lane(); e < experts; e += kWarp) {
      const std::uint32_t word = words[e];
      if (word > best.word) best = {word, e};
    }
    return best;
  }

  // Floats as words of the same order: negative ones upside down. Both zeros are equal.
  static MEMWALL_DEVICE std::uint32_t ordered(float logit) {
    if (logit != logit) return kNan;
    const std::uint32_t bits = logit == 0.0F ? 0U : float_as_bits(logit);
    return (bits & kSign) != 0 ? ~bits : bits | kSign;
  }
  static MEMWALL_DEVICE float logit_of(std::uint32_t word) {
    if (word == kNan) return bits_as_float(0x7FC00000U);
    return bits_as_float((word & kSign) != 0 ? word & ~kSign : ~word);
  }
};

template <class Run>
void dispatch(const RouterLaunch& launch, Run&& run) {
  switch (launch.type) {
    case LogitType::f32:
      return run.template operator()<RouterKernel<float>>(launch.geometry, launch.params);
    case LogitType::f16:
      return run.template operator()<RouterKernel<Half>>(launch.geometry, launch.params);
    case LogitType::bf16:
      return run.template operator()<RouterKernel<BFloat16>>(launch.geometry, launch.params);
  }
}

}  // namespace memwall::cuda
