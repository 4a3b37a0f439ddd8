#include "kernels/cpu/linear.h"

#include <algorithm>
#include <cstddef>
#include <stdexcept>

#include "kernels/cpu/blas.h"
#include "kernels/cpu/highway_targets.h"
#include "kernels/cpu/widen.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/linear.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
//
#include "hwy/highway.h"
#include "kernels/cpu/dot-inl.h"

HWY_BEFORE_NAMESPACE();
namespace memwall::cpu::HWY_NAMESPACE {

// R rows from `row` on against every column of x. The tiles of columns are the inner loop: the rows come
// from memory for the first tile and from the cache for the others.
template <class Rows, std::size_t R>
HWY_INLINE void outputs(const Linear& op, std::size_t stride, std::int64_t row) {
  const std::uint8_t* weights =
      static_cast<const std::uint8_t*>(op.weights) + static_cast<std::size_t>(row) * stride;
  const std::size_t in = static_cast<std::size_t>(op.in);
  float out[kTileRows * kTileColumns];
  for (std::int64_t column = 0; column < op.rows; column += kTileColumns) {
    const std::size_t columns = std::min(static_cast<std::size_t>(op.rows - column), kTileColumns);
    dot_columns<Rows, R>(weights, stride, weights + R * stride, op.x + column * op.in, in, columns, in, out);
    for (std::size_t c = 0; c < columns; ++c) {
      float* y = op.y + (column + static_cast<std::int64_t>(c)) * op.out + row;
      for (std::size_t r = 0; r < R; ++r) {
        y[r] = op.bias != nullptr ? out[c * R + r] + op.bias[row + static_cast<std::int64_t>(r)]
                                  : out[c * R + r];
      }
    }
  }
}

template <class Rows>
void linear_rows(const Linear& op, std::int64_t first, std::int64_t last) {
  const std::size_t blocks = (static_cast<std::size_t>(op.in) + kBlock - 1) / kBlock;
  std::size_t stride = blocks * Rows::kBlockBytes;
  if constexpr (!Rows::kScaled) stride = static_cast<std::size_t>(op.in) * Rows::kBytes;
  std::int64_t row = first;
  for (; row + static_cast<std::int64_t>(kTileRows) <= last; row += kTileRows) {
    outputs<Rows, kTileRows>(op, stride, row);
  }
  for (; row < last; ++row) outputs<Rows, 1>(op, stride, row);
}

void linear(const Linear& op, std::int64_t first, std::int64_t last) {
  switch (op.format.kind) {
    case FormatKind::f32:
      return linear_rows<RowsF32>(op, first, last);
    case FormatKind::f16:
      return linear_rows<RowsF16>(op, first, last);
    case FormatKind::bf16:
      return linear_rows<RowsBf16>(op, first, last);
    case FormatKind::q8_0:
      return linear_rows<RowsQ8>(op, first, last);
    case FormatKind::q4_0:
      return linear_rows<RowsQ4>(op, first, last);
    default:
      return;  // refused before dispatch
  }
}

const char* target_name() { return hwy::TargetName(HWY_TARGET); }

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace memwall::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace memwall::cpu {

HWY_EXPORT(linear);
HWY_EXPORT(target_name);

namespace {

void check(const Linear& op, std::int64_t first, std::int64_t last) {
  if (!has_linear(op.format)) {
    throw std::invalid_argument("the CPU has no linear kernel for " + format_name(op.format));
  }
  if (op.in < 1 || op.rows < 0 || first < 0 || last > op.out) {
    throw std::invalid_argument("a linear's shape or range is out of bounds");
  }
}

// Rows a panel: about 1 MiB, which fits the second-level cache of a server core, and at least 8 so that the
// BLAS has something to block.
std::int64_t panel_rows(std::int64_t in) {
  return std::clamp<std::int64_t>((std::int64_t{1} << 18) / in, 8, 256);
}

}  // namespace

bool has_linear(Format format) {
  switch (format.kind) {
    case FormatKind::f32:
    case FormatKind::f16:
    case FormatKind::bf16:
    case FormatKind::q8_0:
    case FormatKind::q4_0:
      return true;
    default:
      return false;
  }
}

void linear(const Linear& op, std::int64_t first, std::int64_t last) {
  check(op, first, last);
  HWY_DYNAMIC_DISPATCH(linear)(op, first, last);
}

std::int64_t gemm_panel_floats(std::int64_t in) { return panel_rows(in) * in; }

void linear_blas(const Linear& op, std::int64_t first, std::int64_t last, float* panel) {
  check(op, first, last);
  const bool widened = op.format.kind != FormatKind::f32;
  const std::int64_t step = widened ? panel_rows(op.in) : std::max<std::int64_t>(last - first, 1);
  const std::int64_t row_bytes = storage_bytes(op.format, 1, op.in);
  for (std::int64_t row = first; row < last; row += step) {
    const std::int64_t count = std::min(step, last - row);
    const std::uint8_t* weights = static_cast<const std::uint8_t*>(op.weights) + row * row_bytes;
    if (widened) {
      for (std::int64_t r = 0; r < count; ++r) {
        widen_row(op.format, weights + r * row_bytes, op.in, panel + r * op.in);
      }
    }
    const float* b = widened ? panel : static_cast<const float*>(op.weights) + row * op.in;
    sgemm(true, op.rows, count, op.in, op.x, op.in, b, op.in, op.y + row, op.out);
  }
  if (op.bias == nullptr) return;
  for (std::int64_t c = 0; c < op.rows; ++c) {
    float* y = op.y + c * op.out;
    for (std::int64_t row = first; row < last; ++row) y[row] += op.bias[row];
  }
}

const char* instruction_set() { return HWY_DYNAMIC_DISPATCH(target_name)(); }

}  // namespace memwall::cpu
#endif  // HWY_ONCE
