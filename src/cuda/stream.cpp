// The memory probes on a GPU.
#include <algorithm>
#include <cmath>

#include "bench/cpu_data.h"
#include "cuda/operands.h"
#include "cuda/scalar_values.h"
#include "format/checked.h"

namespace memwall::cuda {
namespace {

constexpr float kScale = 0.4F;
constexpr std::int64_t kVector = 16;

struct Way {
  const char* name;
  int unroll;
  StreamGrid grid;
};
constexpr Way kReads[] = {{"4 loads", 4, StreamGrid::persistent},
                          {"8 loads", 8, StreamGrid::persistent},
                          {"16 loads", 16, StreamGrid::persistent},
                          {"4 loads, one pass", 4, StreamGrid::one_pass},
                          {"8 loads, one pass", 8, StreamGrid::one_pass}};
constexpr Way kWrites[] = {{"persistent", kWriteUnroll, StreamGrid::persistent},
                           {"one pass", kWriteUnroll, StreamGrid::one_pass}};

std::vector<Way> ways(const StreamTask& task) {
  if (task.pattern == StreamPattern::read) return {std::begin(kReads), std::end(kReads)};
  return {std::begin(kWrites), std::end(kWrites)};
}

StreamKind kind_of(StreamPattern pattern) {
  switch (pattern) {
    case StreamPattern::copy:
      return StreamKind::copy;
    case StreamPattern::scale:
      return StreamKind::scale;
    case StreamPattern::add:
      return StreamKind::add;
    case StreamPattern::triad:
      return StreamKind::triad;
    case StreamPattern::read:
      break;
  }
  return StreamKind::read;
}

// Whole vectors, one at least.
std::int64_t vectors_of(const StreamTask& task) { return std::max<std::int64_t>(1, task.bytes / kVector); }
std::int64_t array_stride(const StreamTask& task) {
  return aligned_256(checked_mul(vectors_of(task), kVector));
}

class StreamOperands final : public Operands {
 public:
  StreamOperands(const StreamTask& task, Context& context, std::int64_t copies, std::uint64_t seed)
      : task_(task),
        gpu_(context.gpu),
        copies_(copies),
        vectors_(vectors_of(task)),
        stride_(array_stride(task)),
        buffer_(gpu_, checked_mul(checked_mul(copies, task.arrays()), stride_)) {
    fill_random(gpu_, buffer_.data(), buffer_.bytes(), kFloat32, seed);
    std::int64_t most_blocks = 0;
    for (const Way& way : ways(task)) {
      launches_.push_back(with_geometry({.kind = kind_of(task.pattern),
                                         .unroll = way.unroll,
                                         .streaming = task.nontemporal,
                                         .params = {.vectors = vectors_}},
                                        way.grid, gpu_.properties().multiprocessors));
      most_blocks = std::max<std::int64_t>(most_blocks, launches_.back().geometry.grid_x);
    }
    if (task.pattern == StreamPattern::read) sums_ = Buffer(gpu_, most_blocks * kFloat);
  }

  void launch(std::size_t variant, std::int64_t turn) override {
    StreamLaunch launch = launches_[variant];
    launch.params.a = array(turn, 0);
    launch.params.b = array(turn, 1);
    launch.params.c = array(turn, task_.arrays() - 1);
    launch.params.sums = sums_.as<float>();
    gpu_.launch(launch);
  }

  double cold_bytes(std::int64_t) const override {
    return static_cast<double>(task_.arrays() * vectors_ * kVector);
  }
  double flops(std::int64_t) const override {
    const bool computes = task_.pattern != StreamPattern::read && task_.pattern != StreamPattern::copy;
    const double each = task_.pattern == StreamPattern::triad ? 2 : computes ? 1 : 0;
    return each * static_cast<double>(elements());
  }

  Check check(std::size_t variant) override {
    return task_.pattern == StreamPattern::read ? check_read(variant) : check_written(variant);
  }

 private:
  static constexpr std::int64_t kFloat = 4;

  std::int64_t elements() const { return vectors_ * (kVector / kFloat); }
  std::byte* array(std::int64_t turn, std::int64_t index) const {
    return buffer_.data() + ((turn % copies_) * task_.arrays() + index) * stride_;
  }

  // The blocks' sums together against a float64 sum of the whole array.
  Check check_read(std::size_t variant) {
    const std::int64_t blocks = launches_[variant].geometry.grid_x;
    poison(gpu_, sums_.data(), blocks * kFloat);
    launch(variant, 0);
    double sum = 0;
    double magnitudes = 0;
    constexpr std::int64_t kChunk = std::int64_t{1} << 22;  // the host need not hold all of it
    for (std::int64_t at = 0; at < elements(); at += kChunk) {
      const std::int64_t count = std::min(kChunk, elements() - at);
      for (const float value : download<float>(gpu_, array(0, 0) + at * kFloat, count)) {
        sum += static_cast<double>(value);
        magnitudes += std::abs(static_cast<double>(value));
      }
    }
    double measured = 0;
    for (const float part : download<float>(gpu_, sums_.data(), blocks))
      measured += static_cast<double>(part);
    Comparison comparison;
    comparison.add(measured, sum, dot_tolerance(elements(), magnitudes));
    return comparison.result();
  }

  // Runs of elements spread over the arrays, the first and the last among them.
  Check check_written(std::size_t variant) {
    poison(gpu_, array(0, task_.arrays() - 1), elements() * kFloat);
    launch(variant, 0);
    Comparison comparison;
    constexpr std::int64_t kRun = 32;
    const std::int64_t run = std::min(kRun, elements());
    for (const std::int64_t first : sample_indices(elements() - run + 1, 32)) {
      const auto values = [&](std::int64_t index) {
        return download_values(gpu_, ScalarType::f32, array(0, index) + first * kFloat, run);
      };
      const std::vector<double> a = values(0);
      const std::vector<double> b = values(1);
      const std::vector<double> c = values(task_.arrays() - 1);
      for (std::size_t i = 0; i < c.size(); ++i) {
        const double expected = expected_output(a[i], b[i]);
        comparison.add(c[i], expected, 1e-6 * (1 + std::abs(expected)));
      }
    }
    return comparison.result();
  }

  double expected_output(double a, double b) const {
    const double scale = static_cast<double>(kScale);
    switch (task_.pattern) {
      case StreamPattern::scale:
        return scale * a;
      case StreamPattern::add:
        return a + b;
      case StreamPattern::triad:
        return a + scale * b;
      default:
        return a;
    }
  }

  StreamTask task_;
  Gpu& gpu_;
  std::int64_t copies_;
  std::int64_t vectors_;
  std::int64_t stride_;
  Buffer buffer_;
  Buffer sums_;
  std::vector<StreamLaunch> launches_;  // a variant each, without addresses
};

}  // namespace

std::vector<Variant> variants_of(const StreamTask& task, Context&) {
  std::vector<Variant> variants;
  for (const Way& way : ways(task)) variants.push_back({way.name, 0});
  return variants;
}

Footprint footprint_of(const StreamTask& task, Context& context) {
  Footprint footprint;
  footprint.copy_bytes = checked_mul(array_stride(task), task.arrays());
  if (task.pattern == StreamPattern::read) {
    for (const Way& way : ways(task)) {
      const std::int64_t blocks = stream_blocks(StreamKind::read, way.unroll, vectors_of(task), way.grid,
                                                context.gpu.properties().multiprocessors);
      footprint.fixed_bytes = std::max(footprint.fixed_bytes, blocks * 4);
    }
  }
  return footprint;
}

std::unique_ptr<Operands> place(const StreamTask& task, Context& context, std::int64_t copies,
                                std::uint64_t seed) {
  return std::make_unique<StreamOperands>(task, context, copies, seed);
}

}  // namespace memwall::cuda
