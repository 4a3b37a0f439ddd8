#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include "kernels/cpu/attention.h"
#include "kernels/cpu/attention_shape.h"
#include "kernels/cpu/blas.h"
#include "kernels/cpu/highway_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/attention_prefill.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
//
#include "hwy/highway.h"
#include "kernels/cpu/kv-inl.h"
#include "kernels/cpu/softmax-inl.h"

HWY_BEFORE_NAMESPACE();
namespace memwall::cpu::HWY_NAMESPACE {

// Scales n scores (n a multiple of kPad), takes exp(score - maximum) and returns their sum.
float soften(float* scores, std::size_t n, float scale) {
  const F32 d;
  const VF factor = hn::Set(d, scale);
  for (std::size_t i = 0; i < n; i += kLanes) {
    hn::StoreU(hn::Mul(factor, hn::LoadU(d, scores + i)), d, scores + i);
  }
  const float largest = max_of(scores, n);
  return exp_and_sum(scores, n, largest);
}

// `count` rows of a cache to f32, `width` floats apart; up to kPad floats after the last are written too.
void widen_rows(KvFormat format, const std::uint8_t* rows, std::size_t count, std::size_t width, float* out) {
  with_kv_type(format, [&](auto kv) HWY_ATTR {
    using Kv = decltype(kv);
    const std::size_t bytes = width * Kv::kBytes + (Kv::kScaled ? 2 : 0);
    for (std::size_t r = 0; r < count; ++r) widen_kv_row<Kv>(rows + r * bytes, width, out + r * width);
  });
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace memwall::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace memwall::cpu {

HWY_EXPORT(soften);
HWY_EXPORT(widen_rows);

namespace {

// Query rows a block. Of the scores computed only those above the diagonal are thrown away, kRows^2 / 2 a
// block, so a block much smaller than the context wastes little and is still enough for the BLAS.
constexpr std::int64_t kRows = 64;

// Tokens that some row of a block sees at most, rounded up.
std::int64_t widest_block(const Attention& op) {
  const std::int64_t reach = op.chunk > 0 ? op.chunk : op.window > 0 ? op.window : op.context;
  return round_up(std::min(op.context, reach + kRows - 1), kPad);
}

// A head's [context, width] cache as f32 takes that room; f32 itself takes none.
std::int64_t widened_floats(const Attention& op, std::int64_t width) {
  return op.kv == KvFormat::f32 ? 0 : op.context * width + kPad;
}

const float* widened(const Attention& op, const void* cache, std::int64_t kv_head, std::int64_t width,
                     float* room) {
  const KvLayout layout{op.kv, KvOrder::rows, width};
  if (op.kv == KvFormat::f32) return static_cast<const float*>(cache) + kv_head * op.context * width;
  HWY_DYNAMIC_DISPATCH(widen_rows)
  (op.kv, static_cast<const std::uint8_t*>(cache) + kv_head * layout.bytes(op.context),
   static_cast<std::size_t>(op.context), static_cast<std::size_t>(width), room);
  return room;
}

// Query rows [first, last) of one head; row strides of q and y are those of all heads together.
void attend(const Attention& op, std::int64_t first, std::int64_t last, const float* q, const float* k,
            const float* v, float* y, float* scores) {
  const std::int64_t low = first_seen(op, first);
  const std::int64_t tokens = last - low;
  const std::int64_t stride = round_up(tokens, kPad);
  const std::int64_t q_stride = op.heads * op.d_k;
  const std::int64_t y_stride = op.heads * op.d_v;
  const std::int64_t rows = last - first;
  sgemm(true, rows, tokens, op.d_k, q + first * q_stride, q_stride, k + low * op.d_k, op.d_k, scores, stride);

  float sums[kRows];
  const float scale = 1.0F / std::sqrt(static_cast<float>(op.d_k));
  for (std::int64_t r = 0; r < rows; ++r) {
    float* row = scores + r * stride;
    const std::int64_t token = first + r;
    const std::int64_t begin = first_seen(op, token) - low;
    std::fill(row, row + begin, -std::numeric_limits<float>::infinity());
    std::fill(row + (token + 1 - low), row + stride, -std::numeric_limits<float>::infinity());
    sums[r] = HWY_DYNAMIC_DISPATCH(soften)(row, static_cast<std::size_t>(stride), scale);
  }
  sgemm(false, rows, op.d_v, tokens, scores, stride, v + low * op.d_v, op.d_v, y + first * y_stride,
        y_stride);
  for (std::int64_t r = 0; r < rows; ++r) {
    float* row = y + (first + r) * y_stride;
    for (std::int64_t i = 0; i < op.d_v; ++i) row[i] /= sums[r];
  }
}

}  // namespace

std::int64_t prefill_scratch_floats(const Attention& op) {
  check_attention(op);
  return kRows * widest_block(op) + widened_floats(op, op.d_k) + widened_floats(op, op.d_v);
}

std::int64_t prefill_library_bytes(const Attention& op) {
  const std::int64_t tokens = widest_block(op);
  return std::max(blas_buffer_bytes(kRows, tokens, op.d_k), blas_buffer_bytes(kRows, op.d_v, tokens));
}

// A masked token's weight is an exact 0, but it is multiplied with its value all the same: an infinity or
// NaN in V reaches the rows of its block that do not see it, as it does in every BLAS-based attention.
void attention_prefill(const Attention& op, std::int64_t first, std::int64_t last, float* scratch) {
  check_attention(op);
  float* scores = scratch;
  float* k_room = scores + kRows * widest_block(op);
  float* v_room = k_room + widened_floats(op, op.d_k);
  const std::int64_t group = op.heads / op.kv_heads;
  for (std::int64_t task = first; task < last; ++task) {
    const std::int64_t sequence = task / op.heads;
    const std::int64_t head = task % op.heads;
    const std::int64_t kv_head = sequence * op.kv_heads + head / group;
    const float* k = widened(op, op.k, kv_head, op.d_k, k_room);
    const float* v = widened(op, op.v, kv_head, op.d_v, v_room);
    const float* q = op.q + (sequence * op.context * op.heads + head) * op.d_k;
    float* y = op.y + (sequence * op.context * op.heads + head) * op.d_v;
    for (std::int64_t row = 0; row < op.context; row += kRows) {
      attend(op, row, std::min(row + kRows, op.context), q, k, v, y, scores);
    }
  }
}

}  // namespace memwall::cpu
#endif  // HWY_ONCE
