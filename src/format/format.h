// How numbers are stored: weight formats, KV-cache formats, and what each costs in bytes.
// C++17, and free of any other header of the project, because kernels include it too.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace memwall {

enum class FormatKind : std::uint8_t {
  f32,
  f16,
  bf16,
  f8_e4m3,          // one f32 scale a tensor
  f8_e4m3_channel,  // one f32 scale a row
  f8_e4m3_b128,     // one f32 scale a 128x128 block
  f8_e4m3_b128_e8,  // the same with 8-bit scales, powers of two (DeepSeek-V4)
  int2_group,       // integers with a scale a group (GPTQ, AWQ, MLX)
  int3_group,
  int4_group,
  int5_group,
  int6_group,
  int8_group,
  nf4,     // 4-bit values from a table, one f32 scale for 64 (bitsandbytes)
  nf4_dq,  // the same, its scales in 8 bits with an f32 for 256 of them (double quantisation)
  mxfp4,
  mxfp8,
  nvfp4,
  q4_0,
  q4_1,
  q5_0,
  q5_1,
  q8_0,
  q2_k,
  q3_k,
  q4_k,
  q5_k,
  q6_k,
  iq1_s,
  iq1_m,
  iq2_xxs,
  iq2_xs,
  iq2_s,
  iq3_xxs,
  iq3_s,
  iq4_nl,
  iq4_xs,
  tq1_0,
  tq2_0,
};

// A weight format. All but `kind` is used by the integer groups alone.
struct Format {
  FormatKind kind = FormatKind::bf16;
  std::int32_t group = 0;  // weights a group; 0: one group a row
  bool zero_points = false;
  bool wide_zero_points = false;  // 16-bit ones (MLX, HQQ) rather than as wide as a weight

  friend bool operator==(const Format& a, const Format& b) {
    return a.kind == b.kind && a.group == b.group && a.zero_points == b.zero_points &&
           a.wide_zero_points == b.wide_zero_points;
  }
  friend bool operator!=(const Format& a, const Format& b) { return !(a == b); }
};

// "bf16", "q4_0", "int4-g128", "int4-g128-zp", "int8-c".
std::string format_name(Format format);

// The format of that name, or nothing. Names are lower case and exact.
std::optional<Format> find_format(std::string_view name);

// The names find_format knows, of the integer groups those that are common.
const std::vector<std::string>& format_names();

// Bytes of an `out` x `in` tensor: blocks lie along `in` and are rounded up, scales included.
// Throws std::overflow_error where the product passes 2^63 - 1. Sources: ggml-common.h for the
// ggml types, the OCP Microscaling specification 1.0 for mxfp4 and mxfp8, NVIDIA's NVFP4 description
// (an 8-bit scale for 16 values, an f32 for the tensor) for nvfp4, bitsandbytes' functional.py for nf4 and
// int8-c (quantize_4bit, int8_vectorwise_quant).
std::int64_t storage_bytes(Format format, std::int64_t out, std::int64_t in);

// Bits a weight takes in a large tensor, block scales included.
double bits_per_weight(Format format);

// f16, bf16 or f32 itself: the formats without blocks or scales.
bool is_plain_float(Format format);

// True where a checkpoint quantised to `format` keeps lm_head and embedding in 16 bits
// (integers, f8, nf4, mxfp4, mxfp8, nvfp4); false where they follow (plain floats, ggml types).
bool keeps_16bit_head(Format format);

// A KV cache's element type. int8 carries one f16 scale a token and head. The ggml types and nvfp4 are those
// of the weights: blocks of 32 (nvfp4: 16) elements with their scales, which lie along one head's K or V of
// one token.
enum class KvFormat : std::uint8_t {
  f32,
  f16,
  bf16,
  f8_e4m3,
  f8_e5m2,
  int8,
  q8_0,
  q5_1,
  q5_0,
  q4_1,
  q4_0,
  iq4_nl,
  nvfp4,
};

std::string_view kv_format_name(KvFormat format);
std::optional<KvFormat> find_kv_format(std::string_view name);
const std::vector<std::string>& kv_format_names();

// Bytes of one head's vector of `width` elements for one token; blocks are rounded up. Throws
// std::overflow_error. Sources: ggml-common.h for the ggml types (those that llama.cpp's --cache-type-k
// takes); NVIDIA's NVFP4 description for nvfp4, whose one f32 scale a tensor is left out.
std::int64_t kv_vector_bytes(KvFormat format, std::int64_t width);

}  // namespace memwall
