// Memory between two guard zones, for what kernels write: beyond it an address sanitizer stops them at once,
// to the byte, and other builds find the zones changed afterwards. What was never written, inside and in the
// zones, reads as NaN in every float format of 16 and 32 bits.
#pragma once

#include <cstddef>
#include <optional>

namespace memwall::cuda {

class GuardedBytes {
 public:
  // data() lies `skew` bytes, a multiple of 8, behind a multiple of 256.
  explicit GuardedBytes(std::size_t bytes, std::size_t skew = 0);
  GuardedBytes(GuardedBytes&& other) noexcept;
  GuardedBytes& operator=(GuardedBytes&&) = delete;
  ~GuardedBytes();

  std::byte* data() const { return data_; }
  std::size_t size() const { return bytes_; }
  void forget_contents();  // they read as NaN again
  void forbid();           // no access any more; contents as after forget_contents()
  // Where the zones were written, in bytes from data(): negative or from size() on.
  std::optional<std::ptrdiff_t> damage() const;

 private:
  std::byte* begin_ = nullptr;
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace memwall::cuda
