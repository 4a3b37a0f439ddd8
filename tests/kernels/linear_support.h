// What the linears' tests share: matrices in panels, linears in float64, running a kernel in exact rooms.
#pragma once

#include <algorithm>
#include <cmath>

#include "kernels/cpu/linear.h"
#include "kernels/cpu/panel_layout.h"
#include "support.h"

namespace memwall::cpu {

// y = x W^T in f64, and the sum of |w x|, which scales the error that f32 may make.
struct LinearReference {
  LinearReference(const std::vector<float>& weights, const std::vector<float>& x, std::int64_t out,
                  std::int64_t in, std::int64_t rows)
      : out_(out), y(static_cast<std::size_t>(rows * out)), magnitude(y.size()) {
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t o = 0; o < out; ++o) {
        double sum = 0.0;
        double absolute = 0.0;
        const float* w = weights.data() + o * in;
        const float* column = x.data() + r * in;
        for (std::int64_t i = 0; i < in; ++i) {
          const double product = static_cast<double>(w[i]) * static_cast<double>(column[i]);
          sum += product;
          absolute += std::fabs(product);
        }
        y[static_cast<std::size_t>(r * out + o)] = sum;
        magnitude[static_cast<std::size_t>(r * out + o)] = absolute;
      }
    }
  }

  // Rounding errors of 2^-24 that accumulate like a random walk, four deviations of it; a bias adds its own.
  double tolerance(std::size_t i, std::int64_t in) const {
    return 4.0 * std::sqrt(static_cast<double>(in)) * std::ldexp(magnitude[i], -24) + 1e-30;
  }

  void check(const std::vector<float>& got, std::int64_t rows, std::int64_t in,
             const std::string& what) const {
    for (std::size_t i = 0; i < static_cast<std::size_t>(rows * out_); ++i) {
      ASSERT_NEAR(static_cast<double>(got[i]), y[i], tolerance(i, in)) << what << " output " << i;
    }
  }

 private:
  std::int64_t out_;

 public:
  std::vector<double> y;
  std::vector<double> magnitude;
};

// Those that take the format.
inline std::vector<LinearKernel> linear_kernels(Format format) {
  std::vector<LinearKernel> kernels;
  for (const LinearKernel kernel :
       {LinearKernel::dot, LinearKernel::gemm, LinearKernel::gemm_int8, LinearKernel::blas}) {
    if (takes_format(kernel, format)) kernels.push_back(kernel);
  }
  return kernels;
}

inline std::string name_of(LinearKernel kernel) {
  switch (kernel) {
    case LinearKernel::dot:
      return "dot";
    case LinearKernel::gemm:
      return "gemm";
    case LinearKernel::gemm_int8:
      return "gemm int8";
    case LinearKernel::blas:
      return "blas";
  }
  return "";
}

inline const std::vector<Format>& panel_formats() {
  static const std::vector<Format> all = {
      {FormatKind::f32},
      {FormatKind::f16},
      {FormatKind::bf16},
      {FormatKind::f8_e4m3},
      {FormatKind::f8_e4m3_channel},
      {FormatKind::f8_e4m3_b128},
      {FormatKind::q8_0},
      {FormatKind::q4_0},
      {FormatKind::mxfp4},
      {FormatKind::int4_group, 32},
      {FormatKind::int4_group, 64},
      {FormatKind::int4_group, 128},
      {FormatKind::int4_group, 128, true},
      {FormatKind::int4_group, 32, true},
      {FormatKind::int4_group, 64, true, true},
      {FormatKind::int4_group, 0},
      {FormatKind::int4_group, 0, true},
  };
  return all;
}

// A matrix in panels, and the values that its bytes stand for.
struct PanelMatrix {
  PanelMatrix(Format f, const std::vector<float>& source, std::int64_t o, std::int64_t i)
      : format(f), out(o), in(i), bytes(static_cast<std::size_t>(panel_matrix_bytes(f, o, i))) {
    pack_panels(f, source.data(), out, in, bytes.data());
    read_back();
  }
  void read_back() {
    values.resize(static_cast<std::size_t>(out * in));
    for (std::int64_t row = 0; row < out; ++row) {
      unpack_panel_row(format, bytes.data(), out, in, row, values.data() + row * in);
    }
  }
  Format format;
  std::int64_t out;
  std::int64_t in;
  std::vector<std::uint8_t> bytes;
  std::vector<float> values;
};

// Prepares and runs panels [first, last) in rooms of exactly the sizes asked for; prepares in `parts` parts.
inline void run_linear(LinearKernel kernel, Linear op, std::int64_t first, std::int64_t last,
                       std::int64_t parts = 1) {
  Exact<std::uint8_t> prepared(std::vector<std::uint8_t>(
      static_cast<std::size_t>(prepared_bytes(kernel, op.format, op.rows, op.in)), 0xFF));
  Exact<float> scratch(std::vector<float>(
      static_cast<std::size_t>(linear_scratch_floats(kernel, op.format, op.in)), std::nanf("")));
  if (prepared_bytes(kernel, op.format, op.rows, op.in) > 0) op.prepared = prepared.data();
  const std::int64_t units = prepare_units(kernel, op.format, op.rows, op.in);
  for (std::int64_t part = 0; part < parts; ++part) {
    prepare(kernel, op, units * part / parts, units * (part + 1) / parts);
  }
  linear(kernel, op, first, last, scratch.data());
}

// x as the kernel reads it: the integer products see it in 8 bits.
inline std::vector<float> as_read(LinearKernel kernel, Format format, const std::vector<float>& x,
                                  std::int64_t in) {
  if (!quantises_activations(kernel, format)) return x;
  std::vector<float> read(x.size());
  for (std::size_t row = 0; row < x.size(); row += static_cast<std::size_t>(in)) {
    for (std::int64_t block = 0; block < in; block += 32) {
      const std::int64_t count = std::min<std::int64_t>(32, in - block);
      const float* from = x.data() + row + block;
      float largest = 0.0F;
      for (std::int64_t i = 0; i < count; ++i) largest = std::max(largest, std::fabs(from[i]));
      for (std::int64_t i = 0; i < count; ++i) {
        // As the kernel rounds: the product with 127 / largest to nearest even.
        const float quant = largest > 0 ? std::nearbyintf(from[i] * (127.0F / largest)) : 0.0F;
        read[row + static_cast<std::size_t>(block + i)] = quant * (largest / 127.0F);
      }
    }
  }
  return read;
}

}  // namespace memwall::cpu
