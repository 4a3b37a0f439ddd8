// Integer products that refuse to wrap. A byte count that wrapped is a wrong number that looks right.
#pragma once

#include <cstdint>
#include <stdexcept>

namespace memwall {

inline std::int64_t checked_mul(std::int64_t a, std::int64_t b) {
  std::int64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) {
    throw std::overflow_error("a size passes 2^63 - 1");
  }
  return product;
}

inline std::int64_t checked_add(std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) {
    throw std::overflow_error("a size passes 2^63 - 1");
  }
  return sum;
}

inline std::int64_t div_up(std::int64_t a, std::int64_t b) { return a / b + (a % b != 0 ? 1 : 0); }

}  // namespace memwall
