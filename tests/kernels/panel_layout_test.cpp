#include "kernels/cpu/panel_layout.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "support.h"

namespace memwall::cpu {
namespace {

TEST(PanelLayout, HoldsTheFormatsBytesWhereNothingIsPadded) {
  const std::int64_t out = 256;
  const std::int64_t in = 512;
  for (const char* name :
       {"f32", "f16", "bf16", "f8_e4m3", "f8_e4m3-c", "f8_e4m3-b128", "q8_0", "q4_0", "mxfp4", "int4-g32",
        "int4-g64", "int4-g128", "int4-g128-zp", "int4-g64-zp16", "int4-c", "int4-c-zp"}) {
    const std::optional<Format> format = find_format(name);
    ASSERT_TRUE(format.has_value()) << name;
    EXPECT_EQ(panel_matrix_bytes(*format, out, in), storage_bytes(*format, out, in)) << name;
  }
}

TEST(PanelLayout, PadsRowsToSixteen) {
  EXPECT_EQ(panel_matrix_bytes({FormatKind::f16}, 17, 100), 32 * 100 * 2);
  EXPECT_EQ(panels_of(0), 0);
  EXPECT_EQ(panels_of(16), 1);
  EXPECT_EQ(panels_of(17), 2);
}

TEST(PanelLayout, ReadsBackTheGgmlFormatsAsTheirOwnPackingRoundsThem) {
  const std::int64_t out = 19;
  const std::int64_t in = 77;
  const std::vector<float> source = random_floats(out * in, 1);
  for (const Format format : linear_formats()) {
    const Packed rows(format, source, out, in);
    std::vector<std::uint8_t> panels(static_cast<std::size_t>(panel_matrix_bytes(format, out, in)));
    pack_panels(format, source.data(), out, in, panels.data());
    std::vector<float> values(static_cast<std::size_t>(in));
    for (std::int64_t row = 0; row < out; ++row) {
      unpack_panel_row(format, panels.data(), out, in, row, values.data());
      for (std::int64_t k = 0; k < in; ++k) {
        ASSERT_EQ(values[static_cast<std::size_t>(k)], rows.values[static_cast<std::size_t>(row * in + k)])
            << format_name(format) << " " << row << " " << k;
      }
    }
  }
}

// By hand: q4_0's bytes of row 1, column 20 of the second block.
TEST(PanelLayout, PutsAQuantWhereTheCommentSays) {
  const Format q4{FormatKind::q4_0};
  std::vector<float> source(2 * 64, 0.0F);
  source[64 + 32 + 20] = -8.0F;
  source[64 + 32 + 4] = 3.0F;
  std::vector<std::uint8_t> panels(static_cast<std::size_t>(panel_matrix_bytes(q4, 2, 64)));
  pack_panels(q4, source.data(), 2, 64, panels.data());
  // Group 1 at 288, scales of 32 bytes, four g = 1 (k 4 to 7 and 20 to 23), row 1, j = 0.
  EXPECT_EQ(panels[288 + 32 + (1 * 16 + 1) * 4], 0x0B);
  std::uint16_t scale = 0;
  std::memcpy(&scale, panels.data() + 288 + 2, 2);
  EXPECT_EQ(f16_to_f32(scale), 1.0F);
}

// By hand: 6 is E2M1's largest, so a largest magnitude of 6 has the scale 1, E8M0's 127.
TEST(PanelLayout, PacksMxfp4AsGgmlDoes) {
  const Format mxfp4{FormatKind::mxfp4};
  std::vector<float> source(2 * 64, 0.0F);
  source[64 + 32 + 20] = -6.0F;
  source[64 + 32 + 4] = 1.4F;  // between 1 and 1.5
  source[64 + 32 + 5] = 5.0F;  // as near to 4 as to 6
  std::vector<std::uint8_t> panels(static_cast<std::size_t>(panel_matrix_bytes(mxfp4, 2, 64)));
  pack_panels(mxfp4, source.data(), 2, 64, panels.data());
  // Group 1 at 272, scales of 16 bytes, four g = 1 (k 4 to 7 and 20 to 23), row 1.
  EXPECT_EQ(panels[272 + 1], 127);
  EXPECT_EQ(panels[272 + 16 + (1 * 16 + 1) * 4], 0xF3);
  EXPECT_EQ(panels[272 + 16 + (1 * 16 + 1) * 4 + 1], 0x06);
  std::vector<float> values(64);
  unpack_panel_row(mxfp4, panels.data(), 2, 64, 1, values.data());
  EXPECT_EQ(values[32 + 20], -6.0F);
  EXPECT_EQ(values[32 + 4], 1.5F);
  EXPECT_EQ(values[32 + 5], 4.0F);
}

TEST(PanelLayout, KeepsInt4WithinHalfAStep) {
  const std::int64_t in = 300;
  const std::vector<float> source = random_floats(3 * in, 7);
  for (const char* name : {"int4-g32", "int4-g128", "int4-g128-zp", "int4-g64-zp16", "int4-c-zp"}) {
    const Format format = *find_format(name);
    std::vector<std::uint8_t> panels(static_cast<std::size_t>(panel_matrix_bytes(format, 3, in)));
    pack_panels(format, source.data(), 3, in, panels.data());
    std::vector<float> values(static_cast<std::size_t>(in));
    for (std::int64_t row = 0; row < 3; ++row) {
      unpack_panel_row(format, panels.data(), 3, in, row, values.data());
      for (std::int64_t k = 0; k < in; ++k) {
        // Symmetric: steps of 1/8 of the largest magnitude, of which the other sign's end may fall a step
        // short.
        EXPECT_NEAR(values[static_cast<std::size_t>(k)], source[static_cast<std::size_t>(row * in + k)],
                    0.14F)
            << name << " " << k;
      }
    }
  }
}

TEST(PanelLayout, RefusesOtherFormatsAndEmptyInputs) {
  EXPECT_FALSE(has_panels({FormatKind::q4_k}));
  EXPECT_FALSE(has_panels({FormatKind::int4_group, 16}));
  EXPECT_THROW(panel_layout({FormatKind::q4_k}, 32), std::invalid_argument);
  EXPECT_THROW(panel_layout({FormatKind::f16}, 0), std::invalid_argument);
  EXPECT_THROW(panel_matrix_bytes({FormatKind::f32}, std::int64_t{1} << 40, std::int64_t{1} << 40),
               std::overflow_error);
}

}  // namespace
}  // namespace memwall::cpu
