// The elementwise ops on a GPU. Their operands are activations: they stay in the L2 from one op to the next,
// and here from one launch to the next. All are bf16.
#include <algorithm>
#include <cmath>

#include "bench/cpu_data.h"
#include "bench/cpu_operands.h"
#include "cuda/operands.h"
#include "cuda/scalar_values.h"
#include "format/checked.h"
#include "kernels/cpu/pack.h"

namespace memwall::cuda {
namespace {

constexpr std::int64_t kActivation = 2;

// Sizes of an op's operands, in elements.
struct Sizes {
  Sizes(const ElementwiseWork& work, const Workload& workload)
      : rows(checked_mul(elementwise_tokens(work, workload), work.rows_per_token)),
        elements(checked_mul(rows, work.width)),
        // Where inputs lie one after the other, each begins aligned.
        input_stride(work.function == ElementwiseFunction::combine ? elements
                                                                   : checked_add(elements, 7) / 8 * 8),
        inputs(checked_mul(input_stride, work.inputs)),
        shares(work.function == ElementwiseFunction::combine ? checked_mul(rows, work.inputs) : 0) {}
  std::int64_t rows;
  std::int64_t elements;
  std::int64_t input_stride;
  std::int64_t inputs;
  std::int64_t shares;
};

ElementwiseActivation activation_of(ActivationKind kind) {
  switch (kind) {
    case ActivationKind::gelu:
      return ElementwiseActivation::gelu;
    case ActivationKind::relu:
      return ElementwiseActivation::relu;
    case ActivationKind::silu:
      break;
  }
  return ElementwiseActivation::silu;
}

class ElementwiseOperands final : public Operands {
 public:
  ElementwiseOperands(const ElementwiseWork& work, const Workload& workload, Context& context,
                      std::uint64_t seed)
      : work_(work),
        gpu_(context.gpu),
        sizes_(work, workload),
        inputs_(context.inputs.with_room(gpu_, ScalarType::bf16, sizes_.inputs)),
        outputs_(context.outputs.with_room(gpu_, sizes_.elements * kActivation)) {
    if (is_norm()) weight_ = random(work.width * kActivation, kBFloat16, seed + 2);
    if (is_norm() && work.weights > work.width) bias_ = random(work.width * kActivation, kBFloat16, seed + 3);
    if (sizes_.shares > 0) shares_ = random(sizes_.shares * 4, kFloat32, seed + 4);
    if (work.function == ElementwiseFunction::rotary) place_angles();
    launch_ = make_launch();
  }

  void launch(std::size_t, std::int64_t) override { gpu_.launch(launch_); }

  double cold_bytes(std::int64_t) const override { return 0; }
  double flops(std::int64_t) const override {
    return static_cast<double>(sizes_.elements) * static_cast<double>(work_.flops_per_element);
  }

  Check check(std::size_t variant) override {
    poison(gpu_, outputs_->data(), sizes_.elements * kActivation);
    // Rotary works in place, so what it reads of the rows compared is kept.
    const std::vector<std::int64_t> rows = sample_indices(sizes_.rows, 3);
    std::vector<std::vector<double>> before;
    for (const std::int64_t row : rows) before.push_back(inputs_of(row));
    launch(variant, 0);
    const std::byte* result =
        work_.function == ElementwiseFunction::rotary ? inputs_->data() : outputs_->data();
    Comparison comparison;
    for (std::size_t r = 0; r < rows.size(); ++r) {
      const std::vector<double> values =
          download_values(gpu_, ScalarType::bf16, result + rows[r] * work_.width * kActivation, work_.width);
      for (const std::int64_t i : sample_indices(work_.width, 64)) {
        const Expected expected = reference(before[r], rows[r], i);
        // The output's rounding, and f32's own over the sum that made it.
        comparison.add(
            values[static_cast<std::size_t>(i)], expected.value,
            half_ulp(ScalarType::bf16) * std::abs(expected.value) + 2e-5 * (1 + expected.magnitude));
      }
    }
    return comparison.result();
  }

 private:
  struct Expected {
    double value = 0;
    double magnitude = 0;  // of the terms that make it
  };

  bool is_norm() const {
    return work_.function == ElementwiseFunction::rms_norm ||
           work_.function == ElementwiseFunction::layer_norm;
  }

  Buffer random(std::int64_t bytes, RandomBits bits, std::uint64_t seed) {
    Buffer buffer(gpu_, bytes);
    fill_random(gpu_, buffer.data(), bytes, bits, seed);
    return buffer;
  }

  void place_angles() {
    const std::int64_t half = work_.width / 2;
    std::vector<float> angles;
    for (std::int64_t i = 0; i < half; ++i) angles.push_back(std::cos(0.01F * static_cast<float>(i)));
    for (std::int64_t i = 0; i < half; ++i) angles.push_back(std::sin(0.01F * static_cast<float>(i)));
    cosines_ = Buffer(gpu_, half * 4);
    sines_ = Buffer(gpu_, half * 4);
    gpu_.upload(cosines_.data(), angles.data(), half * 4);
    gpu_.upload(sines_.data(), angles.data() + half, half * 4);
  }

  ElementwiseLaunch make_launch() const {
    const auto* a = inputs_->as<std::uint16_t>();
    const std::uint16_t* b = work_.inputs == 2 ? a + sizes_.input_stride : nullptr;
    void* y = outputs_->data();
    constexpr ElementwiseType kType = ElementwiseType::bf16;
    switch (work_.function) {
      case ElementwiseFunction::rms_norm:
      case ElementwiseFunction::layer_norm:
        return elementwise_launch(kType,
                                  NormParams{.x = a,
                                             .weight = weight_.as<std::uint16_t>(),
                                             .bias = bias_.as<std::uint16_t>(),
                                             .y = y,
                                             .rows = sizes_.rows,
                                             .width = work_.width,
                                             .layer = work_.function == ElementwiseFunction::layer_norm});
      case ElementwiseFunction::rotary:
        return elementwise_launch(kType, RotaryParams{.x = inputs_->data(),
                                                      .cosines = cosines_.as<float>(),
                                                      .sines = sines_.as<float>(),
                                                      .rows = sizes_.rows,
                                                      .width = work_.width});
      case ElementwiseFunction::activate:
        return elementwise_launch(kType, ActivateParams{.gate = a,
                                                        .up = b,
                                                        .y = y,
                                                        .elements = sizes_.elements,
                                                        .activation = activation_of(work_.activation)});
      case ElementwiseFunction::add:
        break;
      case ElementwiseFunction::combine:
        return elementwise_launch(kType, CombineParams{.x = a,
                                                       .shares = shares_.as<float>(),
                                                       .y = y,
                                                       .rows = sizes_.rows,
                                                       .inputs = work_.inputs,
                                                       .width = work_.width,
                                                       .share_pitch = work_.inputs});
    }
    return elementwise_launch(kType, AddParams{.a = a, .b = b, .y = y, .elements = sizes_.elements});
  }

  // The rows that make row `row` of the output, one after the other.
  std::vector<double> inputs_of(std::int64_t row) const {
    std::vector<double> inputs;
    for (std::int64_t k = 0; k < work_.inputs; ++k) {
      const std::int64_t at = work_.function == ElementwiseFunction::combine
                                  ? (row * work_.inputs + k) * work_.width
                                  : k * sizes_.input_stride + row * work_.width;
      const std::vector<double> one =
          download_values(gpu_, ScalarType::bf16, inputs_->data() + at * kActivation, work_.width);
      inputs.insert(inputs.end(), one.begin(), one.end());
    }
    return inputs;
  }

  double scalar(const Buffer& buffer, ScalarType type, std::int64_t at) const {
    return download_values(gpu_, type, buffer.data() + at * scalar_bytes(type), 1).front();
  }

  // Element i of the row that inputs_of() gave.
  Expected reference(const std::vector<double>& inputs, std::int64_t row, std::int64_t i) const {
    const auto at = [&](std::int64_t k, std::int64_t c) {
      return inputs[static_cast<std::size_t>(k * work_.width + c)];
    };
    const auto plain = [](double value) { return Expected{value, std::abs(value)}; };
    const double x = at(0, i);
    const auto width = static_cast<double>(work_.width);
    double sum = 0;
    double squares = 0;
    switch (work_.function) {
      case ElementwiseFunction::rms_norm:
        for (std::int64_t c = 0; c < work_.width; ++c) squares += at(0, c) * at(0, c);
        return plain(x / std::sqrt(squares / width + 1e-6) * scalar(weight_, ScalarType::bf16, i));
      case ElementwiseFunction::layer_norm: {
        for (std::int64_t c = 0; c < work_.width; ++c) sum += at(0, c);
        const double mean = sum / width;
        for (std::int64_t c = 0; c < work_.width; ++c) squares += (at(0, c) - mean) * (at(0, c) - mean);
        const double scaled =
            (x - mean) / std::sqrt(squares / width + 1e-5) * scalar(weight_, ScalarType::bf16, i);
        const double bias = bias_.data() == nullptr ? 0 : scalar(bias_, ScalarType::bf16, i);
        return {scaled + bias, std::abs(scaled) + std::abs(bias)};
      }
      case ElementwiseFunction::rotary: {
        const std::int64_t half = work_.width / 2;
        if (i >= 2 * half) return plain(x);
        const double c = scalar(cosines_, ScalarType::f32, i % half);
        const double s = scalar(sines_, ScalarType::f32, i % half);
        const double other = i < half ? -at(0, i + half) : at(0, i - half);
        return {x * c + other * s, std::abs(x) + std::abs(other)};
      }
      case ElementwiseFunction::activate: {
        double y = std::max(x, 0.0);
        if (work_.activation == ActivationKind::silu) y = x / (1 + std::exp(-x));
        if (work_.activation == ActivationKind::gelu) {
          y = 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
        }
        return plain(work_.inputs == 2 ? y * at(1, i) : y);
      }
      case ElementwiseFunction::add:
        return plain(x + at(1, i));
      case ElementwiseFunction::combine: {
        double magnitudes = 0;
        for (std::int64_t k = 0; k < work_.inputs; ++k) {
          const double term = scalar(shares_, ScalarType::f32, row * work_.inputs + k) * at(k, i);
          sum += term;
          magnitudes += std::abs(term);
        }
        return {sum, magnitudes};
      }
    }
    return {std::nan(""), 0};
  }

  ElementwiseWork work_;
  Gpu& gpu_;
  Sizes sizes_;
  std::shared_ptr<Buffer> inputs_;
  std::shared_ptr<Buffer> outputs_;
  Buffer weight_;
  Buffer bias_;
  Buffer shares_;
  Buffer cosines_;
  Buffer sines_;
  ElementwiseLaunch launch_;
};

}  // namespace

std::vector<Variant> variants_of(const ElementwiseWork& work, const OpTask&, Context&) {
  // Sums over inputs are combine's; all else takes two at most.
  const bool known = work.inputs >= 1 && (work.inputs <= 2 || work.function == ElementwiseFunction::combine);
  if (!known || work.width < 1) return {};
  return {{"plain", 0}};
}

Footprint footprint_of(const ElementwiseWork& work, const OpTask& task, Context&) {
  const Sizes sizes(work, task.workload);
  const std::int64_t activations = checked_mul(checked_add(sizes.inputs, sizes.elements), kActivation);
  const std::int64_t parameters =
      checked_add(checked_mul(work.weights, kActivation), checked_mul(sizes.shares, 4));
  return {.fixed_bytes = checked_add(activations, checked_add(parameters, work.width * 4)), .cold = false};
}

std::unique_ptr<Operands> place(const ElementwiseWork& work, const OpTask& task, Context& context,
                                std::int64_t, std::uint64_t seed) {
  return std::make_unique<ElementwiseOperands>(work, task.workload, context, seed);
}

}  // namespace memwall::cuda
