#include "kernels/cpu/pack.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>

#include "kernels/cpu/widen.h"
#include "support.h"

namespace memwall::cpu {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// binary16 by its definition: (-1)^s 2^(e-15) (1 + m/1024), or 2^-14 m/1024 where e is 0.
double f16_by_definition(std::uint16_t bits) {
  const double sign = (bits & 0x8000) != 0 ? -1.0 : 1.0;
  const int exponent = (bits >> 10) & 31;
  const int mantissa = bits & 1023;
  if (exponent == 31) return mantissa != 0 ? std::nan("") : sign * std::numeric_limits<double>::infinity();
  if (exponent == 0) return sign * std::ldexp(mantissa, -24);
  return sign * std::ldexp(1024 + mantissa, exponent - 25);
}

TEST(F16, WidensEveryValueAsDefined) {
  for (int i = 0; i < 65536; ++i) {
    const std::uint16_t bits = static_cast<std::uint16_t>(i);
    ASSERT_TRUE(same_bits(f16_to_f32(bits), static_cast<float>(f16_by_definition(bits)))) << i;
  }
}

TEST(F16, NarrowsEveryValueBack) {
  for (int i = 0; i < 65536; ++i) {
    const std::uint16_t bits = static_cast<std::uint16_t>(i);
    const float value = f16_to_f32(bits);
    if (std::isnan(value)) {
      ASSERT_EQ(f32_to_f16(value) & 0x7E00, 0x7E00) << i;
      ASSERT_EQ(f32_to_f16(value) & 0x8000, bits & 0x8000) << i;
    } else {
      ASSERT_EQ(f32_to_f16(value), bits);
    }
  }
}

// Between each pair of neighbours: the midpoint goes to the even one, a step either side to the nearer.
TEST(F16, RoundsToNearestEven) {
  for (int i = 0; i < 0x7C00; ++i) {
    const double low = f16_by_definition(static_cast<std::uint16_t>(i));
    const double high = i == 0x7BFF ? 65536.0 : f16_by_definition(static_cast<std::uint16_t>(i + 1));
    const float middle = static_cast<float>((low + high) / 2);  // exact: 12 bits
    const int even = (i & 1) != 0 ? i + 1 : i;
    ASSERT_EQ(f32_to_f16(middle), even) << i;
    ASSERT_EQ(f32_to_f16(-middle), even | 0x8000) << i;
    ASSERT_EQ(f32_to_f16(std::nextafter(middle, 0.0F)), i) << i;
    ASSERT_EQ(f32_to_f16(std::nextafter(middle, kInfinity)), i + 1) << i;
  }
  EXPECT_EQ(f32_to_f16(kInfinity), 0x7C00);
  EXPECT_EQ(f32_to_f16(-kInfinity), 0xFC00);
  EXPECT_EQ(f32_to_f16(1e30F), 0x7C00);
  EXPECT_EQ(f32_to_f16(-0.0F), 0x8000);
  EXPECT_EQ(f32_to_f16(std::numeric_limits<float>::denorm_min()), 0);
}

TEST(Bf16, RoundsToNearestEven) {
  EXPECT_EQ(f32_to_bf16(std::bit_cast<float>(0x3F808000U)), 0x3F80);  // a tie, the lower is even
  EXPECT_EQ(f32_to_bf16(std::bit_cast<float>(0x3F818000U)), 0x3F82);  // a tie, the upper is even
  EXPECT_EQ(f32_to_bf16(std::bit_cast<float>(0x3F807FFFU)), 0x3F80);
  EXPECT_EQ(f32_to_bf16(std::bit_cast<float>(0x3F808001U)), 0x3F81);
  EXPECT_EQ(f32_to_bf16(std::numeric_limits<float>::max()), 0x7F80);  // rounds up to infinity
  EXPECT_EQ(f32_to_bf16(std::bit_cast<float>(0x00008001U)), 0x0001);  // subnormals are nothing special
  EXPECT_EQ(f32_to_bf16(-kInfinity), 0xFF80);
  EXPECT_TRUE(std::isnan(bf16_to_f32(f32_to_bf16(std::bit_cast<float>(0x7F800001U)))));
  EXPECT_TRUE(std::isnan(bf16_to_f32(f32_to_bf16(std::bit_cast<float>(0x7FFFFFFFU)))));
}

TEST(Bf16, EveryValueSurvives) {
  for (int i = 0; i < 65536; ++i) {
    const std::uint16_t bits = static_cast<std::uint16_t>(i);
    const float value = bf16_to_f32(bits);
    if (!std::isnan(value)) {
      ASSERT_EQ(f32_to_bf16(value), bits);
    }
  }
}

const Format kQ8{FormatKind::q8_0, 0, false};
const Format kQ4{FormatKind::q4_0, 0, false};

// OFP8 1.0, table 2: the largest is 448, the least normal 2^-6, the least subnormal 2^-9.
TEST(F8E4m3, HasTheSpecificationsValues) {
  EXPECT_EQ(f8_e4m3_to_f32(0x7E), 448.0F);
  EXPECT_EQ(f8_e4m3_to_f32(0x08), 0x1p-6F);
  EXPECT_EQ(f8_e4m3_to_f32(0x07), 0.875F * 0x1p-6F);
  EXPECT_EQ(f8_e4m3_to_f32(0x01), 0x1p-9F);
  EXPECT_EQ(f8_e4m3_to_f32(0xC0), -2.0F);
  EXPECT_EQ(f8_e4m3_to_f32(0x80), 0.0F);
  EXPECT_TRUE(std::signbit(f8_e4m3_to_f32(0x80)));
  EXPECT_TRUE(std::isnan(f8_e4m3_to_f32(0x7F)));
  EXPECT_TRUE(std::isnan(f8_e4m3_to_f32(0xFF)));
}

TEST(F8E4m3, EveryCodeComesBackAndTheRestRoundsToNearest) {
  for (int code = 0; code < 256; ++code) {
    const float value = f8_e4m3_to_f32(static_cast<std::uint8_t>(code));
    if (std::isnan(value)) continue;
    EXPECT_EQ(f32_to_f8_e4m3(value), code);
  }
  EXPECT_EQ(f32_to_f8_e4m3(1e9F), 0x7E);
  EXPECT_EQ(f32_to_f8_e4m3(-std::numeric_limits<float>::infinity()), 0xFE);
  EXPECT_EQ(f32_to_f8_e4m3(std::nanf("")) & 0x7F, 0x7F);
  EXPECT_EQ(f32_to_f8_e4m3(0x1p-10F), 0x00);   // a tie, to even
  EXPECT_EQ(f32_to_f8_e4m3(0x1.8p-9F), 0x02);  // another
  EXPECT_EQ(f32_to_f8_e4m3(1.0625F), 0x38);    // between 1 and 1.125, to even
  EXPECT_EQ(f32_to_f8_e4m3(1.1875F), 0x3A);
}

TEST(Q8, PacksAHandMadeBlock) {
  std::array<float, 32> x{};
  x[0] = 127.0F;  // d = 1
  x[1] = -127.0F;
  x[2] = 2.5F;  // halves go away from zero
  x[3] = -2.5F;
  x[31] = 0.49F;
  std::array<std::uint8_t, 34> block{};
  pack_row(kQ8, x.data(), 32, block.data());
  std::array<std::uint8_t, 34> expected{};
  expected[1] = 0x3C;  // 1.0 in f16, little endian
  expected[2] = 127;
  expected[3] = 0x81;
  expected[4] = 3;
  expected[5] = 0xFD;
  EXPECT_EQ(block, expected);
}

TEST(Q8, UnpacksAHandMadeBlock) {
  std::array<std::uint8_t, 34> block{};
  block[1] = 0xC0;  // -2.0
  for (int i = 0; i < 32; ++i)
    block[static_cast<std::size_t>(2 + i)] = static_cast<std::uint8_t>(i * 8 - 128);
  std::array<float, 32> x{};
  unpack_row(kQ8, block.data(), 32, x.data());
  for (int i = 0; i < 32; ++i) {
    EXPECT_EQ(x[static_cast<std::size_t>(i)], -2.0F * static_cast<float>(i * 8 - 128));
  }
}

TEST(Q4, PacksAHandMadeBlock) {
  std::array<float, 32> x{};
  x[0] = -8.0F;   // the largest magnitude: d = 1, q = 0
  x[1] = 7.0F;    // q = 15
  x[2] = 8.0F;    // would be 16: at most 15 (and no larger in magnitude than the first)
  x[16] = -1.0F;  // the high nibble of byte 0: q = 7
  x[17] = 0.5F;   // q = floor(9.0) = 9
  x[31] = 3.0F;   // q = 11
  std::array<std::uint8_t, 18> block{};
  pack_row(kQ4, x.data(), 32, block.data());
  std::array<std::uint8_t, 18> expected{};
  expected.fill(0x88);
  expected[0] = 0x00;
  expected[1] = 0x3C;
  expected[2] = 0x70;
  expected[3] = 0x9F;
  expected[4] = 0x8F;
  expected[17] = 0xB8;
  EXPECT_EQ(block, expected);
}

TEST(Q4, UnpacksAHandMadeBlock) {
  std::array<std::uint8_t, 18> block{};
  block[1] = 0x38;  // 0.5
  for (int i = 0; i < 16; ++i)
    block[static_cast<std::size_t>(2 + i)] = static_cast<std::uint8_t>(i | ((15 - i) << 4));
  std::array<float, 32> x{};
  unpack_row(kQ4, block.data(), 32, x.data());
  for (int i = 0; i < 16; ++i) {
    EXPECT_EQ(x[static_cast<std::size_t>(i)], 0.5F * static_cast<float>(i - 8));
    EXPECT_EQ(x[static_cast<std::size_t>(i + 16)], 0.5F * static_cast<float>(7 - i));
  }
}

TEST(Pack, AShortLastBlockIsPaddedWithZeros) {
  const std::vector<float> x = random_floats(37, 1);
  for (const Format format : {kQ8, kQ4}) {
    const std::size_t block_bytes = static_cast<std::size_t>(storage_bytes(format, 1, 32));
    std::vector<std::uint8_t> row(2 * block_bytes, 0xAA);
    pack_row(format, x.data(), 37, row.data());
    std::vector<float> padded(x);
    padded.resize(64);
    std::vector<std::uint8_t> whole(2 * block_bytes);
    pack_row(format, padded.data(), 64, whole.data());
    EXPECT_EQ(row, whole);
    std::vector<float> values(38, 99.0F);
    unpack_row(format, row.data(), 37, values.data());
    EXPECT_EQ(values[37], 99.0F);
  }
}

// Half a quantisation step: d/2 for q8_0; for q4_0 a whole d, because 15 stands for +7 where +8 was wanted.
// The scale itself rounds to 11 bits.
TEST(Pack, QuantisationErrorIsBounded) {
  const std::vector<float> x = random_floats(320, 2, -3.0F, 3.0F);
  for (const Format format : {kQ8, kQ4}) {
    const Packed packed(format, x, 1, 320);
    const float step = format == kQ8 ? 3.0F / 127.0F * 0.5F : 3.0F / 8.0F;
    for (std::size_t i = 0; i < x.size(); ++i)
      EXPECT_NEAR(packed.values[i], x[i], step + 3.0F / 2048.0F) << i;
  }
}

// What has no sensible quant must still not be undefined behaviour.
TEST(Pack, ValuesThatAreNotFiniteAreSafe) {
  for (const float odd : {kInfinity, -kInfinity, kNan, 1e-44F, 3e38F}) {
    std::array<float, 32> x{};
    x[5] = odd;
    std::array<std::uint8_t, 34> block{};
    pack_row(kQ8, x.data(), 32, block.data());
    pack_row(kQ4, x.data(), 32, block.data());
  }
}

TEST(Pack, RefusesAFormatWithoutCode) {
  float value = 0.0F;
  std::array<std::uint8_t, 64> row{};
  EXPECT_THROW(pack_row(Format{FormatKind::mxfp4, 0, false}, &value, 1, row.data()), std::invalid_argument);
  EXPECT_THROW(unpack_row(Format{FormatKind::q6_k, 0, false}, row.data(), 1, &value), std::invalid_argument);
}

class Widen : public OnEverySet {};
MEMWALL_ON_EVERY_SET(Widen);

TEST_P(Widen, AgreesWithUnpackOnEveryF16AndBf16) {
  std::vector<std::uint16_t> all(65536);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::uint16_t>(i);
  for (const FormatKind kind : {FormatKind::f16, FormatKind::bf16}) {
    std::vector<float> fast(all.size());
    std::vector<float> plain(all.size());
    widen_row({kind, 0, false}, all.data(), 65536, fast.data());
    unpack_row({kind, 0, false}, all.data(), 65536, plain.data());
    for (std::size_t i = 0; i < all.size(); ++i) ASSERT_TRUE(same_bits(fast[i], plain[i])) << i;
  }
}

TEST_P(Widen, AgreesWithUnpackAtEveryLength) {
  for (const Format format : linear_formats()) {
    for (std::int64_t in = 1; in <= 100; ++in) {
      const Packed packed(format, random_floats(in, static_cast<unsigned>(in)), 1, in);
      Exact<std::uint8_t> row(packed.bytes);
      std::vector<float> fast(static_cast<std::size_t>(in) + 1, 99.0F);
      widen_row(format, row.data(), in, fast.data());
      for (std::int64_t i = 0; i < in; ++i) {
        ASSERT_EQ(fast[static_cast<std::size_t>(i)], packed.values[static_cast<std::size_t>(i)])
            << format_name(format);
      }
      ASSERT_EQ(fast.back(), 99.0F);
    }
  }
}

}  // namespace
}  // namespace memwall::cpu
