// Mixture of experts on the CPU.
#include <algorithm>
#include <cmath>

#include "bench/cpu_weights.h"
#include "bench/routing.h"
#include "format/checked.h"

namespace memwall {
namespace {

// Gathered experts: as many as the routing touches.
class ExpertOperands final : public Operands {
 public:
  ExpertOperands(const ExpertWork& work, std::int64_t tokens, bool whole_layers, CpuContext& context,
                 std::int64_t copies, std::uint64_t seed)
      : work_(work),
        context_(context),
        tokens_(tokens),
        draws_(tokens, work.total, work.per_token, whole_layers, copies, seed),
        variants_(linear_variants(work.each, average_expert_rows(work, tokens))),
        weights_(work.each, context, copies, seed),
        workspace_(work.each, expert_rows(work, tokens), context.pool.size()),
        activations_(context.activations.with_room(tokens * work.each.in, output_count())),
        gathered_(static_cast<std::size_t>(tokens * work.per_token * work.each.in)) {}

  void launch(std::size_t variant, std::int64_t turn) override {
    const Routing& routing = draws_.routing(turn);
    const cpu::LinearKernel kernel = linear_kernel(variants_[variant]);
    const std::int64_t in = work_.each.in;
    const std::int64_t most = kernel == cpu::LinearKernel::dot ? cpu::kMostDotRows : tokens_;
    ops_.clear();
    std::int64_t row = 0;
    for (std::size_t i = 0; i < routing.experts.size(); ++i) {
      const std::vector<std::int64_t>& tokens_of = routing.experts[i].tokens;
      const auto rows = static_cast<std::int64_t>(tokens_of.size());
      for (std::int64_t first = 0; first < rows; first += most) {
        ops_.push_back(weights_.bind(draws_.matrix(turn, i), gathered_.data() + (row + first) * in,
                                     std::min(most, rows - first),
                                     activations_->outputs() + (row + first) * work_.each.out));
      }
      for (const std::int64_t token : tokens_of) {
        std::copy_n(activations_->inputs() + token * in, in, gathered_.begin() + row * in);
        ++row;
      }
    }
    workspace_.run(context_.pool, kernel, ops_);
  }

  double cold_bytes(std::int64_t turn) const override { return touched(turn) * weights_.bytes(); }
  double touched(std::int64_t turn) const override {
    return static_cast<double>(draws_.routing(turn).touched());
  }
  const ExpertDraws* draws() const override { return &draws_; }
  double padding_bytes(std::int64_t turn) const override { return touched(turn) * weights_.padding(); }
  double flops(std::int64_t) const override { return linear_flops(work_.each, tokens_ * work_.per_token); }

  Check check(std::size_t variant) override {
    std::fill_n(activations_->outputs(), output_count(), std::nanf(""));
    launch(variant, 1);
    Comparison comparison;
    std::int64_t row = 0;
    const Routing& routing = draws_.routing(1);
    for (std::size_t i = 0; i < routing.experts.size(); ++i) {
      const std::int64_t token = routing.experts[i].tokens.front();
      for (const std::int64_t out : sample_indices(work_.each.out, 16)) {
        weights_.compare(comparison, linear_kernel(variants_[variant]), draws_.matrix(1, i),
                         activations_->inputs() + token * work_.each.in,
                         activations_->outputs() + row * work_.each.out, out);
      }
      row += static_cast<std::int64_t>(routing.experts[i].tokens.size());
    }
    return comparison.result();
  }

 private:
  std::int64_t output_count() const { return tokens_ * work_.per_token * work_.each.out; }

  ExpertWork work_;
  CpuContext& context_;
  std::int64_t tokens_;
  ExpertDraws draws_;
  std::vector<Variant> variants_;
  PanelWeights weights_;
  LinearWorkspace workspace_;
  std::shared_ptr<Activations> activations_;
  std::vector<float> gathered_;
  std::vector<cpu::Linear> ops_;
};

}  // namespace

LinearRows expert_rows(const ExpertWork& work, std::int64_t tokens) {
  const std::int64_t rows = checked_mul(tokens, work.per_token);
  // An expert with more rows than the dot kernel takes is run in parts.
  const std::int64_t batches = std::min(work.total, rows) + rows / cpu::kMostDotRows;
  return {.total = rows, .batches = batches, .a_matrix = average_expert_rows(work, tokens)};
}

std::unique_ptr<Operands> place_experts(const ExpertWork& work, std::int64_t tokens, bool whole_layers,
                                        CpuContext& context, std::int64_t copies, std::uint64_t seed) {
  return std::make_unique<ExpertOperands>(work, tokens, whole_layers, context, copies, seed);
}

}  // namespace memwall
