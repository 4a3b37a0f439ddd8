// Linears, routers and experts on the CPU.
#include <algorithm>
#include <random>

#include "bench/cpu_data.h"
#include "bench/cpu_elementwise.h"
#include "bench/cpu_operands.h"
#include "bench/routing.h"
#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/linear.h"

namespace memwall {
namespace {

// Outputs a thread takes at a time: 64 bytes of y, so that no two threads write one cache line.
constexpr std::int64_t kGrain = 16;

// Copies of one weight matrix, cold, and the panels the BLAS variant widens rows into.
class Weights {
 public:
  Weights(const LinearWork& work, CpuContext& context, std::int64_t copies, std::uint64_t seed)
      : work_(work),
        context_(context),
        copies_(copies),
        copy_bytes_(storage_bytes(work.format, work.out, work.in)),
        buffer_(static_cast<std::size_t>(copies * copy_bytes_)),
        bias_(work.bias ? random_floats(static_cast<std::size_t>(work.out), seed + 1) : std::vector<float>()),
        panels_(static_cast<std::size_t>(context.pool.size())) {
    for (std::int64_t copy = 0; copy < copies; ++copy) {
      fill_random_weights(context.pool, work.format, work.out, work.in, matrix(copy),
                          seed + static_cast<std::uint64_t>(copy) * 1000003);
    }
    context.huge_share = buffer_.huge_share();
  }

  std::byte* matrix(std::int64_t copy) const { return buffer_.data() + (copy % copies_) * copy_bytes_; }
  std::int64_t copies() const { return copies_; }
  double bytes() const {
    return static_cast<double>(copy_bytes_) +
           (work_.bias ? static_cast<double>(storage_bytes(work_.bias_format, 1, work_.out)) : 0);
  }

  cpu::Linear bind(std::int64_t copy, const float* x, std::int64_t rows, float* y) const {
    return {.format = work_.format,
            .weights = matrix(copy),
            .out = work_.out,
            .in = work_.in,
            .x = x,
            .rows = rows,
            .bias = work_.bias ? bias_.data() : nullptr,
            .y = y};
  }

  // One worker's outputs.
  void run(const cpu::Linear& op, bool blas, int worker, std::int64_t first, std::int64_t last) {
    if (!blas) return cpu::linear(op, first, last);
    std::vector<float>& panel = panels_[static_cast<std::size_t>(worker)];
    panel.resize(static_cast<std::size_t>(cpu::gemm_panel_floats(work_.in)));
    cpu::linear_blas(op, first, last, panel.data());
  }

  void compare(Comparison& comparison, std::int64_t copy, const float* x, const float* y,
               std::int64_t out) const {
    const std::int64_t row_bytes = storage_bytes(work_.format, 1, work_.in);
    const double bias = work_.bias ? static_cast<double>(bias_[static_cast<std::size_t>(out)]) : 0;
    const ReferenceDot reference =
        reference_dot(work_.format, matrix(copy) + out * row_bytes, work_.in, x, bias);
    comparison.add(static_cast<double>(y[out]), reference.value, reference.tolerance);
  }

  CpuContext& context() const { return context_; }
  const LinearWork& work() const { return work_; }

 private:
  LinearWork work_;
  CpuContext& context_;
  std::int64_t copies_;
  std::int64_t copy_bytes_;
  HugeBuffer buffer_;
  std::vector<float> bias_;
  std::vector<std::vector<float>> panels_;
};

double linear_flops(const LinearWork& work, std::int64_t rows) {
  const double out = static_cast<double>(work.out);
  return static_cast<double>(rows) * out * (2 * static_cast<double>(work.in) + (work.bias ? 1 : 0));
}

class LinearOperands : public Operands {
 public:
  LinearOperands(const LinearWork& work, std::int64_t rows, CpuContext& context, std::int64_t copies,
                 std::uint64_t seed)
      : weights_(work, context, copies, seed),
        rows_(rows),
        variants_(linear_variants(work, rows)),
        x_(random_floats(static_cast<std::size_t>(rows * work.in), seed + 2)),
        y_(static_cast<std::size_t>(rows * work.out)) {}

  void launch(std::size_t variant, std::int64_t turn) override {
    const cpu::Linear op = weights_.bind(turn, x_.data(), rows_, y_.data());
    const bool blas = variants_[variant].name == "blas";
    weights_.context().pool.split(op.out, kGrain, [&](int worker, std::int64_t first, std::int64_t last) {
      weights_.run(op, blas, worker, first, last);
    });
  }

  double cold_bytes(std::int64_t) const override { return weights_.bytes(); }
  double flops(std::int64_t) const override { return linear_flops(weights_.work(), rows_); }

  Check check(std::size_t variant) override {
    const std::int64_t turn = weights_.copies() - 1;
    std::fill(y_.begin(), y_.end(), std::nanf(""));  // an output left out must not pass for an old one
    launch(variant, turn);
    Comparison comparison;
    const LinearWork& work = weights_.work();
    for (const std::int64_t row : sample_indices(rows_, 4)) {
      for (const std::int64_t out : sample_indices(work.out, 64)) {
        weights_.compare(comparison, turn, x_.data() + row * work.in, y_.data() + row * work.out, out);
      }
    }
    return comparison.result();
  }

 protected:
  std::int64_t rows() const { return rows_; }
  const std::vector<float>& outputs() const { return y_; }
  CpuContext& context() const { return weights_.context(); }

 private:
  Weights weights_;
  std::int64_t rows_;
  std::vector<Variant> variants_;
  std::vector<float> x_;
  std::vector<float> y_;
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
      cpu::top_k_softmax(outputs().data(), work_.linear.out, work_.per_token, chosen_.data(), shares_.data(),
                         first, last);
    });
  }

 private:
  RouterWork work_;
  std::vector<std::int32_t> chosen_;
  std::vector<float> shares_;
};

// Gathered experts. The touched experts of a launch are consecutive matrices of a pool that rotates, so
// they are as cold as in a step that runs every layer in between, and as many as the routing touches.
class ExpertOperands final : public Operands {
 public:
  ExpertOperands(const ExpertWork& work, std::int64_t tokens, CpuContext& context, std::int64_t copies,
                 std::uint64_t seed)
      : work_(work),
        tokens_(tokens),
        variants_(linear_variants(work.each, average_expert_rows(work, tokens))),
        weights_(work.each, context, copies, seed),
        x_(random_floats(static_cast<std::size_t>(tokens * work.each.in), seed + 2)),
        gathered_(static_cast<std::size_t>(tokens * work.per_token * work.each.in)),
        y_(static_cast<std::size_t>(tokens * work.per_token * work.each.out)) {
    constexpr int kDraws = 32;
    std::mt19937_64 random(seed);
    for (int i = 0; i < kDraws; ++i)
      draws_.push_back(draw_routing(tokens, work.total, work.per_token, random));
  }

  void launch(std::size_t variant, std::int64_t turn) override {
    const Routing& routing = routing_of(turn);
    const std::int64_t in = work_.each.in;
    std::int64_t row = 0;
    for (const auto& tokens_of : routing.tokens_of) {
      for (const std::int64_t token : tokens_of) {
        std::copy_n(x_.begin() + token * in, in, gathered_.begin() + row * in);
        ++row;
      }
    }
    const bool blas = variants_[variant].name == "blas";
    weights_.context().pool.split(
        work_.each.out, kGrain, [&](int worker, std::int64_t first, std::int64_t last) {
          std::int64_t done = 0;
          for (std::size_t i = 0; i < routing.tokens_of.size(); ++i) {
            const auto rows = static_cast<std::int64_t>(routing.tokens_of[i].size());
            weights_.run(weights_.bind(matrix_of(turn, i), gathered_.data() + done * in, rows,
                                       y_.data() + done * work_.each.out),
                         blas, worker, first, last);
            done += rows;
          }
        });
  }

  double cold_bytes(std::int64_t turn) const override { return touched(turn) * weights_.bytes(); }
  double touched(std::int64_t turn) const override { return static_cast<double>(routing_of(turn).touched()); }
  double flops(std::int64_t) const override { return linear_flops(work_.each, tokens_ * work_.per_token); }

  Check check(std::size_t variant) override {
    std::fill(y_.begin(), y_.end(), std::nanf(""));
    launch(variant, 1);
    Comparison comparison;
    std::int64_t row = 0;
    const Routing& routing = routing_of(1);
    for (std::size_t i = 0; i < routing.tokens_of.size(); ++i) {
      const std::int64_t token = routing.tokens_of[i].front();
      for (const std::int64_t out : sample_indices(work_.each.out, 16)) {
        weights_.compare(comparison, matrix_of(1, i), x_.data() + token * work_.each.in,
                         y_.data() + row * work_.each.out, out);
      }
      row += static_cast<std::int64_t>(routing.tokens_of[i].size());
    }
    return comparison.result();
  }

 private:
  const Routing& routing_of(std::int64_t turn) const {
    return draws_[static_cast<std::size_t>(turn) % draws_.size()];
  }
  std::int64_t matrix_of(std::int64_t turn, std::size_t index) const {
    const std::int64_t most = std::min(work_.total, tokens_ * work_.per_token);
    return turn * most + static_cast<std::int64_t>(index);
  }

  ExpertWork work_;
  std::int64_t tokens_;
  std::vector<Variant> variants_;
  Weights weights_;
  std::vector<float> x_;
  std::vector<float> gathered_;
  std::vector<float> y_;
  std::vector<Routing> draws_;
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

std::unique_ptr<Operands> place_experts(const ExpertWork& work, std::int64_t tokens, CpuContext& context,
                                        std::int64_t copies, std::uint64_t seed) {
  return std::make_unique<ExpertOperands>(work, tokens, context, copies, seed);
}

}  // namespace memwall
