#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "checkpoint/gguf.h"
#include "tests/checkpoint/gguf_files.h"

namespace memwall {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;

class GgufSplit : public GgufFiles {
 protected:
  static GgufWriter part(std::uint16_t number, std::int32_t tensors, std::uint16_t count = 3) {
    GgufWriter writer;
    writer.scalar("split.no", GgufType::uint16, number).scalar("split.count", GgufType::uint16, count);
    writer.scalar("split.tensors.count", GgufType::int32, tensors);
    return writer;
  }
  // As gguf-split --no-tensor-first-split leaves them.
  void write(std::int32_t tensors) const {
    part(0, tensors).text("general.architecture", "llama").write(parts_[0]);
    part(1, tensors).tensor("a", "F32", {8}).tensor("b", "F32", {8}).write(parts_[1]);
    part(2, tensors).tensor("c", "F32", {16}).write(parts_[2]);
  }
  void SetUp() override {
    GgufFiles::SetUp();
    for (const char* number : {"1", "2", "3"})
      parts_.push_back(path(std::string("m-0000") + number + "-of-00003.gguf"));
    write(3);
  }

  std::vector<std::string> parts_;
};

TEST_F(GgufSplit, AnyPartReadsAll) {
  for (const std::string& part : parts_) {
    const Gguf file = read_gguf(part);
    EXPECT_EQ(file.path, part);
    EXPECT_EQ(file.files, parts_);
    ASSERT_EQ(file.tensors.size(), 3U);
    EXPECT_EQ(file.tensors[2].name, "c");
    EXPECT_EQ(file.data_bytes, 64 + 64);
    EXPECT_EQ(file.text("general.architecture"), "llama");
  }
}

TEST_F(GgufSplit, AMissingPartIsNamed) {
  fs::remove(parts_[1]);
  EXPECT_EQ(error_of([&] { read_gguf(parts_[0]); }), parts_[0] + ": part 2 of 3 is missing: " + parts_[1]);
  EXPECT_EQ(error_of([&] { read_gguf(parts_[2]); }), parts_[2] + ": part 2 of 3 is missing: " + parts_[1]);
}

TEST_F(GgufSplit, ADamagedPartIsNamed) {
  fs::resize_file(parts_[2], 40);
  EXPECT_THAT(error_of([&] { read_gguf(parts_[0]); }), HasSubstr(parts_[2] + ": byte"));
}

TEST_F(GgufSplit, PartsMustFitTogether) {
  fs::rename(parts_[2], path("other.gguf"));
  EXPECT_THAT(
      error_of([&] { read_gguf(path("other.gguf")); }),
      EndsWith("is part 3 of 3; name it NAME-00003-of-00003.gguf so that the other parts can be found"));
  fs::copy(parts_[1], parts_[2]);  // part 2 under the name of part 3
  EXPECT_THAT(error_of([&] { read_gguf(parts_[0]); }),
              HasSubstr(parts_[2] + ": does not belong with " + parts_[0]));
  part(2, 3, 4).tensor("c", "F32", {16}).write(parts_[2]);
  EXPECT_THAT(error_of([&] { read_gguf(parts_[0]); }), HasSubstr("does not belong with"));
  part(2, 3).tensor("a", "F32", {16}).write(parts_[2]);
  EXPECT_THAT(error_of([&] { read_gguf(parts_[0]); }), HasSubstr("two parts hold the tensor 'a'"));
  write(4);
  EXPECT_THAT(error_of([&] { read_gguf(parts_[0]); }),
              EndsWith("the 3 parts hold 3 tensors, but split.tensors.count says 4"));
}

TEST_F(GgufSplit, NumbersMustBeInRange) {
  part(3, 3).write(path());
  EXPECT_THAT(error_of([&] { read_gguf(path()); }), HasSubstr("'split.no' is 3; it must be 0 to 2"));
  part(0, 3, 65'535).write(path());
  EXPECT_THAT(error_of([&] { read_gguf(path()); }),
              HasSubstr("'split.count' is 65535; it must be 0 to 1024"));
}

TEST_F(GgufSplit, OnePartOfOneIsAFileLikeAnyOther) {
  part(0, 1, 1).tensor("a", "F32", {8}).write(path());
  EXPECT_THAT(read_gguf(path()).files, ElementsAre(path()));
}

}  // namespace
}  // namespace memwall
