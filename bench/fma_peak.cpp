// How many multiply-adds the cores do, with nothing to load.
#include "bench/paired.h"
#include "kernels/cpu/highway_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "bench/fma_peak.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
//
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace memwall::benchmarks::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Returns the FLOPs done; `sink` keeps the compiler from leaving them out. 12 chains cover two units' latency
// of 4 to 5 cycles and leave SSE and AVX their operands among 16 registers.
double multiply_add(std::int64_t rounds, float* sink) {
  const hn::CappedTag<float, 16> d;
  constexpr std::size_t kChains = 12;
  hn::Vec<decltype(d)> sums[kChains];
  for (auto& sum : sums) sum = hn::Zero(d);
  const auto a = hn::Set(d, sink[0]);
  const auto b = hn::Set(d, sink[1]);
  for (std::int64_t i = 0; i < rounds; ++i) {
    for (auto& sum : sums) sum = hn::MulAdd(sum, a, b);
  }
  auto total = hn::Zero(d);
  for (const auto& sum : sums) total = hn::Add(total, sum);
  sink[2] = hn::GetLane(hn::SumOfLanes(d, total));
  return 2.0 * static_cast<double>(rounds) * static_cast<double>(kChains * hn::Lanes(d));
}

}  // namespace memwall::benchmarks::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <chrono>
#include <numeric>

namespace memwall::benchmarks {
HWY_EXPORT(multiply_add);

double sample_fma_peak(ThreadPool& pool) {
  constexpr std::int64_t kRounds = 250'000;
  struct alignas(64) Sink {
    float values[4] = {0.5F, 1.0F, 0.0F, 0.0F};
  };
  std::vector<Sink> sinks(static_cast<std::size_t>(pool.size()));
  std::vector<double> flops(sinks.size());
  const auto start = std::chrono::steady_clock::now();
  pool.run([&](int worker) {
    const auto at = static_cast<std::size_t>(worker);
    flops[at] = HWY_DYNAMIC_DISPATCH(multiply_add)(kRounds, sinks[at].values);
  });
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  return std::accumulate(flops.begin(), flops.end(), 0.0) / seconds.count();
}

}  // namespace memwall::benchmarks
#endif  // HWY_ONCE
