// The elementwise ops and the embedding's gather on the CPU. Their operands are activations: they stay in
// the cache from one op to the next, and here from one launch to the next.
#include "bench/cpu_elementwise.h"

#include <algorithm>
#include <cmath>

#include "bench/cpu_data.h"
#include "bench/cpu_operands.h"
#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/pack.h"

namespace memwall {
namespace {

class ElementwiseOperands final : public Operands {
 public:
  ElementwiseOperands(const ElementwiseWork& work, std::int64_t tokens, CpuContext& context,
                      std::uint64_t seed)
      : work_(work),
        context_(context),
        rows_(tokens * work.rows_per_token),
        activations_(context.activations.with_room(element_count() * work.inputs, element_count())),
        weight_(random_bf16(static_cast<std::size_t>(work.width), seed + 2)),
        bias_(work.weights > work.width ? random_bf16(static_cast<std::size_t>(work.width), seed + 3)
                                        : std::vector<std::uint16_t>()),
        shares_(static_cast<std::size_t>(work.inputs), 1.0F / static_cast<float>(work.inputs)) {
    for (std::int64_t i = 0; i < work.width / 2; ++i) {
      cosines_.push_back(std::cos(0.01F * static_cast<float>(i)));
      sines_.push_back(std::sin(0.01F * static_cast<float>(i)));
    }
  }

  void launch(std::size_t, std::int64_t) override {
    a_ = activations_->inputs();
    b_ = work_.inputs == 2 ? a_ + element_count() : nullptr;
    y_ = activations_->outputs();
    // A sequence's row can be split where no element needs its row's others.
    constexpr std::int64_t kGrain = 16;  // 64 bytes of y
    if (work_.function == ElementwiseFunction::activate || work_.function == ElementwiseFunction::add) {
      split_rows(
          context_.pool, rows_ * work_.width, 1,
          [&](std::int64_t first, std::int64_t last) { elements(first, last); }, kGrain);
    } else {
      split_rows(context_.pool, rows_, work_.width,
                 [&](std::int64_t first, std::int64_t last) { rows(first, last); });
    }
  }

  double cold_bytes(std::int64_t) const override { return 0; }
  double flops(std::int64_t) const override {
    return static_cast<double>(rows_ * work_.width) * static_cast<double>(work_.flops_per_element);
  }

  Check check(std::size_t variant) override {
    std::fill_n(activations_->outputs(), element_count(), std::nanf(""));
    // Rotary works in place.
    const std::vector<float> before(activations_->inputs(),
                                    activations_->inputs() + element_count() * work_.inputs);
    launch(variant, 0);
    Comparison comparison;
    const float* result = work_.function == ElementwiseFunction::rotary ? a_ : y_;
    for (const std::int64_t row : sample_indices(rows_, 3)) {
      for (const std::int64_t i : sample_indices(work_.width, 32)) {
        const double reference = reference_value(before, row, i);
        const double value = static_cast<double>(result[row * work_.width + i]);
        comparison.add(value, reference, 2e-5 * (1 + std::abs(reference)));
      }
    }
    return comparison.result();
  }

 private:
  std::int64_t element_count() const { return rows_ * work_.width; }

  cpu::Activation activation() const {
    switch (work_.activation) {
      case ActivationKind::gelu:
        return cpu::Activation::gelu;
      case ActivationKind::relu:
        return cpu::Activation::relu;
      case ActivationKind::silu:
        break;
    }
    return cpu::Activation::silu;
  }

  void elements(std::int64_t first, std::int64_t last) {
    if (work_.function == ElementwiseFunction::add) return cpu::add_f32(a_, b_, y_, first, last);
    cpu::activate(activation(), a_, b_, 1, y_, first, last);
  }

  void rows(std::int64_t first, std::int64_t last) {
    switch (work_.function) {
      case ElementwiseFunction::rms_norm:
        return cpu::rms_norm(a_, weight_.data(), work_.width, y_, first, last);
      case ElementwiseFunction::layer_norm:
        return cpu::layer_norm(a_, weight_.data(), bias_.empty() ? nullptr : bias_.data(), work_.width, y_,
                               first, last);
      case ElementwiseFunction::rotary:
        return cpu::rotary(a_, cosines_.data(), sines_.data(), 1, work_.width, first, last);
      case ElementwiseFunction::activate:
      case ElementwiseFunction::add:
        return elements(first * work_.width, last * work_.width);
      case ElementwiseFunction::combine:
        return cpu::combine(a_, shares_.data(), work_.inputs, work_.width, y_, first, last);
    }
  }

  double reference_value(const std::vector<float>& before, std::int64_t row, std::int64_t i) const {
    const float* a = before.data();
    const float* b = work_.inputs == 2 ? a + element_count() : nullptr;
    const auto at = [&](const float* v, std::int64_t r, std::int64_t c) {
      return static_cast<double>(v[r * work_.width + c]);
    };
    const auto bf16 = [&](const std::vector<std::uint16_t>& v) {
      return static_cast<double>(cpu::bf16_to_f32(v[static_cast<std::size_t>(i)]));
    };
    const double x = work_.function == ElementwiseFunction::combine ? 0 : at(a, row, i);
    double sum = 0;
    double squares = 0;
    switch (work_.function) {
      case ElementwiseFunction::rms_norm:
        for (std::int64_t c = 0; c < work_.width; ++c) squares += at(a, row, c) * at(a, row, c);
        return x / std::sqrt(squares / static_cast<double>(work_.width) + 1e-6) * bf16(weight_);
      case ElementwiseFunction::layer_norm: {
        for (std::int64_t c = 0; c < work_.width; ++c) sum += at(a, row, c);
        const double mean = sum / static_cast<double>(work_.width);
        for (std::int64_t c = 0; c < work_.width; ++c)
          squares += (at(a, row, c) - mean) * (at(a, row, c) - mean);
        const double deviation = std::sqrt(squares / static_cast<double>(work_.width) + 1e-5);
        return (x - mean) / deviation * bf16(weight_) + (bias_.empty() ? 0 : bf16(bias_));
      }
      case ElementwiseFunction::rotary: {
        const std::int64_t half = work_.width / 2;
        if (i >= 2 * half) return x;
        const auto angle = static_cast<std::size_t>(i % half);
        const double c = static_cast<double>(cosines_[angle]);
        const double s = static_cast<double>(sines_[angle]);
        return i < half ? x * c - at(a, row, i + half) * s : at(a, row, i - half) * s + x * c;
      }
      case ElementwiseFunction::activate: {
        double y = std::max(x, 0.0);
        if (work_.activation == ActivationKind::silu) y = x / (1 + std::exp(-x));
        if (work_.activation == ActivationKind::gelu) {
          y = 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
        }
        return b == nullptr ? y : y * at(b, row, i);
      }
      case ElementwiseFunction::add:
        return x + at(b, row, i);
      case ElementwiseFunction::combine:
        for (std::int64_t k = 0; k < work_.inputs; ++k) {
          sum += static_cast<double>(shares_[static_cast<std::size_t>(k)]) * at(a, row * work_.inputs + k, i);
        }
        return sum;
    }
    return std::nan("");
  }

  ElementwiseWork work_;
  CpuContext& context_;
  std::int64_t rows_;
  std::shared_ptr<Activations> activations_;
  float* a_ = nullptr;  // of the launch under way
  float* b_ = nullptr;
  float* y_ = nullptr;
  std::vector<std::uint16_t> weight_;
  std::vector<std::uint16_t> bias_;
  std::vector<float> shares_;
  std::vector<float> cosines_;
  std::vector<float> sines_;
};

class EmbeddingOperands final : public Operands {
 public:
  EmbeddingOperands(const EmbeddingWork& work, std::int64_t tokens, CpuContext& context, std::uint64_t seed)
      : work_(work),
        context_(context),
        rows_(embedding_rows_held(work)),
        tokens_(tokens),
        table_(static_cast<std::size_t>(storage_bytes(work.format, rows_, work.width))),
        activations_(context.activations.with_room(0, tokens * work.width)) {
    fill_random_weights(context.pool, work.format, rows_, work.width, table_.data(), seed);
    context.huge_share = table_.huge_share();
    std::uint64_t state = seed;
    for (std::int64_t i = 0; i < tokens * kTurns; ++i) {
      state = state * 6364136223846793005ULL + 1442695040888963407ULL;  // Knuth's MMIX generator
      ids_.push_back(static_cast<std::int32_t>((state >> 33) % static_cast<std::uint64_t>(rows_)));
    }
  }

  void launch(std::size_t, std::int64_t turn) override {
    const std::int32_t* ids = ids_.data() + (turn % kTurns) * tokens_;
    split_rows(context_.pool, tokens_, work_.width, [&](std::int64_t first, std::int64_t last) {
      cpu::gather_rows(work_.format, table_.data(), ids, work_.width, activations_->outputs(), first, last);
    });
  }
  double cold_bytes(std::int64_t) const override { return 0; }
  double flops(std::int64_t) const override { return 0; }

  Check check(std::size_t variant) override {
    const float* y = activations_->outputs();
    std::fill_n(activations_->outputs(), tokens_ * work_.width, std::nanf(""));
    launch(variant, 0);
    Comparison comparison;
    std::vector<float> row(static_cast<std::size_t>(work_.width));
    for (const std::int64_t token : sample_indices(tokens_, 4)) {
      const std::int64_t id = ids_[static_cast<std::size_t>(token)];
      cpu::unpack_row(work_.format, table_.data() + id * storage_bytes(work_.format, 1, work_.width),
                      work_.width, row.data());
      for (std::size_t i = 0; i < row.size(); ++i) {
        comparison.add(static_cast<double>(y[static_cast<std::size_t>(token * work_.width) + i]),
                       static_cast<double>(row[i]), 1e-30);
      }
    }
    return comparison.result();
  }

 private:
  static constexpr std::int64_t kTurns = 64;
  EmbeddingWork work_;
  CpuContext& context_;
  std::int64_t rows_;
  std::int64_t tokens_;
  HugeBuffer table_;
  std::shared_ptr<Activations> activations_;
  std::vector<std::int32_t> ids_;
};

}  // namespace

std::unique_ptr<Operands> place_elementwise(const ElementwiseWork& work, std::int64_t tokens,
                                            CpuContext& context, std::uint64_t seed) {
  return std::make_unique<ElementwiseOperands>(work, tokens, context, seed);
}

std::unique_ptr<Operands> place_embedding(const EmbeddingWork& work, std::int64_t tokens, CpuContext& context,
                                          std::uint64_t seed) {
  return std::make_unique<EmbeddingOperands>(work, tokens, context, seed);
}

}  // namespace memwall
