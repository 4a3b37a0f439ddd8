// The BLAS at the same work as our kernels: the project's threads, each with its own call.
#include "bench/cpu_data.h"
#include "bench/memory.h"
#include "bench/paired.h"
#include "kernels/cpu/blas.h"

namespace memwall::benchmarks {
namespace {

class BlasOperands final : public Operands {
 public:
  BlasOperands(std::int64_t out, std::int64_t in, std::int64_t rows, CpuContext& context, std::int64_t copies)
      : out_(out),
        in_(in),
        rows_(rows),
        context_(context),
        copies_(copies),
        weights_(static_cast<std::size_t>(copies * out * in) * sizeof(float)),
        x_(random_floats(static_cast<std::size_t>(rows * in), 2)),
        y_(static_cast<std::size_t>(rows * out)) {
    const Format f32{FormatKind::f32, 0, false};
    for (std::int64_t copy = 0; copy < copies; ++copy) {
      fill_random_weights(context.pool, f32, out, in, weights_.data() + copy * storage_bytes(f32, out, in),
                          static_cast<std::uint64_t>(copy));
    }
  }

  void launch(std::size_t, std::int64_t turn) override {
    const float* w = weights_.as<float>() + turn % copies_ * out_ * in_;
    context_.pool.split(out_, kGrain, [&](int, std::int64_t first, std::int64_t last) {
      if (rows_ == 1)
        return cpu::sgemv(last - first, in_, w + first * in_, in_, x_.data(), y_.data() + first);
      cpu::sgemm(true, rows_, last - first, in_, x_.data(), in_, w + first * in_, in_, y_.data() + first,
                 out_);
    });
  }

  double cold_bytes(std::int64_t) const override { return 4.0 * static_cast<double>(out_ * in_); }
  double flops(std::int64_t) const override { return 2.0 * static_cast<double>(out_ * in_ * rows_); }

  Check check(std::size_t variant) override {
    launch(variant, 0);
    Comparison comparison;
    for (const std::int64_t row : sample_indices(rows_, 4)) {
      const std::vector<float> x(x_.begin() + row * in_, x_.begin() + (row + 1) * in_);
      for (const std::int64_t out : sample_indices(out_, 16)) {
        const float* w = weights_.as<float>() + out * in_;
        const ReferenceDot reference = reference_dot(std::vector<float>(w, w + in_), x, 0);
        comparison.add(static_cast<double>(y_[static_cast<std::size_t>(row * out_ + out)]), reference.value,
                       reference.tolerance);
      }
    }
    return comparison.result();
  }

 private:
  static constexpr std::int64_t kGrain = 16;  // of outputs: a line, and a panel of ours

  std::int64_t out_;
  std::int64_t in_;
  std::int64_t rows_;
  CpuContext& context_;
  std::int64_t copies_;
  HugeBuffer weights_;
  std::vector<float> x_;
  std::vector<float> y_;
};

}  // namespace

std::unique_ptr<Operands> place_blas(std::int64_t out, std::int64_t in, std::int64_t rows,
                                     CpuContext& context, std::int64_t copies) {
  return std::make_unique<BlasOperands>(out, in, rows, context, copies);
}

}  // namespace memwall::benchmarks
