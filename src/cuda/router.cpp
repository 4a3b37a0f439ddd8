// Routers on a GPU: the linear, then in one launch the choice of each token's best experts and the softmax
// over them.
#include <cmath>

#include "bench/cpu_operands.h"
#include "cuda/linear.h"
#include "cuda/operands.h"
#include "cuda/scalar_values.h"
#include "format/checked.h"
#include "kernels/cpu/elementwise.h"

namespace memwall::cuda {
namespace {

constexpr std::int64_t kWord = 4;  // of an index, and of a weight

LogitType logit_type(ScalarType type) {
  if (type == ScalarType::f32) return LogitType::f32;
  return type == ScalarType::f16 ? LogitType::f16 : LogitType::bf16;
}

std::int64_t choices(const RouterWork& work, std::int64_t rows) { return checked_mul(rows, work.per_token); }

class RouterOperands final : public Operands {
 public:
  RouterOperands(const RouterWork& work, std::int64_t rows, Context& context, std::int64_t copies,
                 std::uint64_t seed)
      : gpu_(context.gpu),
        work_(work),
        rows_(rows),
        linear_(work.linear, rows, context, copies, seed),
        inputs_(context.inputs.with_room(gpu_, scalar_type(linear_.weights().layout().activations),
                                         checked_mul(rows, work.linear.in))),
        logits_(context.outputs.with_room(gpu_, linear_.output_bytes())),
        indices_(gpu_, choices(work, rows) * kWord),
        shares_(gpu_, choices(work, rows) * kWord) {}

  void launch(std::size_t variant, std::int64_t turn) override {
    linear_.launch(variant, turn, inputs_->data(), logits_->data());
    RouterParams params;
    params.logits = logits_->data();
    params.indices = indices_.as<std::int32_t>();
    params.weights = shares_.as<float>();
    params.rows = rows_;
    params.experts = static_cast<std::int32_t>(work_.linear.out);
    params.per_token = static_cast<std::int32_t>(work_.per_token);
    gpu_.launch(router_launch(logit_type(linear_.output_type(variant)), params));
  }

  double cold_bytes(std::int64_t) const override { return linear_.weights().bytes(); }
  double padding_bytes(std::int64_t) const override { return linear_.weights().padding(); }
  double flops(std::int64_t) const override { return linear_flops(work_.linear, rows_); }

  Check check(std::size_t variant) override {
    const std::int64_t turn = linear_.weights().copies() - 1;
    linear_.forget(logits_->data());
    poison(gpu_, indices_.data(), indices_.bytes());
    poison(gpu_, shares_.data(), shares_.bytes());
    launch(variant, turn);
    Comparison comparison;
    linear_.compare(comparison, variant, turn, inputs_->data(), logits_->data());
    for (const std::int64_t row : sample_indices(rows_, 8)) compare_choice(comparison, variant, row);
    return comparison.result();
  }

 private:
  // Against the choice among the logits as they are stored.
  void compare_choice(Comparison& comparison, std::size_t variant, std::int64_t row) const {
    const std::int64_t experts = work_.linear.out;
    const std::int64_t k = work_.per_token;
    const ScalarType type = linear_.output_type(variant);
    const std::vector<double> logits =
        download_values(gpu_, type, logits_->data() + row * experts * scalar_bytes(type), experts);
    const std::vector<float> narrow(logits.begin(), logits.end());
    std::vector<std::int32_t> expected(static_cast<std::size_t>(k));
    std::vector<float> ignored(expected.size());
    cpu::top_k_softmax(narrow.data(), experts, k, expected.data(), ignored.data(), 0, 1);
    const auto indices = download<std::int32_t>(gpu_, indices_.as<std::int32_t>() + row * k, k);
    const auto shares = download<float>(gpu_, shares_.as<float>() + row * k, k);
    const auto exponential_of = [&](std::size_t rank) {
      const auto logit = [&](std::size_t r) { return logits[static_cast<std::size_t>(expected[r])]; };
      return std::exp(logit(rank) - logit(0));
    };
    double sum = 0;
    for (std::size_t rank = 0; rank < expected.size(); ++rank) sum += exponential_of(rank);
    for (std::size_t rank = 0; rank < expected.size(); ++rank) {
      comparison.add(indices[rank], expected[rank], 0.5);
      comparison.add(static_cast<double>(shares[rank]), exponential_of(rank) / sum, 1e-5);
    }
  }

  Gpu& gpu_;
  RouterWork work_;
  std::int64_t rows_;
  PlacedLinear linear_;
  std::shared_ptr<Buffer> inputs_;
  std::shared_ptr<Buffer> logits_;
  Buffer indices_;
  Buffer shares_;
};

}  // namespace

std::vector<Variant> variants_of(const RouterWork& work, const OpTask& task, Context& context) {
  if (!can_route(work.linear.out, work.per_token)) return {};
  const std::int64_t rows = linear_rows(work.linear, task.workload);
  return linear_variants(work.linear, rows, context);
}

Footprint footprint_of(const RouterWork& work, const OpTask& task, Context& context) {
  const std::int64_t rows = linear_rows(work.linear, task.workload);
  Footprint footprint = linear_footprint(work.linear, rows, context);
  footprint.fixed_bytes = checked_add(footprint.fixed_bytes, checked_mul(choices(work, rows), 2 * kWord));
  return footprint;
}

std::unique_ptr<Operands> place(const RouterWork& work, const OpTask& task, Context& context,
                                std::int64_t copies, std::uint64_t seed) {
  return std::make_unique<RouterOperands>(work, linear_rows(work.linear, task.workload), context, copies,
                                          seed);
}

}  // namespace memwall::cuda
