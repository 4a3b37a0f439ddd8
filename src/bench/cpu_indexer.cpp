// The indexer of sparse attention on the CPU: the step's new key written into the cache, the scores of all
// keys, and the choice of the best.
#include <algorithm>

#include "bench/cpu_cache.h"
#include "bench/cpu_operands.h"
#include "format/checked.h"
#include "kernels/cpu/attention.h"
#include "kernels/cpu/indexer.h"

namespace memwall {
namespace {

// DeepSeek-V3.2's index_topk. The work does not tell; the choice reads the scores whatever their number.
constexpr std::int64_t kChosen = 2048;

struct IndexerShape {
  IndexerShape(const IndexerWork& work, const Workload& workload, int workers)
      : state(work.state),
        seqs(workload.batch),
        held(entries_kept(state, workload.context)),
        chosen(std::min(held, kChosen)),
        splits(cpu::attention_splits(seqs, held, workers)),
        keys{{work.kv, cpu::KvOrder::key_panels, state.width}, seqs, held} {}

  // Without operands.
  cpu::Indexer op() const {
    cpu::Indexer op;
    op.kv = keys.layout.format;
    op.seqs = seqs;
    op.keys = held;
    op.heads = state.heads;
    op.width = state.width;
    return op;
  }

  IndexerState state;
  std::int64_t seqs;
  std::int64_t held;
  std::int64_t chosen;
  std::int64_t splits;
  CacheShape keys;
};

class IndexerOperands final : public Operands {
 public:
  IndexerOperands(const IndexerWork& work, const Workload& workload, CpuContext& context, std::int64_t copies,
                  std::uint64_t seed)
      : shape_(work, workload, context.pool.size()),
        cost_(cost_of(work, workload)),
        context_(context),
        cache_(context, shape_.keys, copies, shape_.splits, seed),
        q_(random_floats(static_cast<std::size_t>(shape_.seqs * shape_.state.heads * shape_.state.width),
                         seed + 2)),
        weights_(random_floats(static_cast<std::size_t>(shape_.seqs * shape_.state.heads), seed + 3)),
        scores_(static_cast<std::size_t>(shape_.seqs * shape_.held)),
        order_(scores_.size() * 2),
        chosen_(static_cast<std::size_t>(shape_.seqs * shape_.chosen)) {
    scratch_.assign(static_cast<std::size_t>(context.pool.size()),
                    std::vector<float>(static_cast<std::size_t>(cpu::indexer_scratch_floats(shape_.op()))));
  }

  void launch(std::size_t, std::int64_t turn) override {
    cpu::Indexer op = shape_.op();
    op.cache = cache_.head(turn, 0);
    op.q = q_.data();
    op.weights = weights_.data();
    op.scores = scores_.data();
    // Where a key stands for several tokens, one step in so many completes it.
    if (turn % shape_.state.every == 0) cache_.append(turn);
    context_.pool.split(op.seqs * shape_.splits, 1, [&](int worker, std::int64_t first, std::int64_t last) {
      cpu::indexer_scores(op, shape_.splits, first, last, scratch_[static_cast<std::size_t>(worker)].data());
    });
    context_.pool.split(op.seqs, 1, [&](int, std::int64_t first, std::int64_t last) {
      for (std::int64_t seq = first; seq < last; ++seq) {
        cpu::choose_top(scores_.data() + seq * op.keys, op.keys, shape_.chosen,
                        order_.data() + seq * op.keys * 2, chosen_.data() + seq * shape_.chosen);
      }
    });
  }

  double cold_bytes(std::int64_t) const override { return cost_.kv_bytes(); }
  double flops(std::int64_t) const override { return cost_.flops; }

  Check check(std::size_t variant) override {
    const std::int64_t turn = cache_.count() - 1;
    std::fill(scores_.begin(), scores_.end(), std::nanf(""));
    std::fill(chosen_.begin(), chosen_.end(), -1);
    launch(variant, turn);
    Comparison comparison;
    for (std::int64_t seq = 0; seq < shape_.seqs; ++seq) {
      for (const std::int64_t key : sample_indices(shape_.held, 100)) compare(comparison, turn, seq, key);
      compare_choice(comparison, seq);
    }
    return comparison.result();
  }

 private:
  void compare(Comparison& comparison, std::int64_t turn, std::int64_t seq, std::int64_t key) const {
    const std::int64_t width = shape_.state.width;
    std::vector<float> values(static_cast<std::size_t>(width));
    cpu::read_kv(shape_.keys.layout, cache_.head(turn, seq), key, values.data());
    double sum = 0;
    double magnitudes = 0;
    for (std::int64_t head = seq * shape_.state.heads; head < (seq + 1) * shape_.state.heads; ++head) {
      double dot = 0;
      double own = 0;
      for (std::int64_t i = 0; i < width; ++i) {
        const double product = static_cast<double>(q_[static_cast<std::size_t>(head * width + i)]) *
                               static_cast<double>(values[static_cast<std::size_t>(i)]);
        dot += product;
        own += std::abs(product);
      }
      const double weight = static_cast<double>(weights_[static_cast<std::size_t>(head)]);
      sum += weight * std::max(0.0, dot);
      magnitudes += std::abs(weight) * own;
    }
    comparison.add(static_cast<double>(scores_[static_cast<std::size_t>(seq * shape_.held + key)]), sum,
                   dot_tolerance(width + shape_.state.heads, magnitudes));
  }

  // The choice against a full sort of the scores it was made from.
  void compare_choice(Comparison& comparison, std::int64_t seq) const {
    const float* scores = scores_.data() + seq * shape_.held;
    std::vector<std::int32_t> order = token_range(0, shape_.held);
    std::stable_sort(order.begin(), order.end(),
                     [&](std::int32_t a, std::int32_t b) { return scores[a] > scores[b]; });
    order.resize(static_cast<std::size_t>(shape_.chosen));
    std::sort(order.begin(), order.end());
    const bool same = std::equal(order.begin(), order.end(), chosen_.begin() + seq * shape_.chosen);
    comparison.add(same ? 0 : 1, 0, 0.5);
  }

  IndexerShape shape_;
  Cost cost_;
  CpuContext& context_;
  CacheCopies cache_;
  std::vector<float> q_;
  std::vector<float> weights_;
  std::vector<float> scores_;
  std::vector<std::uint32_t> order_;
  std::vector<std::int32_t> chosen_;
  std::vector<std::vector<float>> scratch_;
};

}  // namespace

// A prompt's tokens against all before them: not measured.
std::vector<Variant> indexer_variants(const IndexerWork& work, const Workload& workload) {
  if (workload.phase != Phase::decode || !cpu::has_kv(work.kv)) return {};
  return {{"panels", 0}};
}

Footprint indexer_footprint(const IndexerWork& work, const Workload& workload, int workers) {
  constexpr std::int64_t kWord = 4;
  constexpr std::int64_t kWordsAKey = 3;  // a score, and two to choose by
  const IndexerShape shape(work, workload, workers);
  const std::int64_t per_seq = checked_add(checked_mul(shape.state.heads, shape.state.width + 1),
                                           checked_add(checked_mul(kWordsAKey, shape.held), shape.chosen));
  const std::int64_t words = checked_add(checked_mul(shape.seqs, per_seq),
                                         checked_mul(cpu::indexer_scratch_floats(shape.op()), workers));
  Footprint footprint;
  footprint.copy_bytes = shape.keys.bytes();
  footprint.fixed_bytes = checked_mul(words, kWord) + kv_vector_bytes(work.kv, shape.state.width);
  return footprint;
}

std::unique_ptr<Operands> place_indexer(const IndexerWork& work, const Workload& workload,
                                        CpuContext& context, std::int64_t copies, std::uint64_t seed) {
  return std::make_unique<IndexerOperands>(work, workload, context, copies, seed);
}

}  // namespace memwall
