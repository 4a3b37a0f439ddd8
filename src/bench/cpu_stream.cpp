// The memory probes on the CPU.
#include <cmath>
#include <span>

#include "bench/cpu_data.h"
#include "bench/cpu_operands.h"
#include "kernels/cpu/stream.h"

namespace memwall {
namespace {

class StreamOperands final : public Operands {
 public:
  StreamOperands(const StreamTask& task, CpuContext& context, std::int64_t copies, std::uint64_t seed)
      : task_(task),
        context_(context),
        copies_(copies),
        elements_(task.bytes / 4),
        buffer_(static_cast<std::size_t>(copies * task.arrays() * elements_ * 4)),
        sums_(static_cast<std::size_t>(context.pool.size())) {
    for (std::int64_t i = 0; i < copies * task_.arrays(); ++i) {
      float* array = buffer_.as<float>() + i * elements_;
      context.pool.split(elements_, kGrain, [&](int, std::int64_t first, std::int64_t last) {
        fill_random_floats(std::span(array + first, static_cast<std::size_t>(last - first)), seed,
                           static_cast<std::uint64_t>(i * elements_ + first));
      });
    }
    context.huge_share = buffer_.huge_share();
  }

  void launch(std::size_t variant, std::int64_t turn) override {
    const cpu::Stores stores = task_.nontemporal ? cpu::Stores::nontemporal : cpu::Stores::ordinary;
    const float* a = array(turn, 0);
    const float* b = array(turn, 1);
    float* out = array(turn, task_.arrays() - 1);
    context_.pool.split(elements_, kGrain, [&](int worker, std::int64_t first, std::int64_t last) {
      switch (task_.pattern) {
        case StreamPattern::read:
          sums_[static_cast<std::size_t>(worker)] = cpu::read(a, first, last, 1 << variant);
          return;
        case StreamPattern::copy:
          return cpu::copy(a, out, first, last, stores);
        case StreamPattern::scale:
          return cpu::scale(a, out, kScale, first, last, stores);
        case StreamPattern::add:
          return cpu::add(a, b, out, first, last, stores);
        case StreamPattern::triad:
          return cpu::triad(a, b, out, kScale, first, last, stores);
      }
    });
  }

  double cold_bytes(std::int64_t) const override {
    return static_cast<double>(task_.arrays() * elements_ * 4);
  }
  double flops(std::int64_t) const override {
    const bool computes = task_.pattern != StreamPattern::read && task_.pattern != StreamPattern::copy;
    const double each = task_.pattern == StreamPattern::triad ? 2 : computes ? 1 : 0;
    return each * static_cast<double>(elements_);
  }

  Check check(std::size_t variant) override {
    launch(variant, 0);
    Comparison comparison;
    if (task_.pattern == StreamPattern::read) {
      double sum = 0;
      double magnitudes = 0;
      for (std::int64_t i = 0; i < elements_; ++i) {
        sum += value(0, i);
        magnitudes += std::abs(value(0, i));
      }
      double measured = 0;
      for (const float part : sums_) measured += static_cast<double>(part);
      comparison.add(measured, sum, dot_tolerance(elements_, magnitudes));
      return comparison.result();
    }
    for (const std::int64_t i : sample_indices(elements_, 1000)) {
      const double expected = expected_output(i);
      comparison.add(value(task_.arrays() - 1, i), expected, 1e-6 * (1 + std::abs(expected)));
    }
    return comparison.result();
  }

 private:
  static constexpr std::int64_t kGrain = 1024;
  static constexpr float kScale = 0.4F;
  float* array(std::int64_t turn, std::int64_t index) const {
    return buffer_.as<float>() + ((turn % copies_) * task_.arrays() + index) * elements_;
  }
  double value(std::int64_t index, std::int64_t at) const { return static_cast<double>(array(0, index)[at]); }
  double expected_output(std::int64_t at) const {
    const double scale = static_cast<double>(kScale);
    switch (task_.pattern) {
      case StreamPattern::scale:
        return scale * value(0, at);
      case StreamPattern::add:
        return value(0, at) + value(1, at);
      case StreamPattern::triad:
        return value(0, at) + scale * value(1, at);
      default:
        return value(0, at);
    }
  }

  StreamTask task_;
  CpuContext& context_;
  std::int64_t copies_;
  std::int64_t elements_;
  HugeBuffer buffer_;
  std::vector<float> sums_;
};

}  // namespace

std::unique_ptr<Operands> place_stream(const StreamTask& task, CpuContext& context, std::int64_t copies,
                                       std::uint64_t seed) {
  return std::make_unique<StreamOperands>(task, context, copies, seed);
}

}  // namespace memwall
