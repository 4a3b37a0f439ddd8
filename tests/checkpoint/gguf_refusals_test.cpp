#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "checkpoint/gguf.h"
#include "tests/checkpoint/gguf_files.h"

namespace memwall {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::StartsWith;

class GgufRefusals : public GgufFiles {
 protected:
  // A small model with one of everything.
  static GgufWriter model() {
    GgufWriter writer;
    writer.text("general.architecture", "llama").integer("llama.block_count", 1).number("eps", 1e-5F);
    writer.flag("flag", true).integers("heads", {8, 8}).texts("tokens", {"a", "bc"});
    return writer.tensor("token_embd.weight", "Q8_0", {32, 16}).tensor("output_norm.weight", "F32", {32});
  }
};

TEST_F(GgufRefusals, OtherFiles) {
  EXPECT_EQ(refusal_of_bytes(""), "is empty");
  EXPECT_EQ(refusal_of_bytes("<!DOCTYPE html>"), "is no GGUF file: it starts with '<!DO', not with 'GGUF'");
  EXPECT_EQ(refusal_of_bytes("tjgg\x03\x00\x00\x00"),
            "is no GGUF file: it starts with 'tjgg', not with 'GGUF'");
  EXPECT_THAT(refusal_of_bytes("\x1F\x8B\nx"), HasSubstr(R"(starts with '\x1f\x8b\x0ax')"));
  EXPECT_THAT(refusal_of_bytes("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"),
              HasSubstr("is a Git LFS pointer"));
}

TEST_F(GgufRefusals, Versions) {
  GgufWriter writer;
  for (const auto& [version, message] :
       {std::pair(1U, "is GGUF version 1, which llama.cpp no longer reads; convert the model to version 3"),
        std::pair(0U, "is GGUF version 0; versions 2 and 3 are read"),
        std::pair(4U, "is GGUF version 4; versions 2 and 3 are read"),
        std::pair(
            0x03000000U,
            "is a big-endian GGUF file, for machines such as s390x; only little-endian ones are read")}) {
    writer.version = version;
    EXPECT_EQ(refusal(writer), message);
  }
}

TEST_F(GgufRefusals, WhatIsNoRegularFile) {
  EXPECT_THAT(error_of([&] { read_gguf(path("missing")); }), StartsWith(path("missing") + ": "));
  EXPECT_THAT(error_of([&] { read_gguf(path("")); }), StartsWith(path("") + ": "));
  ASSERT_EQ(mkfifo(path().c_str(), 0600), 0);
  EXPECT_THAT(error_of([&] { read_gguf(path()); }), StartsWith(path() + ": "));
  EXPECT_THAT(error_of([&] { read_gguf("/dev/zero"); }), StartsWith("/dev/zero: "));
}

TEST_F(GgufRefusals, Counts) {
  GgufWriter writer = model();
  writer.tensor_count = 1'000'000'000'000;
  EXPECT_THAT(refusal(writer), StartsWith("byte 8: 1000000000000 tensors do not fit in a file of "));
  writer.tensor_count.reset();
  writer.key_count = ~0ULL;
  EXPECT_THAT(refusal(writer),
              StartsWith("byte 16: 18446744073709551615 metadata keys do not fit in a file of "));
  writer.key_count = 7;  // the first tensor is read as a key
  EXPECT_THAT(refusal(writer), HasSubstr("a tensor name has"));
  // A hole makes room for any number of entries.
  writer.write(path());
  fs::resize_file(path(), std::uintmax_t{1} << 36);
  for (const auto& [count, message] :
       {std::pair(&writer.tensor_count,
                  "byte 8: 1000000000 tensors are more than any model's; 200000 are read"),
        std::pair(&writer.key_count,
                  "byte 16: 1000000000 metadata keys are more than any model's; 65536 are read")}) {
    *count = 1'000'000'000;
    std::fstream(path(), std::ios::binary | std::ios::in | std::ios::out) << writer.header();
    EXPECT_EQ(error_of([&] { read_gguf(path()); }), path() + ": " + message);
    *count = 1;
  }
}

TEST_F(GgufRefusals, Values) {
  const auto with = [&](std::uint32_t type, const std::string& bytes) {
    return refusal(GgufWriter().raw("k", type, bytes));
  };
  const auto array = [](std::uint32_t type, std::uint64_t count) {
    return GgufWriter::packed(type) + GgufWriter::packed(count);
  };
  EXPECT_EQ(with(13, std::string(64, '\0')), "byte 33: 'k' has a value of type 13, but GGUF defines 0 to 12");
  EXPECT_EQ(with(7, "\x02"), "byte 37: 'k' is a bool of 2, but one is 0 or 1");
  EXPECT_THAT(with(8, GgufWriter::packed(~0ULL)),
              HasSubstr("the header needs 18446744073709551615 bytes more, but"));
  EXPECT_THAT(with(8, GgufWriter::packed(1000ULL)), HasSubstr("the header needs 1000 bytes more, but"));
  EXPECT_THAT(with(9, array(13, 1)), HasSubstr("'k' has a value of type 13"));
  EXPECT_THAT(with(9, array(4, 1ULL << 62)),
              HasSubstr("'k' has 4611686018427387904 elements of type uint32, but the"));
  EXPECT_THAT(with(9, array(8, 1'000'000)), HasSubstr("'k' has 1000000 elements of type string, but the"));
  EXPECT_THAT(with(9, array(8, 1) + GgufWriter::packed(999ULL)),
              HasSubstr("the header needs 999 bytes more"));
  std::string nested;
  for (int depth = 0; depth < 100; ++depth) nested += array(9, 1);
  EXPECT_EQ(with(9, nested + array(4, 0)), "byte 85: 'k' nests arrays deeper than 4");
}

TEST_F(GgufRefusals, Names) {
  EXPECT_EQ(refusal(GgufWriter().integer("a", 1).integer("a", 1)),
            "byte 41: the metadata key 'a' appears twice");
  EXPECT_EQ(refusal(GgufWriter().integer("", 1)), "byte 24: a metadata key is empty");
  EXPECT_EQ(refusal(GgufWriter().integer("\x1B[2J", 1)),
            "byte 24: the metadata key '\\x1b[2J' holds control characters");
  EXPECT_THAT(refusal(GgufWriter().integer(std::string(70'000, 'a'), 1)),
              HasSubstr("has 70000 bytes; it may have 65535"));
  EXPECT_EQ(refusal(GgufWriter().tensor("", "F32", {8})), "byte 24: a tensor name is empty");
  EXPECT_THAT(refusal(GgufWriter().tensor("a\nb", "F32", {8})),
              HasSubstr("the tensor name 'a\\x0ab' holds control"));
  EXPECT_EQ(refusal(GgufWriter().tensor(std::string(257, 'a'), "F32", {8})),
            "byte 24: a tensor name has 257 bytes; it may have 256");
  EXPECT_EQ(refusal(model().tensor("token_embd.weight", "F32", {8})),
            "two tensors are named 'token_embd.weight'");
}

TEST_F(GgufRefusals, Tensors) {
  const auto with = [&](std::uint32_t type, const std::vector<std::uint64_t>& ne, std::uint64_t offset = 0) {
    const std::string message = refusal(GgufWriter().tensor_at("t", type, ne, offset));
    constexpr std::string_view kBegin = "byte 24: tensor 't' ";
    EXPECT_THAT(message, StartsWith(std::string(kBegin)));
    return message.substr(std::min(kBegin.size(), message.size()));
  };
  constexpr std::uint64_t kHuge = 1ULL << 40;
  EXPECT_EQ(with(0, {}), "has 0 dimensions; it may have 1 to 4");
  EXPECT_EQ(with(0, {1, 1, 1, 1, 1}), "has 5 dimensions; it may have 1 to 4");
  EXPECT_EQ(with(0, {4, 0}), "has a dimension of 0");
  EXPECT_EQ(with(0, {~0ULL}), "has a dimension of 18446744073709551615");
  EXPECT_EQ(with(0, {kHuge, kHuge}), "has a size or an offset that passes 63 bits");
  EXPECT_EQ(with(0, {1ULL << 62}), "has a size or an offset that passes 63 bits");
  EXPECT_EQ(with(0, {8}, 1ULL << 63), "has a size or an offset that passes 63 bits");
  EXPECT_EQ(with(12, {128, 2}), "has rows of 128 elements, but Q4_K comes in blocks of 256");
  EXPECT_EQ(with(0, {8}, 33), "has its data at offset 33, which is no multiple of the alignment of 32");
  EXPECT_EQ(with(31, {32}), "has the type Q4_0_4_4, which was removed from ggml; quantise the model again");
  EXPECT_THAT(with(123'456, {32}), StartsWith("has type 123456: a damaged file?"));
  for (const std::uint32_t removed : {4U, 5U, 32U, 33U, 36U, 37U, 38U})
    EXPECT_THAT(with(removed, {32}), HasSubstr("removed"));
}

TEST_F(GgufRefusals, Data) {
  EXPECT_EQ(refusal(GgufWriter().tensor("a", "F32", {16}).tensor_at("b", 0, {8}, 32)),
            "the data of tensors 'a' and 'b' overlap");
  EXPECT_EQ(refusal(GgufWriter().tensor_at("b", 0, {8}, 0).tensor("a", "F32", {8})),
            "the data of tensors 'b' and 'a' overlap");
  EXPECT_EQ(
      refusal(GgufWriter().tensor("a", "F32", {8}).tensor_at("b", 0, {9}, 32)),
      "36 bytes are missing: the file has 128, but tensor 'b' ends at byte 164; an incomplete download?");
  EXPECT_THAT(refusal(GgufWriter().tensor_at("b", 0, {8}, (1ULL << 63) - 64)),
              StartsWith("9223372036854775776 bytes are missing"));
}

TEST_F(GgufRefusals, Alignments) {
  for (const std::uint32_t bad : {0U, 24U, 2U << 20}) {
    EXPECT_EQ(refusal(GgufWriter().integer("general.alignment", bad)),
              "general.alignment must be a power of two, 1 to 1048576; it is " + std::to_string(bad));
  }
  EXPECT_EQ(refusal(GgufWriter().text("general.alignment", "32")),
            "general.alignment must be a power of two, 1 to 1048576, as a uint32");
}

TEST_F(GgufRefusals, HeadersThatCostTooMuch) {
  GgufWriter texts;
  for (int i = 0; i < 40; ++i) texts.text(std::to_string(i), std::string(1 << 20, 'x'));
  EXPECT_THAT(refusal(texts), HasSubstr("32 MiB in all are read"));
  GgufWriter hole;
  hole.raw("k", 9, GgufWriter::array_begin(GgufType::uint8, 1 << 29));
  hole.write(path());
  fs::resize_file(path(), 1 << 30);
  EXPECT_THAT(error_of([&] { read_gguf(path()); }), HasSubstr("128 MiB in all are read"));
}

TEST_F(GgufRefusals, AFileCutAnywhere) {
  const GgufWriter writer = model();
  std::string bytes = writer.header();
  bytes.resize(writer.data_begin() + writer.data_bytes());
  for (std::size_t length = 1; length < bytes.size(); ++length) {
    SCOPED_TRACE(length);
    const std::string message = refusal_of_bytes(std::string_view(bytes).substr(0, length));
    if (length >= writer.header().size()) {
      EXPECT_THAT(message,
                  StartsWith(std::to_string(bytes.size() - length) + " bytes are missing: the file has "));
    } else if (length > 4) {
      EXPECT_THAT(message, HasSubstr("incomplete download"));
    }
  }
}

TEST_F(GgufRefusals, FlippedBytesAreReadOrRefused) {
  const GgufWriter writer = model();
  const std::string sound = writer.header();
  std::mt19937 random(1);
  int refused = 0;
  for (int round = 0; round < 4000; ++round) {
    std::string bytes = sound;
    for (int flips = round % 3; flips >= 0; --flips) {
      bytes[random() % bytes.size()] = static_cast<char>(random());
    }
    bytes.resize(writer.data_begin() + writer.data_bytes());
    write_bytes(bytes);
    try {
      read_gguf(path());
    } catch (const InputError&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 1000);
}

}  // namespace
}  // namespace memwall
