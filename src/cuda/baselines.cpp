// The two baselines, add and matmul, on a GPU.
#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "bench/cpu_data.h"
#include "cuda/operands.h"
#include "cuda/scalar_values.h"
#include "format/checked.h"

namespace memwall::cuda {
namespace {

// What c is stored as: a product of f8 matrices is bf16.
ScalarType output_type(ScalarType input) { return input == ScalarType::f8_e4m3 ? ScalarType::bf16 : input; }

// Three n x n tensors a, b and c, in rotating copies; c alone may be of another type.
class SquareTensors {
 public:
  static std::int64_t tensor_stride(std::int64_t n, ScalarType type) {
    return aligned_256(checked_mul(checked_mul(n, n), scalar_bytes(type)));
  }
  static std::int64_t copy_bytes(std::int64_t n, ScalarType type) {
    return checked_add(checked_mul(2, tensor_stride(n, type)), tensor_stride(n, output_type(type)));
  }

  SquareTensors(Gpu& gpu, std::int64_t n, ScalarType type, std::int64_t copies, std::uint64_t seed)
      : gpu_(gpu),
        n_(n),
        type_(type),
        copies_(copies),
        stride_(tensor_stride(n, type)),
        copy_bytes_(copy_bytes(n, type)),
        buffer_(gpu, checked_mul(copies, copy_bytes_)) {
    for (std::int64_t i = 0; i < copies; ++i) {
      fill_random(gpu, tensor(i, 0), 2 * stride_, random_bits(type), seed + static_cast<std::uint64_t>(i));
    }
  }

  std::byte* tensor(std::int64_t turn, std::int64_t index) const {
    return buffer_.data() + (turn % copies_) * copy_bytes_ + index * stride_;
  }
  std::int64_t last_turn() const { return copies_ - 1; }
  ScalarType type_of(std::int64_t index) const { return index == 2 ? output_type(type_) : type_; }
  std::vector<double> values(std::int64_t turn, std::int64_t index, std::int64_t at,
                             std::int64_t count) const {
    const ScalarType type = type_of(index);
    return download_values(gpu_, type, tensor(turn, index) + at * scalar_bytes(type), count);
  }
  void forget_output(std::int64_t turn) const {
    poison(gpu_, tensor(turn, 2), n_ * n_ * scalar_bytes(type_of(2)));
  }
  double bytes() const {
    return static_cast<double>(n_ * n_ * (2 * scalar_bytes(type_) + scalar_bytes(output_type(type_))));
  }
  std::int64_t n() const { return n_; }
  std::int64_t elements() const { return n_ * n_; }

 private:
  Gpu& gpu_;
  std::int64_t n_;
  ScalarType type_;
  std::int64_t copies_;
  std::int64_t stride_;
  std::int64_t copy_bytes_;
  Buffer buffer_;
};

struct AddWay {
  const char* name;
  StreamGrid grid;
  bool streaming;
};
constexpr AddWay kAdds[] = {{"persistent", StreamGrid::persistent, false},
                            {"one pass", StreamGrid::one_pass, false},
                            {"persistent, streaming stores", StreamGrid::persistent, true},
                            {"one pass, streaming stores", StreamGrid::one_pass, true}};

std::optional<StreamType> stream_type(ScalarType type) {
  switch (type) {
    case ScalarType::f32:
      return StreamType::f32;
    case ScalarType::f16:
      return StreamType::f16;
    case ScalarType::bf16:
      return StreamType::bf16;
    default:
      return std::nullopt;
  }
}

class AddOperands final : public Operands {
 public:
  AddOperands(const AddTask& task, ScalarType type, Context& context, std::int64_t copies, std::uint64_t seed)
      : gpu_(context.gpu), type_(type), tensors_(gpu_, task.n, type, copies, seed) {
    const std::int64_t each = 16 / scalar_bytes(type);
    for (const AddWay& way : kAdds) {
      launches_.push_back(with_geometry(
          {.kind = StreamKind::add,
           .type = stream_type(type).value(),
           .streaming = way.streaming,
           .params = {.vectors = tensors_.elements() / each, .tail = tensors_.elements() % each}},
          way.grid, gpu_.properties().arch, gpu_.properties().multiprocessors));
    }
  }

  void launch(std::size_t variant, std::int64_t turn) override {
    StreamLaunch launch = launches_[variant];
    launch.params.a = tensors_.tensor(turn, 0);
    launch.params.b = tensors_.tensor(turn, 1);
    launch.params.c = tensors_.tensor(turn, 2);
    gpu_.launch(launch);
  }

  double cold_bytes(std::int64_t) const override { return tensors_.bytes(); }
  double flops(std::int64_t) const override { return static_cast<double>(tensors_.elements()); }

  Check check(std::size_t variant) override {
    const std::int64_t turn = tensors_.last_turn();
    tensors_.forget_output(turn);
    launch(variant, turn);
    Comparison comparison;
    constexpr std::int64_t kRun = 32;
    const std::int64_t run = std::min(kRun, tensors_.elements());
    for (const std::int64_t first : sample_indices(tensors_.elements() - run + 1, 32)) {
      const std::vector<double> a = tensors_.values(turn, 0, first, run);
      const std::vector<double> b = tensors_.values(turn, 1, first, run);
      const std::vector<double> c = tensors_.values(turn, 2, first, run);
      for (std::size_t i = 0; i < c.size(); ++i) {
        // The rounding of the sum in f32 before the output's; f16 sums near 0 round below its normals.
        const double sum = a[i] + b[i];
        comparison.add(c[i], sum, half_ulp(type_) * std::abs(sum) + 1.2e-7 * (1 + std::abs(sum)));
      }
    }
    return comparison.result();
  }

 private:
  Gpu& gpu_;
  ScalarType type_;
  SquareTensors tensors_;
  std::vector<StreamLaunch> launches_;  // a variant each, without addresses
};

GemmProblem problem_of(std::int64_t n, ScalarType type) {
  return {.type = type, .m = n, .n = n, .k = n, .w_pitch = n};
}

std::vector<GemmArm> arms_of(const MatmulTask& task, Context& context) {
  const std::optional<ScalarType> type = scalar_type(task.format);
  if (!type || task.n < 1) return {};
  return context.gpu.gemm_arms(problem_of(task.n, *type));
}

std::int64_t largest_workspace(const std::vector<GemmArm>& arms) {
  std::int64_t largest = 0;
  for (const GemmArm& arm : arms) largest = std::max(largest, arm.workspace_bytes);
  return largest;
}

// c = a b through the libraries. b is held by columns, as a linear's weight is: row j of its tensor is its
// column j.
class MatmulOperands final : public Operands {
 public:
  MatmulOperands(const MatmulTask& task, ScalarType type, Context& context, std::int64_t copies,
                 std::uint64_t seed)
      : gpu_(context.gpu),
        type_(type),
        problem_(problem_of(task.n, type)),
        arms_(arms_of(task, context)),
        tensors_(gpu_, task.n, type, copies, seed),
        scales_(gpu_, 2 * 4) {
    if (const std::int64_t bytes = largest_workspace(arms_); bytes > 0) workspace_ = Buffer(gpu_, bytes);
    const float ones[2] = {1.0F, 1.0F};
    gpu_.upload(scales_.data(), ones, sizeof ones);
  }

  void launch(std::size_t variant, std::int64_t turn) override {
    gpu_.gemm(problem_, arms_[variant].id,
              {.x = tensors_.tensor(turn, 0),
               .w = tensors_.tensor(turn, 1),
               .y = tensors_.tensor(turn, 2),
               .workspace = workspace_.data(),
               .x_scale = scales_.as<float>(),
               .w_scale = scales_.as<float>() + 1});
  }

  double cold_bytes(std::int64_t) const override { return tensors_.bytes(); }
  double flops(std::int64_t) const override { return 2 * std::pow(static_cast<double>(tensors_.n()), 3); }

  Check check(std::size_t variant) override {
    const std::int64_t turn = tensors_.last_turn();
    tensors_.forget_output(turn);
    launch(variant, turn);
    const std::int64_t n = tensors_.n();
    Comparison comparison;
    for (const std::int64_t at : sample_indices(tensors_.elements(), 64)) {
      const std::vector<double> row = tensors_.values(turn, 0, at / n * n, n);
      const std::vector<double> column = tensors_.values(turn, 1, at % n * n, n);
      double sum = 0;
      double magnitudes = 0;
      for (std::size_t k = 0; k < row.size(); ++k) {
        sum += row[k] * column[k];
        magnitudes += std::abs(row[k] * column[k]);
      }
      comparison.add(tensors_.values(turn, 2, at, 1).front(), sum, tolerance(sum, magnitudes));
    }
    return comparison.result();
  }

 private:
  // f32's random walk over the sum, and the rounding to c's type of the sum and of partial ones: a library
  // that splits k may add its parts in that type, and they are as large as sqrt(n) terms of magnitude 1 or 2.
  double tolerance(double sum, double magnitudes) const {
    const auto n = static_cast<double>(tensors_.n());
    const double rounding = half_ulp(output_type(type_)) * (std::abs(sum) + 2 * std::sqrt(n));
    return dot_tolerance(tensors_.n(), magnitudes) + rounding + running_sum_loss(type_, magnitudes);
  }

  Gpu& gpu_;
  ScalarType type_;
  GemmProblem problem_;
  std::vector<GemmArm> arms_;
  SquareTensors tensors_;
  Buffer workspace_;
  Buffer scales_;  // f8's, of x and w
};

}  // namespace

std::vector<Variant> variants_of(const AddTask& task, Context&) {
  const std::optional<ScalarType> type = scalar_type(task.format);
  if (!type || !stream_type(*type) || task.n < 1) return {};
  std::vector<Variant> variants;
  for (const AddWay& way : kAdds) variants.push_back({way.name, 0});
  return variants;
}

Footprint footprint_of(const AddTask& task, Context&) {
  const std::optional<ScalarType> type = scalar_type(task.format);
  return {.copy_bytes = type ? SquareTensors::copy_bytes(task.n, *type) : 0};
}

std::unique_ptr<Operands> place(const AddTask& task, Context& context, std::int64_t copies,
                                std::uint64_t seed) {
  return std::make_unique<AddOperands>(task, scalar_type(task.format).value(), context, copies, seed);
}

std::vector<Variant> variants_of(const MatmulTask& task, Context& context) {
  std::vector<Variant> variants;
  for (const GemmArm& arm : arms_of(task, context)) variants.push_back({arm.name, arm.workspace_bytes});
  return variants;
}

Footprint footprint_of(const MatmulTask& task, Context& context) {
  const std::optional<ScalarType> type = scalar_type(task.format);
  if (!type) return {};
  constexpr std::int64_t kScales = 8;
  return {.copy_bytes = SquareTensors::copy_bytes(task.n, *type),
          .fixed_bytes = largest_workspace(arms_of(task, context)) + kScales};
}

std::unique_ptr<Operands> place(const MatmulTask& task, Context& context, std::int64_t copies,
                                std::uint64_t seed) {
  return std::make_unique<MatmulOperands>(task, scalar_type(task.format).value(), context, copies, seed);
}

// No probe runs on registers alone here: a GPU's arithmetic is told by the library's large GEMMs.
std::vector<Variant> variants_of(const ArithmeticTask&, Context&) { return {}; }

Footprint footprint_of(const ArithmeticTask&, Context&) { return {}; }

std::unique_ptr<Operands> place(const ArithmeticTask&, Context&, std::int64_t, std::uint64_t) {
  throw std::logic_error("a GPU has no arithmetic probe");
}

}  // namespace memwall::cuda
