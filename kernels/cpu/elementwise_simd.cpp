// The elementwise operations with enough elements or arithmetic to need vectors: activations and adds.
#include <cstddef>
#include <cstring>

#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/highway_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/elementwise_simd.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
//
#include "hwy/highway.h"
#include "kernels/cpu/softmax-inl.h"

HWY_BEFORE_NAMESPACE();
namespace memwall::cpu::HWY_NAMESPACE {

// 1 / (1 + e^-x), by e^-|x| so that nothing overflows.
HWY_INLINE VF sigmoid(VF x) {
  const F32 d;
  const VF one = hn::Set(d, 1.0F);
  const VF e = exp_nonpositive(hn::Neg(hn::Abs(x)));
  const VF numerator = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), e, one);
  return hn::Div(numerator, hn::Add(one, e));
}

struct Silu {
  static HWY_INLINE VF apply(VF x) { return hn::Mul(x, sigmoid(x)); }
};

// x/2 (1 + tanh(u)) = x sigmoid(2u), u = sqrt(2/pi) (x + 0.044715 x^3): no cancellation where tanh is near
// -1.
struct Gelu {
  static HWY_INLINE VF apply(VF x) {
    const F32 d;
    const VF cubic = hn::MulAdd(hn::Mul(x, x), hn::Set(d, 0.044715F), hn::Set(d, 1.0F));
    const VF twice = hn::Mul(hn::Mul(hn::Set(d, 1.5957691216057308F), x), cubic);
    return hn::Mul(x, sigmoid(twice));
  }
};

struct Relu {
  // Not Max: which operand that gives for a NaN differs between instruction sets.
  static HWY_INLINE VF apply(VF x) {
    const F32 d;
    return hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Zero(d), x);
  }
};

template <class F>
void activate_all(const float* gate, const float* up, float* y, std::size_t count) {
  const F32 d;
  const auto step = [&](const float* g, const float* u, float* out) HWY_ATTR {
    VF v = F::apply(hn::LoadU(d, g));
    if (u != nullptr) v = hn::Mul(v, hn::LoadU(d, u));
    hn::StoreU(v, d, out);
  };
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) step(gate + i, up != nullptr ? up + i : nullptr, y + i);
  if (i == count) return;
  const std::size_t rest = count - i;
  float g[kLanes] = {};
  float u[kLanes] = {};
  std::memcpy(g, gate + i, rest * sizeof(float));
  if (up != nullptr) std::memcpy(u, up + i, rest * sizeof(float));
  step(g, up != nullptr ? u : nullptr, g);
  std::memcpy(y + i, g, rest * sizeof(float));
}

void activate(Activation activation, const float* gate, const float* up, float* y, std::size_t count) {
  switch (activation) {
    case Activation::silu:
      return activate_all<Silu>(gate, up, y, count);
    case Activation::gelu:
      return activate_all<Gelu>(gate, up, y, count);
    case Activation::relu:
      return activate_all<Relu>(gate, up, y, count);
  }
}

void add_f32(const float* a, const float* b, float* y, std::size_t count) {
  const F32 d;
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    hn::StoreU(hn::Add(hn::LoadU(d, a + i), hn::LoadU(d, b + i)), d, y + i);
  }
  for (; i < count; ++i) y[i] = a[i] + b[i];
}

void add_f16(const std::uint16_t* a, const std::uint16_t* b, std::uint16_t* y, std::size_t count) {
  const U16Half d16;
  const auto step = [&](const std::uint16_t* p, const std::uint16_t* q, std::uint16_t* out) HWY_ATTR {
    const VF sum = hn::Add(widen_f16(hn::LoadU(d16, p)), widen_f16(hn::LoadU(d16, q)));
    hn::StoreU(narrow_f16(sum), d16, out);
  };
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) step(a + i, b + i, y + i);
  if (i == count) return;
  const std::size_t rest = count - i;
  std::uint16_t p[kLanes] = {};
  std::uint16_t q[kLanes] = {};
  std::memcpy(p, a + i, rest * sizeof(p[0]));
  std::memcpy(q, b + i, rest * sizeof(q[0]));
  step(p, q, p);
  std::memcpy(y + i, p, rest * sizeof(p[0]));
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace memwall::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace memwall::cpu {

HWY_EXPORT(activate);
HWY_EXPORT(add_f32);
HWY_EXPORT(add_f16);

void activate(Activation activation, const float* gate, const float* up, std::int64_t width, float* y,
              std::int64_t first, std::int64_t last) {
  if (last <= first) return;
  const std::int64_t begin = first * width;
  HWY_DYNAMIC_DISPATCH(activate)
  (activation, gate + begin, up != nullptr ? up + begin : nullptr, y + begin,
   static_cast<std::size_t>((last - first) * width));
}

void add_f32(const float* a, const float* b, float* y, std::int64_t first, std::int64_t last) {
  if (last <= first) return;
  HWY_DYNAMIC_DISPATCH(add_f32)(a + first, b + first, y + first, static_cast<std::size_t>(last - first));
}

void add_f16(const std::uint16_t* a, const std::uint16_t* b, std::uint16_t* y, std::int64_t first,
             std::int64_t last) {
  if (last <= first) return;
  HWY_DYNAMIC_DISPATCH(add_f16)(a + first, b + first, y + first, static_cast<std::size_t>(last - first));
}

}  // namespace memwall::cpu
#endif  // HWY_ONCE
