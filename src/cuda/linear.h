// One linear on a GPU, by our kernel or a library's, for the operands that hold one: a linear's and a
// router's.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/cpu_data.h"
#include "bench/device.h"
#include "cuda/weights.h"

namespace memwall::cuda {

// "gemv" (ours, up to 16 rows) and each of the library's arms, by its name. None: no kernel has the format.
std::vector<Variant> linear_variants(const LinearWork& work, std::int64_t rows, Context& context);

// Copies cold; fixed: rows of x and y and the largest workspace.
Footprint linear_footprint(const LinearWork& work, std::int64_t rows, Context& context);

// Weights, and what launching them needs. x and y are the caller's.
class PlacedLinear {
 public:
  PlacedLinear(const LinearWork& work, std::int64_t rows, Context& context, std::int64_t copies,
               std::uint64_t seed);

  // y[rows, out] = x[rows, in] W^T (+ bias: our kernel alone; a library leaves it to the op behind) on copy
  // turn % copies. x and y are of scalar_type(weights().layout().activations), 16-byte aligned, but for the
  // f8 and i8 arms, which read x in their own type from this class's memory, and write bf16 and i32.
  void launch(std::size_t variant, std::int64_t turn, const void* x, void* y);

  // What y holds: bf16, f16, f32 or i32 (as ScalarType::i8).
  ScalarType output_type(std::size_t variant) const;
  std::int64_t output_bytes() const;  // room for y, whatever the variant

  // Adds sampled outputs of that launch to the comparison with float64.
  void compare(Comparison& comparison, std::size_t variant, std::int64_t turn, const void* x,
               const void* y) const;

  const PlacedWeights& weights() const { return weights_; }
  const std::vector<Variant>& variants() const { return variants_; }
  std::int64_t rows() const { return rows_; }

 private:
  std::vector<float> read_x(std::size_t variant, const void* x, std::int64_t row) const;

  struct Arm {
    GemmProblem problem;
    int id = 0;
    bool ours = false;
  };

  Context& context_;
  PlacedWeights weights_;
  std::int64_t rows_;
  std::vector<Variant> variants_;
  std::vector<Arm> arms_;  // a variant's
  Buffer workspace_;       // the largest arm's
  Buffer split_;           // partial sums and counters of our kernel
  Buffer narrow_x_;        // x in 8 bits, and the scales of one: f8 and i8 arms
  LinearLaunch launch_;    // but for pointers
};

}  // namespace memwall::cuda
