// Rows gathered from an embedding table.
#pragma once

#include <cstdint>

#include "kernels/cuda/geometry.h"

namespace memwall::cuda {

enum class GatherFormat : std::uint8_t { plain, q8_0, q4_0 };

// y[r] = the table's row ids[r]; y is [rows, width]. `plain`: rows of row_bytes, a multiple of 2, copied as
// they are. q8_0, q4_0: a row's quants lie in row_bytes (a multiple of 16), its f16 scales, one for 32, apart
// in [., scale_pitch]; y is f16. A block's nibbles are as in ggml: of 16 bytes the low ones, then the high.
struct GatherParams {
  const void* table = nullptr;
  const std::uint16_t* scales = nullptr;
  const std::int32_t* ids = nullptr;
  void* y = nullptr;
  std::int64_t rows = 0;
  std::int64_t width = 0;
  std::int64_t row_bytes = 0;
  std::int64_t scale_pitch = 0;
  bool vectors = false;  // rows of table and y are 16-byte aligned; set by gather_launch
};

struct GatherLaunch {
  GatherFormat format = GatherFormat::plain;
  GatherParams params{};
  Geometry geometry{};
};

constexpr unsigned kGatherThreads = 128;

// What a thread of a row takes: 16 bytes (2 where not aligned) of a plain row, half a block of a quantised
// one.
std::int64_t gather_pieces(GatherFormat format, const GatherParams& params);

GatherLaunch gather_launch(GatherFormat format, GatherParams params);

}  // namespace memwall::cuda
