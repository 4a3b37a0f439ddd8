// Weight matrices in a GPU's memory, cold copies of one shape, laid out for its kernels, and their values as
// a reference reads them.
#pragma once

#include <cstdint>
#include <vector>

#include "cost/op.h"
#include "cuda/context.h"
#include "kernels/cuda/linear.h"

namespace memwall::cuda {

ScalarType scalar_type(ActivationType type);

// f32 for f32, bf16 for bf16, else f16: of the activations beside a weight format, and of a bias or a norm's
// weight in it.
ActivationType activation_type(Format format);

RandomBits random_activations(ActivationType type);

// Values of an activation buffer.
std::vector<float> download_activations(Gpu& gpu, ActivationType type, const void* from, std::int64_t count);

// f16 and bf16 round their result: half an ulp of it, beside the tolerance of its sum.
double rounding_tolerance(ActivationType type, double value);

// `copies` matrices (and biases) filled with random values of magnitude 1/8 to 2; quantised ones with random
// codes under positive scales.
class PlacedWeights {
 public:
  PlacedWeights(const LinearWork& work, Context& context, std::int64_t copies, std::uint64_t seed);

  // Else there is no kernel and no placement.
  static bool supports(const LinearWork& work);
  // What one copy allocates, padding and bias included.
  static std::int64_t copy_bytes(const LinearWork& work);

  // Copy `copy % copies`, its outputs to y.
  LinearSegment segment(std::int64_t copy, void* y) const;

  double bytes() const;    // compulsory: the format's, and the bias's
  double padding() const;  // of a copy: what a launch reads beyond them
  const LinearWork& work() const { return work_; }
  const LinearLayout& layout() const { return layout_; }
  std::int64_t copies() const { return copies_; }
  // From a matrix to the next.
  std::int64_t stride() const { return stride_; }

  // The exact values of row `out`, downloaded; and its bias, 0 where there is none.
  std::vector<float> row(std::int64_t copy, std::int64_t out) const;
  float bias(std::int64_t copy, std::int64_t out) const;

 private:
  void fill(std::byte* matrix, std::uint64_t seed) const;
  std::byte* matrix(std::int64_t copy) const { return buffer_.data() + copy % copies_ * stride_; }

  LinearWork work_;
  LinearLayout layout_;
  Gpu& gpu_;
  std::int64_t copies_;
  std::int64_t stride_;
  Buffer buffer_;
};

}  // namespace memwall::cuda
