#include "bench/cpu_weights.h"

#include <algorithm>
#include <stdexcept>

#include "bench/interrupt.h"
#include "format/checked.h"
#include "kernels/cpu/panel_layout.h"
#include "kernels/cpu/quantised.h"

namespace memwall {
namespace {

constexpr std::int64_t kFloat = 4;
constexpr std::int64_t kCopyAlignment = 64;
// Activations that one thread brings into form sooner than a barrier lets others help.
constexpr std::int64_t kLeastToShare = 16384;

// Panels that a thread multiplies before it looks for an interrupt: a quarter of a second on a core of 100
// GFLOP/s, as in the baselines, so that a decode's small calls stay whole.
std::int64_t panels_between_looks(const cpu::Linear& op) {
  constexpr double kFlopsALook = 25e9;
  constexpr std::int64_t kPanels = 16;  // whole tiles of a GEMM, and enough columns for a BLAS
  const double a_panel =
      2.0 * static_cast<double>(cpu::kPanelRows) * static_cast<double>(op.rows) * static_cast<double>(op.in);
  const double panels = std::min(kFlopsALook / std::max(a_panel, 1.0), 1e9);
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(panels) / kPanels) * kPanels;
}

std::int64_t prepared_words(const LinearWork& work, const LinearRows& rows,
                            const std::vector<Variant>& variants) {
  std::int64_t most = 0;
  for (const Variant& variant : variants) {
    // Each batch is rounded up, to no more than a row by itself takes.
    const cpu::LinearKernel kernel = linear_kernel(variant);
    const std::int64_t rounding = cpu::prepared_bytes(kernel, work.format, 1, work.in) + 8;
    most = std::max(most, checked_add(cpu::prepared_bytes(kernel, work.format, rows.total, work.in),
                                      checked_mul(rows.batches, rounding)));
  }
  return most / 8 + 1;
}

std::int64_t scratch_floats(const LinearWork& work, const std::vector<Variant>& variants) {
  std::int64_t most = 0;
  for (const Variant& variant : variants) {
    most = std::max(most, cpu::linear_scratch_floats(linear_kernel(variant), work.format, work.in));
  }
  return most;
}

}  // namespace

cpu::LinearKernel linear_kernel(const Variant& variant) {
  if (variant.name == "gemm") return cpu::LinearKernel::gemm;
  if (variant.name == "gemm int8") return cpu::LinearKernel::gemm_int8;
  return variant.name == "blas" ? cpu::LinearKernel::blas : cpu::LinearKernel::dot;
}

std::int64_t linear_workspace_bytes(const LinearWork& work, const LinearRows& rows, int workers) {
  const std::vector<Variant> variants = linear_variants(work, rows.a_matrix);
  std::int64_t library = 0;
  for (const Variant& variant : variants)
    library = std::max(library, cpu::linear_library_bytes(linear_kernel(variant), rows.a_matrix, work.in));
  const std::int64_t each_worker = checked_add(checked_mul(scratch_floats(work, variants), kFloat), library);
  return checked_add(checked_mul(prepared_words(work, rows, variants), 8), checked_mul(each_worker, workers));
}

LinearWorkspace::LinearWorkspace(const LinearWork& work, const LinearRows& rows, int workers)
    : scratch_(static_cast<std::size_t>(workers)) {
  const std::vector<Variant> variants = linear_variants(work, rows.a_matrix);
  prepared_.resize(static_cast<std::size_t>(prepared_words(work, rows, variants)));
  for (auto& each : scratch_) each.resize(static_cast<std::size_t>(scratch_floats(work, variants)));
}

void LinearWorkspace::run(ThreadPool& pool, cpu::LinearKernel kernel, std::vector<cpu::Linear>& ops) {
  if (kernel == cpu::LinearKernel::blas) cpu_require_blas();
  std::int64_t units = 0;
  std::int64_t floats = 0;
  std::size_t word = 0;
  for (cpu::Linear& op : ops) {
    const std::int64_t own = cpu::prepare_units(kernel, op.format, op.rows, op.in);
    if (own == 0) continue;
    op.prepared = prepared_.data() + word;
    word += static_cast<std::size_t>(cpu::prepared_bytes(kernel, op.format, op.rows, op.in) / 8 + 1);
    units += own;
    floats += op.rows * op.in;
  }
  const auto prepare = [&](int, std::int64_t first, std::int64_t last) {
    std::int64_t before = 0;
    for (const cpu::Linear& op : ops) {
      const std::int64_t own = cpu::prepare_units(kernel, op.format, op.rows, op.in);
      const std::int64_t from = std::max(first - before, std::int64_t{0});
      const std::int64_t to = std::min(last - before, own);
      if (from < to) cpu::prepare(kernel, op, from, to);
      before += own;
    }
  };
  if (units > 0 && floats < kLeastToShare) {
    prepare(0, 0, units);
  } else if (units > 0) {
    pool.split(units, 1, prepare);
  }
  const int workers = pool.size();
  const auto part = [&](int worker) {
    float* scratch = scratch_[static_cast<std::size_t>(worker)].data();
    for (const cpu::Linear& op : ops) {
      const ThreadPool::Range range = ThreadPool::range_of(cpu::panels_of(op.out), 1, workers, worker);
      const std::int64_t most = panels_between_looks(op);
      for (std::int64_t first = range.first; first < range.last && !interrupted(); first += most)
        cpu::linear(kernel, op, first, std::min(first + most, range.last), scratch);
    }
  };
  pool.run(std::cref(part));
}

PanelWeights::PanelWeights(const LinearWork& work, CpuContext& context, std::int64_t copies,
                           std::uint64_t seed)
    : work_(work),
      copies_(copies),
      buffer_(static_cast<std::size_t>(checked_mul(copies, copy_bytes(work)))),
      bias_(work.bias ? random_floats(static_cast<std::size_t>(work.out), seed + 1) : std::vector<float>()) {
  for (std::int64_t copy = 0; copy < copies; ++copy) {
    fill_random_panels(context.pool, work.format, work.out, work.in, matrix(copy),
                       seed + static_cast<std::uint64_t>(copy) * 1000003);
  }
  context.huge_share = buffer_.huge_share();
}

std::int64_t PanelWeights::copy_bytes(const LinearWork& work) {
  const std::int64_t bytes = cpu::panel_matrix_bytes(work.format, work.out, work.in);
  return checked_add(bytes, kCopyAlignment - 1) / kCopyAlignment * kCopyAlignment;
}

double PanelWeights::padding() const {
  return static_cast<double>(cpu::panel_matrix_bytes(work_.format, work_.out, work_.in) -
                             storage_bytes(work_.format, work_.out, work_.in));
}

double PanelWeights::bytes() const {
  return static_cast<double>(storage_bytes(work_.format, work_.out, work_.in)) +
         (work_.bias ? static_cast<double>(storage_bytes(work_.bias_format, 1, work_.out)) : 0);
}

cpu::Linear PanelWeights::bind(std::int64_t copy, const float* x, std::int64_t rows, float* y) const {
  return {.format = work_.format,
          .panels = matrix(copy),
          .out = work_.out,
          .in = work_.in,
          .x = x,
          .rows = rows,
          .bias = work_.bias ? bias_.data() : nullptr,
          .y = y,
          .prepared = nullptr};
}

void PanelWeights::compare(Comparison& comparison, cpu::LinearKernel kernel, std::int64_t copy,
                           const float* x, const float* y, std::int64_t out) const {
  std::vector<float> read(x, x + work_.in);
  if (cpu::quantises_activations(kernel, work_.format)) {
    const std::int64_t blocks = cpu::panel_layout(work_.format, work_.in).blocks;
    std::vector<std::uint64_t> room(static_cast<std::size_t>(cpu::Quantised::bytes(1, blocks) / 8 + 1));
    const cpu::Quantised quantised(room.data(), 1, blocks);
    cpu::quantise(x, work_.in, quantised, 0, blocks);
    for (std::int64_t k = 0; k < work_.in; ++k) {
      read[static_cast<std::size_t>(k)] =
          quantised.scales[k / cpu::kBlockWeights] * static_cast<float>(quantised.quants[k]);
    }
  }
  std::vector<float> weights(static_cast<std::size_t>(work_.in));
  cpu::unpack_panel_row(work_.format, matrix(copy), work_.out, work_.in, out, weights.data());
  const double bias = work_.bias ? static_cast<double>(bias_[static_cast<std::size_t>(out)]) : 0;
  const ReferenceDot reference = reference_dot(weights, read, bias);
  comparison.add(static_cast<double>(y[out]), reference.value, reference.tolerance);
}

}  // namespace memwall
