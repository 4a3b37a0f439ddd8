#include "kernels/cpu/recurrent.h"

#include <algorithm>
#include <cstddef>
#include <stdexcept>

#include "kernels/cpu/highway_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/recurrent.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
//
#include "hwy/highway.h"
#include "kernels/cpu/elementwise-inl.h"
#include "kernels/cpu/softmax-inl.h"

HWY_BEFORE_NAMESPACE();
namespace memwall::cpu::HWY_NAMESPACE {

struct StateF32 {
  using Element = float;
  static HWY_INLINE VF input(VF v) { return v; }
  static HWY_INLINE VF load(const Element* p) { return hn::LoadU(F32(), p); }
  static HWY_INLINE VF load_first(const Element* p, std::size_t n) { return HWY_NAMESPACE::load_first(p, n); }
  static HWY_INLINE void store(VF v, Element* p) { hn::StoreU(v, F32(), p); }
  static HWY_INLINE void store_first(VF v, Element* p, std::size_t n) { HWY_NAMESPACE::store_first(v, p, n); }
};

struct StateBf16 {
  using Element = std::uint16_t;
  // Whatever an update is computed from, so that no stored element needs a look for NaN.
  static HWY_INLINE VF input(VF v) { return canonical(v); }
  static HWY_INLINE VF load(const Element* p) { return load_bf16(p); }
  static HWY_INLINE VF load_first(const Element* p, std::size_t n) { return load_first_bf16(p, n); }
  static HWY_INLINE void store(VF v, Element* p) { hn::StoreU(round_bf16(v), U16Half(), p); }
  static HWY_INLINE void store_first(VF v, Element* p, std::size_t n) {
    store_first_u16(round_bf16(v), p, n);
  }
};

// R rows of one head from `row` on, n elements of each; R > 1 shares the loads of k and q, and its sums hide
// one another's latency. The delta rule's first pass leaves its rows in the first-level cache for the second.
//
// Memory is the bound, of the writing back: on Zen 4 (AVX-512, two threads, f32, 2.6 MB a launch, medians of
// 858 interleaved rounds) 1, 2, 4 and 8 rows at once took 149, 149, 149 and 148 us, with and without
// prefetching the rows after them into the first-level cache, while two threads on a cached state took 45.
template <class State, StateUpdate kUpdate, std::size_t R>
HWY_INLINE void update_rows(const Recurrence& op, std::size_t row, std::size_t n) {
  const F32 d;
  const std::size_t width = static_cast<std::size_t>(op.width);
  const std::size_t head = row / static_cast<std::size_t>(op.head_rows);
  const float* k = op.k + head * width;
  const float* q = op.q + head * width;
  auto* state = static_cast<typename State::Element*>(op.state) + row * width;
  const std::size_t whole = n / kLanes * kLanes;
  const std::size_t rest = n - whole;

  VF decay[R];  // of selective: the step
  VF value[R];  // what k is multiplied with
  for (std::size_t r = 0; r < R; ++r) {
    decay[r] = State::input(hn::Set(d, op.decay[kUpdate == StateUpdate::selective ? row + r : head]));
    value[r] = State::input(hn::Set(d, op.v[row + r]));
    if constexpr (kUpdate == StateUpdate::selective) value[r] = hn::Mul(decay[r], value[r]);
  }
  if constexpr (kUpdate == StateUpdate::delta) {
    VF dots[R];
    for (VF& dot : dots) dot = hn::Zero(d);
    for (std::size_t j = 0; j < whole; j += kLanes) {
      const VF kj = State::input(hn::LoadU(d, k + j));
      for (std::size_t r = 0; r < R; ++r)
        dots[r] = hn::MulAdd(State::load(state + r * width + j), kj, dots[r]);
    }
    if (rest != 0) {
      const VF kj = State::input(load_first(k + whole, rest));
      for (std::size_t r = 0; r < R; ++r)
        dots[r] = hn::MulAdd(State::load_first(state + r * width + whole, rest), kj, dots[r]);
    }
    const VF beta = State::input(hn::Set(d, op.beta[head]));
    for (std::size_t r = 0; r < R; ++r)
      value[r] = hn::Mul(beta, hn::NegMulAdd(decay[r], hn::SumOfLanes(d, dots[r]), value[r]));
  }

  VF sums[R];
  for (VF& sum : sums) sum = hn::Zero(d);
  const auto next = [&](VF s, VF rates, std::size_t r, VF kj) HWY_ATTR {
    VF factor = decay[r];
    if constexpr (kUpdate == StateUpdate::selective) factor = exp_nonpositive(hn::Mul(factor, rates));
    return hn::MulAdd(value[r], kj, hn::Mul(factor, s));
  };
  const std::uint16_t* rates = kUpdate == StateUpdate::selective ? op.rates + row * width : nullptr;
  VF a = hn::Zero(d);
  for (std::size_t j = 0; j < whole; j += kLanes) {
    const VF kj = State::input(hn::LoadU(d, k + j));
    const VF qj = hn::LoadU(d, q + j);
    for (std::size_t r = 0; r < R; ++r) {
      if constexpr (kUpdate == StateUpdate::selective) a = load_bf16(rates + r * width + j);
      const VF s = next(State::load(state + r * width + j), a, r, kj);
      State::store(s, state + r * width + j);
      sums[r] = hn::MulAdd(s, qj, sums[r]);
    }
  }
  if (rest != 0) {
    const VF kj = State::input(load_first(k + whole, rest));
    const VF qj = load_first(q + whole, rest);
    for (std::size_t r = 0; r < R; ++r) {
      if constexpr (kUpdate == StateUpdate::selective) a = load_first_bf16(rates + r * width + whole, rest);
      const VF s = next(State::load_first(state + r * width + whole, rest), a, r, kj);
      State::store_first(s, state + r * width + whole, rest);
      // A NaN or infinity of another lane's value times the padding's zero may not leak in.
      sums[r] = hn::Add(sums[r], hn::IfThenElseZero(hn::FirstN(d, rest), hn::Mul(s, qj)));
    }
  }
  for (std::size_t r = 0; r < R; ++r) op.y[row + r] = hn::GetLane(hn::SumOfLanes(d, sums[r]));
}

template <class State, StateUpdate kUpdate>
void update_range(const Recurrence& op, std::size_t first, std::size_t last) {
  constexpr std::size_t kRows = 4;
  const std::size_t width = static_cast<std::size_t>(op.width);
  const std::size_t head_rows = static_cast<std::size_t>(op.head_rows);
  const std::size_t whole_rows = static_cast<std::size_t>(op.elements) / width;
  std::size_t row = first;
  while (row < std::min(last, whole_rows)) {
    const std::size_t end = std::min({last, whole_rows, (row / head_rows + 1) * head_rows});
    for (; row + kRows <= end; row += kRows) update_rows<State, kUpdate, kRows>(op, row, width);
    for (; row < end; ++row) update_rows<State, kUpdate, 1>(op, row, width);
  }
  if (row < last) update_rows<State, kUpdate, 1>(op, row, static_cast<std::size_t>(op.elements) % width);
}

template <class State>
void update_stored(const Recurrence& op, std::size_t first, std::size_t last) {
  switch (op.update) {
    case StateUpdate::decay:
      return update_range<State, StateUpdate::decay>(op, first, last);
    case StateUpdate::delta:
      return update_range<State, StateUpdate::delta>(op, first, last);
    case StateUpdate::selective:
      return update_range<State, StateUpdate::selective>(op, first, last);
  }
}

void update_state(const Recurrence& op, std::size_t first, std::size_t last) {
  if (op.element_bytes == 2) return update_stored<StateBf16>(op, first, last);
  update_stored<StateF32>(op, first, last);
}

void short_conv(const ShortConv& op, std::size_t first, std::size_t last) {
  const F32 d;
  const std::size_t channels = static_cast<std::size_t>(op.channels);
  const std::size_t kept = static_cast<std::size_t>(op.taps) - 1;
  std::size_t c = first;
  for (; c + kLanes <= last; c += kLanes) {
    const VF x = hn::LoadU(d, op.x + c);
    VF sum = hn::Mul(x, load_bf16(op.weights + kept * channels + c));
    std::uint16_t* state = op.state + c;
    for (std::size_t t = 0; t < kept; ++t, state += channels) {
      const VU16 old = hn::LoadU(U16Half(), state);
      sum = hn::MulAdd(widen_bf16(old), load_bf16(op.weights + t * channels + c), sum);
      const VU16 newer = t + 1 < kept ? hn::LoadU(U16Half(), state + channels) : round_bf16(canonical(x));
      hn::StoreU(newer, U16Half(), state);
    }
    hn::StoreU(sum, d, op.y + c);
  }
  const std::size_t rest = last - c;
  if (rest == 0) return;
  const VF x = load_first(op.x + c, rest);
  VF sum = hn::Mul(x, load_first_bf16(op.weights + kept * channels + c, rest));
  std::uint16_t* state = op.state + c;
  for (std::size_t t = 0; t < kept; ++t, state += channels) {
    const VF old = load_first_bf16(state, rest);
    sum = hn::MulAdd(old, load_first_bf16(op.weights + t * channels + c, rest), sum);
    if (t + 1 < kept) {
      std::copy_n(state + channels, rest, state);
    } else {
      store_first_u16(round_bf16(canonical(x)), state, rest);
    }
  }
  store_first(sum, op.y + c, rest);
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace memwall::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace memwall::cpu {

HWY_EXPORT(update_state);
HWY_EXPORT(short_conv);

std::int64_t recurrence_rows(const Recurrence& op) { return (op.elements + op.width - 1) / op.width; }

void update_state(const Recurrence& op, std::int64_t first, std::int64_t last) {
  if ((op.element_bytes != 2 && op.element_bytes != 4) || op.elements < 1 || op.width < 1 ||
      op.head_rows < 1) {
    throw std::invalid_argument("a recurrence needs a state of 2- or 4-byte elements, in rows and heads");
  }
  if (first < 0 || first > last || last > recurrence_rows(op))
    throw std::invalid_argument("a recurrence's rows are out of range");
  if (first < last) {
    HWY_DYNAMIC_DISPATCH(update_state)
    (op, static_cast<std::size_t>(first), static_cast<std::size_t>(last));
  }
}

void short_conv(const ShortConv& op, std::int64_t first, std::int64_t last) {
  if (op.taps < 1 || first < 0 || first > last || last > op.channels)
    throw std::invalid_argument("a convolution needs a tap and channels in range");
  if (first < last) {
    HWY_DYNAMIC_DISPATCH(short_conv)
    (op, static_cast<std::size_t>(first), static_cast<std::size_t>(last));
  }
}

}  // namespace memwall::cpu
#endif  // HWY_ONCE
