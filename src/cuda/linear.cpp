#include "cuda/linear.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "bench/cpu_operands.h"
#include "cuda/operands.h"
#include "cuda/scalar_values.h"
#include "format/checked.h"

namespace memwall::cuda {
namespace {

constexpr const char* kOurs = "gemv";

// What a library would compute; nothing for formats that none reads. Only a tensor's or a row's scale leaves
// the products to the library.
std::optional<GemmProblem> problem_of(const LinearWork& work, const LinearLayout& layout, std::int64_t rows) {
  GemmProblem problem;
  if (layout.rule == ScaleRule::none) {
    problem.type = scalar_type(layout.activations);
  } else if (layout.code == WeightCode::f8 && layout.rule == ScaleRule::tensor) {
    problem.type = ScalarType::f8_e4m3;
  } else if (layout.code == WeightCode::i8 && layout.rule == ScaleRule::row) {
    problem.type = ScalarType::i8;
  } else {
    return std::nullopt;
  }
  problem.m = rows;
  problem.n = work.out;
  problem.k = work.in;
  problem.w_pitch = layout.pitch / scalar_bytes(problem.type);
  return problem;
}

std::vector<GemmArm> arms_of(const std::optional<GemmProblem>& problem, Context& context) {
  return problem ? context.gpu.gemm_arms(*problem) : std::vector<GemmArm>();
}

LinearLaunch gemv(const LinearLayout& layout, std::int64_t rows, const GpuProperties& gpu) {
  return linear_launch(layout, &layout.out, 1, static_cast<int>(rows), false, gpu.arch, gpu.multiprocessors);
}

std::int64_t split_bytes(const LinearLaunch& launch) {
  return checked_mul(4, checked_add(linear_partials(launch), linear_counters(launch)));
}

// What runs beside the library's product; a bias is added where the epilogue is ours.
std::string arm_name(const GemmArm& arm, const GemmProblem& problem, const LinearWork& work) {
  std::string name = arm.name;
  if (reads_quantized_x(problem.type)) name += " + quantise x";
  if (problem.type == ScalarType::i8) name += " + scale sums";
  if (work.bias && problem.type != ScalarType::i8) name += ", no bias";
  return name;
}

std::int64_t sums_bytes(const GemmProblem& problem) {
  return problem.type == ScalarType::i8 ? checked_mul(checked_mul(problem.m, problem.n), 4) : 0;
}

}  // namespace

std::vector<Variant> linear_variants(const LinearWork& work, std::int64_t rows, Context& context) {
  if (!PlacedWeights::supports(work)) return {};
  const LinearLayout layout = linear_layout(work.format, work.out, work.in);
  std::vector<Variant> variants;
  if (rows <= kMostLinearColumns)
    variants.push_back({kOurs, split_bytes(gemv(layout, rows, context.gpu.properties()))});
  const auto problem = problem_of(work, layout, rows);
  for (const GemmArm& arm : arms_of(problem, context))
    variants.push_back({arm_name(arm, *problem, work), arm.workspace_bytes});
  return variants;
}

Footprint linear_footprint(const LinearWork& work, std::int64_t rows, Context& context) {
  const LinearLayout layout = linear_layout(work.format, work.out, work.in);
  std::int64_t workspace = 0;
  for (const Variant& variant : linear_variants(work, rows, context))
    workspace = std::max(workspace, variant.workspace_bytes);
  const std::int64_t a_row =
      checked_mul(checked_add(work.in, work.out), activation_bytes(layout.activations));
  Footprint footprint;
  footprint.copy_bytes = PlacedWeights::copy_bytes(work);
  footprint.fixed_bytes = checked_add(checked_mul(rows, a_row), checked_mul(2, workspace));
  const auto problem = problem_of(work, layout, rows);
  if (problem && reads_quantized_x(problem->type)) {
    footprint.fixed_bytes =
        checked_add(footprint.fixed_bytes,
                    checked_add(QuantizedInput::bytes(problem->type, rows, work.in), sums_bytes(*problem)));
  }
  return footprint;
}

PlacedLinear::PlacedLinear(const LinearWork& work, std::int64_t rows, Context& context, std::int64_t copies,
                           std::uint64_t seed)
    : context_(context),
      weights_(work, context, copies, seed),
      rows_(rows),
      variants_(linear_variants(work, rows, context)) {
  Gpu& gpu = context.gpu;
  if (rows <= kMostLinearColumns) {
    launch_ = gemv(weights_.layout(), rows, gpu.properties());
    arms_.push_back({.problem = {}, .id = 0, .ours = true});
    if (const std::int64_t split = split_bytes(launch_); split > 0) {
      split_ = Buffer(gpu, split);
      gpu.zero(split_.data(), split);
      launch_.params.counters = split_.as<unsigned>();
      launch_.params.partials = reinterpret_cast<float*>(split_.as<unsigned>() + linear_counters(launch_));
    }
  }
  const auto problem = problem_of(work, weights_.layout(), rows);
  const std::vector<GemmArm> library = arms_of(problem, context);
  if (library.empty()) return;
  std::int64_t workspace = 0;
  for (const GemmArm& arm : library) {
    arms_.push_back({.problem = *problem, .id = arm.id, .ours = false});
    workspace = std::max(workspace, arm.workspace_bytes);
  }
  if (workspace > 0) workspace_ = Buffer(gpu, workspace);
  if (!reads_quantized_x(problem->type)) return;
  quantized_.emplace(gpu, problem->type, weights_.layout().activations, rows, work.in);
  if (const std::int64_t bytes = sums_bytes(*problem); bytes > 0) sums_ = Buffer(gpu, bytes);
}

void PlacedLinear::launch(std::size_t variant, std::int64_t turn, const void* x, void* y) {
  const Arm& arm = arms_[variant];
  LinearSegment segment = weights_.segment(turn, y);
  if (arm.ours) {
    segment.first_block = 0;
    launch_.params.segments[0] = segment;
    launch_.params.x = x;
    context_.gpu.launch(launch_);
    return;
  }
  GemmOperands operands;
  operands.x = x;
  operands.w = segment.quants;
  operands.y = y;
  operands.workspace = workspace_.data();
  if (reads_quantized_x(arm.problem.type)) {
    quantized_->quantize(x);
    operands.x = quantized_->codes();
  }
  if (arm.problem.type == ScalarType::f8_e4m3) {
    operands.x_scale = quantized_->scales();
    operands.w_scale = reinterpret_cast<const float*>(segment.scales);
  }
  if (arm.problem.type == ScalarType::i8) operands.y = sums_.data();
  context_.gpu.gemm(arm.problem, arm.id, operands);
  if (arm.problem.type == ScalarType::i8) scale_sums(segment);
}

void PlacedLinear::scale_sums(const LinearSegment& segment) {
  ScaleSumsParams params;
  params.sums = sums_.as<std::int32_t>();
  params.row_scales = quantized_->scales();
  params.column_scales = reinterpret_cast<const float*>(segment.scales);
  params.bias = segment.bias;
  params.bias_type = segment.bias_type;
  params.y = segment.y;
  params.rows = rows_;
  params.out = segment.out;
  context_.gpu.launch(scale_sums_launch(weights_.layout().activations, params));
}

ScalarType PlacedLinear::output_type(std::size_t variant) const {
  const Arm& arm = arms_[variant];
  if (!arm.ours && arm.problem.type == ScalarType::f8_e4m3) return ScalarType::bf16;
  return scalar_type(weights_.layout().activations);
}

std::int64_t PlacedLinear::output_bytes() const {
  return checked_mul(checked_mul(rows_, weights_.work().out),
                     activation_bytes(weights_.layout().activations));
}

void PlacedLinear::forget(void* y) {
  poison(context_.gpu, y, output_bytes());
  if (quantized_) quantized_->forget();
  if (sums_.bytes() > 0) poison(context_.gpu, sums_.data(), sums_.bytes());
}

namespace {

ActivationType activation_of(ScalarType type) {
  if (type == ScalarType::f32) return ActivationType::f32;
  return type == ScalarType::bf16 ? ActivationType::bf16 : ActivationType::f16;
}

}  // namespace

std::vector<float> PlacedLinear::read_x(std::size_t variant, const void* x, std::int64_t row) const {
  const Arm& arm = arms_[variant];
  if (!arm.ours && reads_quantized_x(arm.problem.type)) return quantized_->row(row);
  const std::int64_t in = weights_.work().in;
  const ActivationType type = weights_.layout().activations;
  const auto* from = static_cast<const std::byte*>(x) + row * in * activation_bytes(type);
  return download_activations(context_.gpu, type, from, in);
}

void PlacedLinear::compare(Comparison& comparison, std::size_t variant, std::int64_t turn, const void* x,
                           const void* y) const {
  const LinearWork& work = weights_.work();
  const Arm& arm = arms_[variant];
  const bool quantized = !arm.ours && reads_quantized_x(arm.problem.type);
  const bool adds_bias = arm.ours || arm.problem.type == ScalarType::i8;
  const ActivationType type = activation_of(output_type(variant));
  const std::vector<std::int64_t> outs = sample_indices(work.out, 64);
  std::vector<std::vector<float>> rows;
  for (const std::int64_t out : outs) rows.push_back(weights_.row(turn, out));
  for (const std::int64_t row : sample_indices(rows_, 4)) {
    if (quantized) quantized_->compare(comparison, x, row);
    const std::vector<float> read = read_x(variant, x, row);
    const auto* from = static_cast<const std::byte*>(y) + row * work.out * activation_bytes(type);
    const std::vector<float> values = download_activations(context_.gpu, type, from, work.out);
    for (std::size_t i = 0; i < outs.size(); ++i) {
      const double bias = adds_bias ? static_cast<double>(weights_.bias(turn, outs[i])) : 0;
      const ReferenceDot reference = reference_dot(rows[i], read, bias);
      const double running = arm.ours ? 0 : running_sum_loss(arm.problem.type, reference.magnitudes);
      comparison.add(static_cast<double>(values[static_cast<std::size_t>(outs[i])]), reference.value,
                     reference.tolerance + rounding_tolerance(type, reference.value) + running);
    }
  }
}

namespace {

class LinearOperands final : public Operands {
 public:
  LinearOperands(const LinearWork& work, std::int64_t rows, Context& context, std::int64_t copies,
                 std::uint64_t seed)
      : context_(context),
        linear_(work, rows, context, copies, seed),
        x_(context.inputs.with_room(context.gpu, scalar_type(linear_.weights().layout().activations),
                                    checked_mul(rows, work.in))),
        y_(context.outputs.with_room(context.gpu, linear_.output_bytes())) {}

  void launch(std::size_t variant, std::int64_t turn) override {
    linear_.launch(variant, turn, x_->data(), y_->data());
  }
  double cold_bytes(std::int64_t) const override { return linear_.weights().bytes(); }
  double padding_bytes(std::int64_t) const override { return linear_.weights().padding(); }
  double flops(std::int64_t) const override { return linear_flops(linear_.weights().work(), linear_.rows()); }

  Check check(std::size_t variant) override {
    const std::int64_t turn = linear_.weights().copies() - 1;
    linear_.forget(y_->data());
    launch(variant, turn);
    Comparison comparison;
    linear_.compare(comparison, variant, turn, x_->data(), y_->data());
    return comparison.result();
  }

 private:
  Context& context_;
  PlacedLinear linear_;
  std::shared_ptr<Buffer> x_;
  std::shared_ptr<Buffer> y_;
};

}  // namespace

std::vector<Variant> variants_of(const LinearWork& work, const OpTask& task, Context& context) {
  return linear_variants(work, linear_rows(work, task.workload), context);
}

Footprint footprint_of(const LinearWork& work, const OpTask& task, Context& context) {
  return linear_footprint(work, linear_rows(work, task.workload), context);
}

std::unique_ptr<Operands> place(const LinearWork& work, const OpTask& task, Context& context,
                                std::int64_t copies, std::uint64_t seed) {
  return std::make_unique<LinearOperands>(work, linear_rows(work, task.workload), context, copies, seed);
}

}  // namespace memwall::cuda
