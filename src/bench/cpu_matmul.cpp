#include "bench/cpu_matmul.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "bench/cpu_operands.h"
#include "bench/cpu_square.h"
#include "bench/interrupt.h"
#include "format/checked.h"
#include "kernels/cpu/blas.h"
#include "kernels/cpu/linear.h"
#include "kernels/cpu/pack.h"
#include "kernels/cpu/panel_layout.h"
#include "kernels/cpu/widen.h"

namespace memwall {
namespace {

constexpr Format kF32{FormatKind::f32, 0, false};
constexpr Format kF16{FormatKind::f16, 0, false};
constexpr std::int64_t kFloat = 4;
// A quarter of a second on a core of 100 GFLOP/s, so that an interrupt does not wait for the whole.
constexpr double kFlopsABlock = 25e9;

constexpr std::int64_t kRowsAtOnce = 16;  // of b, that are packed

enum class Way : std::uint8_t { blas, gemm };  // in the variants' order

// b as the own GEMM takes it: panels of 16 columns, [n][16] f32 each, the last one filled up with zeros.
std::int64_t panel_floats(std::int64_t n) { return cpu::panel_matrix_bytes(kF32, n, n) / kFloat; }

std::int64_t prepared_bytes(std::int64_t n) {
  return cpu::prepared_bytes(cpu::LinearKernel::gemm, kF32, n, n);
}

std::int64_t scratch_floats(std::int64_t n) {
  return cpu::linear_scratch_floats(cpu::LinearKernel::gemm, kF32, n);
}

// c = a b in f32. f16 tensors are widened on the way in and rounded on the way out, within the time; so is
// what each way packs: the BLAS for itself in every call, the own GEMM b into panels and a into blocks of
// rows.
class MatmulOperands final : public Operands {
 public:
  MatmulOperands(const MatmulTask& task, CpuContext& context, std::int64_t copies, std::uint64_t seed)
      : context_(context),
        tensors_(task.n, task.format, context, copies, seed),
        b_(static_cast<std::size_t>(panel_floats(task.n))),
        prepared_(static_cast<std::size_t>(prepared_bytes(task.n) / 8 + 1)),
        scratch_(static_cast<std::size_t>(context.pool.size())) {
    const std::int64_t rows = tensors_.is_f32() ? 0 : kRowsAtOnce * task.n;
    for (std::vector<float>& each : scratch_)
      each.resize(static_cast<std::size_t>(std::max(rows, scratch_floats(task.n))));
    if (tensors_.is_f32()) return;
    for (std::vector<float>* wide : {&a_, &c_}) wide->resize(static_cast<std::size_t>(task.n * task.n));
  }

  void launch(std::size_t variant, std::int64_t turn) override {
    const bool f32 = tensors_.is_f32();
    const Matrices m{.a = f32 ? tensors_.tensor<float>(turn, 0) : a_.data(),
                     .c = f32 ? tensors_.tensor<float>(turn, 2) : c_.data()};
    static_cast<Way>(variant) == Way::blas ? multiply_by_blas(m, turn) : multiply_by_gemm(m, turn);
  }

  double cold_bytes(std::int64_t) const override { return tensors_.bytes(); }
  double flops(std::int64_t) const override { return 2 * std::pow(static_cast<double>(tensors_.n()), 3); }

  Check check(std::size_t variant) override {
    const std::int64_t n = tensors_.n();
    // What another way left must not pass for this one's.
    std::memset(tensors_.tensor<std::byte>(0, 2), 0xFF, static_cast<std::size_t>(tensors_.bytes() / 3));
    launch(variant, 0);
    Comparison comparison;
    for (const std::int64_t at : sample_indices(n * n, 64)) {
      double sum = 0;
      double magnitudes = 0;
      for (std::int64_t k = 0; k < n; ++k) {
        const double product = tensors_.value(0, at / n * n + k) * tensors_.value(1, k * n + at % n);
        sum += product;
        magnitudes += std::abs(product);
      }
      comparison.add(tensors_.value(2, at), sum,
                     dot_tolerance(n, magnitudes) + tensors_.rounding() * std::abs(sum) + 1e-6);
    }
    return comparison.result();
  }

 private:
  struct Matrices {  // as f32
    const float* a;
    float* c;
  };

  // Splits what there is over the pool, but for matrices too small to pay for a barrier.
  template <typename Part>
  void split(std::int64_t items, std::int64_t grain, const Part& part) {
    constexpr std::int64_t kLeastParallel = 128;
    if (tensors_.n() < kLeastParallel) return part(0, 0, items);
    context_.pool.split(items, grain, part);
  }

  void widen_rows(std::int64_t turn, int tensor, std::int64_t first, std::int64_t last, float* to) const {
    const std::int64_t n = tensors_.n();
    cpu::widen_row(kF16, tensors_.tensor<std::uint16_t>(turn, tensor) + first * n, (last - first) * n, to);
  }

  void round_rows(std::int64_t turn, std::int64_t first, std::int64_t last) {
    const std::int64_t n = tensors_.n();
    cpu::pack_row(kF16, c_.data() + first * n, (last - first) * n,
                  tensors_.tensor<std::uint16_t>(turn, 2) + first * n);
  }

  // Every thread multiplies its own rows. Throws RunError where there is no BLAS.
  void multiply_by_blas(const Matrices& m, std::int64_t turn) {
    cpu_require_blas();
    const std::int64_t n = tensors_.n();
    const bool f32 = tensors_.is_f32();
    if (!f32) {
      split(n, 8, [&](int, std::int64_t first, std::int64_t last) {
        widen_rows(turn, 1, first, last, b_.data() + first * n);
      });
    }
    const float* b = f32 ? tensors_.tensor<float>(turn, 1) : b_.data();
    split(n, 8, [&](int, std::int64_t first, std::int64_t last) {
      if (!f32) widen_rows(turn, 0, first, last, a_.data() + first * n);
      blas_rows(last - first, m.a + first * n, b, m.c + first * n);
      if (!f32) round_rows(turn, first, last);
    });
  }

  // count x n by n x n, in blocks. As few as an interrupt allows and near to square, since the BLAS packs its
  // operands anew for each: at n = 4096 on two threads (Zen 4) three blocks a thread take 1.03 times as long
  // as one, five or six 1.05 to 1.08.
  void blas_rows(std::int64_t count, const float* a, const float* b, float* c) const {
    const std::int64_t n = tensors_.n();
    const double size = static_cast<double>(n);
    const double blocks = std::ceil(2 * static_cast<double>(count) * size * size / kFlopsABlock);
    const int row_blocks =
        std::max(1, static_cast<int>(std::lround(std::sqrt(blocks * static_cast<double>(count) / size))));
    const int column_blocks = static_cast<int>(std::ceil(blocks / row_blocks));
    for (int i = 0; i < row_blocks; ++i) {
      const auto [row, last_row] = ThreadPool::range_of(count, 8, row_blocks, i);
      for (int j = 0; j < column_blocks; ++j) {
        const auto [column, last_column] = ThreadPool::range_of(n, 16, column_blocks, j);
        if (interrupted()) return;
        cpu::sgemm(false, last_row - row, last_column - column, n, a + row * n, n, b + column, n,
                   c + row * n + column, n);
      }
    }
  }

  // Every thread multiplies its own columns: the kernel reads c^T = b^T a^T as a linear whose weights are
  // b^T.
  void multiply_by_gemm(const Matrices& m, std::int64_t turn) {
    const std::int64_t n = tensors_.n();
    const bool f32 = tensors_.is_f32();
    split(n, kRowsAtOnce, [&](int worker, std::int64_t first, std::int64_t last) {
      pack_b(turn, first, last, scratch_[static_cast<std::size_t>(worker)].data());
    });
    if (!f32) {
      split(n, 8, [&](int, std::int64_t first, std::int64_t last) {
        widen_rows(turn, 0, first, last, a_.data() + first * n);
      });
    }
    const cpu::Linear op{.format = kF32,
                         .panels = b_.data(),
                         .out = n,
                         .in = n,
                         .x = m.a,
                         .rows = n,
                         .bias = nullptr,
                         .y = m.c,
                         .prepared = prepared_.data()};
    constexpr cpu::LinearKernel kGemm = cpu::LinearKernel::gemm;
    split(cpu::prepare_units(kGemm, kF32, n, n), 1,
          [&](int, std::int64_t first, std::int64_t last) { cpu::prepare(kGemm, op, first, last); });
    const double size = static_cast<double>(n);
    const double flops_a_panel = 2 * static_cast<double>(cpu::kPanelRows) * size * size;
    constexpr std::int64_t kPanels = 2;  // a tile of the kernel's
    const std::int64_t most =
        std::max<std::int64_t>(
            1, static_cast<std::int64_t>(std::min(kFlopsABlock / flops_a_panel, 1e9)) / kPanels) *
        kPanels;
    split(cpu::panels_of(n), kPanels, [&](int worker, std::int64_t first, std::int64_t last) {
      float* scratch = scratch_[static_cast<std::size_t>(worker)].data();
      for (std::int64_t panel = first; panel < last && !interrupted(); panel += most)
        cpu::linear(kGemm, op, panel, std::min(last, panel + most), scratch);
    });
    if (f32) return;
    split(n, 8, [&](int, std::int64_t first, std::int64_t last) { round_rows(turn, first, last); });
  }

  // Rows [first, last) of b into the panels, a few at a time, which stay in the cache from one panel to the
  // next. f16 ones are widened into `wide`.
  void pack_b(std::int64_t turn, std::int64_t first, std::int64_t last, float* wide) {
    const std::int64_t n = tensors_.n();
    for (std::int64_t row = first; row < last; row += kRowsAtOnce) {
      const std::int64_t end = std::min(last, row + kRowsAtOnce);
      const float* from = wide;
      if (tensors_.is_f32()) {
        from = tensors_.tensor<float>(turn, 1) + row * n;
      } else {
        widen_rows(turn, 1, row, end, wide);
      }
      for (std::int64_t column = 0; column < n; column += cpu::kPanelRows) {
        const std::int64_t width = std::min(cpu::kPanelRows, n - column);
        float* panel = b_.data() + column * n;  // [n][16] floats a panel
        for (std::int64_t k = row; k < end; ++k) {
          float* to = panel + k * cpu::kPanelRows;
          const float* values = from + (k - row) * n + column;
          std::copy_n(values, width, to);
          std::fill(to + width, to + cpu::kPanelRows, 0.0F);
        }
      }
    }
  }

  CpuContext& context_;
  SquareTensors tensors_;
  std::vector<float> b_;  // widened for the BLAS, or in panels
  std::vector<std::uint64_t> prepared_;
  std::vector<std::vector<float>> scratch_;  // a worker's
  std::vector<float> a_;                     // of f16, widened
  std::vector<float> c_;
};

}  // namespace

std::vector<Variant> matmul_variants(const MatmulTask& task) {
  if (task.format.kind != FormatKind::f32 && task.format.kind != FormatKind::f16) return {};
  return {{"blas", 0}, {"gemm", 0}};
}

Footprint matmul_footprint(const MatmulTask& task, int workers) {
  const std::int64_t square = checked_mul(checked_mul(task.n, task.n), kFloat);
  const std::int64_t widened = task.format.kind == FormatKind::f32 ? 0 : checked_mul(2, square);
  const std::int64_t library = cpu::blas_buffer_bytes(task.n, task.n, task.n);
  const std::int64_t scratch = std::max(scratch_floats(task.n), checked_mul(kRowsAtOnce, task.n));
  const std::int64_t each_worker = checked_add(library, checked_mul(scratch, kFloat));
  const std::int64_t packed = checked_add(checked_mul(panel_floats(task.n), kFloat), prepared_bytes(task.n));
  return {.copy_bytes = 3 * storage_bytes(task.format, task.n, task.n),
          .fixed_bytes = checked_add(checked_add(widened, packed), checked_mul(each_worker, workers))};
}

std::unique_ptr<Operands> place_matmul(const MatmulTask& task, CpuContext& context, std::int64_t copies,
                                       std::uint64_t seed) {
  return std::make_unique<MatmulOperands>(task, context, copies, seed);
}

}  // namespace memwall
