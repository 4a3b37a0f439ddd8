// scripts/gpu-check.sh: where its results go, and what it refuses before anything runs.
#include <gmock/gmock.h>

#include "tests/scripts/gpu_check.h"

namespace memwall {
namespace {

namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

class ScriptGpuCheckOutput : public ScriptGpuCheck {
 protected:
  // A dry run of programs that do nothing, to wherever.
  Finished run(const std::string& output, const std::string& script = kGpuCheck) const {
    return Process({"bash", script, "--cpu", "--build", folder_ / "build", output}).wait();
  }
  void expect_refused(const std::string& output, const std::string& words) const {
    const Finished done = run(output);
    EXPECT_EQ(done.status, 2);
    ASSERT_EQ(lines_of(done.err).size(), 1U) << done.err;
    EXPECT_THAT(done.err, HasSubstr(words));
  }
  std::vector<std::string> archived_names() const {
    return lines_of(Process({"tar", "-tzf", folder_ / "out.tar.gz"}).wait().out);
  }
};

TEST_F(ScriptGpuCheckOutput, HoldsWhatIsInTheFolderBehindALink) {
  memwall_says("exit 0");
  fs::create_directory(folder_ / "elsewhere");
  fs::create_directory_symlink(folder_ / "elsewhere", folder_ / "out");
  EXPECT_EQ(run(folder_ / "out").status, 0);
  EXPECT_THAT(archived_names(), Contains(EndsWith("/steps.tsv")));
  EXPECT_THAT(archived_names(), Contains(EndsWith("/measure.log")));
}

TEST_F(ScriptGpuCheckOutput, HoldsNothingThatIsNotItsOwn) {
  memwall_says("exit 0");
  fs::create_directory(folder_ / "out");
  write_text(folder_ / "out/diary", "private");
  write_text(folder_ / "out/smoke.log", "of an earlier run");
  EXPECT_EQ(run(folder_ / "out").status, 0);
  EXPECT_THAT(archived_names(), ElementsAre("out/steps.tsv", "out/summary.md", EndsWith(".log"),
                                            EndsWith(".log"), EndsWith(".log")));
  EXPECT_THAT(archived_names(), Not(Contains("out/smoke.log")));
  EXPECT_EQ(content_of(folder_ / "out/diary"), "private");
}

TEST_F(ScriptGpuCheckOutput, IsRefusedWhereItCannotBeWritten) {
  memwall_says("echo ran >>'" + (folder_ / "ran") + "'");
  expect_refused("/", "/ is the root folder");
  write_text(folder_ / "file", "");
  expect_refused(folder_ / "file", "file is no folder that can be made");
  expect_refused(folder_ / "file/out", "out is no folder that can be made");
  fs::create_directory(folder_ / "out.tar.gz");
  expect_refused(folder_ / "out", "out.tar.gz is a folder");
  fs::remove(folder_ / "out.tar.gz");
  fs::create_directory(folder_ / "out.tar.gz.new");
  write_text(folder_ / "out/steps.tsv", "of an earlier run");
  expect_refused(folder_ / "out", "out.tar.gz.new cannot be written");
  EXPECT_EQ(content_of(folder_ / "out/steps.tsv"), "of an earlier run");
  fs::remove(folder_ / "out.tar.gz.new");
  fs::remove(folder_ / "out/steps.tsv");
  fs::create_directory(folder_ / "out/steps.tsv");
  expect_refused(folder_ / "out", "steps.tsv cannot be written");
  EXPECT_FALSE(fs::exists(folder_ / "out.tar.gz.new"));
  EXPECT_FALSE(fs::exists(folder_ / "ran"));
}

TEST_F(ScriptGpuCheckOutput, TheScriptMayBeCalledByALink) {
  memwall_says("exit 0");
  fs::create_symlink(kGpuCheck, folder_ / "link");
  const Finished done = run(folder_ / "out", folder_ / "link");
  EXPECT_EQ(done.status, 0) << done.err;
  EXPECT_THAT(archived_steps(), ElementsAre("facts: passed", "devices: passed", "measure: passed"));
}

TEST_F(ScriptGpuCheckOutput, TheScriptAloneSaysWhatIsMissing) {
  fs::copy(kGpuCheck, folder_ / "gpu-check.sh");
  const Finished done = run(folder_ / "out", folder_ / "gpu-check.sh");
  EXPECT_EQ(done.status, 2);
  ASSERT_EQ(lines_of(done.err).size(), 1U) << done.err;
  EXPECT_THAT(done.err, HasSubstr("dependencies.sh is missing"));
}

}  // namespace
}  // namespace memwall
