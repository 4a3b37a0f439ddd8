// A router's choice among its logits.
#include <cmath>
#include <cstddef>
#include <stdexcept>

#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/highway_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/elementwise_top_k.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
//
#include "hwy/highway.h"
#include "kernels/cpu/elementwise-inl.h"
#include "kernels/cpu/softmax-inl.h"

HWY_BEFORE_NAMESPACE();
namespace memwall::cpu::HWY_NAMESPACE {

// Whether logit a ranks before b; a NaN ranks last, so that the order is always one.
HWY_INLINE bool ranks_before(float a, float b) { return a > b || (std::isnan(b) && !std::isnan(a)); }

// The k best so far, in falling order.
struct Best {
  std::size_t k;
  std::int32_t* indices;
  float* scores;
  std::size_t kept = 0;

  // k is small, and an equal logit met later stays behind.
  HWY_INLINE void offer(float score, std::size_t index) {
    if (kept == k && !ranks_before(score, scores[k - 1])) return;
    std::size_t place = kept < k ? kept++ : k - 1;
    for (; place > 0 && ranks_before(score, scores[place - 1]); --place) {
      scores[place] = scores[place - 1];
      indices[place] = indices[place - 1];
    }
    scores[place] = score;
    indices[place] = static_cast<std::int32_t>(index);
  }
};

// scores = softmax(scores), in falling order.
HWY_INLINE void softmax_falling(float* scores, std::size_t k) {
  const F32 d;
  const VF largest = hn::Set(d, scores[0]);
  VF sums = hn::Zero(d);
  std::size_t i = 0;
  for (; i + kLanes <= k; i += kLanes) {
    const VF e = exp_nonpositive(hn::Sub(hn::LoadU(d, scores + i), largest));
    hn::StoreU(e, d, scores + i);
    sums = hn::Add(sums, e);
  }
  if (const std::size_t rest = k - i; rest != 0) {
    const VF e = hn::IfThenElseZero(hn::FirstN(d, rest),
                                    exp_nonpositive(hn::Sub(load_first(scores + i, rest), largest)));
    store_first(e, scores + i, rest);
    sums = hn::Add(sums, e);
  }
  const float sum = hn::GetLane(hn::SumOfLanes(d, sums));
  for (i = 0; i < k; ++i) scores[i] /= sum;
}

void top_k_softmax(const float* logits, std::size_t experts, std::size_t k, std::int32_t* indices,
                   float* weights, std::size_t rows) {
  const F32 d;
  for (std::size_t row = 0; row < rows; ++row) {
    const float* scores = logits + row * experts;
    Best best{.k = k, .indices = indices + row * k, .scores = weights + row * k};
    std::size_t i = 0;
    for (; i < k; ++i) best.offer(scores[i], i);
    // Few of the rest rank before the worst that was kept, so most vectors are one comparison. Where the
    // worst is a NaN the comparison says no more than that: every logit is then offered.
    for (; i + kLanes <= experts; i += kLanes) {
      const float worst = best.scores[k - 1];
      const bool any =
          std::isnan(worst) || !hn::AllFalse(d, hn::Gt(hn::LoadU(d, scores + i), hn::Set(d, worst)));
      for (std::size_t lane = 0; any && lane < kLanes; ++lane) best.offer(scores[i + lane], i + lane);
    }
    for (; i < experts; ++i) best.offer(scores[i], i);
    softmax_falling(weights + row * k, k);
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace memwall::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace memwall::cpu {

HWY_EXPORT(top_k_softmax);

void top_k_softmax(const float* logits, std::int64_t experts, std::int64_t k, std::int32_t* indices,
                   float* weights, std::int64_t first, std::int64_t last) {
  if (k < 1 || k > experts)
    throw std::invalid_argument("top-k needs a k between 1 and the number of experts");
  if (last <= first) return;
  HWY_DYNAMIC_DISPATCH(top_k_softmax)
  (logits + first * experts, static_cast<std::size_t>(experts), static_cast<std::size_t>(k),
   indices + first * k, weights + first * k, static_cast<std::size_t>(last - first));
}

}  // namespace memwall::cpu
#endif  // HWY_ONCE
