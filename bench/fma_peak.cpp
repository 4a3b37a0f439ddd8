// How many multiply-adds the cores do, with nothing to load.
#include <chrono>
#include <numeric>

#include "bench/paired.h"
#include "kernels/cpu/arithmetic.h"

namespace memwall::benchmarks {

double sample_fma_peak(ThreadPool& pool) {
  // Of the instruction set that the kernels are held to.
  const cpu::MultiplyWay way = cpu::multiply_ways(cpu::Multiply::f32).front();
  const std::int64_t rounds = 32 * cpu::kMultiplyGrain / way.products_a_round;
  std::vector<double> sums(static_cast<std::size_t>(pool.size()) * 8);  // a line a thread
  const auto start = std::chrono::steady_clock::now();
  pool.run([&](int worker) { sums[static_cast<std::size_t>(worker) * 8] = way.run(rounds); });
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  return 2 * std::accumulate(sums.begin(), sums.end(), 0.0) / seconds.count();  // each product is 1
}

}  // namespace memwall::benchmarks
