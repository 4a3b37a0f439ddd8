// The small operations between the linears. All activations are f32, row-major; a call computes rows
// [first, last) unless it says otherwise, and calls on disjoint ranges may run at once.
#pragma once

#include <cstdint>

#include "format/format.h"

namespace memwall::cpu {

// y = x / rms(x) * weight, rows of `width`; weight is bf16. Epsilon 1e-6 inside the root.
void rms_norm(const float* x, const std::uint16_t* weight, std::int64_t width, float* y, std::int64_t first,
              std::int64_t last);
// y = (x - mean) / sqrt(variance + 1e-5) * weight + bias; bias may be null.
void layer_norm(const float* x, const std::uint16_t* weight, const std::uint16_t* bias, std::int64_t width,
                float* y, std::int64_t first, std::int64_t last);

// Rotates pairs (i, i + dim/2) of each head in place by the angles whose cosines and sines are given
// ([dim/2] each, one position for all rows); x is [rows, heads, dim].
void rotary(float* x, const float* cosines, const float* sines, std::int64_t heads, std::int64_t dim,
            std::int64_t first, std::int64_t last);

// silu: x sigmoid(x), Elfwing et al., arXiv:1702.03118. gelu: Hendrycks and Gimpel, arXiv:1606.08415, in the
// tanh form that GPT-2 and Gemma compute.
enum class Activation { silu, gelu, relu };
// y = activation(gate) * up, or y = activation(gate) where up is null. Rows of `width`.
void activate(Activation activation, const float* gate, const float* up, std::int64_t width, float* y,
              std::int64_t first, std::int64_t last);

// y = a + b over elements [first, last).
void add_f32(const float* a, const float* b, float* y, std::int64_t first, std::int64_t last);
// The same on f16 storage, added in f32 and rounded to nearest even.
void add_f16(const std::uint16_t* a, const std::uint16_t* b, std::uint16_t* y, std::int64_t first,
             std::int64_t last);

// y[r] = the table's row ids[r] (at r * storage_bytes(format, 1, width)... each row a packed row), as f32.
// Throws std::invalid_argument where can_widen refuses the format; ids are the caller's to check.
void gather_rows(Format format, const void* table, const std::int32_t* ids, std::int64_t width, float* y,
                 std::int64_t first, std::int64_t last);

// For each row of `experts` router logits: the k largest in falling order (ties to the lower index), and
// the softmax over those k; a NaN ranks last. Throws std::invalid_argument unless 1 <= k <= experts. indices
// and weights are [rows, k].
void top_k_softmax(const float* logits, std::int64_t experts, std::int64_t k, std::int32_t* indices,
                   float* weights, std::int64_t first, std::int64_t last);

// y[r] = the sum over i of shares[i] * x[r * inputs + i]: a token's expert outputs, weighted. x has rows of
// `width`, `inputs` of them a row of y.
void combine(const float* x, const float* shares, std::int64_t inputs, std::int64_t width, float* y,
             std::int64_t first, std::int64_t last);

}  // namespace memwall::cpu
