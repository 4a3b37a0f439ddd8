// Mixture of experts on a GPU: one launch over all experts that a step draws, each one's matrix read once for
// up to 16 tokens, and again (from the L2, mostly) for each 16 more.
#include <algorithm>
#include <stdexcept>

#include "bench/cpu_data.h"
#include "bench/cpu_operands.h"
#include "bench/routing.h"
#include "cuda/linear.h"
#include "cuda/operands.h"
#include "cuda/scalar_values.h"
#include "format/checked.h"

namespace memwall::cuda {
namespace {

// The tables of all draws, in device memory before the first launch: each expert's matrix within its layer,
// and its tokens. Which layer it is only the launch knows.
class DrawTables {
 public:
  DrawTables(const ExpertDraws& draws, bool whole_layers, std::int64_t rows, Gpu& gpu) : rows_(rows) {
    std::vector<ExpertEntry> entries;
    std::vector<std::uint32_t> tokens;
    for (const Routing& routing : draws.draws()) {
      first_entry_.push_back(static_cast<std::int64_t>(entries.size()));
      std::uint32_t first = 0;
      std::uint32_t index = 0;
      for (const RoutedExpert& expert : routing.experts) {
        const auto count = static_cast<std::uint32_t>(expert.tokens.size());
        entries.push_back({whole_layers ? static_cast<std::uint32_t>(expert.id) : index++, first, count});
        for (const std::int64_t token : expert.tokens) tokens.push_back(static_cast<std::uint32_t>(token));
        first += count;
      }
    }
    entries_ = uploaded(gpu, entries);
    tokens_ = uploaded(gpu, tokens);
  }

  const ExpertEntry* entries(std::size_t draw) const {
    return entries_.as<ExpertEntry>() + first_entry_[draw];
  }
  const std::uint32_t* tokens(std::size_t draw) const {
    return tokens_.as<std::uint32_t>() + static_cast<std::int64_t>(draw) * rows_;
  }

 private:
  std::int64_t rows_;
  std::vector<std::int64_t> first_entry_;
  Buffer entries_;
  Buffer tokens_;
};

class ExpertOperands final : public Operands {
 public:
  ExpertOperands(const ExpertWork& work, std::int64_t tokens, bool whole_layers, Context& context,
                 std::int64_t copies, std::uint64_t seed)
      : work_(work),
        context_(context),
        tokens_(tokens),
        draws_(tokens, work.total, work.per_token, whole_layers, copies, seed),
        weights_(work.each, context, copies, seed),
        tables_(draws_, whole_layers, rows(), context.gpu),
        x_(context.inputs.with_room(context.gpu, scalar_type(weights_.layout().activations),
                                    checked_mul(tokens, work.each.in))),
        y_(context.outputs.with_room(context.gpu, output_bytes())) {
    const GpuProperties& gpu = context.gpu.properties();
    for (std::size_t i = 0; i < draws_.draws().size(); ++i) {
      const Routing& routing = draws_.draws()[i];
      std::size_t most = 1;
      for (const RoutedExpert& expert : routing.experts) most = std::max(most, expert.tokens.size());
      LinearLaunch launch = expert_launch(weights_.layout(), routing.touched(),
                                          static_cast<std::int64_t>(most), gpu.arch, gpu.multiprocessors);
      LinearParams& p = launch.params;
      p.segments[0] = weights_.segment(0, y_->data());
      p.x = x_->data();
      p.entries = tables_.entries(i);
      p.tokens = tables_.tokens(i);
      p.matrix_stride = weights_.stride();
      p.bias_stride = weights_.stride() / activation_bytes(p.segments[0].bias_type);
      p.matrices = static_cast<std::uint32_t>(copies);
      launches_.push_back(launch);
    }
  }

  void launch(std::size_t, std::int64_t turn) override {
    LinearLaunch& launch = launches_[draws_.draw(turn)];
    launch.params.matrix_offset = static_cast<std::uint32_t>(draws_.first_matrix(turn));
    context_.gpu.launch(launch);
  }

  double cold_bytes(std::int64_t turn) const override { return touched(turn) * weights_.bytes(); }
  const ExpertDraws* draws() const override { return &draws_; }
  double touched(std::int64_t turn) const override {
    return static_cast<double>(draws_.routing(turn).touched());
  }
  double padding_bytes(std::int64_t turn) const override { return touched(turn) * weights_.padding(); }
  double flops(std::int64_t) const override { return linear_flops(work_.each, rows()); }

  // The first and the last token of each expert.
  Check check(std::size_t variant) override {
    constexpr std::int64_t kTurn = 1;
    const ActivationType type = weights_.layout().activations;
    poison(context_.gpu, y_->data(), output_bytes());
    launch(variant, kTurn);
    const std::vector<float> x =
        download_activations(context_.gpu, type, x_->data(), tokens_ * work_.each.in);
    const std::vector<float> y =
        download_activations(context_.gpu, type, y_->data(), rows() * work_.each.out);
    const Routing& routing = draws_.routing(kTurn);
    Comparison comparison;
    std::int64_t first = 0;
    for (std::size_t i = 0; i < routing.experts.size(); ++i) {
      const std::vector<std::int64_t>& tokens_of = routing.experts[i].tokens;
      const auto count = static_cast<std::int64_t>(tokens_of.size());
      for (const std::int64_t out : sample_indices(work_.each.out, 16)) {
        const std::int64_t matrix = draws_.matrix(kTurn, i);
        const std::vector<float> row = weights_.row(matrix, out);
        const auto bias = static_cast<double>(weights_.bias(matrix, out));
        for (const std::int64_t t : sample_indices(count, 2)) {
          const auto from = x.begin() + tokens_of[static_cast<std::size_t>(t)] * work_.each.in;
          const ReferenceDot reference = reference_dot(row, {from, from + work_.each.in}, bias);
          const float value = y[static_cast<std::size_t>((first + t) * work_.each.out + out)];
          comparison.add(static_cast<double>(value), reference.value,
                         reference.tolerance + rounding_tolerance(type, reference.value));
        }
      }
      first += count;
    }
    return comparison.result();
  }

 private:
  std::int64_t rows() const { return checked_mul(tokens_, work_.per_token); }
  std::int64_t output_bytes() const {
    return checked_mul(checked_mul(rows(), work_.each.out), activation_bytes(weights_.layout().activations));
  }

  ExpertWork work_;
  Context& context_;
  std::int64_t tokens_;
  ExpertDraws draws_;
  PlacedWeights weights_;
  DrawTables tables_;
  std::shared_ptr<Buffer> x_;
  std::shared_ptr<Buffer> y_;
  std::vector<LinearLaunch> launches_;  // a draw's
};

}  // namespace

std::vector<Variant> variants_of(const ExpertWork& work, const OpTask& task, Context&) {
  constexpr std::int64_t kMostExperts = 65535;  // the grid's y
  const bool few = average_expert_rows(work, task.workload.rows()) <= kMostLinearColumns;
  if (!few || !PlacedWeights::supports(work.each) || work.total > kMostExperts) return {};
  return {{"grouped gemv", 0}};
}

Footprint footprint_of(const ExpertWork& work, const OpTask& task, Context&) {
  const std::int64_t tokens = task.workload.rows();
  const std::int64_t rows = checked_mul(tokens, work.per_token);
  const std::int64_t each = activation_bytes(linear_layout(work.each.format, 1, work.each.in).activations);
  Footprint footprint;
  footprint.copy_bytes = PlacedWeights::copy_bytes(work.each);
  // x, y, and the draws' tables: a token and at most an entry a row, for each of 32 draws.
  constexpr std::int64_t kTable = 32 * static_cast<std::int64_t>(sizeof(ExpertEntry) + sizeof(std::uint32_t));
  footprint.fixed_bytes =
      checked_add(checked_mul(checked_mul(tokens, work.each.in), each),
                  checked_mul(rows, checked_add(checked_mul(work.each.out, each), kTable)));
  footprint.least_copies = task.whole_layers ? work.total : std::min(work.total, rows);
  return footprint;
}

std::unique_ptr<Operands> place(const ExpertWork& work, const OpTask& task, Context& context,
                                std::int64_t copies, std::uint64_t seed) {
  return std::make_unique<ExpertOperands>(work, task.workload.rows(), task.whole_layers, context, copies,
                                          seed);
}

}  // namespace memwall::cuda
