// The two baselines, add and matmul, on the CPU.
#include <algorithm>
#include <cmath>
#include <vector>

#include "bench/cpu_data.h"
#include "bench/cpu_operands.h"
#include "bench/interrupt.h"
#include "kernels/cpu/blas.h"
#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/pack.h"
#include "kernels/cpu/widen.h"

namespace memwall {
namespace {

constexpr Format kF32{FormatKind::f32, 0, false};

// Three n x n tensors a, b and c, in rotating copies.
class SquareTensors {
 public:
  SquareTensors(std::int64_t n, Format format, CpuContext& context, std::int64_t copies, std::uint64_t seed)
      : n_(n),
        format_(format),
        copies_(copies),
        bytes_(storage_bytes(format, n, n)),
        buffer_(static_cast<std::size_t>(copies * 3 * bytes_)) {
    for (std::int64_t i = 0; i < copies * 3; ++i) {
      fill_random_weights(context.pool, format, n, n, buffer_.data() + i * bytes_,
                          seed + static_cast<std::uint64_t>(i));
    }
    context.huge_share = buffer_.huge_share();
  }

  template <typename T>
  T* tensor(std::int64_t turn, std::int64_t index) const {
    return reinterpret_cast<T*>(buffer_.data() + ((turn % copies_) * 3 + index) * bytes_);
  }
  double value(std::int64_t index, std::int64_t at) const {
    float value = 0;
    cpu::unpack_row(format_, tensor<std::byte>(0, index) + at * storage_bytes(format_, 1, 1), 1, &value);
    return static_cast<double>(value);
  }
  double bytes() const { return 3.0 * static_cast<double>(bytes_); }
  bool is_f32() const { return format_ == kF32; }
  std::int64_t n() const { return n_; }
  // Relative rounding of a stored result.
  double rounding() const { return is_f32() ? 1e-6 : 1e-3; }

 private:
  std::int64_t n_;
  Format format_;
  std::int64_t copies_;
  std::int64_t bytes_;
  HugeBuffer buffer_;
};

class AddOperands final : public Operands {
 public:
  AddOperands(const AddTask& task, CpuContext& context, std::int64_t copies, std::uint64_t seed)
      : context_(context), tensors_(task.n, task.format, context, copies, seed) {}

  void launch(std::size_t, std::int64_t turn) override {
    const std::int64_t elements = tensors_.n() * tensors_.n();
    const auto part = [&](int, std::int64_t first, std::int64_t last) {
      if (tensors_.is_f32()) {
        cpu::add_f32(tensors_.tensor<float>(turn, 0), tensors_.tensor<float>(turn, 1),
                     tensors_.tensor<float>(turn, 2), first, last);
      } else {
        cpu::add_f16(tensors_.tensor<std::uint16_t>(turn, 0), tensors_.tensor<std::uint16_t>(turn, 1),
                     tensors_.tensor<std::uint16_t>(turn, 2), first, last);
      }
    };
    constexpr std::int64_t kLeastParallel = 16384;
    if (elements < kLeastParallel) return part(0, 0, elements);
    context_.pool.split(elements, 64, part);
  }

  double cold_bytes(std::int64_t) const override { return tensors_.bytes(); }
  double flops(std::int64_t) const override { return static_cast<double>(tensors_.n() * tensors_.n()); }

  Check check(std::size_t variant) override {
    launch(variant, 0);
    Comparison comparison;
    for (const std::int64_t at : sample_indices(tensors_.n() * tensors_.n(), 1000)) {
      const double sum = tensors_.value(0, at) + tensors_.value(1, at);
      comparison.add(tensors_.value(2, at), sum, tensors_.rounding() * (std::abs(sum) + 1));
    }
    return comparison.result();
  }

 private:
  CpuContext& context_;
  SquareTensors tensors_;
};

// c = a b in f32 through the BLAS. f16 tensors are widened on the way in and rounded on the way out: b by
// all threads together, a and c by each thread's own rows.
class MatmulOperands final : public Operands {
 public:
  MatmulOperands(const MatmulTask& task, CpuContext& context, std::int64_t copies, std::uint64_t seed)
      : context_(context), tensors_(task.n, task.format, context, copies, seed) {
    if (!tensors_.is_f32()) {
      for (std::vector<float>* wide : {&a_, &b_, &c_})
        wide->resize(static_cast<std::size_t>(task.n * task.n));
    }
  }

  void launch(std::size_t, std::int64_t turn) override {
    const std::int64_t n = tensors_.n();
    if (tensors_.is_f32()) {
      return rows([&](int, std::int64_t first, std::int64_t last) {
        multiply(last - first, tensors_.tensor<float>(turn, 0) + first * n, tensors_.tensor<float>(turn, 1),
                 tensors_.tensor<float>(turn, 2) + first * n);
      });
    }
    const Format f16{FormatKind::f16, 0, false};
    rows([&](int, std::int64_t first, std::int64_t last) {
      cpu::widen_row(f16, tensors_.tensor<std::uint16_t>(turn, 1) + first * n, (last - first) * n,
                     b_.data() + first * n);
    });
    rows([&](int, std::int64_t first, std::int64_t last) {
      const std::int64_t count = (last - first) * n;
      cpu::widen_row(f16, tensors_.tensor<std::uint16_t>(turn, 0) + first * n, count, a_.data() + first * n);
      multiply(last - first, a_.data() + first * n, b_.data(), c_.data() + first * n);
      cpu::pack_row(f16, c_.data() + first * n, count, tensors_.tensor<std::uint16_t>(turn, 2) + first * n);
    });
  }

  double cold_bytes(std::int64_t) const override { return tensors_.bytes(); }
  double flops(std::int64_t) const override { return 2 * std::pow(static_cast<double>(tensors_.n()), 3); }

  Check check(std::size_t variant) override {
    launch(variant, 0);
    const std::int64_t n = tensors_.n();
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
  // Splits the rows over the pool, but for matrices too small to pay for a barrier.
  template <typename Part>
  void rows(const Part& part) {
    constexpr std::int64_t kLeastParallel = 128;
    if (tensors_.n() < kLeastParallel) return part(0, 0, tensors_.n());
    context_.pool.split(tensors_.n(), 8, part);
  }

  // count x n by n x n, in blocks of a quarter of a second on a core of 100 GFLOP/s, so that an interrupt
  // does not wait for the whole. As few as that allows and near to square, since the BLAS packs its operands
  // anew for each: at n = 4096 on two threads (Zen 4) three blocks a thread take 1.03 times as long as one,
  // five or six 1.05 to 1.08.
  void multiply(std::int64_t count, const float* a, const float* b, float* c) const {
    constexpr double kFlopsABlock = 25e9;
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

  CpuContext& context_;
  SquareTensors tensors_;
  std::vector<float> a_;
  std::vector<float> b_;
  std::vector<float> c_;
};

}  // namespace

std::unique_ptr<Operands> place_add(const AddTask& task, CpuContext& context, std::int64_t copies,
                                    std::uint64_t seed) {
  return std::make_unique<AddOperands>(task, context, copies, seed);
}

std::unique_ptr<Operands> place_matmul(const MatmulTask& task, CpuContext& context, std::int64_t copies,
                                       std::uint64_t seed) {
  return std::make_unique<MatmulOperands>(task, context, copies, seed);
}

}  // namespace memwall
