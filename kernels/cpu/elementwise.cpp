#include "kernels/cpu/elementwise.h"

#include <stdexcept>

#include "kernels/cpu/widen.h"

namespace memwall::cpu {

void gather_rows(Format format, const void* table, const std::int32_t* ids, std::int64_t width, float* y,
                 std::int64_t first, std::int64_t last) {
  if (!can_widen(format)) {
    throw std::invalid_argument("the CPU cannot gather rows of " + format_name(format));
  }
  const std::int64_t row_bytes = storage_bytes(format, 1, width);
  for (std::int64_t row = first; row < last; ++row) {
    widen_row(format, static_cast<const std::uint8_t*>(table) + ids[row] * row_bytes, width, y + row * width);
  }
}

}  // namespace memwall::cpu
