// What the translation units of the linear kernels offer to linear.cpp. Ranges and shapes are checked there.
#pragma once

#include <cstdint>

#include "kernels/cpu/linear.h"

namespace memwall::cpu {

// dot, over panels [first, last).
void dot_float(const Linear& op, std::int64_t first, std::int64_t last);
void dot_integer(const Linear& op, std::int64_t first, std::int64_t last);
// For dot_float with more than one row: columns k in [first, last) of x brought side by side.
void pack_columns(const Linear& op, std::int64_t first, std::int64_t last);

// gemm: x packed in blocks of gemm_rows() rows, [blocks][in][gemm_rows()], the last one padded with zeros.
std::int64_t gemm_rows();
std::int64_t gemm_scratch_floats(Format format);
void gemm_pack(const Linear& op, std::int64_t first_block, std::int64_t last_block);
void gemm(const Linear& op, std::int64_t first, std::int64_t last, float* scratch);

// gemm_int8, over panels [first, last); x prepared as for dot_integer.
std::int64_t gemm_integer_scratch_floats();
void gemm_integer(const Linear& op, std::int64_t first, std::int64_t last, float* scratch);

// Widens k in [first_k, last_k) of one panel to f32, [last_k - first_k][stride] with 16 values a k.
// `panel_index` finds the trailing scales. first_k is a multiple of 32.
void widen_panel(const Linear& op, std::int64_t panel_index, std::int64_t first_k, std::int64_t last_k,
                 std::int64_t stride, float* values);

}  // namespace memwall::cpu
