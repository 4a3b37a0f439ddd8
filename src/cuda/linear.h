// One linear on a GPU, by our kernel or a library's, for the operands that hold one: a linear's and a
// router's.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "bench/cpu_data.h"
#include "bench/device.h"
#include "cuda/quantized_input.h"
#include "cuda/weights.h"

namespace memwall::cuda {

// "gemv" (ours, up to 16 rows) and each of the library's arms, by its name and what runs or is left out
// beside it: "cublasLt 3 (...) + quantise x". None: no kernel has the format.
std::vector<Variant> linear_variants(const LinearWork& work, std::int64_t rows, Context& context);

// Copies cold; fixed: rows of x and y, what quantising takes, and the largest workspace.
Footprint linear_footprint(const LinearWork& work, std::int64_t rows, Context& context);

// Weights, and what launching them needs. x and y are the caller's.
class PlacedLinear {
 public:
  PlacedLinear(const LinearWork& work, std::int64_t rows, Context& context, std::int64_t copies,
               std::uint64_t seed);

  // y[rows, out] = x[rows, in] W^T (+ bias: our kernel, and the int8 arms; other arms leave it out) on copy
  // turn % copies. x is of scalar_type(weights().layout().activations) and y of output_type(), both 16-byte
  // aligned. The f8 and int8 arms quantise x first, in launches of their own, and int8's sums get their
  // scales by one more.
  void launch(std::size_t variant, std::int64_t turn, const void* x, void* y);

  // What y holds: the layer's activations, but of the f8 arms bf16.
  ScalarType output_type(std::size_t variant) const;
  std::int64_t output_bytes() const;  // of y, whatever the variant

  // Overwrites y and x as quantised, so that what a launch leaves out does not pass for an older one's.
  void forget(void* y);

  // Adds sampled outputs of that launch to the comparison with float64; of the arms that quantise x, what
  // they made of it too, and the outputs against the product of that.
  void compare(Comparison& comparison, std::size_t variant, std::int64_t turn, const void* x,
               const void* y) const;

  const PlacedWeights& weights() const { return weights_; }
  const std::vector<Variant>& variants() const { return variants_; }
  std::int64_t rows() const { return rows_; }

 private:
  void scale_sums(const LinearSegment& segment);
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
  std::vector<Arm> arms_;                    // a variant's
  Buffer workspace_;                         // the largest arm's
  Buffer split_;                             // partial sums and counters of our kernel
  std::optional<QuantizedInput> quantized_;  // f8 and i8 arms
  Buffer sums_;                              // i8 arms' products, i32
  LinearLaunch launch_;                      // but for pointers
};

}  // namespace memwall::cuda
