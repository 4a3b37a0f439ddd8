#include "checkpoint/safetensors.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/checkpoint/safetensors_writer.h"
#include "tests/support.h"

namespace memwall {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

class SafetensorsFile : public testing::Test {
 protected:
  std::string path() const { return folder_ / "m.safetensors"; }

  // What is said about a file with this header, behind its name.
  std::string refusal(std::string_view header, std::int64_t data_bytes) const {
    write_safetensors(path(), header, data_bytes);
    return refusal_of_file();
  }
  std::string refusal_of_file() const {
    const std::string message = error_of([&] { read_safetensors_file(path()); });
    EXPECT_THAT(message, StartsWith(path() + ": "));
    return message.substr(std::min(message.size(), path().size() + 2));
  }

  TemporaryFolder folder_;
};

TEST_F(SafetensorsFile, GivesNamesShapesTypesAndBytes) {
  SafetensorsWriter()
      .metadata("format", "pt")
      .add("z", "BF16", {3, 5})
      .add("b", "F8_E4M3", {4, 2, 2})
      .add("a", "F32", {})
      .add("c", "I64", {0, 7})
      .write(path());
  const Checkpoint checkpoint = read_safetensors_file(path());
  EXPECT_EQ(checkpoint.path, path());
  EXPECT_THAT(checkpoint.files, ElementsAre(path()));
  EXPECT_EQ(checkpoint.data_bytes, 30 + 16 + 4);
  EXPECT_EQ(checkpoint.metadata.at("format"), "pt");
  EXPECT_FALSE(checkpoint.index_total_size);
  ASSERT_EQ(checkpoint.tensors.size(), 4U);
  EXPECT_EQ(checkpoint.tensors[0].name, "a");
  EXPECT_EQ(checkpoint.tensors[0].elements(), 1);
  EXPECT_EQ(checkpoint.tensors[0].format, Format{FormatKind::f32});
  EXPECT_EQ(checkpoint.tensors[1].type, "F8_E4M3");
  EXPECT_EQ(checkpoint.tensors[1].format, std::nullopt);
  EXPECT_THAT(checkpoint.tensors[1].shape, ElementsAre(4, 2, 2));
  EXPECT_EQ(checkpoint.tensors[2].bytes, 0);
  EXPECT_EQ(checkpoint.tensors[3].name, "z");
  EXPECT_EQ(checkpoint.tensors[3].bytes, 30);
  EXPECT_EQ(checkpoint.tensors[3].format, Format{FormatKind::bf16});
}

TEST_F(SafetensorsFile, KnowsEveryDtype) {
  SafetensorsWriter writer;
  std::int64_t bytes = 0;
  for (const char* name :
       {"BOOL", "U8", "I8", "F8_E5M2", "F8_E4M3", "F8_E8M0", "F8_E4M3FNUZ", "F8_E5M2FNUZ"}) {
    writer.add(name, name, {8});
    bytes += 8;
  }
  for (const char* name : {"I16", "U16", "F16", "BF16"}) {
    writer.add(name, name, {8});
    bytes += 16;
  }
  for (const char* name : {"I32", "U32", "F32"}) {
    writer.add(name, name, {8});
    bytes += 32;
  }
  for (const char* name : {"C64", "F64", "I64", "U64"}) {
    writer.add(name, name, {8});
    bytes += 64;
  }
  writer.add("F4", "F4", {8}).add("F6_E2M3", "F6_E2M3", {8}).add("F6_E3M2", "F6_E3M2", {8});
  bytes += 4 + 6 + 6;
  writer.write(path());
  const Checkpoint checkpoint = read_safetensors_file(path());
  EXPECT_EQ(checkpoint.tensors.size(), 22U);
  EXPECT_EQ(checkpoint.data_bytes, bytes);
}

TEST_F(SafetensorsFile, ReadsTheHeaderOfAnyFileAtOnce) {
  SafetensorsWriter writer;
  for (int i = 0; i < 100; ++i) writer.add(fmt::format("layers.{}", i), "F16", {50'000, 40'000});
  writer.write(path());
  ASSERT_EQ(fs::file_size(path()) / 1'000'000'000, 400U);
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(read_safetensors_file(path()).data_bytes, 400'000'000'000);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(2));
}

TEST_F(SafetensorsFile, TakesAnyOrderOfTensorsAndFieldsAndFieldsOfOthers) {
  write_safetensors(path(),
                    R"({"b":{"data_offsets":[2,3],"note":[{"dtype":"x"},[1]],"dtype":"U8","shape":[1]},)"
                    R"("a":{"shape":[2],"dtype":"U8","data_offsets":[0,2]},"__metadata__":null}   )",
                    3);
  const Checkpoint checkpoint = read_safetensors_file(path());
  EXPECT_EQ(checkpoint.tensors[1].name, "b");
  EXPECT_EQ(checkpoint.data_bytes, 3);
}

TEST_F(SafetensorsFile, AHeaderMayHoldNoTensor) {
  write_safetensors(path(), "{}      ", 0);
  EXPECT_TRUE(read_safetensors_file(path()).tensors.empty());
}

TEST_F(SafetensorsFile, RefusesFilesThatAreTooShort) {
  write_text(path(), "");
  EXPECT_EQ(refusal_of_file(),
            "has 0 bytes; a safetensors file begins with 8 that state its header's length");
  write_text(path(), "1234567");
  EXPECT_THAT(refusal_of_file(), StartsWith("has 7 bytes"));
  write_text(path(), std::string("\x05\0\0\0\0\0\0\0{}", 10));
  EXPECT_EQ(refusal_of_file(),
            "its header should take 5 bytes, the file has 2 for it: an incomplete download, or no "
            "safetensors file?");
  write_text(path(), std::string("\0\0\0\0\0\0\0\x80{}", 10));
  EXPECT_THAT(refusal_of_file(),
              StartsWith("its header should take 9223372036854775808 bytes, the file has 2"));
  write_text(path(), std::string("\xff\xff\xff\xff\xff\xff\xff\xff{}", 10));
  EXPECT_THAT(refusal_of_file(),
              StartsWith("its header should take 18446744073709551615 bytes, the file has 2"));
  EXPECT_EQ(refusal("", 0), "header, byte 0: the file holds nothing; a value should stand here");
}

TEST_F(SafetensorsFile, RefusesHeadersOfMoreThan100MB) {
  write_text(path(), std::string("\x01\xe1\xf5\x05\0\0\0\0", 8));
  fs::resize_file(path(), 1'000'000'000);
  EXPECT_EQ(refusal_of_file(), "its header takes 100000001 bytes; the format allows 100000000");
}

TEST_F(SafetensorsFile, RefusesWhatIsNoSafetensorsFile) {
  write_text(path(), "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n");
  EXPECT_EQ(refusal_of_file(),
            "is not the file itself but Git LFS's pointer to it; fetch it with git lfs pull");
  write_text(path(), "<!DOCTYPE html><html></html>");
  EXPECT_THAT(refusal_of_file(), HasSubstr("or no safetensors file?"));
  EXPECT_EQ(refusal("[]", 0), "header, byte 0: the header must be an object");
  EXPECT_EQ(refusal("\"a\"", 0), "header, byte 0: the header must be an object");
  EXPECT_EQ(refusal("{\"a\":", 0), "header, byte 5: the header ends where a value should stand");
  EXPECT_THAT(refusal("{}x", 0), StartsWith("header, byte 2: nothing may follow"));
  EXPECT_THAT(refusal("{\"\xff\":1}", 0), HasSubstr("not UTF-8"));
}

TEST_F(SafetensorsFile, RefusesBadEntries) {
  EXPECT_EQ(refusal(R"({"a":1})", 0), "header, byte 5: tensor 'a' must be an object");
  EXPECT_EQ(refusal(R"({"a":[]})", 0), "header, byte 5: tensor 'a' must be an object");
  EXPECT_THAT(refusal(R"({"a":{}})", 0), HasSubstr("tensor 'a' must have a dtype like \"BF16\""));
  EXPECT_THAT(refusal(R"({"a":{"dtype":"U8","data_offsets":[0,1]}})", 1),
              HasSubstr("must have a shape like"));
  EXPECT_THAT(refusal(R"({"a":{"dtype":"U8","shape":[1]}})", 1), HasSubstr("must have data_offsets like"));
  EXPECT_THAT(refusal(R"({"a":{"dtype":5,"shape":[1],"data_offsets":[0,1]}})", 1),
              HasSubstr("must have a dtype"));
  EXPECT_THAT(refusal(R"({"a":{"dtype":["U8"],"shape":[1],"data_offsets":[0,1]}})", 1),
              HasSubstr("must have a dtype"));
  EXPECT_THAT(refusal(R"({"a":{"dtype":"U8","shape":1,"data_offsets":[0,1]}})", 1),
              HasSubstr("must have a shape"));
  EXPECT_THAT(refusal(R"({"a":{"dtype":"U8","shape":[[1]],"data_offsets":[0,1]}})", 1),
              HasSubstr("must have a shape"));
  for (const char* offsets : {"[0]", "[0,1,2]", "[]", "5", "[[0,1]]", "{\"x\":1}", "[\"0\",1]"}) {
    EXPECT_THAT(refusal(fmt::format(R"({{"a":{{"dtype":"U8","shape":[1],"data_offsets":{}}}}})", offsets), 1),
                HasSubstr("must have data_offsets like [0, 8192]"))
        << offsets;
  }
  EXPECT_THAT(refusal(R"({"a":{"dtype":"U8","dtype":"U8","shape":[1],"data_offsets":[0,1]}})", 1),
              HasSubstr("tensor 'a' has 'dtype' twice"));
  EXPECT_THAT(refusal(R"({"a\nb":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})", 1),
              HasSubstr("the name of tensor 'a\\x0ab' holds control characters"));
}

TEST_F(SafetensorsFile, RefusesBadMetadata) {
  EXPECT_THAT(refusal(R"({"__metadata__":{"a":1}})", 0), HasSubstr("__metadata__ must hold texts alone"));
  EXPECT_THAT(refusal(R"({"__metadata__":{"a":{}}})", 0), HasSubstr("__metadata__ must hold texts alone"));
  EXPECT_THAT(refusal(R"({"__metadata__":[]})", 0), HasSubstr("__metadata__ must be an object"));
  EXPECT_THAT(refusal(R"({"__metadata__":{"a":"b","a":"c"}})", 0), HasSubstr("__metadata__ has 'a' twice"));
  EXPECT_THAT(refusal(R"({"__metadata__":{},"__metadata__":{}})", 0), HasSubstr("__metadata__ stands twice"));
  std::string many = R"({"__metadata__":{)";
  for (int i = 0; i < 110'000; ++i) many += fmt::format("\"{}\":\"\",", i);
  EXPECT_THAT(refusal(many + "\"x\":\"\"}}", 0), HasSubstr("__metadata__ takes more than 16777216 bytes"));
}

TEST_F(SafetensorsFile, RefusesUnknownDtypes) {
  const std::string message = refusal(R"({"a":{"dtype":"Q4_K","shape":[1],"data_offsets":[0,1]}})", 1);
  EXPECT_THAT(
      message,
      HasSubstr("tensor 'a' has the dtype 'Q4_K', which safetensors does not know; it knows BOOL, F4,"));
  EXPECT_THAT(refusal(R"({"a":{"dtype":"bf16","shape":[1],"data_offsets":[0,2]}})", 2), HasSubstr("'bf16'"));
}

TEST_F(SafetensorsFile, RefusesBadShapes) {
  for (const char* extent :
       {"-1", "1.0", "1.5", "1e2", "9223372036854775808", "NaN", "true", "null", "\"1\""}) {
    EXPECT_THAT(
        refusal(fmt::format(R"({{"a":{{"dtype":"U8","shape":[{}],"data_offsets":[0,1]}}}})", extent), 1),
        testing::AnyOf(HasSubstr("shape must hold whole numbers from 0 to 2^63 - 1, not"),
                       HasSubstr("must have a shape like")))
        << extent;
  }
  EXPECT_THAT(refusal(R"({"a":{"dtype":"U8","shape":[4294967296,4294967296],"data_offsets":[0,1]}})", 1),
              HasSubstr("tensor 'a': the product of its shape passes 2^63 - 1 bits"));
  EXPECT_THAT(refusal(R"({"a":{"dtype":"F64","shape":[1152921504606846976],"data_offsets":[0,1]}})", 1),
              HasSubstr("the product of its shape passes 2^63 - 1 bits"));
  EXPECT_THAT(
      refusal(R"({"a":{"dtype":"U8","shape":[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1],"data_offsets":[0,1]}})", 1),
      HasSubstr("tensor 'a' has more than 16 dimensions"));
  EXPECT_THAT(refusal(R"({"a":{"dtype":"F4","shape":[3],"data_offsets":[0,2]}})", 2),
              HasSubstr("tensor 'a': its shape in F4 ends inside a byte"));
}

TEST_F(SafetensorsFile, RefusesOffsetsThatDoNotFit) {
  EXPECT_THAT(refusal(R"({"a":{"dtype":"F16","shape":[2,2],"data_offsets":[0,6]}})", 6),
              HasSubstr("tensor 'a': its shape in F16 takes 8 bytes, its data_offsets span 6"));
  EXPECT_THAT(refusal(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[1,0]}})", 1),
              HasSubstr("tensor 'a': its data_offsets end at 0, before they begin at 1"));
  EXPECT_THAT(refusal(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[-1,0]}})", 1),
              HasSubstr("data_offsets must hold whole numbers from 0 to 2^63 - 1, not -1"));
  EXPECT_THAT(
      refusal(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[9223372036854775807,9223372036854775808]}})",
              1),
      HasSubstr("not 9223372036854775808"));
}

TEST_F(SafetensorsFile, RefusesHolesAndOverlaps) {
  const auto two = [](std::int64_t begin, std::int64_t end) {
    return fmt::format(
        R"({{"b":{{"dtype":"U8","shape":[{}],"data_offsets":[{},{}]}},"a":{{"dtype":"U8","shape":[2],"data_offsets":[0,2]}}}})",
        end - begin, begin, end);
  };
  EXPECT_EQ(refusal(two(3, 4), 4),
            "tensor 'b' begins at byte 3 of the data, behind a hole: 'a' ends at byte 2");
  EXPECT_EQ(refusal(two(1, 4), 4),
            "tensor 'b' begins at byte 1 of the data, inside of the one before it: 'a' ends at byte 2");
  EXPECT_EQ(refusal(two(0, 2), 4),
            "tensor 'a' begins at byte 0 of the data, inside of the one before it: 'b' ends at byte 2");
  EXPECT_EQ(refusal(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})", 2),
            "tensor 'a' begins at byte 1 of the data, behind a hole: the data section begins at byte 0");
  EXPECT_EQ(refusal(two(2, 4), 5),
            "the data section should be 4 bytes, the file has 5: the last 1 belong to no tensor");
  EXPECT_EQ(refusal(two(2, 4), 3),
            "the data section should be 4 bytes, the file has 3: an incomplete download?");
}

TEST_F(SafetensorsFile, RefusesANameThatStandsTwice) {
  EXPECT_EQ(
      refusal(
          R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
          2),
      "tensor 'a' stands twice in the header");
}

TEST_F(SafetensorsFile, RefusesMoreTensorsThanAnyModelHas) {
  std::string header = "{";
  header.reserve(30'000'000);
  for (int i = 0; i <= 400'000; ++i) {
    header +=
        fmt::format(R"({}"{}":{{"dtype":"U8","shape":[0],"data_offsets":[0,0]}})", i == 0 ? "" : ",", i);
  }
  EXPECT_THAT(refusal(header + "}", 0), HasSubstr("more than 400000 tensors; no model has so many"));
}

TEST_F(SafetensorsFile, EveryCutOfAFileIsRefused) {
  SafetensorsWriter().metadata("format", "pt").add("a", "F32", {2}).add("b", "F4", {4}).write(path());
  read_safetensors_file(path());
  for (std::uintmax_t size = fs::file_size(path()); size-- > 0;) {
    fs::resize_file(path(), size);
    EXPECT_NE(refusal_of_file(), "") << size;
  }
}

TEST_F(SafetensorsFile, RefusesWhatIsNoFile) {
  EXPECT_EQ(refusal_of_file(), "cannot be read: No such file or directory");
  ASSERT_EQ(mkfifo(path().c_str(), 0600), 0);
  EXPECT_EQ(refusal_of_file(), "is a pipe or a device; name a file");
  EXPECT_EQ(error_of([&] { read_safetensors_file(folder_.path()); }),
            folder_.path() + ": is a folder; name a file");
}

}  // namespace
}  // namespace memwall
