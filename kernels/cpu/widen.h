// Rows of a weight format to f32, fast: what unpack_row does, on the widest vectors the machine has.
#pragma once

#include <cstdint>

#include "format/format.h"

namespace memwall::cpu {

// True for f32, f16, bf16, q8_0 and q4_0.
bool can_widen(Format format);

// The values of a packed row of `in` weights, in the format's own layout. can_widen must accept the format.
void widen_row(Format format, const void* row, std::int64_t in, float* values);

}  // namespace memwall::cpu
