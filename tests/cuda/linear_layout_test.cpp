// Weight layouts, the widening of codes, and the choice of tilings.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "cost/op.h"
#include "kernels/cuda/values.cuh"
#include "load/load_model.h"
#include "tests/cuda/linear_support.h"

namespace memwall::cuda {
namespace {

using namespace linear_test;

TEST(CudaLinearLayout, HoldsTheFormatsBytesInRowsOfWholeVectors) {
  for (const Format format : formats()) {
    for (const std::int64_t in : {1, 31, 64, 100, 513}) {
      const LinearLayout layout = linear_layout(format, 5, in);
      EXPECT_EQ(layout.pitch % 16, 0);
      EXPECT_EQ(layout.scales_at % 256 + layout.zeros_at % 256 + layout.bytes % 256, 0);
      EXPECT_GE(layout.scales_at, 5 * layout.pitch);
      const std::int64_t read = 5 * layout.pitch + layout.scale_bytes + layout.zero_bytes;
      EXPECT_GE(read, storage_bytes(format, 5, in)) << format_name(format) << " " << in;
      // No more than rows' ends are padding.
      EXPECT_LT(read, storage_bytes(format, 5, in) + 5 * 17) << format_name(format) << " " << in;
    }
  }
  const LinearLayout q4 = linear_layout({FormatKind::q4_0}, 3, 64);
  EXPECT_EQ(q4.pitch, 32);
  EXPECT_EQ(q4.scale_bytes, 3 * 2 * 2);
  const LinearLayout zp = linear_layout({FormatKind::int4_group, 32, true}, 3, 96);
  EXPECT_EQ(zp.zero_pitch, 2);
  EXPECT_THROW(linear_layout({FormatKind::mxfp4}, 1, 1), std::invalid_argument);
  EXPECT_THROW(linear_layout({FormatKind::f16}, 0, 1), std::invalid_argument);
  EXPECT_THROW(linear_layout({FormatKind::f32}, std::int64_t{1} << 40, std::int64_t{1} << 40),
               std::overflow_error);
  EXPECT_FALSE(has_linear_layout({FormatKind::int4_group, 16, false}));
  EXPECT_FALSE(has_linear_layout({FormatKind::int4_group, 64, true, true}));
  EXPECT_FALSE(has_linear_layout({FormatKind::int8_group, 64, true}));
}

TEST(CudaLinearLayout, UnpacksRows) {
  for (const Format format : formats()) {
    const Matrix matrix(format, 130, 70, 1);
    for (const std::int64_t row : {0, 7, 129}) {
      std::vector<float> values(70);
      unpack_linear_row(matrix.layout, matrix.memory.data() + linear_row_quants(matrix.layout, row).at,
                        matrix.memory.data() + linear_row_scales(matrix.layout, row).at,
                        matrix.memory.data() + linear_row_zeros(matrix.layout, row).at, values.data());
      for (std::size_t k = 0; k < values.size(); ++k)
        ASSERT_EQ(values[k], matrix.values[static_cast<std::size_t>(row) * 70 + k]) << format_name(format);
    }
  }
}

TEST(CudaLinearValues, WidenEveryCodeExactly) {
  for (std::uint32_t code = 0; code < 256; ++code) {
    const std::uint32_t next = (code * 7 + 3) & 0xFF;
    for (int place = 0; place < 4; ++place) {
      const std::uint32_t word = ((next * 0x01010101U) & ~(0xFFU << (8 * place))) | (code << (8 * place));
      float values[4];
      widen_i8x4(word, values);
      EXPECT_EQ(values[place], static_cast<float>(static_cast<std::int8_t>(code)));
      EXPECT_EQ(values[(place + 1) % 4], static_cast<float>(static_cast<std::int8_t>(next)));
      if ((code & 0x7F) == 0x7F) continue;  // NaN
      widen_f8x4(word, values);
      EXPECT_EQ(values[place], cpu::f8_e4m3_to_f32(static_cast<std::uint8_t>(code))) << code;
    }
  }
  for (std::uint32_t zero = 0; zero < 16; ++zero) {
    for (std::uint32_t code = 0; code < 16; ++code) {
      for (int place = 0; place < 8; ++place) {
        const std::uint32_t word = (0x5A3C96E1U & ~(0xFU << (4 * place))) | (code << (4 * place));
        float values[4];
        widen_u4x4(word, zero, values);
        const int places[] = {0, 4, 1, 5};
        for (int i = 0; i < 4; ++i) {
          ASSERT_EQ(values[i],
                    static_cast<float>((word >> (4 * places[i])) & 15U) - static_cast<float>(zero));
        }
      }
    }
  }
  EXPECT_EQ(byte_perm(0x33221100U, 0x77665544U, 0x7530U), 0x77553300U);
}

// A tiling covers the matrix, keeps the limits, and fills the card where there are rows for it.
void expect_sound(const LinearLayout& layout, const std::int64_t* outs, int segments, int columns,
                  const ArchLimits& arch, int multiprocessors) {
  const LinearTiling tiling =
      choose_linear_tiling(layout, outs, segments, 1, columns, true, arch, multiprocessors);
  const std::int64_t tiles = (layout.pitch + kLinearTileBytes - 1) / kLinearTileBytes;
  const std::int64_t step = tiling.warps_a_row * linear_unroll(layout.code, columns);
  const std::int64_t steps = (tiles + step - 1) / step;
  EXPECT_GE(std::int64_t{tiling.splits} * tiling.steps_a_split, steps);
  EXPECT_LT((std::int64_t{tiling.splits} - 1) * tiling.steps_a_split, steps);  // no block without work
  EXPECT_EQ(tiling.rows_a_block * tiling.warps_a_row, kLinearWarps * kLinearWarpRows);
  EXPECT_LE(tiling.shared_bytes, static_cast<unsigned>(arch.shared_a_block));
  EXPECT_LE(tiling.splits, 65535);
  std::int64_t blocks = 0;
  std::int64_t rows = 0;
  for (int s = 0; s < segments; ++s) {
    blocks += (outs[s] + tiling.rows_a_block - 1) / tiling.rows_a_block;
    rows += outs[s];
  }
  EXPECT_EQ(tiling.row_blocks, blocks);
  constexpr std::int64_t kWorthIt = std::int64_t{1} << 20;  // bytes
  if (rows * layout.pitch >= kWorthIt) {
    // Cut coarser than could be only where that keeps most multiprocessors busy, or where x in shared memory
    // lets no more warps share a row.
    const std::int64_t finest = rows / kLinearWarpRows;
    EXPECT_GE(blocks * tiling.splits * 4, std::min<std::int64_t>(finest, multiprocessors))
        << rows << " x " << layout.in << " columns " << columns;
  }
}

TEST(CudaLinearTiling, IsSoundForEveryModelsShapes) {
  std::set<std::pair<std::int64_t, std::int64_t>> shapes;
  for (const Model& model : zoo()) {
    for (const Op& op : lower(model)) {
      if (const LinearWork* linear = linear_of(op.work)) shapes.insert({linear->out, linear->in});
    }
  }
  EXPECT_GT(shapes.size(), 100U);
  ArchLimits turing;
  turing.major = 7;
  turing.minor = 5;
  ArchLimits hopper;
  hopper.major = 9;
  for (const auto& [out, in] : shapes) {
    for (const char* name : {"f32", "bf16", "f8_e4m3", "q4_0"}) {
      const LinearLayout layout = linear_layout(*find_format(name), out, in);
      for (const int columns : {1, 2, 4, 8, 16}) {
        expect_sound(layout, &out, 1, columns, hopper, 132);
        expect_sound(layout, &out, 1, columns, turing, 40);
      }
    }
  }
}

// What the model of the time is meant to say.
TEST(CudaLinearTiling, SplitsOnlyWhereRowsAreTooFew) {
  const ArchLimits arch;
  const auto tiling = [&](std::int64_t out, std::int64_t in, int columns) {
    return choose_linear_tiling(linear_layout({FormatKind::bf16}, out, in), &out, 1, 1, columns, true, arch,
                                132);
  };
  EXPECT_EQ(tiling(4096, 4096, 1).splits, 1);
  EXPECT_EQ(tiling(128256, 4096, 1).splits, 1);
  EXPECT_EQ(tiling(14336, 4096, 16).splits, 1);
  EXPECT_GT(tiling(64, 16384, 1).splits, 1);
  EXPECT_GE(tiling(4096, 4096, 1).row_blocks, 132U);
}

}  // namespace
}  // namespace memwall::cuda
