// The baseline that memory bounds, add, on the CPU; cpu_matmul.cpp has the other.
#include <cmath>

#include "bench/cpu_operands.h"
#include "bench/cpu_square.h"
#include "kernels/cpu/elementwise.h"

namespace memwall {
namespace {

class AddOperands final : public Operands {
 public:
  AddOperands(const AddTask& task, CpuContext& context, std::int64_t copies, std::uint64_t seed)
      : context_(context), tensors_(task.n, task.format, context, copies, seed) {}

  void launch(std::size_t, std::int64_t turn) override {
    const std::int64_t elements = tensors_.n() * tensors_.n();
    const auto part = [&](int, std::int64_t first, std::int64_t last) {
      if (tensors_.is_f32()) {
        cpu::add_f32(tensors_.tensor<float>(turn, 0), tensors_.tensor<float>(turn, 1),
                     tensors_.tensor<float>(turn, 2), first, last);
      } else {
        cpu::add_f16(tensors_.tensor<std::uint16_t>(turn, 0), tensors_.tensor<std::uint16_t>(turn, 1),
                     tensors_.tensor<std::uint16_t>(turn, 2), first, last);
      }
    };
    constexpr std::int64_t kLeastParallel = 16384;
    if (elements < kLeastParallel) return part(0, 0, elements);
    context_.pool.split(elements, 64, part);
  }

  double cold_bytes(std::int64_t) const override { return tensors_.bytes(); }
  double flops(std::int64_t) const override { return static_cast<double>(tensors_.n() * tensors_.n()); }

  Check check(std::size_t variant) override {
    launch(variant, 0);
    Comparison comparison;
    for (const std::int64_t at : sample_indices(tensors_.n() * tensors_.n(), 1000)) {
      const double sum = tensors_.value(0, at) + tensors_.value(1, at);
      comparison.add(tensors_.value(2, at), sum, tensors_.rounding() * (std::abs(sum) + 1));
    }
    return comparison.result();
  }

 private:
  CpuContext& context_;
  SquareTensors tensors_;
};

}  // namespace

std::unique_ptr<Operands> place_add(const AddTask& task, CpuContext& context, std::int64_t copies,
                                    std::uint64_t seed) {
  return std::make_unique<AddOperands>(task, context, copies, seed);
}

}  // namespace memwall
