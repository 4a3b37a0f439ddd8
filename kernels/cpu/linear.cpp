// The linear kernels' one door: what each needs beside its operands, and the checks.
#include "kernels/cpu/linear.h"

#include <algorithm>
#include <stdexcept>

#include "format/checked.h"
#include "kernels/cpu/blas.h"
#include "kernels/cpu/linear_parts.h"
#include "kernels/cpu/panel_layout.h"
#include "kernels/cpu/quantised.h"

namespace memwall::cpu {
namespace {

// k's of a unit of pack_columns.
constexpr std::int64_t kColumnUnit = 256;

bool packs_columns(LinearKernel kernel, Format format, std::int64_t rows) {
  return kernel == LinearKernel::dot && !is_integer(format) && rows > 1;
}

// Panels that the BLAS gets at once: 512 columns, or what 4 MiB of f32 hold. It packs x anew at every call,
// so few columns are dear; more than fit the caches would be read back from memory.
std::int64_t blas_panels(std::int64_t in) {
  return std::clamp<std::int64_t>((std::int64_t{1} << 20) / in / kPanelRows, 1, 32);
}

void check(LinearKernel kernel, const Linear& op, std::int64_t first, std::int64_t last) {
  if (!takes_format(kernel, op.format)) {
    throw std::invalid_argument("the CPU has no linear kernel for " + format_name(op.format));
  }
  if (op.in < 1 || op.out < 0 || op.rows < 0 || first < 0 || last > panels_of(op.out)) {
    throw std::invalid_argument("a linear's shape or range is out of bounds");
  }
  if (kernel == LinearKernel::dot && op.rows > kMostDotRows) {
    throw std::invalid_argument("the dot kernel takes at most 16 rows");
  }
  if (op.prepared == nullptr && prepared_bytes(kernel, op.format, op.rows, op.in) > 0) {
    throw std::invalid_argument("a linear needs its activations prepared");
  }
}

void blas(const Linear& op, std::int64_t first, std::int64_t last, float* scratch) {
  const std::int64_t step = blas_panels(op.in);
  for (std::int64_t panel = first; panel < last; panel += step) {
    const std::int64_t count = std::min(step, last - panel);
    const std::int64_t stride = count * kPanelRows;
    for (std::int64_t p = 0; p < count; ++p) {
      widen_panel(op, panel + p, 0, op.in, stride, scratch + p * kPanelRows);
    }
    const std::int64_t columns = std::min(stride, op.out - panel * kPanelRows);
    float* y = op.y + panel * kPanelRows;
    sgemm(false, op.rows, columns, op.in, op.x, op.in, scratch, stride, y, op.out);
    if (op.bias == nullptr) continue;
    for (std::int64_t row = 0; row < op.rows; ++row) {
      for (std::int64_t i = 0; i < columns; ++i) y[row * op.out + i] += op.bias[panel * kPanelRows + i];
    }
  }
}

}  // namespace

bool has_linear(Format format) { return has_panels(format); }

bool takes_format(LinearKernel kernel, Format format) {
  return kernel == LinearKernel::gemm_int8 ? is_integer(format) : has_linear(format);
}

bool quantises_activations(LinearKernel kernel, Format format) {
  return (kernel == LinearKernel::dot || kernel == LinearKernel::gemm_int8) && is_integer(format);
}

std::int64_t prepared_bytes(LinearKernel kernel, Format format, std::int64_t rows, std::int64_t in) {
  constexpr std::int64_t kFloat = sizeof(float);
  if (quantises_activations(kernel, format)) return Quantised::bytes(rows, panel_layout(format, in).blocks);
  if (packs_columns(kernel, format, rows)) return rows * in * kFloat;
  if (kernel == LinearKernel::gemm) return div_up(rows, gemm_rows()) * gemm_rows() * in * kFloat;
  return 0;
}

std::int64_t prepare_units(LinearKernel kernel, Format format, std::int64_t rows, std::int64_t in) {
  if (quantises_activations(kernel, format)) return rows * panel_layout(format, in).blocks;
  if (packs_columns(kernel, format, rows)) return div_up(in, kColumnUnit);
  return kernel == LinearKernel::gemm ? div_up(rows, gemm_rows()) : 0;
}

void prepare(LinearKernel kernel, const Linear& op, std::int64_t first_unit, std::int64_t last_unit) {
  check(kernel, op, 0, 0);
  if (quantises_activations(kernel, op.format)) {
    const Quantised to(op.prepared, op.rows, panel_layout(op.format, op.in).blocks);
    quantise(op.x, op.in, to, first_unit, last_unit);
  } else if (packs_columns(kernel, op.format, op.rows)) {
    pack_columns(op, first_unit * kColumnUnit, std::min(op.in, last_unit * kColumnUnit));
  } else if (kernel == LinearKernel::gemm) {
    gemm_pack(op, first_unit, last_unit);
  }
}

std::int64_t linear_scratch_floats(LinearKernel kernel, Format format, std::int64_t in) {
  switch (kernel) {
    case LinearKernel::gemm:
      return gemm_scratch_floats(format);
    case LinearKernel::gemm_int8:
      return gemm_integer_scratch_floats();
    case LinearKernel::blas:
      return blas_panels(in) * kPanelRows * in;
    case LinearKernel::dot:
      break;
  }
  return 0;
}

std::int64_t linear_library_bytes(LinearKernel kernel, std::int64_t rows, std::int64_t in) {
  return kernel == LinearKernel::blas ? blas_buffer_bytes(rows, blas_panels(in) * kPanelRows, in) : 0;
}

void linear(LinearKernel kernel, const Linear& op, std::int64_t first, std::int64_t last, float* scratch) {
  check(kernel, op, first, last);
  if (first >= last || op.rows == 0) return;
  switch (kernel) {
    case LinearKernel::dot:
      return is_integer(op.format) ? dot_integer(op, first, last) : dot_float(op, first, last);
    case LinearKernel::gemm:
      return gemm(op, first, last, scratch);
    case LinearKernel::gemm_int8:
      return gemm_integer(op, first, last, scratch);
    case LinearKernel::blas:
      return blas(op, first, last, scratch);
  }
}

}  // namespace memwall::cpu
