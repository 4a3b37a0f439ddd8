// Linears and routers on the CPU.
#include <algorithm>
#include <cmath>

#include "bench/cpu_elementwise.h"
#include "bench/cpu_weights.h"
#include "kernels/cpu/elementwise.h"

namespace memwall {
namespace {

class LinearOperands : public Operands {
 public:
  LinearOperands(const LinearWork& work, std::int64_t rows, CpuContext& context, std::int64_t copies,
                 std::uint64_t seed)
      : context_(context),
        weights_(work, context, copies, seed),
        rows_(rows),
        variants_(linear_variants(work, rows)),
        workspace_(work, {.total = rows, .batches = 1, .a_matrix = rows}, context.pool.size()),
        activations_(context.activations.with_room(rows * work.in, rows * work.out)),
        ops_(1) {}

  void launch(std::size_t variant, std::int64_t turn) override {
    ops_.front() = weights_.bind(turn, activations_->inputs(), rows_, outputs());
    workspace_.run(context_.pool, linear_kernel(variants_[variant]), ops_);
  }

  double cold_bytes(std::int64_t) const override { return weights_.bytes(); }
  double padding_bytes(std::int64_t) const override { return weights_.padding(); }
  double flops(std::int64_t) const override { return linear_flops(weights_.work(), rows_); }

  Check check(std::size_t variant) override {
    const std::int64_t turn = weights_.copies() - 1;
    // An output left out must not pass for an old one.
    std::fill_n(outputs(), rows_ * weights_.work().out, std::nanf(""));
    launch(variant, turn);
    Comparison comparison;
    const LinearWork& work = weights_.work();
    for (const std::int64_t row : sample_indices(rows_, 4)) {
      for (const std::int64_t out : sample_indices(work.out, 64)) {
        weights_.compare(comparison, linear_kernel(variants_[variant]), turn,
                         activations_->inputs() + row * work.in, outputs() + row * work.out, out);
      }
    }
    return comparison.result();
  }

 protected:
  std::int64_t rows() const { return rows_; }
  float* outputs() const { return activations_->outputs(); }
  CpuContext& context() const { return context_; }

 private:
  CpuContext& context_;
  PanelWeights weights_;
  std::int64_t rows_;
  std::vector<Variant> variants_;
  LinearWorkspace workspace_;
  std::shared_ptr<Activations> activations_;
  std::vector<cpu::Linear> ops_;
};

// The router's linear, then the softmax over each token's best experts.
class RouterOperands final : public LinearOperands {
 public:
  RouterOperands(const RouterWork& work, std::int64_t rows, CpuContext& context, std::int64_t copies,
                 std::uint64_t seed)
      : LinearOperands(work.linear, rows, context, copies, seed),
        work_(work),
        chosen_(static_cast<std::size_t>(rows * work.per_token)),
        shares_(chosen_.size()) {}

  void launch(std::size_t variant, std::int64_t turn) override {
    LinearOperands::launch(variant, turn);
    split_rows(context().pool, rows(), work_.linear.out, [&](std::int64_t first, std::int64_t last) {
      cpu::top_k_softmax(outputs(), work_.linear.out, work_.per_token, chosen_.data(), shares_.data(), first,
                         last);
    });
  }

 private:
  RouterWork work_;
  std::vector<std::int32_t> chosen_;
  std::vector<float> shares_;
};

}  // namespace

std::unique_ptr<Operands> place_linear(const LinearWork& work, std::int64_t rows, CpuContext& context,
                                       std::int64_t copies, std::uint64_t seed) {
  return std::make_unique<LinearOperands>(work, rows, context, copies, seed);
}

std::unique_ptr<Operands> place_router(const RouterWork& work, std::int64_t rows, CpuContext& context,
                                       std::int64_t copies, std::uint64_t seed) {
  return std::make_unique<RouterOperands>(work, rows, context, copies, seed);
}

}  // namespace memwall
