#include "format/format.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace memwall {
namespace {

Format format(const std::string& name) {
  const std::optional<Format> found = find_format(name);
  EXPECT_TRUE(found.has_value()) << name;
  return found.value_or(Format{});
}

std::int64_t bytes(const std::string& name, std::int64_t out, std::int64_t in) {
  return storage_bytes(format(name), out, in);
}

// Worked by hand: bytes of a block of `block` weights, as ggml-common.h lays them out (scales, mins, high
// bits and quants), or as the microscaling specification does. `tensor` is stored once.
struct Worked {
  const char* name;
  std::int64_t block;
  std::int64_t block_bytes;
  std::int64_t tensor;
  double bits;
};
const std::vector<Worked> kWorked = {
    {"f32", 1, 4, 0, 32},
    {"f16", 1, 2, 0, 16},
    {"bf16", 1, 2, 0, 16},
    {"f8_e4m3", 1, 1, 4, 8},
    {"nf4", 64, 32 + 4, 0, 4.5},
    {"mxfp4", 32, 16 + 1, 0, 4.25},
    {"mxfp8", 32, 32 + 1, 0, 8.25},
    {"nvfp4", 16, 8 + 1, 4, 4.5},
    {"q4_0", 32, 2 + 16, 0, 4.5},
    {"q4_1", 32, 2 + 2 + 16, 0, 5},
    {"q5_0", 32, 2 + 4 + 16, 0, 5.5},
    {"q5_1", 32, 2 + 2 + 4 + 16, 0, 6},
    {"q8_0", 32, 2 + 32, 0, 8.5},
    {"q2_k", 256, 16 + 64 + 2 + 2, 0, 2.625},
    {"q3_k", 256, 32 + 64 + 12 + 2, 0, 3.4375},
    {"q4_k", 256, 2 + 2 + 12 + 128, 0, 4.5},
    {"q5_k", 256, 2 + 2 + 12 + 32 + 128, 0, 5.5},
    {"q6_k", 256, 128 + 64 + 16 + 2, 0, 6.5625},
    {"iq1_s", 256, 2 + 32 + 16, 0, 1.5625},
    {"iq1_m", 256, 32 + 16 + 8, 0, 1.75},
    {"iq2_xxs", 256, 2 + 64, 0, 2.0625},
    {"iq2_xs", 256, 2 + 64 + 8, 0, 2.3125},
    {"iq2_s", 256, 2 + 64 + 8 + 8, 0, 2.5625},
    {"iq3_xxs", 256, 2 + 96, 0, 3.0625},
    {"iq3_s", 256, 2 + 64 + 8 + 32 + 4, 0, 3.4375},
    {"iq4_nl", 32, 2 + 16, 0, 4.5},
    {"iq4_xs", 256, 2 + 2 + 4 + 128, 0, 4.25},
    {"tq1_0", 256, 48 + 4 + 2, 0, 1.6875},
    {"tq2_0", 256, 64 + 2, 0, 2.0625},
    {"int4-g32", 32, 16 + 2, 0, 4.5},
    {"int4-g64", 64, 32 + 2, 0, 4.25},
    {"int4-g128", 128, 64 + 2, 0, 4.125},
    {"int2-g64", 64, 16 + 2, 0, 2.25},
    {"int3-g32", 32, 12 + 2, 0, 3.5},
    {"int5-g64", 64, 40 + 2, 0, 5.25},
    {"int6-g64", 64, 48 + 2, 0, 6.25},
    {"int8-g128", 128, 128 + 2, 0, 8.125},
    {"int4-g64-zp16", 64, 32 + 2 + 2, 0, 4.5},
    {"int3-g64-zp16", 64, 24 + 2 + 2, 0, 3.5},
};

TEST(StorageBytes, OfWholeBlocks) {
  for (const Worked& w : kWorked) {
    EXPECT_EQ(bytes(w.name, 3, 2 * w.block), 6 * w.block_bytes + w.tensor) << w.name;
  }
}

TEST(StorageBytes, OfOneWeightIsOneBlock) {
  for (const Worked& w : kWorked) EXPECT_EQ(bytes(w.name, 1, 1), w.block_bytes + w.tensor) << w.name;
  EXPECT_EQ(bytes("f8_e4m3-b128", 1, 1), 1 + 4);
  EXPECT_EQ(bytes("int4-g128-zp", 1, 1), 64 + 2 + 1);
}

TEST(StorageBytes, RoundsUpAlongInAndNotAlongOut) {
  for (const Worked& w : kWorked) {
    // One weight more than a block: two blocks a row, whatever the number of rows.
    EXPECT_EQ(bytes(w.name, 5, w.block + 1), 5 * 2 * w.block_bytes + w.tensor) << w.name;
    EXPECT_EQ(bytes(w.name, w.block + 1, 1), (w.block + 1) * w.block_bytes + w.tensor) << w.name;
  }
}

TEST(StorageBytes, OfRealLayers) {
  EXPECT_EQ(bytes("bf16", 14336, 4096), 117'440'512);
  EXPECT_EQ(bytes("q8_0", 14336, 4096), 62'390'272);       // 14336 * 128 * 34
  EXPECT_EQ(bytes("q4_0", 14336, 4096), 33'030'144);       // 14336 * 128 * 18
  EXPECT_EQ(bytes("q4_k", 14336, 4096), 33'030'144);       // 14336 * 16 * 144
  EXPECT_EQ(bytes("int4-g128", 14336, 4096), 30'277'632);  // 14336 * 32 * 66
  EXPECT_EQ(bytes("mxfp4", 2880, 2880), 4'406'400);        // 2880 * 90 * 17
  EXPECT_EQ(bytes("nvfp4", 2880, 2880), 4'665'604);        // 2880 * 180 * 9 + 4
  EXPECT_EQ(bytes("q8_0", 151'936, 896), 144'643'072);     // 151936 * 28 * 34
}

TEST(StorageBytes, F8BlockScalesCoverTheEdges) {
  EXPECT_EQ(bytes("f8_e4m3-b128", 128, 128), 16'384 + 4);
  EXPECT_EQ(bytes("f8_e4m3-b128", 129, 129), 16'641 + 4 * 4);
  EXPECT_EQ(bytes("f8_e4m3-b128", 128, 129), 16'512 + 2 * 4);
  EXPECT_EQ(bytes("f8_e4m3-b128", 576, 7168), 4'128'768 + 5 * 56 * 4);
}

TEST(StorageBytes, Int4ZeroPointsArePackedTwoToAByte) {
  EXPECT_EQ(bytes("int4-g128-zp", 1, 256), 2 * 66 + 1);
  EXPECT_EQ(bytes("int4-g128-zp", 3, 128), 3 * 66 + 2);  // three nibbles take two bytes
  EXPECT_EQ(bytes("int4-g128-zp", 14336, 4096), 30'277'632 + 229'376);
  EXPECT_EQ(bytes("int4-g128-zp", 2, 129), 4 * 66 + 2);
  EXPECT_EQ(bytes("int4-g1024", 1, 1025), 2 * (512 + 2));
  EXPECT_EQ(bytes("int4-g16", 1, 17), 2 * (8 + 2));
}

TEST(StorageBytes, OfAScaleARow) {
  EXPECT_EQ(bytes("f8_e4m3-c", 3, 100), 300 + 3 * 4);
  EXPECT_EQ(bytes("int8-c", 3, 100), 3 * (100 + 4));
  EXPECT_EQ(bytes("int4-c", 3, 101), 3 * (51 + 2));
  EXPECT_EQ(bytes("int3-c", 2, 9), 2 * (4 + 2));            // 27 bits
  EXPECT_EQ(bytes("int4-c-zp", 3, 100), 3 * (50 + 2) + 2);  // three nibbles
  EXPECT_EQ(bytes("int8-c-zp", 3, 100), 3 * (100 + 2) + 3);
  EXPECT_EQ(bytes("int8-c-zp16", 3, 100), 3 * (100 + 2 + 2));
  // Llama-2 13B's down_proj as GPTQ with group_size -1.
  EXPECT_EQ(bytes("int4-c-zp", 5120, 13'824), 5120 * (6912 + 2) + 2560);
}

TEST(StorageBytes, ZeroPointsAreAsWideAsWeights) {
  EXPECT_EQ(bytes("int3-g128-zp", 4, 256), 8 * (48 + 2) + 3);  // eight of three bits
  EXPECT_EQ(bytes("int2-g64-zp", 3, 64), 3 * (16 + 2) + 1);
  EXPECT_EQ(bytes("int8-g128-zp", 3, 128), 3 * (128 + 2) + 3);
}

TEST(StorageBytes, F8BlockScalesOfOneByte) {
  EXPECT_EQ(bytes("f8_e4m3-b128-e8", 129, 129), 16'641 + 4);
  EXPECT_EQ(bytes("f8_e4m3-b128-e8", 1, 1), 1 + 1);
}

TEST(StorageBytes, DoubleQuantisationScalesScales) {
  EXPECT_EQ(bytes("nf4-dq", 1, 64), 32 + 1 + 4);
  EXPECT_EQ(bytes("nf4-dq", 256, 64), 256 * 33 + 4);
  EXPECT_EQ(bytes("nf4-dq", 257, 65), 514 * 33 + 3 * 4);
  EXPECT_EQ(bytes("nf4-dq", 4096, 4096), 8'388'608 + 262'144 + 4096);
}

TEST(StorageBytes, ThrowsWhereTheProductOverflows) {
  const std::int64_t big = std::int64_t{1} << 31;
  for (const std::string& name : format_names()) {
    EXPECT_THROW(bytes(name, big << 2, big << 2), std::overflow_error) << name;
  }
  EXPECT_EQ(bytes("f8_e4m3", big, big), (std::int64_t{1} << 62) + 4);
  EXPECT_EQ(bytes("f16", big, big - 1), INT64_MAX - (std::int64_t{1} << 32) + 1);
  EXPECT_THROW(bytes("f16", big, big), std::overflow_error);
  EXPECT_THROW(bytes("f8_e4m3", INT64_MAX, 1), std::overflow_error);  // the scale is what passes
  EXPECT_THROW(bytes("f8_e4m3-b128", INT64_MAX, 1), std::overflow_error);
  EXPECT_THROW(bytes("int4-g16-zp", INT64_MAX / 10, 16), std::overflow_error);  // the zero points
  EXPECT_GT(bytes("int4-g16", INT64_MAX / 10, 16), 0);
}

TEST(BitsPerWeight, AreTheDesignsTable) {
  for (const Worked& w : kWorked) EXPECT_DOUBLE_EQ(bits_per_weight(format(w.name)), w.bits) << w.name;
  EXPECT_DOUBLE_EQ(bits_per_weight(format("int4-g16")), 5);
  EXPECT_DOUBLE_EQ(bits_per_weight(format("int4-g1024")), 4.015625);
  EXPECT_DOUBLE_EQ(bits_per_weight(format("int4-g128-zp")), 4.15625);  // + 4 / 128
  EXPECT_DOUBLE_EQ(bits_per_weight(format("int4-g32-zp")), 4.625);
  EXPECT_DOUBLE_EQ(bits_per_weight(format("int3-g128-zp")), 3 + 19.0 / 128);
  EXPECT_DOUBLE_EQ(bits_per_weight(format("int4-c")), 4);
  EXPECT_DOUBLE_EQ(bits_per_weight(format("int8-c-zp")), 8);
  EXPECT_DOUBLE_EQ(bits_per_weight(format("f8_e4m3-c")), 8);
  EXPECT_DOUBLE_EQ(bits_per_weight(format("f8_e4m3-b128")), 8.001953125);
  EXPECT_DOUBLE_EQ(bits_per_weight(format("f8_e4m3-b128-e8")), 8.00048828125);
  EXPECT_DOUBLE_EQ(bits_per_weight(format("nf4-dq")), 4.126953125);
}

TEST(BitsPerWeight, AgreeWithTheBytesOfALargeTensor) {
  const std::int64_t n = 16'384;
  for (const std::string& name : format_names()) {
    const double bits = 8.0 * static_cast<double>(bytes(name, n, n)) / static_cast<double>(n * n);
    // A scale a row weighs less the longer the row is.
    const double row = name.ends_with("-c") ? 32.0 / static_cast<double>(n) : 0;
    EXPECT_NEAR(bits, bits_per_weight(format(name)), row + 1e-6) << name;
  }
}

TEST(FormatNames, RoundTripAndAreUnique) {
  for (const std::string& name : format_names()) EXPECT_EQ(format_name(format(name)), name);
  const std::set<std::string> unique(format_names().begin(), format_names().end());
  EXPECT_EQ(unique.size(), format_names().size());
  EXPECT_EQ(format_names().size(), 33U + 13U);
}

TEST(FormatNames, OfEveryIntegerGroup) {
  const std::vector<std::pair<int, FormatKind>> kinds = {
      {2, FormatKind::int2_group}, {3, FormatKind::int3_group}, {4, FormatKind::int4_group},
      {5, FormatKind::int5_group}, {6, FormatKind::int6_group}, {8, FormatKind::int8_group}};
  for (const auto& [bits, kind] : kinds) {
    for (const int group : {0, 16, 32, 64, 128, 256, 512, 1024}) {
      const std::string base =
          "int" + std::to_string(bits) + (group > 0 ? "-g" + std::to_string(group) : "-c");
      for (const Format& f : {Format{kind, group, false}, {kind, group, true}, {kind, group, true, true}}) {
        const std::string name = base + (f.wide_zero_points ? "-zp16" : f.zero_points ? "-zp" : "");
        EXPECT_EQ(format_name(f), name);
        EXPECT_EQ(format(name), f);
      }
    }
  }
}

TEST(FindFormat, KnowsNothingElse) {
  for (const char* name : {"",
                           "BF16",
                           "bf16 ",
                           " bf16",
                           "fp16",
                           "q4",
                           "q4_K",
                           "f8",
                           "int4",
                           "int4-g",
                           "int4-g-zp",
                           "int4-g0",
                           "int4-g8",
                           "int4-g48",
                           "int4-g2048",
                           "int4-g0128",
                           "int4-g+128",
                           "int4-g-128",
                           "int4-g128-",
                           "int4-g128-zpx",
                           "int4-g128-zp-zp",
                           "int4-g128 ",
                           "int4-g99999999999999999999",
                           "int4-gN",
                           "int4-c128",
                           "int4-c-",
                           "int4c",
                           "int4-zp",
                           "int4--zp",
                           "int4-c-zp8",
                           "int4-g128-zp16-zp",
                           "int1-g128",
                           "int7-c",
                           "int16-c",
                           "nf4-g64",
                           "f8_e4m3-b64"}) {
    EXPECT_FALSE(find_format(name).has_value()) << name;
  }
}

TEST(Formats, CompareByEveryField) {
  EXPECT_EQ(format("int4-g128"), format("int4-g128"));
  EXPECT_NE(format("int4-g128"), format("int4-g64"));
  EXPECT_NE(format("int4-g128"), format("int4-g128-zp"));
  EXPECT_NE(format("int4-g128-zp"), format("int4-g128-zp16"));
  EXPECT_NE(format("int4-g128"), format("int3-g128"));
  EXPECT_NE(format("f16"), format("bf16"));
}

TEST(Formats, WhichArePlainFloats) {
  const std::set<std::string> plain = {"f32", "f16", "bf16"};
  for (const std::string& name : format_names()) {
    EXPECT_EQ(is_plain_float(format(name)), plain.count(name) == 1) << name;
  }
}

TEST(Formats, WhichKeepA16BitHead) {
  for (const std::string& name : format_names()) {
    const bool keeps = name.starts_with("int") || name.starts_with("f8_") || name.starts_with("nf4") ||
                       name.starts_with("mxfp") || name == "nvfp4";
    EXPECT_EQ(keeps_16bit_head(format(name)), keeps) << name;
  }
  EXPECT_TRUE(keeps_16bit_head(format("int4-g1024-zp")));
}

TEST(KvFormats, VectorBytes) {
  // A vector of 128 is 4 blocks of 32 or 8 of 16.
  const std::vector<std::pair<const char*, std::int64_t>> worked = {{"f32", 512},
                                                                    {"f16", 256},
                                                                    {"bf16", 256},
                                                                    {"f8_e4m3", 128},
                                                                    {"f8_e5m2", 128},
                                                                    {"int8", 128 + 2},
                                                                    {"q8_0", 4 * (2 + 32)},
                                                                    {"q5_1", 4 * (4 + 4 + 16)},
                                                                    {"q5_0", 4 * (2 + 4 + 16)},
                                                                    {"q4_1", 4 * (4 + 16)},
                                                                    {"q4_0", 4 * (2 + 16)},
                                                                    {"iq4_nl", 4 * (2 + 16)},
                                                                    {"nvfp4", 8 * (1 + 8)}};
  ASSERT_EQ(worked.size(), kv_format_names().size());
  for (const auto& [name, expected] : worked) {
    const std::optional<KvFormat> kv = find_kv_format(name);
    ASSERT_TRUE(kv.has_value()) << name;
    EXPECT_EQ(kv_vector_bytes(*kv, 128), expected) << name;
    EXPECT_EQ(kv_format_name(*kv), name);
    EXPECT_EQ(std::count(kv_format_names().begin(), kv_format_names().end(), name), 1) << name;
  }
  EXPECT_EQ(kv_vector_bytes(KvFormat::int8, 1), 3);
  // Blocks are rounded up along a vector: DeepSeek's latent of 512 + 64 is 18 blocks, a head of 80 is 3.
  EXPECT_EQ(kv_vector_bytes(KvFormat::q8_0, 576), 18 * 34);
  EXPECT_EQ(kv_vector_bytes(KvFormat::q4_0, 80), 3 * 18);
  EXPECT_EQ(kv_vector_bytes(KvFormat::nvfp4, 1), 9);
}

TEST(KvFormats, VectorBytesThrowWhereTheyOverflow) {
  EXPECT_THROW(kv_vector_bytes(KvFormat::f32, std::int64_t{1} << 61), std::overflow_error);
  EXPECT_THROW(kv_vector_bytes(KvFormat::int8, INT64_MAX - 1), std::overflow_error);
  EXPECT_EQ(kv_vector_bytes(KvFormat::f8_e4m3, INT64_MAX), INT64_MAX);
}

TEST(KvFormats, KnowNothingElse) {
  for (const char* name : {"", "fp8", "q4_k", "INT8", "int8 "}) {
    EXPECT_FALSE(find_kv_format(name).has_value()) << name;
  }
}

}  // namespace
}  // namespace memwall
