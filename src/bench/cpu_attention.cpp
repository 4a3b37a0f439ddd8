// Attention on the CPU: the step's new K and V written into the cache, then attention over it.
#include <algorithm>

#include "bench/cpu_cache.h"
#include "bench/cpu_operands.h"
#include "bench/interrupt.h"
#include "format/checked.h"
#include "kernels/cpu/attention.h"

namespace memwall {
namespace {

// What a launch works on. In decode a cache holds the tokens that later steps can reach, no others.
struct AttentionShape {
  AttentionShape(const AttentionWork& w, const Workload& workload, int workers)
      : work(w),
        decode(workload.phase == Phase::decode),
        seqs(workload.batch),
        held(decode ? tokens_kept(work, workload.context) : workload.context),
        read(decode ? effective_context(work, workload.context) : held),
        sparse(decode && work.top_k > 0 && read < held),
        splits(decode ? cpu::attention_splits(seqs * work.kv_heads, read, workers) : 1),
        keys{{work.kv, rows() ? cpu::KvOrder::rows : cpu::KvOrder::key_panels, work.d_k},
             seqs * work.kv_heads,
             held},
        values{{work.kv, rows() ? cpu::KvOrder::rows : cpu::KvOrder::value_panels, work.d_v},
               seqs * work.kv_heads,
               held} {}

  bool rows() const { return sparse || !decode; }
  std::int64_t query_rows() const { return decode ? seqs : seqs * held; }

  // Without operands.
  cpu::Attention op() const {
    cpu::Attention op;
    op.kv = work.kv;
    op.seqs = seqs;
    op.context = held;
    op.heads = work.heads;
    op.kv_heads = work.kv_heads;
    op.d_k = work.d_k;
    op.d_v = work.d_v;
    if (!decode) {
      op.window = work.window;
      op.chunk = work.chunk;
    } else if (read == 0) {
      op.chunk = held;  // a chunk has just ended
    }
    op.top_k = sparse ? read : 0;
    return op;
  }
  std::int64_t scratch_floats() const {
    return decode ? cpu::attention_scratch_floats(op()) : cpu::prefill_scratch_floats(op());
  }

  AttentionWork work;
  bool decode;
  std::int64_t seqs;
  std::int64_t held;
  std::int64_t read;
  bool sparse;  // reads a choice of what is held
  std::int64_t splits;
  CacheShape keys;
  CacheShape values;
};

class AttentionOperands final : public Operands {
 public:
  AttentionOperands(const AttentionWork& work, const Workload& workload, CpuContext& context,
                    std::int64_t copies, std::uint64_t seed)
      : shape_(work, workload, context.pool.size()),
        cost_(cost_of(work, workload)),
        context_(context),
        copies_(copies),
        buffer_(static_cast<std::size_t>(copies * (shape_.keys.bytes() + shape_.values.bytes()))),
        activations_(
            context.activations.with_room(shape_.query_rows() * work.heads * work.d_k, output_count())),
        new_k_(random_cache_row(work.kv, work.d_k, seed + 11)),
        new_v_(random_cache_row(work.kv, work.d_v, seed + 12)),
        partials_(static_cast<std::size_t>(cpu::attention_partial_floats(shape_.op(), shape_.splits))) {
    for (std::int64_t copy = 0; copy < copies; ++copy) {
      const std::uint64_t own = seed + static_cast<std::uint64_t>(copy) * 1000003;
      fill_random_cache(context.pool, shape_.keys, shape_.splits, k_of(copy), own);
      fill_random_cache(context.pool, shape_.values, shape_.splits, v_of(copy), own + 7);
    }
    if (shape_.sparse) chosen_ = draw_tokens(shape_.seqs, 0, shape_.held, shape_.read, seed + 13);
    context.huge_share = buffer_.huge_share();
    scratch_.assign(static_cast<std::size_t>(context.pool.size()),
                    std::vector<float>(static_cast<std::size_t>(shape_.scratch_floats())));
  }

  void launch(std::size_t, std::int64_t turn) override {
    cpu::Attention op = shape_.op();
    op.k = k_of(turn);
    op.v = v_of(turn);
    op.q = activations_->inputs();
    op.y = activations_->outputs();
    if (shape_.sparse) op.chosen = chosen_.data();
    if (!shape_.decode) {
      context_.pool.split(op.seqs * op.heads, 1, [&](int worker, std::int64_t first, std::int64_t last) {
        // Heads that share keys have them laid out once; but an interrupt shall not wait for many long ones.
        constexpr std::int64_t kShort = 2048;
        const std::int64_t group = op.context <= kShort ? op.heads / op.kv_heads : 1;
        for (std::int64_t head = first; head < last && !interrupted();) {
          const std::int64_t next = std::min(last, (head / group + 1) * group);
          cpu::attention_prefill(op, head, next, scratch_of(worker));
          head = next;
        }
      });
      return;
    }
    const std::int64_t heads = op.seqs * op.kv_heads;
    context_.pool.split(heads * shape_.splits, 1, [&](int worker, std::int64_t first, std::int64_t last) {
      append(turn, first, last);
      cpu::attention_decode(op, shape_.splits, first, last, scratch_of(worker), partials_.data());
    });
    if (shape_.splits == 1) return;
    context_.pool.split(heads, 1, [&](int, std::int64_t first, std::int64_t last) {
      cpu::attention_merge(op, shape_.splits, first, last, partials_.data());
    });
  }

  double cold_bytes(std::int64_t) const override { return cost_.kv_bytes(); }
  double flops(std::int64_t) const override { return cost_.flops; }

  Check check(std::size_t variant) override {
    const std::int64_t turn = copies_ - 1;
    std::fill_n(activations_->outputs(), output_count(), std::nanf(""));
    launch(variant, turn);
    Comparison comparison;
    for (const std::int64_t row : sample_indices(shape_.query_rows(), 3)) {
      for (const std::int64_t head : sample_indices(shape_.work.heads, 3))
        compare(comparison, turn, row, head);
    }
    return comparison.result();
  }

 private:
  std::int64_t output_count() const { return shape_.query_rows() * shape_.work.heads * shape_.work.d_v; }
  std::byte* k_of(std::int64_t turn) const {
    return buffer_.data() + (turn % copies_) * (shape_.keys.bytes() + shape_.values.bytes());
  }
  std::byte* v_of(std::int64_t turn) const { return k_of(turn) + shape_.keys.bytes(); }
  float* scratch_of(int worker) { return scratch_[static_cast<std::size_t>(worker)].data(); }

  // Writes the newest token of those heads whose last part is among tasks [first, last), as a step does.
  void append(std::int64_t turn, std::int64_t first, std::int64_t last) {
    if (shape_.work.shared) return;
    for (std::int64_t head = first / shape_.splits; head < last / shape_.splits; ++head) {
      cpu::write_kv(shape_.keys.layout, k_of(turn) + head * shape_.keys.head_bytes(), shape_.held - 1,
                    new_k_.data());
      cpu::write_kv(shape_.values.layout, v_of(turn) + head * shape_.values.head_bytes(), shape_.held - 1,
                    new_v_.data());
    }
  }

  std::vector<std::int32_t> tokens_of(std::int64_t row) const {
    if (shape_.sparse) {
      const auto own = chosen_.begin() + row * shape_.read;
      return {own, own + shape_.read};
    }
    if (shape_.decode) return token_range(shape_.held - shape_.read, shape_.held);
    const AttentionWork& w = shape_.work;
    const std::int64_t newest = row % shape_.held;
    const std::int64_t oldest = w.chunk > 0    ? newest / w.chunk * w.chunk
                                : w.window > 0 ? std::max<std::int64_t>(0, newest + 1 - w.window)
                                               : 0;
    return token_range(oldest, newest + 1);
  }

  void compare(Comparison& comparison, std::int64_t turn, std::int64_t row, std::int64_t head) const {
    const AttentionWork& w = shape_.work;
    const std::int64_t seq = shape_.decode ? row : row / shape_.held;
    const std::int64_t kv_head = seq * w.kv_heads + head / (w.heads / w.kv_heads);
    const ReferenceAttention reference{.keys = shape_.keys.layout,
                                       .k = k_of(turn) + kv_head * shape_.keys.head_bytes(),
                                       .values = shape_.values.layout,
                                       .v = v_of(turn) + kv_head * shape_.values.head_bytes(),
                                       .width = w.d_v,
                                       .q = activations_->inputs() + (row * w.heads + head) * w.d_k,
                                       .scale = 1 / std::sqrt(static_cast<double>(w.d_k))};
    reference.compare(comparison, tokens_of(row), activations_->outputs() + (row * w.heads + head) * w.d_v);
  }

  AttentionShape shape_;
  Cost cost_;
  CpuContext& context_;
  std::int64_t copies_;
  HugeBuffer buffer_;
  std::shared_ptr<Activations> activations_;
  std::vector<std::byte> new_k_;
  std::vector<std::byte> new_v_;
  std::vector<float> partials_;
  std::vector<std::int32_t> chosen_;
  std::vector<std::vector<float>> scratch_;
};

}  // namespace

// A prompt's tokens each choose their own keys, which no BLAS gathers.
std::vector<Variant> attention_variants(const AttentionWork& work, const Workload& workload) {
  if (!cpu::has_kv(work.kv)) return {};
  if (workload.phase == Phase::decode) return {{"flash", 0}};
  if (work.top_k > 0 && work.top_k < workload.context) return {};
  return {{"blas", 0}};
}

Footprint attention_footprint(const AttentionWork& work, const Workload& workload, int workers) {
  constexpr std::int64_t kFloat = 4;
  const AttentionShape shape(work, workload, workers);
  const std::int64_t q_and_y =
      checked_mul(workload.rows(), checked_mul(work.heads, checked_add(work.d_k, work.d_v)));
  const std::int64_t floats =
      checked_add(q_and_y, checked_add(checked_mul(shape.scratch_floats(), workers),
                                       cpu::attention_partial_floats(shape.op(), shape.splits)));
  const std::int64_t chosen = shape.sparse ? checked_mul(shape.seqs, shape.read) : 0;
  Footprint footprint;
  footprint.copy_bytes = checked_add(shape.keys.bytes(), shape.values.bytes());
  footprint.fixed_bytes = checked_mul(checked_add(floats, chosen), kFloat) +
                          kv_vector_bytes(work.kv, work.d_k) + kv_vector_bytes(work.kv, work.d_v);
  return footprint;
}

std::unique_ptr<Operands> place_attention(const AttentionWork& work, const Workload& workload,
                                          CpuContext& context, std::int64_t copies, std::uint64_t seed) {
  return std::make_unique<AttentionOperands>(work, workload, context, copies, seed);
}

}  // namespace memwall
