// The arithmetic probes on the CPU: multiply-adds on registers alone, on all threads together.
#include <algorithm>
#include <optional>
#include <stdexcept>

#include "bench/cpu_operands.h"
#include "kernels/cpu/arithmetic.h"

namespace memwall {
namespace {

// A launch's products on one thread: a few hundred microseconds of vectors, some thirty of AMX's tiles, so
// that the barrier at its end costs per cents of neither.
constexpr std::int64_t kProducts = 32 * cpu::kMultiplyGrain;

std::optional<cpu::Multiply> multiply_of(ComputeType type) {
  switch (type) {
    case ComputeType::f32:
      return cpu::Multiply::f32;
    case ComputeType::f16:
      return cpu::Multiply::f16;
    case ComputeType::bf16:
      return cpu::Multiply::bf16;
    case ComputeType::int8:
      return cpu::Multiply::int8;
    case ComputeType::tf32:
    case ComputeType::f8:
    case ComputeType::f4:
      break;
  }
  return std::nullopt;
}

class ArithmeticOperands final : public Operands {
 public:
  ArithmeticOperands(cpu::Multiply type, CpuContext& context)
      : context_(context),
        ways_(cpu::multiply_ways(type)),
        product_(cpu::multiply_product(type)),
        sums_(static_cast<std::size_t>(context.pool.size())) {}

  void launch(std::size_t variant, std::int64_t) override {
    const cpu::MultiplyWay& way = ways_.at(variant);
    context_.pool.run([&](int worker) {
      sums_[static_cast<std::size_t>(worker)].value = way.run(kProducts / way.products_a_round);
    });
  }

  double cold_bytes(std::int64_t) const override { return 0; }
  double flops(std::int64_t) const override {
    return 2 * static_cast<double>(kProducts) * static_cast<double>(sums_.size());
  }

  // Every sum is exact.
  Check check(std::size_t variant) override {
    launch(variant, 0);
    Check check;
    for (const Sum& sum : sums_) {
      ++check.outputs;
      if (sum.value != product_ * static_cast<double>(kProducts)) check.worst = 2;
    }
    return check;
  }

 private:
  struct alignas(64) Sum {  // a line a thread
    double value = 0;
  };

  CpuContext& context_;
  std::vector<cpu::MultiplyWay> ways_;
  double product_;
  std::vector<Sum> sums_;
};

}  // namespace

std::vector<Variant> arithmetic_variants(const ArithmeticTask& task) {
  std::vector<Variant> variants;
  const std::optional<cpu::Multiply> type = multiply_of(task.type);
  if (!type) return variants;
  for (const cpu::MultiplyWay& way : cpu::multiply_ways(*type)) variants.push_back({way.name, 0});
  return variants;
}

std::unique_ptr<Operands> place_arithmetic(const ArithmeticTask& task, CpuContext& context) {
  const std::optional<cpu::Multiply> type = multiply_of(task.type);
  if (!type) throw std::logic_error("the CPU has no arithmetic probe of that type");
  return std::make_unique<ArithmeticOperands>(*type, context);
}

}  // namespace memwall
