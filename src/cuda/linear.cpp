#include "cuda/linear.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "bench/cpu_operands.h"
#include "cuda/operands.h"
#include "cuda/scalar_values.h"
#include "format/checked.h"
#include "kernels/cpu/pack.h"

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

bool reads_narrow_x(ScalarType type) { return type == ScalarType::f8_e4m3 || type == ScalarType::i8; }

// Room for x in 8 bits, behind its scale.
constexpr std::int64_t kNarrowAt = 256;

}  // namespace

std::vector<Variant> linear_variants(const LinearWork& work, std::int64_t rows, Context& context) {
  if (!PlacedWeights::supports(work)) return {};
  const LinearLayout layout = linear_layout(work.format, work.out, work.in);
  std::vector<Variant> variants;
  if (rows <= kMostLinearColumns)
    variants.push_back({kOurs, split_bytes(gemv(layout, rows, context.gpu.properties()))});
  for (const GemmArm& arm : arms_of(problem_of(work, layout, rows), context))
    variants.push_back({arm.name, arm.workspace_bytes});
  return variants;
}

Footprint linear_footprint(const LinearWork& work, std::int64_t rows, Context& context) {
  const LinearLayout layout = linear_layout(work.format, work.out, work.in);
  std::int64_t workspace = 0;
  for (const Variant& variant : linear_variants(work, rows, context))
    workspace = std::max(workspace, variant.workspace_bytes);
  // x, in 8 bits too, and y, which is i32 at most.
  const std::int64_t a_row =
      checked_add(checked_mul(work.in, activation_bytes(layout.activations) + 1), checked_mul(work.out, 4));
  Footprint footprint;
  footprint.copy_bytes = PlacedWeights::copy_bytes(work);
  footprint.fixed_bytes =
      checked_add(checked_add(checked_mul(rows, a_row), checked_mul(2, workspace)), kNarrowAt);
  return footprint;
}

PlacedLinear::PlacedLinear(const LinearWork& work, std::int64_t rows, Context& context, std::int64_t copies,
                           std::uint64_t seed)
    : context_(context), weights_(work, context, copies, seed), rows_(rows) {
  Gpu& gpu = context.gpu;
  const auto add = [&](const char* name, std::int64_t workspace, const Arm& arm) {
    variants_.push_back({name, workspace});
    arms_.push_back(arm);
  };
  if (rows <= kMostLinearColumns) {
    launch_ = gemv(weights_.layout(), rows, gpu.properties());
    const std::int64_t split = split_bytes(launch_);
    add(kOurs, split, {.problem = {}, .id = 0, .ours = true});
    if (split > 0) {
      split_ = Buffer(gpu, split);
      gpu.zero(split_.data(), split);
      launch_.params.counters = split_.as<unsigned>();
      launch_.params.partials = reinterpret_cast<float*>(split_.as<unsigned>() + linear_counters(launch_));
    }
  }
  const auto problem = problem_of(work, weights_.layout(), rows);
  std::int64_t workspace = 0;
  for (const GemmArm& arm : arms_of(problem, context)) {
    add(arm.name.c_str(), arm.workspace_bytes, {.problem = *problem, .id = arm.id, .ours = false});
    workspace = std::max(workspace, arm.workspace_bytes);
  }
  if (workspace > 0) workspace_ = Buffer(gpu, workspace);
  if (!problem || variants_.empty() || arms_.back().ours || !reads_narrow_x(problem->type)) return;
  const std::int64_t elements = checked_mul(rows, work.in);
  narrow_x_ = Buffer(gpu, checked_add(kNarrowAt, elements));
  constexpr float kOne = 1;
  gpu.upload(narrow_x_.data(), &kOne, sizeof kOne);
  const bool f8 = problem->type == ScalarType::f8_e4m3;
  fill_random(gpu, narrow_x_.data() + kNarrowAt, elements, f8 ? kF8E4M3 : kAnyBits, 12);
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
  const bool narrow = reads_narrow_x(arm.problem.type);
  operands.x = narrow ? narrow_x_.data() + kNarrowAt : x;
  operands.w = segment.quants;
  operands.y = y;
  operands.workspace = workspace_.data();
  if (arm.problem.type == ScalarType::f8_e4m3) {
    operands.x_scale = narrow_x_.as<float>();
    operands.w_scale = reinterpret_cast<const float*>(segment.scales);
  }
  context_.gpu.gemm(arm.problem, arm.id, operands);
}

ScalarType PlacedLinear::output_type(std::size_t variant) const {
  const Arm& arm = arms_[variant];
  if (arm.ours) return scalar_type(weights_.layout().activations);
  return arm.problem.type == ScalarType::f8_e4m3 ? ScalarType::bf16 : arm.problem.type;
}

std::int64_t PlacedLinear::output_bytes() const {
  std::int64_t most = activation_bytes(weights_.layout().activations);
  for (std::size_t v = 0; v < arms_.size(); ++v)
    if (output_type(v) == ScalarType::i8) most = 4;
  return checked_mul(checked_mul(rows_, weights_.work().out), most);
}

namespace {

std::vector<float> to_floats(const std::vector<std::int32_t>& values) {
  std::vector<float> floats;
  for (const std::int32_t value : values) floats.push_back(static_cast<float>(value));
  return floats;
}

ActivationType activation_of(ScalarType type) {
  if (type == ScalarType::f32) return ActivationType::f32;
  return type == ScalarType::bf16 ? ActivationType::bf16 : ActivationType::f16;
}

}  // namespace

std::vector<float> PlacedLinear::read_x(std::size_t variant, const void* x, std::int64_t row) const {
  const std::int64_t in = weights_.work().in;
  const Arm& arm = arms_[variant];
  if (arm.ours || !reads_narrow_x(arm.problem.type)) {
    const ActivationType type = weights_.layout().activations;
    const auto* from = static_cast<const std::byte*>(x) + row * in * activation_bytes(type);
    return download_activations(context_.gpu, type, from, in);
  }
  std::vector<float> values;
  for (const std::uint8_t bits :
       download<std::uint8_t>(context_.gpu, narrow_x_.data() + kNarrowAt + row * in, in)) {
    values.push_back(arm.problem.type == ScalarType::i8 ? static_cast<float>(static_cast<std::int8_t>(bits))
                                                        : cpu::f8_e4m3_to_f32(bits));
  }
  return values;
}

void PlacedLinear::compare(Comparison& comparison, std::size_t variant, std::int64_t turn, const void* x,
                           const void* y) const {
  const LinearWork& work = weights_.work();
  const ScalarType type = output_type(variant);
  const bool integers = type == ScalarType::i8;
  const std::vector<std::int64_t> outs = sample_indices(work.out, 64);
  std::vector<std::vector<float>> rows;
  for (const std::int64_t out : outs) rows.push_back(weights_.row(turn, out));
  for (const std::int64_t row : sample_indices(rows_, 4)) {
    const std::vector<float> read = read_x(variant, x, row);
    const std::int64_t each = integers ? 4 : scalar_bytes(type);
    const auto* from = static_cast<const std::byte*>(y) + row * work.out * each;
    const std::vector<float> values =
        integers ? to_floats(download<std::int32_t>(context_.gpu, from, work.out))
                 : download_activations(context_.gpu, activation_of(type), from, work.out);
    for (std::size_t i = 0; i < outs.size(); ++i) {
      const double bias = arms_[variant].ours ? static_cast<double>(weights_.bias(turn, outs[i])) : 0;
      const ReferenceDot reference = reference_dot(rows[i], read, bias);
      double value = static_cast<double>(values[static_cast<std::size_t>(outs[i])]);
      if (integers) value *= static_cast<double>(weights_.row_scale(turn, outs[i]));
      const double rounding = integers ? 0 : rounding_tolerance(activation_of(type), reference.value);
      const double running =
          arms_[variant].ours ? 0 : running_sum_loss(arms_[variant].problem.type, reference.magnitudes);
      comparison.add(value, reference.value, reference.tolerance + rounding + running);
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
    poison(context_.gpu, y_->data(), linear_.output_bytes());
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
