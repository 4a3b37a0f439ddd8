// The prefill of latent attention on the CPU: the prompt's latents written into the cache, then plain
// attention over every head's keys and values, which kv_b_proj (a linear of its own) expanded from them.
#include <algorithm>

#include "bench/cpu_cache.h"
#include "bench/cpu_latent.h"
#include "bench/interrupt.h"
#include "format/checked.h"
#include "kernels/cpu/attention.h"

namespace memwall {
namespace {

// Without operands. Keys and values are activations, which are f32 on the CPU.
cpu::Attention expanded(const LatentState& state, const Workload& workload) {
  cpu::Attention op;
  op.kv = KvFormat::f32;
  op.seqs = workload.batch;
  op.context = workload.context;
  op.heads = state.heads;
  op.kv_heads = state.heads;
  op.d_k = state.d_nope + state.rope;
  op.d_v = state.d_v;
  op.window = state.window;
  return op;
}

CacheShape written(const LatentWork& work, const Workload& workload) {
  return {{work.kv, cpu::KvOrder::rows, work.state.rank + work.state.rope},
          workload.batch,
          entries_kept(work.state, workload.context)};
}

class LatentPrefillOperands final : public Operands {
 public:
  LatentPrefillOperands(const LatentWork& work, const Workload& workload, CpuContext& context,
                        std::int64_t copies, std::uint64_t seed)
      : op_(expanded(work.state, workload)),
        cost_(cost_of(work, workload)),
        context_(context),
        cache_(context, written(work, workload), copies, 1, seed),
        q_(random_floats(elements(op_.d_k), seed + 2)),
        k_(random_floats(elements(op_.d_k), seed + 3)),
        v_(random_floats(elements(op_.d_v), seed + 4)),
        y_(elements(op_.d_v)) {
    op_.q = q_.data();
    op_.k = k_.data();
    op_.v = v_.data();
    op_.y = y_.data();
    scratch_.assign(static_cast<std::size_t>(context.pool.size()),
                    std::vector<float>(static_cast<std::size_t>(cpu::prefill_scratch_floats(op_))));
  }

  void launch(std::size_t, std::int64_t turn) override {
    // Rows of all sequences lie one after the other.
    const std::int64_t rows = cache_.shape().heads * cache_.shape().tokens;
    context_.pool.split(rows, 1, [&](int, std::int64_t first, std::int64_t last) {
      for (std::int64_t t = first; t < last; ++t) cache_.write(turn, 0, t);
    });
    context_.pool.split(op_.seqs * op_.heads, 1, [&](int worker, std::int64_t first, std::int64_t last) {
      for (std::int64_t head = first; head < last && !interrupted(); ++head)
        cpu::attention_prefill(op_, head, head + 1, scratch_[static_cast<std::size_t>(worker)].data());
    });
  }

  double cold_bytes(std::int64_t) const override { return cost_.kv_bytes(); }
  double flops(std::int64_t) const override { return cost_.flops; }

  Check check(std::size_t variant) override {
    std::fill(y_.begin(), y_.end(), std::nanf(""));
    launch(variant, cache_.count() - 1);
    Comparison comparison;
    for (const std::int64_t row : sample_indices(op_.seqs * op_.context, 3)) {
      for (const std::int64_t head : sample_indices(op_.heads, 3)) {
        const std::int64_t first = (row / op_.context * op_.heads + head) * op_.context;
        const ReferenceAttention reference{
            .keys = {KvFormat::f32, cpu::KvOrder::rows, op_.d_k},
            .k = reinterpret_cast<const std::byte*>(k_.data() + first * op_.d_k),
            .values = {KvFormat::f32, cpu::KvOrder::rows, op_.d_v},
            .v = reinterpret_cast<const std::byte*>(v_.data() + first * op_.d_v),
            .width = op_.d_v,
            .q = q_.data() + (row * op_.heads + head) * op_.d_k,
            .scale = 1 / std::sqrt(static_cast<double>(op_.d_k))};
        const std::int64_t newest = row % op_.context;
        const std::int64_t oldest = op_.window > 0 ? std::max<std::int64_t>(0, newest + 1 - op_.window) : 0;
        reference.compare(comparison, token_range(oldest, newest + 1),
                          y_.data() + (row * op_.heads + head) * op_.d_v);
      }
    }
    return comparison.result();
  }

 private:
  std::size_t elements(std::int64_t width) const {
    return static_cast<std::size_t>(op_.seqs * op_.context * op_.heads * width);
  }

  cpu::Attention op_;
  Cost cost_;
  CpuContext& context_;
  CacheCopies cache_;
  std::vector<float> q_;
  std::vector<float> k_;
  std::vector<float> v_;
  std::vector<float> y_;
  std::vector<std::vector<float>> scratch_;
};

}  // namespace

// Latents that are never expanded, and a choice a token, are no plain attention.
bool has_latent_prefill(const LatentState& state, const Workload& workload) {
  return state.d_nope > 0 && state.d_v > 0 && state.every == 1 &&
         (state.top_k == 0 || state.top_k >= workload.context);
}

Footprint latent_prefill_footprint(const LatentWork& work, const Workload& workload, int workers) {
  constexpr std::int64_t kFloat = 4;
  const cpu::Attention op = expanded(work.state, workload);
  const CacheShape cache = written(work, workload);
  const std::int64_t q_k_v_y = checked_mul(checked_mul(workload.rows(), op.heads), 2 * (op.d_k + op.d_v));
  Footprint footprint;
  footprint.copy_bytes = cache.bytes();
  const std::int64_t each_worker = checked_mul(cpu::prefill_scratch_floats(op), kFloat);
  footprint.fixed_bytes =
      checked_add(checked_add(checked_mul(q_k_v_y, kFloat), checked_mul(each_worker, workers)),
                  kv_vector_bytes(work.kv, cache.layout.width));
  return footprint;
}

std::unique_ptr<Operands> place_latent_prefill(const LatentWork& work, const Workload& workload,
                                               CpuContext& context, std::int64_t copies, std::uint64_t seed) {
  return std::make_unique<LatentPrefillOperands>(work, workload, context, copies, seed);
}

}  // namespace memwall
