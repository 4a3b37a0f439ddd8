// Rows of a weight format to f32, fast: what unpack_row does, on the widest vectors the machine has.
#pragma once

#include <cstdint>

#include "format/format.h"

namespace memwall::cpu {

// The values of a packed row of `in` weights. The format must be one that has_linear accepts.
void widen_row(Format format, const void* row, std::int64_t in, float* values);

}  // namespace memwall::cpu
