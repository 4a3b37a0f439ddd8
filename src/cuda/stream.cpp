// The memory probes on a GPU.
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <span>

#include "bench/cpu_data.h"
#include "cuda/operands.h"
#include "cuda/scalar_values.h"
#include "format/checked.h"

namespace memwall::cuda {
namespace {

constexpr float kScale = 0.4F;
constexpr std::int64_t kVector = 16;

// The array on which a read's sum is held to the host's: 3 MiB, which end within a vector of every unit that
// kernels read by, and which blocks for 4 multiprocessors go through several times over.
constexpr std::int64_t kCheckVectors = 200'003;
constexpr int kCheckMultiprocessors = 4;
// 1/8, 1/4, 1/2 or 1: sums of so few are exact in f32, in any order, and one value more or less shows.
constexpr RandomBits kExactSums{0x01800000U, 0x3E000000U};

struct Way {
  const char* name;
  int unroll;
  StreamGrid grid;
  bool full = false;
  unsigned threads = kStreamThreads;
  ReadPath path = ReadPath::loads;
};
constexpr Way kReads[] = {
    {"4 loads", 4, StreamGrid::persistent},
    {"8 loads", 8, StreamGrid::persistent},
    {"16 loads", 16, StreamGrid::persistent},
    {"4 loads, one pass", 4, StreamGrid::one_pass},
    {"8 loads, one pass", 8, StreamGrid::one_pass},
    {"4 loads, all threads", 4, StreamGrid::persistent, true},
    {"4 loads, all threads, one pass", 4, StreamGrid::one_pass, true},
    {"4 loads, all threads, blocks of 512, one pass", 4, StreamGrid::one_pass, true, 512},
    {"asynchronous copies", 4, StreamGrid::persistent, false, kStreamThreads, ReadPath::copies},
    {"bulk copies of 8 KiB", 4, StreamGrid::persistent, false, kStreamThreads, ReadPath::bulk},
    {"bulk copies of 16 KiB", 2, StreamGrid::persistent, false, kStreamThreads, ReadPath::bulk},
};
constexpr Way kWrites[] = {
    {"persistent", kWriteUnroll, StreamGrid::persistent},
    {"one pass", kWriteUnroll, StreamGrid::one_pass},
    {"all threads", kWriteUnroll, StreamGrid::persistent, true},
    {"all threads, one pass", kWriteUnroll, StreamGrid::one_pass, true},
};

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

// The ways that the GPU's architecture takes: a launch each, without addresses, for an array of `vectors` on
// `multiprocessors`.
struct NamedLaunch {
  const char* name;
  StreamLaunch launch;
};
std::vector<NamedLaunch> launches_of(const StreamTask& task, const GpuProperties& gpu, std::int64_t vectors,
                                     int multiprocessors) {
  const bool reads = task.pattern == StreamPattern::read;
  std::vector<NamedLaunch> launches;
  for (const Way& way : reads ? std::span<const Way>(kReads) : std::span<const Way>(kWrites)) {
    const StreamLaunch launch{.kind = kind_of(task.pattern),
                              .path = way.path,
                              .unroll = way.unroll,
                              .threads = way.threads,
                              .full = way.full,
                              .streaming = task.nontemporal,
                              .params = {.vectors = vectors}};
    if (stream_takes(launch, gpu.arch.major, gpu.arch.minor))
      launches.push_back({way.name, with_geometry(launch, way.grid, gpu.arch, multiprocessors)});
  }
  return launches;
}
std::vector<NamedLaunch> launches_of(const StreamTask& task, const GpuProperties& gpu) {
  return launches_of(task, gpu, vectors_of(task), gpu.multiprocessors);
}
// The same ways on what a read is checked with: as many vectors as the array has where those are few.
std::vector<NamedLaunch> checks_of(const StreamTask& task, const GpuProperties& gpu) {
  const bool few = vectors_of(task) <= kCheckVectors;
  return launches_of(task, gpu, std::min(vectors_of(task), kCheckVectors),
                     few ? gpu.multiprocessors : kCheckMultiprocessors);
}

// What the launches of a read leave at the most.
std::int64_t most_sums(const StreamTask& task, const GpuProperties& gpu) {
  std::int64_t most = 0;
  for (const auto& launches : {launches_of(task, gpu), checks_of(task, gpu)}) {
    for (const NamedLaunch& each : launches) most = std::max<std::int64_t>(most, each.launch.geometry.grid_x);
  }
  return most;
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
    launches_ = launches_of(task, gpu_.properties());
    if (task.pattern != StreamPattern::read) return;
    checks_ = checks_of(task, gpu_.properties());
    sums_ = Buffer(gpu_, most_sums(task, gpu_.properties()) * kFloat);
    checked_ = Buffer(gpu_, std::min(vectors_, kCheckVectors) * kVector);
    fill_random(gpu_, checked_.data(), checked_.bytes(), kExactSums, seed);
  }

  void launch(std::size_t variant, std::int64_t turn) override {
    StreamLaunch launch = launches_[variant].launch;
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
  static constexpr double kExactTolerance = 1e-6;

  std::int64_t elements() const { return vectors_ * (kVector / kFloat); }
  std::byte* array(std::int64_t turn, std::int64_t index) const {
    return buffer_.data() + ((turn % copies_) * task_.arrays() + index) * stride_;
  }

  // The blocks' sums together against the host's, on the small array; and of the whole array, which the host
  // need not see, that every block has left one.
  Check check_read(std::size_t variant) {
    if (!expected_) {
      double sum = 0;
      for (const float value : download<float>(gpu_, checked_.data(), checked_.bytes() / kFloat))
        sum += static_cast<double>(value);
      expected_ = sum;
    }
    StreamLaunch small = checks_[variant].launch;
    small.params.a = checked_.data();
    small.params.sums = sums_.as<float>();
    poison(gpu_, sums_.data(), sums_.bytes());
    gpu_.launch(small);
    double measured = 0;
    for (const float part : download<float>(gpu_, sums_.data(), small.geometry.grid_x))
      measured += static_cast<double>(part);
    Comparison comparison;
    comparison.add(measured, *expected_, kExactTolerance);
    poison(gpu_, sums_.data(), sums_.bytes());
    launch(variant, 0);
    for (const float part : download<float>(gpu_, sums_.data(), launches_[variant].launch.geometry.grid_x))
      comparison.add(std::isfinite(part) ? 0 : std::numeric_limits<double>::quiet_NaN(), 0, 1);
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
  std::vector<NamedLaunch> launches_;
  // Of a read alone.
  std::vector<NamedLaunch> checks_;
  Buffer sums_;
  Buffer checked_;
  std::optional<double> expected_;  // the sum of `checked_`
};

}  // namespace

std::vector<Variant> variants_of(const StreamTask& task, Context& context) {
  std::vector<Variant> variants;
  for (const NamedLaunch& each : launches_of(task, context.gpu.properties()))
    variants.push_back({each.name, 0});
  return variants;
}

Footprint footprint_of(const StreamTask& task, Context& context) {
  Footprint footprint;
  footprint.copy_bytes = checked_mul(array_stride(task), task.arrays());
  if (task.pattern == StreamPattern::read) {
    footprint.fixed_bytes =
        most_sums(task, context.gpu.properties()) * 4 + std::min(vectors_of(task), kCheckVectors) * kVector;
  }
  return footprint;
}

std::unique_ptr<Operands> place(const StreamTask& task, Context& context, std::int64_t copies,
                                std::uint64_t seed) {
  return std::make_unique<StreamOperands>(task, context, copies, seed);
}

}  // namespace memwall::cuda
