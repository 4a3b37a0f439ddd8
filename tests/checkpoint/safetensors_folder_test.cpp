// Models of several safetensors files: with an index, and in a folder. And real files.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <string>
#include <vector>

#include "checkpoint/safetensors.h"
#include "paths.h"
#include "tests/checkpoint/safetensors_writer.h"
#include "tests/support.h"

namespace memwall {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

const fs::path kSamples = fs::path(MEMWALL_SOURCE_DIR) / ".." / "shared" / "data" / "files";

constexpr const char* kIndex = "model.safetensors.index.json";

class SafetensorsFolder : public testing::Test {
 protected:
  // Two shards: "a" (4 bytes) and "c" (2), and "b" (16).
  void write_shards(const std::string& first = "m-1-of-2.safetensors",
                    const std::string& second = "m-2-of-2.safetensors") const {
    SafetensorsWriter()
        .metadata("format", "pt")
        .add("c", "F16", {1})
        .add("a", "F32", {1})
        .write(folder_ / first);
    SafetensorsWriter().metadata("format", "np").add("b", "F32", {4}).write(folder_ / second);
  }
  void write_index(const std::string& text) const { write_text(folder_ / kIndex, text); }
  void write_index_of(const std::string& map) const { write_index("{\"weight_map\":{" + map + "}}"); }

  Checkpoint read_index() const { return read_safetensors_index(folder_ / kIndex); }
  std::string index_refusal() const {
    return without(folder_ / kIndex, error_of([&] { read_index(); }));
  }
  std::string refusal() const {
    return without(folder_.path(), error_of([&] { read_safetensors_folder(folder_.path()); }));
  }

  static std::string without(const std::string& path, const std::string& message) {
    EXPECT_THAT(message, StartsWith(path + ":"));
    return message.substr(std::min(message.size(), path.size() + 1));
  }

  static constexpr const char* kMap =
      R"("a":"m-1-of-2.safetensors","b":"m-2-of-2.safetensors","c":"m-1-of-2.safetensors")";

  TemporaryFolder folder_;
};

TEST_F(SafetensorsFolder, AnIndexReadsTheShardsBesideIt) {
  write_shards();
  write_index(fmt::format(R"({{"metadata":{{"total_size":22}},"weight_map":{{{}}}}})", kMap));
  const Checkpoint checkpoint = read_index();
  EXPECT_EQ(checkpoint.path, folder_ / kIndex);
  EXPECT_THAT(checkpoint.files,
              ElementsAre(folder_ / "m-1-of-2.safetensors", folder_ / "m-2-of-2.safetensors"));
  ASSERT_EQ(checkpoint.tensors.size(), 3U);
  EXPECT_EQ(checkpoint.tensors[0].name, "a");
  EXPECT_EQ(checkpoint.tensors[1].name, "b");
  EXPECT_EQ(checkpoint.tensors[2].name, "c");
  EXPECT_EQ(checkpoint.data_bytes, 22);
  EXPECT_EQ(checkpoint.index_total_size, 22);
  EXPECT_EQ(checkpoint.unlisted_tensors, 0);
  EXPECT_EQ(checkpoint.metadata.at("format"), "pt");
}

TEST_F(SafetensorsFolder, AnIndexsTotalSizeMayBeAFloatMissingOrWrong) {
  write_shards();
  for (const auto& [text, size] : std::vector<std::pair<std::string, std::optional<std::int64_t>>>{
           {R"({"total_size":22.0})", 22},
           {R"({"total_size":9.9e2})", 990},
           {R"({"total_size":null})", std::nullopt},
           {R"({"total_parameters":8})", std::nullopt},
           {"null", std::nullopt}}) {
    write_index(fmt::format(R"({{"weight_map":{{{}}},"metadata":{}}})", kMap, text));
    const Checkpoint checkpoint = read_index();
    EXPECT_EQ(checkpoint.index_total_size, size) << text;
    EXPECT_EQ(checkpoint.data_bytes, 22);
  }
  write_index(fmt::format("{{\n\"metadata\": {{\"total_size\": -1}}, \"weight_map\":{{{}}}}}", kMap));
  EXPECT_EQ(index_refusal(), "2:28: metadata.total_size must be a whole number of bytes");
}

TEST_F(SafetensorsFolder, TensorsThatAnIndexLeavesOutAreCountedApart) {
  write_shards();
  write_index_of(R"("a":"m-1-of-2.safetensors","b":"m-2-of-2.safetensors")");
  const Checkpoint checkpoint = read_index();
  EXPECT_EQ(checkpoint.tensors.size(), 2U);
  EXPECT_EQ(checkpoint.data_bytes, 20);
  EXPECT_EQ(checkpoint.unlisted_tensors, 1);
  EXPECT_EQ(checkpoint.unlisted_bytes, 2);
}

TEST_F(SafetensorsFolder, ATensorMustBeInTheShardThatTheIndexNames) {
  write_shards();
  write_index_of(R"("a":"m-2-of-2.safetensors","b":"m-2-of-2.safetensors","c":"m-1-of-2.safetensors")");
  EXPECT_EQ(index_refusal(),
            " weight_map places tensor 'a' in 'm-2-of-2.safetensors', which does not hold it");
  write_index_of(fmt::format(R"({},"d":"m-1-of-2.safetensors")", kMap));
  EXPECT_EQ(index_refusal(),
            " weight_map places tensor 'd' in 'm-1-of-2.safetensors', which does not hold it");
}

TEST_F(SafetensorsFolder, AnIndexSaysWhichShardsAreMissing) {
  write_shards();
  fs::remove(folder_ / "m-2-of-2.safetensors");
  write_index_of(kMap);
  EXPECT_EQ(index_refusal(), " 1 of 2 shards are missing beside it: 'm-2-of-2.safetensors'");
  fs::remove(folder_ / "m-1-of-2.safetensors");
  EXPECT_EQ(index_refusal(),
            " an index carries no shapes; put the 2 shards beside it, or give the model's config.json");
  write_text(folder_ / "s0.safetensors", "");
  std::string map = R"("x":"s0.safetensors")";
  for (int i = 1; i < 9; ++i) map += fmt::format(R"(,"x{0}":"s{0}.safetensors")", i);
  write_index_of(map);
  EXPECT_EQ(
      index_refusal(),
      " 8 of 9 shards are missing beside it: 's1.safetensors', 's2.safetensors', 's3.safetensors', ...");
}

TEST_F(SafetensorsFolder, AnIndexNamesFilesOfItsFolderAlone) {
  for (const char* name : {"../m.safetensors", "/m.safetensors", "a/m.safetensors", "a\\\\m.safetensors",
                           "..", ".safetensors", "m\\n.safetensors", "m\\u0000.safetensors"}) {
    write_index_of(fmt::format(R"("a":"{}")", name));
    EXPECT_THAT(index_refusal(), HasSubstr("is no shard's name; it must name a file in the index's folder"))
        << name;
  }
  write_index_of(R"("a":"pytorch_model-00001-of-00002.bin")");
  EXPECT_THAT(index_refusal(), HasSubstr("is no safetensors file"));
}

TEST_F(SafetensorsFolder, RefusesWhatIsNoIndex) {
  write_index("[]");
  EXPECT_EQ(index_refusal(), "1:1: an index must be an object");
  write_index("{\"hidden_size\": 4096}");
  EXPECT_EQ(index_refusal(), " has no weight_map with tensors; this is no index");
  write_index_of("");
  EXPECT_EQ(index_refusal(), " has no weight_map with tensors; this is no index");
  for (const char* map : {"5", "[\"a\"]", "{\"a\":1}", "{\"a\":[]}", "{\"a\":{\"b\":\"c\"}}", "null"}) {
    write_index(fmt::format("{{\"weight_map\":{}}}", map));
    EXPECT_THAT(index_refusal(), HasSubstr("weight_map must give a file's name for each tensor's")) << map;
  }
  write_index_of(R"("a":"m.safetensors","b":"m.safetensors","a":"n.safetensors")");
  EXPECT_EQ(index_refusal(), " tensor 'a' stands twice in weight_map");
  write_index(R"({"weight_map":{"a":"m.safetensors"},"weight_map":{}})");
  EXPECT_EQ(index_refusal(), "1:37: 'weight_map' stands twice in this index");
  write_index(R"({"metadata":{"total_size":1,"total_size":2}})");
  EXPECT_THAT(index_refusal(), HasSubstr("'total_size' stands twice in metadata"));
  write_index("{\"weight_map\":{\n\"a\":\"m.safeten");
  EXPECT_EQ(index_refusal(), "2:15: the file ends inside a text");
  fs::resize_file(folder_ / kIndex, 1ULL << 40);
  EXPECT_EQ(index_refusal(), " is longer than 67108864 bytes; this is no index");
}

TEST_F(SafetensorsFolder, ReadsTheIndexBeforeAnythingElse) {
  write_shards();
  write_index_of(kMap);
  SafetensorsWriter().add("other", "F32", {9}).write(folder_ / "consolidated.safetensors");
  const Checkpoint checkpoint = read_safetensors_folder(folder_.path());
  EXPECT_EQ(checkpoint.path, folder_.path());
  EXPECT_EQ(checkpoint.data_bytes, 22);
}

TEST_F(SafetensorsFolder, ReadsTheOnlyFile) {
  SafetensorsWriter().add("a", "F32", {9}).write(folder_ / "model.safetensors");
  write_text(folder_ / "._model.safetensors", "macOS");
  write_text(folder_ / "config.json", "{}");
  EXPECT_EQ(read_safetensors_folder(folder_.path()).data_bytes, 36);
}

TEST_F(SafetensorsFolder, ReadsASetOfPartsWithoutAnIndex) {
  write_shards("model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors");
  const Checkpoint checkpoint = read_safetensors_folder(folder_.path());
  EXPECT_EQ(checkpoint.files.size(), 2U);
  EXPECT_EQ(checkpoint.data_bytes, 22);
  EXPECT_EQ(checkpoint.tensors[1].name, "b");
}

TEST_F(SafetensorsFolder, NamesTheMissingPartsOfASet) {
  write_shards("model-00001-of-00012.safetensors", "model-00003-of-00012.safetensors");
  EXPECT_EQ(
      refusal(),
      " 10 of 12 parts are missing: 'model-00002-of-00012.safetensors', 'model-00004-of-00012.safetensors', "
      "'model-00005-of-00012.safetensors', ...");
  fs::remove(folder_ / "model-00003-of-00012.safetensors");
  EXPECT_THAT(refusal(), StartsWith(" 11 of 12 parts are missing"));
}

TEST_F(SafetensorsFolder, NamesTheMissingPartOfASetWithoutZeros) {
  write_shards("m-1-of-3.safetensors", "m-3-of-3.safetensors");
  EXPECT_EQ(refusal(), " 1 of 3 parts are missing: 'm-2-of-3.safetensors'");
}

TEST_F(SafetensorsFolder, RefusesATensorOfTwoParts) {
  SafetensorsWriter().add("a", "F32", {1}).write(folder_ / "m-1-of-2.safetensors");
  SafetensorsWriter().add("a", "F32", {1}).write(folder_ / "m-2-of-2.safetensors");
  EXPECT_EQ(refusal(), " tensor 'a' stands in two of its files");
}

TEST_F(SafetensorsFolder, RefusesAFolderWithSeveralModels) {
  write_shards("a.safetensors", "b.safetensors");
  EXPECT_EQ(refusal(),
            " a folder with 2 models, or parts of several: 'a.safetensors', 'b.safetensors'; name one file");
  write_shards("c-1-of-2.safetensors", "c-2-of-2.safetensors");
  EXPECT_THAT(refusal(),
              HasSubstr("'a.safetensors', 'b.safetensors', 'c-1-of-2.safetensors', ...; name one file"));
  fs::remove(folder_ / "a.safetensors");
  fs::remove(folder_ / "b.safetensors");
  EXPECT_EQ(read_safetensors_folder(folder_.path()).data_bytes, 22);
  write_shards("d-1-of-2.safetensors", "d-2-of-2.safetensors");
  EXPECT_THAT(refusal(), HasSubstr("name one file"));
  write_index_of(kMap);
  write_text(folder_ / "fp16.safetensors.index.json", "{}");
  EXPECT_THAT(refusal(),
              HasSubstr("'fp16.safetensors.index.json', 'model.safetensors.index.json'; name one file"));
}

TEST_F(SafetensorsFolder, FilesThatDifferInTheirNumbersAreOneModel) {
  write_shards("shard_0.safetensors", "shard_1.safetensors");
  EXPECT_EQ(read_safetensors_folder(folder_.path()).data_bytes, 22);
  write_shards("shard_0.safetensors", "other_1.safetensors");
  EXPECT_THAT(refusal(), HasSubstr("name one file"));
}

TEST_F(SafetensorsFolder, RefusesPartsThatAreNoSet) {
  write_shards("m-1-of-2.safetensors", "m-01-of-2.safetensors");
  EXPECT_THAT(refusal(), HasSubstr("name one file"));
  fs::remove(folder_ / "m-01-of-2.safetensors");
  fs::rename(folder_ / "m-1-of-2.safetensors", folder_ / "m-3-of-2.safetensors");
  EXPECT_EQ(read_safetensors_folder(folder_.path()).data_bytes, 6);  // the only file, whatever its name
}

TEST_F(SafetensorsFolder, RefusesFoldersWithoutAModel) {
  EXPECT_EQ(refusal(), " holds no safetensors file");
  write_text(folder_ / "pytorch_model-00001-of-00002.bin", "");
  EXPECT_EQ(
      refusal(),
      " holds 'pytorch_model-00001-of-00002.bin' but no safetensors file; PyTorch's pickles are not read: "
      "convert them, or give config.json");
}

TEST_F(SafetensorsFolder, RefusesWhatCannotBeRead) {
  EXPECT_EQ(error_of([&] { read_safetensors_folder(folder_ / "none"); }),
            folder_ / "none: cannot be read: No such file or directory");
  fs::create_symlink("loop", folder_ / "loop");
  EXPECT_THAT(error_of([&] { read_safetensors_folder(folder_ / "loop"); }), HasSubstr("symbolic links"));
  ASSERT_EQ(mkfifo((folder_ / "m.safetensors").c_str(), 0600), 0);
  EXPECT_THAT(error_of([&] { read_safetensors_folder(folder_.path()); }), HasSubstr("is a pipe or a device"));
}

TEST(SafetensorsSamples, RealFilesAreRead) {
  if (!fs::exists(kSamples)) GTEST_SKIP() << "there is no " << kSamples;
  const Checkpoint phi =
      read_safetensors_file((kSamples / "safetensors/tiny-random-PhiModel-1-of-2.safetensors").string());
  EXPECT_EQ(phi.tensors.size(), 31U);
  EXPECT_EQ(phi.data_bytes, 185'128);
  EXPECT_EQ(phi.metadata.at("format"), "pt");
  EXPECT_EQ(phi.tensors.front().format, Format{FormatKind::f32});
  const Checkpoint norm = read_safetensors_file(
      (kSamples / "safetensors/model-00005-model.layers.0.post_attention_layernorm.weight.safetensors")
          .string());
  EXPECT_EQ(norm.tensors.at(0).elements(), 3072);
}

TEST(SafetensorsSamples, RealIndexesAskForTheirShards) {
  if (!fs::exists(kSamples)) GTEST_SKIP() << "there is no " << kSamples;
  int indexes = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(kSamples / "index")) {
    const std::string path = entry.path().string();
    const std::string message = error_of([&] { read_safetensors_index(path); });
    const bool pickled = path.find("pytorch_model.bin") != std::string::npos;
    EXPECT_THAT(message,
                HasSubstr(pickled ? "is no safetensors file" : "an index carries no shapes; put the "));
    ++indexes;
  }
  EXPECT_GT(indexes, 5);
}

}  // namespace
}  // namespace memwall
