// scripts/quickstart.sh refuses what it can before it installs or builds anything, and nothing that the
// program takes.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "format/format.h"
#include "paths.h"
#include "tests/cli/process.h"
#include "tests/support.h"

namespace memwall {
namespace {

constexpr int kBuilt = 7;  // the exit status of a build that was begun

// With a package manager that has everything and a compiler that fails.
class ScriptQuickstart : public ::testing::Test {
 protected:
  ScriptQuickstart() {
    program("dpkg-query", "echo installed");
    program("apt-get", "exit 1");
    program("cmake", fmt::format("exit {}", kBuilt));
  }

  Finished quickstart(const std::vector<std::string>& arguments) const {
    std::vector<std::string> words = {"env", "PATH=" + folder_.path() + ":" + std::getenv("PATH"), "bash",
                                      MEMWALL_SOURCE_DIR "/scripts/quickstart.sh"};
    words.insert(words.end(), arguments.begin(), arguments.end());
    return Process(words).wait();
  }

 private:
  void program(const std::string& name, const std::string& commands) const {
    write_text(folder_ / name, "#!/bin/sh\n" + commands + "\n");
    std::filesystem::permissions(folder_ / name, std::filesystem::perms::owner_all);
  }

  TemporaryFolder folder_;
};

TEST_F(ScriptQuickstart, RefusesBadArgumentsBeforeItBuilds) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"--weights", "f16,zz"}, "--weights: unknown format 'zz'"},
      {{"--weights", "f16,,q8_0"}, "--weights: an item of the list is empty"},
      {{"--weights", "f16,"}, "--weights: an item of the list is empty"},
      {{"--weights", "experts=zz,rest=q8_0"}, "--weights: unknown format 'zz'"},
      {{"--kv=zz"}, "--kv: unknown format 'zz'"},
      {{"--batch", "x"}, "--batch: 'x' is no count"},
      {{"-b0"}, "-b: '0' is out of range"},
      {{"--prompt", "-1"}, "--prompt: '-1' is no count"},
      {{"--seed", "x"}, "--seed: 'x' is not a whole number"},
      {{"--threads", "0"}, "--threads: '0' is no number from 1 on"},
      {{"--cpus", "a"}, "--cpus: 'a' is no list of CPUs"},
      {{"--numa", "x"}, "--numa: 'x' is neither local nor interleave"},
      {{"--memory", "5XB"}, "--memory: '5XB' is not a size"},
      {{"--device", "gpu"}, "--device: 'gpu' is no device"},
      {{"--format", "xml"}, "--format: 'xml' is none of"},
      {{"--output", "/no/such/folder/x.json"}, "--output: '/no/such/folder/x.json' cannot be written"},
      {{"--seed"}, "--seed: its value is missing"},
      {{"--bath", "8"}, "unknown option '--bath'"},
      {{"8"}, "one argument too many: '8'"},
  };
  const DataVariable data;
  for (const auto& [arguments, message] : cases) {
    const Finished refused = quickstart(arguments);
    EXPECT_EQ(refused.status, 2) << message;
    EXPECT_EQ(refused.out, "");
    EXPECT_THAT(refused.err, testing::StartsWith("quickstart.sh: error: " + message));
    EXPECT_EQ(lines_of(refused.err).size(), 1U) << refused.err;
    // And so does the program.
    std::vector<std::string> words = {MEMWALL_EXECUTABLE, "measure", "llama-3.2-1b"};
    words.insert(words.end(), arguments.begin(), arguments.end());
    EXPECT_EQ(Process(words).wait().status, 2) << message;
  }
}

TEST_F(ScriptQuickstart, BuildsForWhatTheProgramTakes) {
  const std::vector<std::vector<std::string>> cases = {
      {},
      {"--weights", fmt::format("{}", fmt::join(format_names(), ",")), "--kv",
       fmt::format("{}", fmt::join(kv_format_names(), ","))},
      {"--weights", "awq,Q4_K_M,fp8,mlx,int4-g64-zp16,int8-c,16bit,w8a8", "--head-weights=q6_K", "--kv",
       "fp8"},
      {"--weights", "experts=mxfp4,rest=q8_0;q4_0"},
      {"--batch", "1-64*2", "-c", "8k,128k,1-9+2", "--prompt=0", "--step", "--ops", "--seed", "0"},
      {"-b8", "-c1k", "--threads", "2", "--cpus", "0-3,8", "--numa", "interleave", "--memory", "1.5GiB"},
      {"--device", "cuda:1", "--format", "csv", "-o", "x.csv"},
      {"--help"},
  };
  for (const std::vector<std::string>& arguments : cases) {
    const Finished built = quickstart(arguments);
    EXPECT_EQ(built.status, kBuilt) << fmt::format("{}: {}", fmt::join(arguments, " "), built.err);
  }
}

// The script's table of options is the program's.
TEST_F(ScriptQuickstart, KnowsTheOptionsOfMeasure) {
  const std::string help = Process({MEMWALL_EXECUTABLE, "measure", "--help"}).wait().out;
  std::set<std::string> of_program;
  const std::regex option("\n  (-[-a-zA-Z,]+) ");
  for (std::sregex_iterator i(help.begin(), help.end(), option), end; i != end; ++i) {
    std::string names = (*i)[1].str() + ",";
    for (std::size_t comma; (comma = names.find(',')) != std::string::npos; names.erase(0, comma + 1))
      of_program.insert(names.substr(0, comma));
  }
  const Finished listed =
      Process({"bash", "-c",
               ". '" MEMWALL_SOURCE_DIR "/scripts/measure_arguments.sh'; measure_options; measure_flags"})
          .wait();
  const std::vector<std::string> lines = lines_of(listed.out);
  EXPECT_EQ(std::set<std::string>(lines.begin(), lines.end()), of_program) << help;
}

}  // namespace
}  // namespace memwall
