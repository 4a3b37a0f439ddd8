// Weight matrices on the CPU, laid out in panels, and running linears over them on all threads.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/cpu_data.h"
#include "bench/cpu_operands.h"
#include "bench/memory.h"
#include "kernels/cpu/linear.h"

namespace memwall {

// A linear's kernels are its variants: "dot", "gemm", "blas".
cpu::LinearKernel linear_kernel(const Variant& variant);

// The rows of a launch: `total` in all, in `batches` linears of their own, `a_matrix` of them each on
// average, which decides the variants.
struct LinearRows {
  std::int64_t total = 0;
  std::int64_t batches = 1;
  std::int64_t a_matrix = 0;
};

// Room for what linear kernels need beside their operands: prepared activations, and scratch for each
// worker, a library's own buffers included. For the largest of the variants.
std::int64_t linear_workspace_bytes(const LinearWork& work, const LinearRows& rows, int workers);

class LinearWorkspace {
 public:
  LinearWorkspace(const LinearWork& work, const LinearRows& rows, int workers);

  // Runs the linears, which share a format and an input width, in two phases: their activations are
  // prepared, then every worker takes its part of each one's panels. Their `prepared` is set here.
  void run(ThreadPool& pool, cpu::LinearKernel kernel, std::vector<cpu::Linear>& ops);

 private:
  std::vector<std::uint64_t> prepared_;  // whole words, for the alignment
  std::vector<std::vector<float>> scratch_;
};

// Cold copies of one weight matrix, each panel first touched by the worker that will read it.
class PanelWeights {
 public:
  PanelWeights(const LinearWork& work, CpuContext& context, std::int64_t copies, std::uint64_t seed);

  cpu::Linear bind(std::int64_t copy, const float* x, std::int64_t rows, float* y) const;

  // Adds output `out` of a row of x, which it came from by that kernel, to the comparison with float64. The
  // integer kernels are held to the activations as they quantise them.
  void compare(Comparison& comparison, cpu::LinearKernel kernel, std::int64_t copy, const float* x,
               const float* y, std::int64_t out) const;

  double padding() const;                                  // of a matrix: rows that fill up its last panel
  double bytes() const;                                    // compulsory: the format's, and the bias's
  static std::int64_t copy_bytes(const LinearWork& work);  // with padding
  std::int64_t copies() const { return copies_; }
  const LinearWork& work() const { return work_; }

 private:
  std::byte* matrix(std::int64_t copy) const { return buffer_.data() + copy % copies_ * copy_bytes(work_); }

  LinearWork work_;
  std::int64_t copies_;
  HugeBuffer buffer_;
  std::vector<float> bias_;
};

// Those of an expert op's launch.
LinearRows expert_rows(const ExpertWork& work, std::int64_t tokens);

}  // namespace memwall
