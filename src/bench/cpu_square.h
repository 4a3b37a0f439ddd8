// The operands of the baselines on the CPU: n x n tensors a, b and c.
#pragma once

#include <cstdint>

#include "bench/cpu_data.h"
#include "bench/cpu_operands.h"
#include "bench/memory.h"
#include "kernels/cpu/pack.h"

namespace memwall {

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
  bool is_f32() const { return format_.kind == FormatKind::f32; }
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

}  // namespace memwall
