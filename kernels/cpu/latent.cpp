#include "kernels/cpu/latent.h"

#include <algorithm>
#include <cstddef>
#include <stdexcept>

#include "kernels/cpu/attention_shape.h"
#include "kernels/cpu/highway_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/latent.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
//
#include "hwy/highway.h"
#include "kernels/cpu/attention_rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace memwall::cpu::HWY_NAMESPACE {

template <class Kv>
void decode_latents(const LatentAttention& op, std::int64_t splits, std::int64_t first, std::int64_t last,
                    float* scratch, float* partials) {
  const std::int64_t width = op.rank + op.rope;
  const Partials partial{op.heads, op.rank};
  QueryGroup g;
  g.group = static_cast<std::size_t>(op.heads);
  g.depth = static_cast<std::size_t>(width);
  g.width = static_cast<std::size_t>(op.rank);
  g.padded = static_cast<std::size_t>(partial.padded());
  g.q = line_aligned(scratch);
  g.scores = g.q + round_up(op.heads * width, kPad);
  float* own = g.scores + g.group * kTokens;
  RowScratch room;
  room.rows = own + partial.floats();
  room.stride = static_cast<std::size_t>(round_up(width, kPad));
  room.panels = room.rows + kTokens * room.stride;

  const std::int64_t row_bytes = kv_vector_bytes(op.kv, width);
  for (std::int64_t task = first; task < last; ++task) {
    const std::int64_t seq = task / splits;
    float* state = splits > 1 ? partials + task * partial.floats() : own;
    g.accumulators = partial.accumulators(state);
    g.maxima = partial.maxima(state);
    g.sums = partial.sums(state);
    begin_group(g, op.q + seq * op.heads * width, op.scale);
    TokenRows rows;
    rows.data = static_cast<const std::uint8_t*>(op.cache) + seq * op.entries * row_bytes;
    rows.bytes = static_cast<std::size_t>(row_bytes);
    rows.width = g.depth;
    rows.chosen = op.chosen == nullptr ? nullptr : op.chosen + seq * op.top_k;
    const TokenRange range = part_of(0, op.read_entries(), splits, task % splits);
    attend_rows<Kv>(g, rows, nullptr, static_cast<std::size_t>(range.first),
                    static_cast<std::size_t>(range.last), room);
    if (splits == 1) partial.merge(state, 1, 0, op.heads, op.y + seq * op.heads * op.rank);
  }
}

void latent_decode(const LatentAttention& op, std::int64_t splits, std::int64_t first, std::int64_t last,
                   float* scratch, float* partials) {
  with_kv_type(op.kv, [&](auto kv) HWY_ATTR {
    decode_latents<decltype(kv)>(op, splits, first, last, scratch, partials);
  });
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace memwall::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace memwall::cpu {

HWY_EXPORT(latent_decode);

namespace {

void check_latent(const LatentAttention& op) {
  if (op.entries < 1 || op.heads < 1 || op.rank < 1 || op.rope < 0 || op.top_k < 0) {
    throw std::invalid_argument("latent attention needs entries, heads and a rank");
  }
}

}  // namespace

std::int64_t LatentAttention::read_entries() const {
  return chosen == nullptr ? entries : std::min(entries, top_k);
}

void latent_decode(const LatentAttention& op, std::int64_t splits, std::int64_t first, std::int64_t last,
                   float* scratch, float* partials) {
  check_latent(op);
  HWY_DYNAMIC_DISPATCH(latent_decode)(op, splits, first, last, scratch, partials);
}

std::int64_t latent_scratch_floats(const LatentAttention& op) {
  check_latent(op);
  const std::int64_t width = op.rank + op.rope;
  return kPad + round_up(op.heads * width, kPad) + op.heads * kDecodeTokens +
         Partials{op.heads, op.rank}.floats() + 2 * kDecodeTokens * round_up(width, kPad);
}

std::int64_t latent_partial_floats(const LatentAttention& op, std::int64_t splits) {
  check_latent(op);
  return splits <= 1 ? 0 : op.seqs * splits * Partials{op.heads, op.rank}.floats();
}

void latent_merge(const LatentAttention& op, std::int64_t splits, std::int64_t first, std::int64_t last,
                  const float* partials) {
  check_latent(op);
  if (splits <= 1) return;
  const Partials partial{op.heads, op.rank};
  for (std::int64_t head = first; head < last; ++head) {
    const std::int64_t own = head % op.heads;
    partial.merge(partials + head / op.heads * splits * partial.floats(), splits, own, own + 1,
                  op.y + head * op.rank);
  }
}

}  // namespace memwall::cpu
#endif  // HWY_ONCE
