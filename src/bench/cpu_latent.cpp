// The decode of latent attention on the CPU, absorbed: the step's new latent written into the cache, then
// attention over it.
#include "bench/cpu_latent.h"

#include <algorithm>

#include "bench/cpu_cache.h"
#include "bench/cpu_operands.h"
#include "format/checked.h"
#include "kernels/cpu/attention.h"
#include "kernels/cpu/latent.h"

namespace memwall {
namespace {

struct LatentShape {
  LatentShape(const LatentWork& work, const Workload& workload, int workers)
      : state(work.state),
        seqs(workload.batch),
        held(entries_kept(state, workload.context)),
        read(state.top_k > 0 ? std::min(held, state.top_k) : held),
        splits(cpu::attention_splits(seqs, read, workers)),
        latents{{work.kv, cpu::KvOrder::rows, state.rank + state.rope}, seqs, held} {}

  bool sparse() const { return read < held; }
  // A head's queries and keys were of this width before they were absorbed.
  double scale() const {
    const std::int64_t width = state.d_nope > 0 ? state.d_nope + state.rope : state.rank + state.rope;
    return 1 / std::sqrt(static_cast<double>(width));
  }

  // Without operands.
  cpu::LatentAttention op() const {
    cpu::LatentAttention op;
    op.kv = latents.layout.format;
    op.seqs = seqs;
    op.entries = held;
    op.heads = state.heads;
    op.rank = state.rank;
    op.rope = state.rope;
    op.scale = static_cast<float>(scale());
    op.top_k = sparse() ? read : 0;
    return op;
  }

  LatentState state;
  std::int64_t seqs;
  std::int64_t held;
  std::int64_t read;
  std::int64_t splits;
  CacheShape latents;
};

class LatentOperands final : public Operands {
 public:
  LatentOperands(const LatentWork& work, const Workload& workload, CpuContext& context, std::int64_t copies,
                 std::uint64_t seed)
      : shape_(work, workload, context.pool.size()),
        cost_(cost_of(work, workload)),
        context_(context),
        cache_(context, shape_.latents, copies, shape_.splits, seed),
        activations_(
            context.activations.with_room(rows() * shape_.latents.layout.width, rows() * shape_.state.rank)),
        partials_(static_cast<std::size_t>(cpu::latent_partial_floats(shape_.op(), shape_.splits))) {
    if (shape_.sparse()) chosen_ = draw_tokens(shape_.seqs, 0, shape_.held, shape_.read, seed + 13);
    scratch_.assign(static_cast<std::size_t>(context.pool.size()),
                    std::vector<float>(static_cast<std::size_t>(cpu::latent_scratch_floats(shape_.op()))));
  }

  void launch(std::size_t, std::int64_t turn) override {
    cpu::LatentAttention op = shape_.op();
    op.cache = cache_.head(turn, 0);
    op.q = activations_->inputs();
    op.y = activations_->outputs();
    if (shape_.sparse()) op.chosen = chosen_.data();
    // Where an entry stands for several tokens, one step in so many completes it.
    if (turn % shape_.state.every == 0) cache_.append(turn);
    context_.pool.split(op.seqs * shape_.splits, 1, [&](int worker, std::int64_t first, std::int64_t last) {
      cpu::latent_decode(op, shape_.splits, first, last, scratch_[static_cast<std::size_t>(worker)].data(),
                         partials_.data());
    });
    if (shape_.splits == 1) return;
    context_.pool.split(rows(), 1, [&](int, std::int64_t first, std::int64_t last) {
      cpu::latent_merge(op, shape_.splits, first, last, partials_.data());
    });
  }

  double cold_bytes(std::int64_t) const override { return cost_.kv_bytes(); }
  double flops(std::int64_t) const override { return cost_.flops; }

  Check check(std::size_t variant) override {
    const std::int64_t turn = cache_.count() - 1;
    std::fill_n(activations_->outputs(), rows() * shape_.state.rank, std::nanf(""));
    launch(variant, turn);
    Comparison comparison;
    const cpu::KvLayout& layout = shape_.latents.layout;
    for (const std::int64_t row : sample_indices(rows(), 5)) {
      const std::int64_t seq = row / shape_.state.heads;
      const std::byte* latents = cache_.head(turn, seq);
      const ReferenceAttention reference{.keys = layout,
                                         .k = latents,
                                         .values = layout,
                                         .v = latents,
                                         .width = shape_.state.rank,
                                         .q = activations_->inputs() + row * layout.width,
                                         .scale = shape_.scale()};
      std::vector<std::int32_t> tokens = token_range(0, shape_.held);
      if (shape_.sparse()) {
        tokens.assign(chosen_.begin() + seq * shape_.read, chosen_.begin() + (seq + 1) * shape_.read);
      }
      reference.compare(comparison, tokens, activations_->outputs() + row * shape_.state.rank);
    }
    return comparison.result();
  }

 private:
  std::int64_t rows() const { return shape_.seqs * shape_.state.heads; }

  LatentShape shape_;
  Cost cost_;
  CpuContext& context_;
  CacheCopies cache_;
  std::shared_ptr<Activations> activations_;
  std::vector<float> partials_;
  std::vector<std::int32_t> chosen_;
  std::vector<std::vector<float>> scratch_;
};

}  // namespace

std::vector<Variant> latent_variants(const LatentWork& work, const Workload& workload) {
  if (!cpu::has_kv(work.kv)) return {};
  if (workload.phase == Phase::decode) return {{"flash", 0}};
  if (!has_latent_prefill(work.state, workload)) return {};
  return {{"blas", 0}};
}

Footprint latent_footprint(const LatentWork& work, const Workload& workload, int workers) {
  if (workload.phase == Phase::prefill) return latent_prefill_footprint(work, workload, workers);
  constexpr std::int64_t kFloat = 4;
  const LatentShape shape(work, workload, workers);
  const std::int64_t width = shape.latents.layout.width;
  const std::int64_t q_and_y =
      checked_mul(checked_mul(shape.seqs, shape.state.heads), checked_add(width, shape.state.rank));
  const std::int64_t floats =
      checked_add(q_and_y, checked_add(checked_mul(cpu::latent_scratch_floats(shape.op()), workers),
                                       cpu::latent_partial_floats(shape.op(), shape.splits)));
  const std::int64_t chosen = shape.sparse() ? checked_mul(shape.seqs, shape.read) : 0;
  Footprint footprint;
  footprint.copy_bytes = shape.latents.bytes();
  footprint.fixed_bytes = checked_mul(checked_add(floats, chosen), kFloat) + kv_vector_bytes(work.kv, width);
  return footprint;
}

std::unique_ptr<Operands> place_latent(const LatentWork& work, const Workload& workload, CpuContext& context,
                                       std::int64_t copies, std::uint64_t seed) {
  if (workload.phase == Phase::prefill) return place_latent_prefill(work, workload, context, copies, seed);
  return std::make_unique<LatentOperands>(work, workload, context, copies, seed);
}

}  // namespace memwall
