// The frame of the benchmark programs: each case's launches stand between two samples of the read bandwidth
// and beside one of the FMA peak, so that its shares hold on a machine whose memory drifts. All cases take
// turns at random, and a closing table gives the medians over all repetitions with their 95 % intervals.
//
//   cmake --preset release && cmake --build --preset release
//   build/release/bench/gemv_benchmark
//   build/release/bench/skinny_benchmark --benchmark_filter=q8_0 --benchmark_repetitions=20
//   MEMWALL_INSTRUCTION_SET=AVX2 OPENBLAS_CORETYPE=Haswell build/release/bench/gemv_benchmark
//
// The first variable names the set that the kernels and the probes use (AVX3_DL, AVX3, AVX2, SSE4; the best
// without it), the second is OpenBLAS's own. Operands are random, on huge pages, 128 MiB at least of what
// must be cold; every pinned thread of the default choice takes part. Every case is held to its float64
// reference first.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench/cpu_operands.h"
#include "bench/sampler.h"

namespace memwall::benchmarks {

// What must be cold, at least.
inline constexpr std::int64_t kLeastBytes = std::int64_t{128} << 20;

// The device with its probes.
struct Rig {
  Rig();  // takes MEMWALL_INSTRUCTION_SET; throws std::invalid_argument where the machine lacks it
  std::unique_ptr<Device> device;
  CpuContext& context;
  ReadCeiling ceiling;
};

using Placer = std::function<std::unique_ptr<Operands>(Rig&)>;

// One thing to time.
struct Case {
  std::string name{};
  Placer place{};
  std::size_t variant = 0;
  std::int64_t launches = 1;  // an iteration
  // Another case's name, launched once beside each iteration: `speed` is that one's time over this one's.
  std::string beside{};
};

class Suite {
 public:
  explicit Suite(Rig& rig) : rig_(rig) {}

  void add(Case added);
  // A task of the device's, by its variant of that name, or its only one where that is "". `rotate`: an
  // iteration launches every copy; without it, one (compute-bound ones take long).
  void add(const std::string& name, const Task& task, const std::string& variant, bool rotate = true,
           const std::string& beside = "");

  // Runs what the command line asks for. Returns an exit status.
  int run(int argc, char** argv);

 private:
  struct Entry;
  void measure(Entry& entry, void* state);
  Operands& placed(Entry& entry);
  Entry& entry(const std::string& name);
  void print_table() const;

  Rig& rig_;
  std::vector<std::shared_ptr<Entry>> entries_;
};

// main()'s body: makes the rig, lets `add_cases` fill the suite and runs it; errors are one line.
int run_suite(int argc, char** argv, const std::function<void(Suite&)>& add_cases);

// A matrix of kLeastBytes, rounded up to whole panels.
LinearWork large_linear(const std::string& format, std::int64_t in);

// FLOP/s of multiply-adds on registers alone, f32, on all threads: about a millisecond.
double sample_fma_peak(ThreadPool& pool);

// OpenBLAS's sgemv (rows 1) or sgemm (more) on an f32 matrix [out, in], row-major; each thread has its part
// of the outputs. `copies` are rotated.
std::unique_ptr<Operands> place_blas(std::int64_t out, std::int64_t in, std::int64_t rows,
                                     CpuContext& context, std::int64_t copies);

}  // namespace memwall::benchmarks
