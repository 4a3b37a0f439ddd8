// The indexer of sparse attention, a decode step on a GPU: the step's new key written into the cache, the
// scores of all keys, and the choice of the best. A prompt's is not measured.
#include "kernels/cuda/indexer.h"

#include <algorithm>
#include <cmath>

#include "bench/cpu_cache.h"
#include "cuda/cache.h"
#include "cuda/operands.h"
#include "format/checked.h"

namespace memwall::cuda {
namespace {

// DeepSeek-V3.2's index_topk. The work does not tell; the choice reads the scores whatever their number.
constexpr std::int64_t kChosen = 2048;

struct Plan {
  Plan(const IndexerWork& work, const Workload& workload, const GpuProperties& gpu)
      : every(work.state.every) {
    const std::int64_t keys = entries_kept(work.state, workload.context);
    shape = {*kv_element(work.kv), workload.batch, work.state.heads,
             work.state.width,     keys,           std::min(keys, kChosen)};
    if (has_kernel = indexer_takes(shape, gpu.arch); has_kernel)
      launch = indexer_launch(shape, gpu.multiprocessors);
    activation = activation_type(shape.element);
  }

  std::int64_t copy_bytes() const {
    return CacheCopies::copy_bytes(shape.element, shape.width, shape.seqs, shape.keys);
  }
  // Elements: queries, then the new keys.
  std::int64_t queries() const { return shape.seqs * shape.heads * shape.width; }
  std::int64_t inputs() const { return checked_mul(checked_mul(shape.seqs, shape.heads + 1), shape.width); }
  std::int64_t scores() const { return checked_mul(shape.seqs, shape.keys); }
  std::int64_t choices() const { return checked_mul(shape.seqs, shape.count); }
  std::int64_t weights() const { return checked_mul(shape.seqs, shape.heads); }

  std::int64_t every;
  IndexerShape shape;
  bool has_kernel = false;
  IndexerLaunch launch;
  ScalarType activation = ScalarType::f16;
};

class IndexerOperands final : public Operands {
 public:
  IndexerOperands(const IndexerWork& work, const Workload& workload, Context& context, std::int64_t copies,
                  std::uint64_t seed)
      : plan_(work, workload, context.gpu.properties()),
        cost_(cost_of(work, workload)),
        gpu_(context.gpu),
        keys_(context, plan_.shape.element, plan_.shape.width, plan_.shape.seqs, plan_.shape.keys, copies,
              seed),
        inputs_(context.inputs.with_room(gpu_, plan_.activation, plan_.inputs())),
        weights_(gpu_, plan_.weights() * 4),
        scores_(gpu_, plan_.scores() * 4),
        chosen_(gpu_, plan_.choices() * 4) {
    fill_random(gpu_, weights_.data(), weights_.bytes(), kFloat32, seed + 3);
  }

  void launch(std::size_t, std::int64_t turn) override {
    IndexerLaunch launch = plan_.launch;
    IndexerParams& p = launch.params;
    p.cache = keys_.of(turn);
    p.q = inputs_->data();
    // Where a key stands for several tokens, one step in so many completes it.
    if (turn % plan_.every == 0)
      p.new_key = inputs_->data() + plan_.queries() * scalar_bytes(plan_.activation);
    p.weights = weights_.as<float>();
    p.scores = scores_.as<float>();
    p.chosen = chosen_.as<std::int32_t>();
    gpu_.launch(launch);
    gpu_.launch(choose_launch(launch));
  }

  double cold_bytes(std::int64_t) const override { return cost_.kv_bytes(); }
  double flops(std::int64_t) const override { return cost_.flops; }
  double padding_bytes(std::int64_t) const override {
    const double rows = static_cast<double>(plan_.shape.seqs) * static_cast<double>(plan_.shape.keys);
    return rows * static_cast<double>(plan_.launch.params.pitch) - cost_.kv_read_bytes;
  }

  Check check(std::size_t variant) override {
    const IndexerShape& s = plan_.shape;
    const std::int64_t turn = keys_.count() - 1;
    poison(gpu_, scores_.data(), scores_.bytes());
    poison(gpu_, chosen_.data(), chosen_.bytes());
    launch(variant, turn);
    Comparison comparison;
    for (const std::int64_t seq : sample_indices(s.seqs, 3)) {
      const auto scores = download<float>(gpu_, scores_.as<float>() + seq * s.keys, s.keys);
      compare_scores(comparison, turn, seq, scores);
      compare_choice(comparison, seq, scores);
    }
    return comparison.result();
  }

 private:
  void compare_scores(Comparison& comparison, std::int64_t turn, std::int64_t seq,
                      const std::vector<float>& scores) const {
    const IndexerShape& s = plan_.shape;
    const std::vector<double> q =
        download_values(gpu_, plan_.activation, inputs_->data(), seq * s.heads * s.width, s.heads * s.width);
    const auto weights = download<float>(gpu_, weights_.as<float>() + seq * s.heads, s.heads);
    const std::int64_t pitch = kv_pitch(s.element, s.width);
    for (const std::int64_t key : sample_indices(s.keys, 100)) {
      const HostRows row(gpu_, s.element, s.width, keys_.of(turn) + (seq * s.keys + key) * pitch, 1);
      double sum = 0;
      double magnitudes = 0;
      for (std::int64_t head = 0; head < s.heads; ++head) {
        double dot = 0;
        double own = 0;
        for (std::int64_t i = 0; i < s.width; ++i) {
          const double product = q[static_cast<std::size_t>(head * s.width + i)] * row.at(0, i);
          dot += product;
          own += std::abs(product);
        }
        const auto weight = static_cast<double>(weights[static_cast<std::size_t>(head)]);
        sum += weight * std::max(0.0, dot);
        magnitudes += std::abs(weight) * own;
      }
      comparison.add(static_cast<double>(scores[static_cast<std::size_t>(key)]), sum,
                     dot_tolerance(s.width + s.heads, magnitudes));
    }
  }

  // The choice against a full sort of the scores it was made from.
  void compare_choice(Comparison& comparison, std::int64_t seq, const std::vector<float>& scores) const {
    const IndexerShape& s = plan_.shape;
    const auto chosen = download<std::int32_t>(gpu_, chosen_.as<std::int32_t>() + seq * s.count, s.count);
    std::vector<std::int32_t> order = token_range(0, s.keys);
    std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
      return scores[static_cast<std::size_t>(a)] > scores[static_cast<std::size_t>(b)];
    });
    order.resize(chosen.size());
    std::sort(order.begin(), order.end());
    comparison.add(order == chosen ? 0 : 1, 0, 0.5);
  }

  Plan plan_;
  Cost cost_;
  Gpu& gpu_;
  CacheCopies keys_;
  std::shared_ptr<Buffer> inputs_;
  Buffer weights_;
  Buffer scores_;
  Buffer chosen_;
};

}  // namespace

std::vector<Variant> variants_of(const IndexerWork& work, const OpTask& task, Context& context) {
  if (task.workload.phase != Phase::decode || !kv_element(work.kv)) return {};
  if (!Plan(work, task.workload, context.gpu.properties()).has_kernel) return {};
  return {{"mma, then a radix choice", 0}};
}

Footprint footprint_of(const IndexerWork& work, const OpTask& task, Context& context) {
  const Plan plan(work, task.workload, context.gpu.properties());
  const std::int64_t words = checked_add(checked_add(plan.scores(), plan.choices()), plan.weights());
  Footprint footprint;
  footprint.copy_bytes = plan.copy_bytes();
  footprint.fixed_bytes =
      checked_add(checked_mul(words, 4), checked_mul(plan.inputs(), scalar_bytes(plan.activation)));
  return footprint;
}

std::unique_ptr<Operands> place(const IndexerWork& work, const OpTask& task, Context& context,
                                std::int64_t copies, std::uint64_t seed) {
  return std::make_unique<IndexerOperands>(work, task.workload, context, copies, seed);
}

}  // namespace memwall::cuda
