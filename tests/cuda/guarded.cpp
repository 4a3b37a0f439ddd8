#include "tests/cuda/guarded.h"

#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include "tests/cuda/sanitizers.h"

namespace memwall::cuda {
namespace {

constexpr std::size_t kGuard = 2048;  // on each side, a whole number of alignments
constexpr std::size_t kAlignment = 256;
constexpr unsigned char kGuardBytes[2] = {0xFB, 0xFF};  // a NaN, but not the one that fills the inside

std::size_t whole(std::size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

}  // namespace

GuardedBytes::GuardedBytes(std::size_t bytes, std::size_t skew) : bytes_(bytes) {
  const std::size_t total = whole(kGuard + skew + bytes + kGuard);
  begin_ = static_cast<std::byte*>(std::aligned_alloc(kAlignment, total));
  if (begin_ == nullptr) throw std::bad_alloc();
  data_ = begin_ + kGuard + skew;
  for (std::byte* p = begin_; p < data_; ++p) *p = std::byte{kGuardBytes[(p - data_) & 1]};
  for (std::byte* p = data_ + bytes; p < begin_ + total; ++p) *p = std::byte{kGuardBytes[(p - data_) & 1]};
  forget_contents();
  sanitizers::poison(begin_, kGuard + skew);
  sanitizers::poison(data_ + bytes, static_cast<std::size_t>(begin_ + total - (data_ + bytes)));
}

GuardedBytes::GuardedBytes(GuardedBytes&& other) noexcept
    : begin_(std::exchange(other.begin_, nullptr)), data_(other.data_), bytes_(other.bytes_) {}

GuardedBytes::~GuardedBytes() {
  if (begin_ == nullptr) return;
  sanitizers::unpoison(begin_, static_cast<std::size_t>(data_ - begin_) + bytes_ + kGuard);
  std::free(begin_);
}

void GuardedBytes::forget_contents() { std::memset(data_, 0xFF, bytes_); }

void GuardedBytes::forbid() {
  forget_contents();
  sanitizers::poison(data_, bytes_);
}

std::optional<std::ptrdiff_t> GuardedBytes::damage() const {
  if (sanitizers::kAddress) return std::nullopt;  // nobody got there, and nor may we
  for (const std::byte* p = begin_; p < data_; ++p) {
    if (*p != std::byte{kGuardBytes[(p - data_) & 1]}) return p - data_;
  }
  for (const std::byte* p = data_ + bytes_; p < data_ + bytes_ + kGuard; ++p) {
    if (*p != std::byte{kGuardBytes[(p - data_) & 1]}) return p - data_;
  }
  return std::nullopt;
}

}  // namespace memwall::cuda
