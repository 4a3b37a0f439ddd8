// Reading files and finding the shipped ones.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>

#include "input/data_files.h"
#include "input/error.h"
#include "input/read_file.h"
#include "input/yaml.h"
#include "tests/support.h"

namespace memwall {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

class Files : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "memwall-files-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override {
    std::error_code ignored;
    fs::permissions(folder_, fs::perms::owner_all, ignored);
    fs::remove_all(folder_, ignored);
  }

  std::string write(const std::string& name, std::string_view text) const {
    const fs::path path = folder_ / name;
    fs::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << text;
    return path.string();
  }

  // A data folder with two things on its shelf.
  void fill_data() const {
    fs::create_directories(folder_ / "configs");
    write("models/alpha-1b.yaml", "name: alpha-1b\naliases: [first, \"4090\"]\n");
    write("models/beta-7b.yaml", "name: beta-7b\naliases: [Second]\n");
    write("models/README.md", "no model\n");
  }

  fs::path folder_;
};

const Shelf kModels{.what = "model", .folder = "models"};

using ReadFile = Files;

TEST_F(ReadFile, ReadsEveryByteUpToTheLimit) {
  EXPECT_EQ(read_text_file(write("a", "x\r\ny"), 4), "x\r\ny");
  EXPECT_EQ(read_text_file(write("empty", ""), 4), "");
}

TEST_F(ReadFile, RefusesALongerFile) {
  const std::string path = write("a", "12345");
  EXPECT_EQ(error_of([&] { read_text_file(path, 4); }),
            path + ": is longer than 4 bytes; this is no such file");
}

TEST_F(ReadFile, RefusesAMissingFileAndAFolder) {
  const std::string missing = (folder_ / "nothing.yaml").string();
  EXPECT_EQ(error_of([&] { read_text_file(missing, 4); }),
            missing + ": cannot be read: No such file or directory");
  EXPECT_EQ(error_of([&] { read_text_file(folder_.string(), 4); }),
            folder_.string() + ": is a folder; name a file");
  EXPECT_THAT(error_of([] { read_text_file("", 4); }), HasSubstr("cannot be read"));
}

TEST_F(ReadFile, RefusesAnUnreadableFile) {
  if (geteuid() == 0) GTEST_SKIP() << "root reads everything";
  const std::string path = write("a", "x");
  fs::permissions(path, fs::perms::none);
  EXPECT_EQ(error_of([&] { read_text_file(path, 4); }), path + ": cannot be read: Permission denied");
}

TEST_F(ReadFile, RefusesAFileWhoseReadsFail) {
  // Opens, but address 0 of our own memory cannot be read.
  EXPECT_EQ(error_of([] { read_text_file("/proc/self/mem", 4); }),
            "/proc/self/mem: cannot be read: Input/output error");
}

using YamlLoad = Files;

TEST_F(YamlLoad, NamesTheFileAsItWasGiven) {
  const std::string path = write("a.yaml", "a: 1\na: 2\n");
  EXPECT_EQ(error_of([&] { yaml::load(path); }), path + ":2:1: duplicate key 'a', first given on line 1");
}

TEST_F(YamlLoad, ReadsAMebibyteAndNoMore) {
  std::string text = "a: 1\n#";
  text.resize((1U << 20), 'x');
  EXPECT_EQ(yaml::load(write("full.yaml", text)).find("a")->text, "1");
  const std::string longer = write("longer.yaml", text + "x");
  EXPECT_EQ(error_of([&] { yaml::load(longer); }),
            longer + ": is longer than 1048576 bytes; this is no such file");
  EXPECT_THAT(error_of([] { yaml::load("/dev/zero"); }), HasSubstr("is a pipe or a device"));
}

using DataFolder = Files;

TEST_F(DataFolder, IsMemwallDataWhereItIsSet) {
  fill_data();
  const DataVariable variable(folder_.string());
  EXPECT_EQ(data_folder(), folder_.string());
  EXPECT_THAT(shelf_names(kModels), ElementsAre("alpha-1b", "beta-7b"));
}

TEST_F(DataFolder, RefusesAMemwallDataWithoutTheFolders) {
  const std::string wrong = (folder_ / "nowhere").string();
  const DataVariable variable(wrong);
  EXPECT_EQ(error_of([] { data_folder(); }),
            "MEMWALL_DATA: " + wrong + " holds no models and configs folders");
  EXPECT_THAT(error_of([] { find_on_shelf(kModels, "alpha"); }), StartsWith("MEMWALL_DATA: "));
  fs::create_directories(folder_ / "nowhere" / "models");  // configs is still missing
  EXPECT_THAT(error_of([] { data_folder(); }), StartsWith("MEMWALL_DATA: "));
}

TEST_F(DataFolder, AnUnreadableShelfIsAnError) {
  fill_data();
  const DataVariable variable(folder_.string());
  const Shelf missing{.what = "card", .folder = "configs/cards"};
  EXPECT_EQ(error_of([&] { shelf_names(missing); }),
            (folder_ / "configs/cards").string() + ": cannot be read: No such file or directory");
}

using FindOnShelf = Files;

TEST_F(FindOnShelf, FindsNamesAndAliasesInAnyCase) {
  fill_data();
  const DataVariable variable(folder_.string());
  const std::string alpha = (folder_ / "models/alpha-1b.yaml").string();
  EXPECT_EQ(find_on_shelf(kModels, "alpha-1b"), alpha);
  EXPECT_EQ(find_on_shelf(kModels, "Alpha-1B"), alpha);
  EXPECT_EQ(find_on_shelf(kModels, "FIRST"), alpha);
  EXPECT_EQ(find_on_shelf(kModels, "4090"), alpha);
  EXPECT_THAT(find_on_shelf(kModels, "second"), EndsWith("beta-7b.yaml"));
}

TEST_F(FindOnShelf, TakesWhatLooksLikeAPathAsOne) {
  fill_data();
  const DataVariable variable(folder_.string());
  EXPECT_EQ(find_on_shelf(kModels, "./alpha-1b"), "./alpha-1b");
  EXPECT_EQ(find_on_shelf(kModels, "no/such/file.yaml"), "no/such/file.yaml");
  EXPECT_EQ(find_on_shelf(kModels, "alpha-1b.yaml"), "alpha-1b.yaml");
  EXPECT_EQ(find_on_shelf(kModels, "other.yml"), "other.yml");
}

TEST_F(FindOnShelf, TakesAnExistingFileAfterTheNames) {
  fill_data();
  const DataVariable variable(folder_.string());
  const std::string path = write("mine", "x");
  EXPECT_EQ(find_on_shelf(kModels, path), path);
  EXPECT_EQ(find_on_shelf(kModels, "."), ".");  // exists, and reading it says that it is a folder
}

TEST_F(FindOnShelf, NamesTheNearestThreeOfAnUnknownWord) {
  fill_data();
  const DataVariable variable(folder_.string());
  EXPECT_EQ(error_of([] { find_on_shelf(kModels, "alhpa-1b"); }),
            "unknown model 'alhpa-1b'; did you mean alpha-1b, beta-7b or first? `memwall models` lists them");
  EXPECT_THAT(error_of([] { find_on_shelf(kModels, "secnod"); }), HasSubstr("did you mean Second, "));
  EXPECT_THAT(error_of([] { find_on_shelf(kModels, ""); }),
              StartsWith("unknown model ''; `memwall models` lists them"));
}

}  // namespace
}  // namespace memwall
