// Every seed of every fuzz target must pass without a fuzzer, too: seeds are kept findings.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "fuzz/targets.h"
#include "input/regular_file.h"
#include "paths.h"

namespace memwall {
namespace {

namespace fs = std::filesystem;

const fs::path kCorpus = fs::path(MEMWALL_SOURCE_DIR) / "fuzz" / "corpus";

using Target = std::function<int(const std::uint8_t*, std::size_t)>;

const std::map<std::string, Target>& targets() {
  static const std::map<std::string, Target> known = {
      {"config", fuzz_config},
      {"gguf", fuzz_gguf},
      {"json", fuzz_json},
      {"safetensors", fuzz_safetensors},
  };
  return known;
}

std::vector<std::uint8_t> read_bytes(const fs::path& path) {
  const RegularFile file(path.string());
  std::string text(static_cast<std::size_t>(file.size()), '\0');
  text.resize(file.read_at(0, text.data(), text.size()));
  return {text.begin(), text.end()};
}

TEST(Replay, EveryTargetIsListedAndHasSeeds) {
  std::vector<std::string> names;
  for (const auto& [name, target] : targets()) names.push_back(name);
  std::vector<std::string> folders;
  for (const fs::directory_entry& entry : fs::directory_iterator(kCorpus)) {
    folders.push_back(entry.path().filename().string());
  }
  EXPECT_THAT(folders, testing::UnorderedElementsAreArray(names));
}

TEST(Replay, EverySeedPasses) {
  for (const auto& [name, target] : targets()) {
    int seeds = 0;
    for (const fs::directory_entry& entry : fs::directory_iterator(kCorpus / name)) {
      SCOPED_TRACE(entry.path().string());
      const std::vector<std::uint8_t> bytes = read_bytes(entry.path());
      EXPECT_EQ(target(bytes.data(), bytes.size()), 0);
      ++seeds;
    }
    EXPECT_GE(seeds, 10) << name;
  }
}

}  // namespace
}  // namespace memwall
