#include "cuda/fused_linear.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <stdexcept>

#include "bench/cpu_operands.h"
#include "cuda/linear.h"
#include "cuda/scalar_values.h"
#include "format/checked.h"

namespace memwall::cuda {
namespace {

struct Parts {
  std::optional<ElementwiseWork> norm;
  std::vector<LinearWork> linears;
  std::optional<ElementwiseWork> behind;  // activation or residual
  std::int64_t rows = 0;

  bool activates() const { return behind && behind->function == ElementwiseFunction::activate; }
  bool gated() const { return activates() && behind->inputs == 2; }
  bool adds() const { return behind && behind->function == ElementwiseFunction::add; }
};

bool is_norm(const ElementwiseWork& work) {
  return work.function == ElementwiseFunction::rms_norm || work.function == ElementwiseFunction::layer_norm;
}

// What may be fused in the order in which it stands; nothing where anything else does.
std::optional<Parts> parts_of(const FusedTask& task) {
  Parts parts;
  for (const OpTask& op : task.ops) {
    if (const auto* linear = std::get_if<LinearWork>(&op.work)) {
      if (parts.behind) return std::nullopt;
      const std::int64_t rows = linear_rows(*linear, op.workload);
      if (!parts.linears.empty() && rows != parts.rows) return std::nullopt;
      parts.rows = rows;
      parts.linears.push_back(*linear);
      continue;
    }
    const auto* elementwise = std::get_if<ElementwiseWork>(&op.work);
    if (elementwise == nullptr || elementwise->rows_per_token != 1 || parts.behind) return std::nullopt;
    if (parts.linears.empty()) {
      if (!is_norm(*elementwise) || parts.norm) return std::nullopt;
      parts.norm = *elementwise;
    } else {
      parts.behind = *elementwise;
    }
  }
  return parts;
}

bool fit_together(const Parts& parts) {
  if (parts.linears.empty() || parts.linears.size() > kMostLinearSegments) return false;
  if (parts.rows < 1 || parts.rows > kMostLinearColumns) return false;
  const LinearWork& first = parts.linears.front();
  for (const LinearWork& linear : parts.linears) {
    if (!PlacedWeights::supports(linear) || linear.in != first.in || linear.format != first.format)
      return false;
  }
  if (parts.norm && parts.norm->width != first.in) return false;
  if (!parts.behind) return true;
  if (parts.behind->width != first.out) return false;
  if (parts.adds()) return parts.linears.size() == 1 && parts.behind->inputs == 2;
  if (!parts.activates()) return false;
  if (!parts.gated()) return parts.linears.size() == 1 && parts.behind->inputs == 1;
  return parts.linears.size() == 2 && parts.linears.back().out == first.out;
}

Parts checked_parts(const FusedTask& task) {
  const auto parts = parts_of(task);
  if (!parts || !fit_together(*parts)) throw std::invalid_argument("not a fused linear");
  return *parts;
}

LinearLayout layout_of(const Parts& parts) {
  const LinearWork& first = parts.linears.front();
  return linear_layout(first.format, first.out, first.in);
}

LinearLaunch launch_of(const Parts& parts, const GpuProperties& gpu) {
  std::vector<std::int64_t> outs;
  for (const LinearWork& linear : parts.linears) outs.push_back(linear.out);
  return linear_launch(layout_of(parts), outs.data(), static_cast<int>(outs.size()),
                       static_cast<int>(parts.rows), parts.gated(), gpu.arch, gpu.multiprocessors);
}

std::int64_t split_bytes(const LinearLaunch& launch) {
  return checked_mul(4, checked_add(linear_partials(launch), linear_counters(launch)));
}

std::int64_t output_elements(const Parts& parts) {
  std::int64_t elements = 0;
  for (const LinearWork& linear : parts.linears)
    elements = checked_add(elements, checked_mul(parts.rows, linear.out));
  return elements;
}

LinearActivation activation_of(const Parts& parts) {
  if (!parts.activates()) return LinearActivation::none;
  switch (parts.behind->activation) {
    case ActivationKind::gelu:
      return LinearActivation::gelu;
    case ActivationKind::relu:
      return LinearActivation::relu;
    case ActivationKind::silu:
      break;
  }
  return LinearActivation::silu;
}

double activated(LinearActivation activation, double x) {
  switch (activation) {
    case LinearActivation::silu:
      return x / (1 + std::exp(-x));
    case LinearActivation::gelu:
      return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
    case LinearActivation::relu:
      return std::max(x, 0.0);
    case LinearActivation::none:
      break;
  }
  return x;
}

// A value and the error it may show.
struct Estimate {
  double value = 0;
  double tolerance = 0;
};

class FusedLinearOperands final : public Operands {
 public:
  FusedLinearOperands(const Parts& parts, Context& context, std::int64_t copies, std::uint64_t seed)
      : parts_(parts), context_(context), type_(layout_of(parts).activations), copies_(copies) {
    Gpu& gpu = context.gpu;
    for (const LinearWork& linear : parts.linears)
      weights_.emplace_back(linear, context, copies, seed + 7919 * weights_.size());
    const std::int64_t in = parts.linears.front().in;
    const std::int64_t x_elements = checked_mul(parts.rows, in);
    // The residual lies behind x.
    const std::int64_t residual = parts.adds() ? output_elements(parts) : 0;
    x_ = context.inputs.with_room(gpu, scalar_type(type_), checked_add(x_elements, residual));
    y_ = context.outputs.with_room(gpu, output_bytes());
    launch_ = launch_of(parts, gpu.properties());
    LinearParams& p = launch_.params;
    if (const std::int64_t bytes = split_bytes(launch_); bytes > 0) {
      split_ = Buffer(gpu, bytes);
      gpu.zero(split_.data(), bytes);
      p.counters = split_.as<unsigned>();
      p.partials = reinterpret_cast<float*>(p.counters + linear_counters(launch_));
    }
    p.x = x_->data();
    p.activation = activation_of(parts);
    if (parts.adds()) p.residual = x_->data() + x_elements * activation_bytes(type_);
    if (parts.norm) place_norm(seed);
  }

  void launch(std::size_t, std::int64_t turn) override {
    std::byte* y = y_->data();
    for (std::size_t i = 0; i < weights_.size(); ++i) {
      const unsigned first_block = launch_.params.segments[i].first_block;
      launch_.params.segments[i] = weights_[i].segment(turn, y);
      launch_.params.segments[i].first_block = first_block;
      y += output_bytes(i);
    }
    context_.gpu.launch(launch_);
  }

  double cold_bytes(std::int64_t) const override {
    double bytes = 0;
    for (const PlacedWeights& weights : weights_) bytes += weights.bytes();
    return bytes;
  }
  double padding_bytes(std::int64_t) const override {
    double bytes = 0;
    for (const PlacedWeights& weights : weights_) bytes += weights.padding();
    return bytes;
  }
  double flops(std::int64_t) const override {
    double flops = 0;
    for (const LinearWork& linear : parts_.linears) flops += linear_flops(linear, parts_.rows);
    for (const auto& each : {parts_.norm, parts_.behind}) {
      if (each)
        flops +=
            static_cast<double>(parts_.rows * each->width) * static_cast<double>(each->flops_per_element);
    }
    return flops;
  }

  Check check(std::size_t variant) override {
    const std::int64_t turn = copies_ - 1;
    poison(context_.gpu, y_->data(), output_bytes());
    launch(variant, turn);
    Comparison comparison;
    const std::byte* y = y_->data();
    // Of gated ones only the first is written.
    const std::size_t written = parts_.gated() ? 1 : weights_.size();
    for (std::size_t i = 0; i < written; ++i) {
      compare(comparison, turn, i, y);
      y += output_bytes(i);
    }
    return comparison.result();
  }

 private:
  std::int64_t output_bytes(std::size_t i) const {
    return checked_mul(checked_mul(parts_.rows, parts_.linears[i].out), activation_bytes(type_));
  }
  std::int64_t output_bytes() const { return checked_mul(output_elements(parts_), activation_bytes(type_)); }

  void place_norm(std::uint64_t seed) {
    const ElementwiseWork& norm = *parts_.norm;
    LinearParams& p = launch_.params;
    p.norm = norm.function == ElementwiseFunction::rms_norm ? LinearNorm::rms : LinearNorm::layer;
    p.norm_type = activation_type(norm.weight_format);
    p.epsilon = p.norm == LinearNorm::rms ? 1e-6F : 1e-5F;
    const std::int64_t each = activation_bytes(p.norm_type);
    const std::int64_t room = checked_mul(linear_norm_elements(norm.width), each);
    norm_ = Buffer(context_.gpu, checked_mul(2, room));
    context_.gpu.zero(norm_.data(), 2 * room);
    const auto fill = [&](std::byte* at, std::uint64_t own) {
      fill_random(context_.gpu, at, norm.width * each, random_activations(p.norm_type), own);
    };
    fill(norm_.data(), seed + 5);
    p.norm_weight = norm_.data();
    if (norm.weights <= norm.width) return;
    fill(norm_.data() + room, seed + 6);
    p.norm_bias = norm_.data() + room;
  }

  // A row of x as the linears see it.
  std::vector<double> input(std::int64_t row) const {
    const std::int64_t in = parts_.linears.front().in;
    const std::byte* from = x_->data() + row * in * activation_bytes(type_);
    const std::vector<float> x = download_activations(context_.gpu, type_, from, in);
    std::vector<double> values(x.begin(), x.end());
    if (!parts_.norm) return values;
    const LinearParams& p = launch_.params;
    const std::vector<float> weight = download_activations(context_.gpu, p.norm_type, p.norm_weight, in);
    std::vector<float> bias(static_cast<std::size_t>(in), 0.0F);
    if (p.norm_bias != nullptr) bias = download_activations(context_.gpu, p.norm_type, p.norm_bias, in);
    double mean = 0;
    for (const double value : values) mean += value / static_cast<double>(in);
    if (p.norm == LinearNorm::rms) mean = 0;
    double square = 0;
    for (const double value : values) square += (value - mean) * (value - mean) / static_cast<double>(in);
    const double deviation = std::sqrt(square + static_cast<double>(p.epsilon));
    for (std::size_t k = 0; k < values.size(); ++k)
      values[k] =
          (values[k] - mean) / deviation * static_cast<double>(weight[k]) + static_cast<double>(bias[k]);
    return values;
  }

  // One output of a linear. A normalised x is off by a few ulps itself.
  Estimate linear(std::size_t i, std::int64_t turn, std::int64_t out, const std::vector<double>& x) const {
    const std::vector<float> w = weights_[i].row(turn, out);
    const auto bias = static_cast<double>(weights_[i].bias(turn, out));
    double sum = bias;
    double magnitudes = std::abs(bias);
    for (std::size_t k = 0; k < x.size(); ++k) {
      sum += static_cast<double>(w[k]) * x[k];
      magnitudes += std::abs(static_cast<double>(w[k]) * x[k]);
    }
    return {sum, dot_tolerance(static_cast<std::int64_t>(x.size()), magnitudes) +
                     (parts_.norm ? 2e-6 * magnitudes : 0)};
  }

  void compare(Comparison& comparison, std::int64_t turn, std::size_t i, const std::byte* y) const {
    constexpr double kSteepest = 1.13;      // of the activations
    constexpr double kOfActivation = 1e-5;  // its exponential's error
    const std::int64_t out_width = parts_.linears[i].out;
    const LinearActivation activation = launch_.params.activation;
    for (const std::int64_t row : sample_indices(parts_.rows, 3)) {
      const std::vector<double> x = input(row);
      const std::int64_t at = row * out_width * activation_bytes(type_);
      const std::vector<float> values = download_activations(context_.gpu, type_, y + at, out_width);
      std::vector<float> residual;
      if (parts_.adds()) {
        const auto* from = static_cast<const std::byte*>(launch_.params.residual) + at;
        residual = download_activations(context_.gpu, type_, from, out_width);
      }
      for (const std::int64_t out : sample_indices(out_width, 32)) {
        Estimate result = linear(i, turn, out, x);
        if (activation != LinearActivation::none) {
          result.value = activated(activation, result.value);
          result.tolerance = result.tolerance * kSteepest + kOfActivation * std::abs(result.value);
        }
        if (parts_.gated()) {
          const Estimate up = linear(1, turn, out, x);
          result.tolerance = result.tolerance * std::abs(up.value) + up.tolerance * std::abs(result.value);
          result.value *= up.value;
        }
        if (parts_.adds()) result.value += static_cast<double>(residual[static_cast<std::size_t>(out)]);
        comparison.add(static_cast<double>(values[static_cast<std::size_t>(out)]), result.value,
                       result.tolerance + rounding_tolerance(type_, result.value));
      }
    }
  }

  Parts parts_;
  Context& context_;
  ActivationType type_;
  std::int64_t copies_;
  std::vector<PlacedWeights> weights_;
  std::shared_ptr<Buffer> x_;
  std::shared_ptr<Buffer> y_;
  Buffer split_;
  Buffer norm_;
  LinearLaunch launch_;
};

}  // namespace

bool is_fused_linear(const FusedTask& task) {
  const auto parts = parts_of(task);
  return parts && fit_together(*parts);
}

std::vector<Variant> fused_linear_variants(const FusedTask& task, Context& context) {
  return {{"fused gemv", split_bytes(launch_of(checked_parts(task), context.gpu.properties()))}};
}

Footprint fused_linear_footprint(const FusedTask& task, Context& context) {
  const Parts parts = checked_parts(task);
  const ActivationType type = layout_of(parts).activations;
  Footprint footprint;
  for (const LinearWork& linear : parts.linears)
    footprint.copy_bytes = checked_add(footprint.copy_bytes, PlacedWeights::copy_bytes(linear));
  const std::int64_t in = parts.linears.front().in;
  const std::int64_t elements =
      checked_add(checked_mul(parts.rows, in), checked_mul(parts.adds() ? 2 : 1, output_elements(parts)));
  footprint.fixed_bytes = checked_add(checked_mul(elements, activation_bytes(type)),
                                      split_bytes(launch_of(parts, context.gpu.properties())));
  if (parts.norm) {
    const std::int64_t norm = checked_mul(2, linear_norm_elements(in));
    footprint.fixed_bytes =
        checked_add(footprint.fixed_bytes,
                    checked_mul(norm, activation_bytes(activation_type(parts.norm->weight_format))));
  }
  return footprint;
}

std::unique_ptr<Operands> place_fused_linear(const FusedTask& task, Context& context, std::int64_t copies,
                                             std::uint64_t seed) {
  return std::make_unique<FusedLinearOperands>(checked_parts(task), context, copies, seed);
}

}  // namespace memwall::cuda
