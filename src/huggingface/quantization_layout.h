// How a method lays a weight out, where that differs from the format's own layout: scales of another width,
// integers in wider containers, tables beside the weights.
#pragma once

#include <cstdint>

#include "format/format.h"

namespace memwall {

struct StoredAs {
  // NOLINTNEXTLINE(google-explicit-constructor): a format alone is the usual case
  StoredAs(Format as = {}) : format(as) {}

  Format format;  // the nearest that has a name: what the tables show, and what a kernel computes with
  // 0: the weights and scales are the format's. Otherwise every `unit_weights` of a tensor take `unit_bytes`,
  // the last unit whole, and one scale of `scale_bytes` stands for `scale_rows` x `scale_columns` weights (0:
  // all).
  std::int64_t unit_bytes = 0;
  std::int64_t unit_weights = 1;
  std::int64_t scale_bytes = 0;
  std::int64_t scale_rows = 1;
  std::int64_t scale_columns = 0;
  // Beside either.
  std::int64_t row_bytes = 0;
  std::int64_t column_bytes = 0;
  std::int64_t tensor_bytes = 0;

  bool operator==(const StoredAs&) const = default;

  // All is as storage_bytes(format) has it.
  bool is_plain() const;
  // Bytes of an `out` x `in` tensor. Throws std::overflow_error where they pass 2^63 - 1.
  std::int64_t bytes(std::int64_t out, std::int64_t in) const;
};

// `format`, its weights in `unit_bytes` for `unit_weights` and with a scale of `scale_bytes` for a block of
// `scale_rows` x `scale_columns` weights (0: all rows, all columns).
StoredAs stored_in_units(Format format, std::int64_t unit_bytes, std::int64_t unit_weights,
                         std::int64_t scale_bytes, std::int64_t scale_rows, std::int64_t scale_columns);

}  // namespace memwall
