#include "huggingface/quantization_layout.h"

#include "format/checked.h"

namespace memwall {

bool StoredAs::is_plain() const {
  return unit_bytes == 0 && row_bytes == 0 && column_bytes == 0 && tensor_bytes == 0;
}

std::int64_t StoredAs::bytes(std::int64_t out, std::int64_t in) const {
  std::int64_t all =
      checked_add(tensor_bytes, checked_add(checked_mul(row_bytes, out), checked_mul(column_bytes, in)));
  if (unit_bytes == 0) return checked_add(all, storage_bytes(format, out, in));
  all = checked_add(all, checked_mul(unit_bytes, div_up(checked_mul(out, in), unit_weights)));
  const std::int64_t down = scale_rows > 0 ? div_up(out, scale_rows) : 1;
  const std::int64_t along = scale_columns > 0 ? div_up(in, scale_columns) : 1;
  return checked_add(all, checked_mul(scale_bytes, checked_mul(down, along)));
}

StoredAs stored_in_units(Format format, std::int64_t unit_bytes, std::int64_t unit_weights,
                         std::int64_t scale_bytes, std::int64_t scale_rows, std::int64_t scale_columns) {
  StoredAs as(format);
  as.unit_bytes = unit_bytes;
  as.unit_weights = unit_weights;
  as.scale_bytes = scale_bytes;
  as.scale_rows = scale_rows;
  as.scale_columns = scale_columns;
  return as;
}

}  // namespace memwall
