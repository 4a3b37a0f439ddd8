// scripts/gpu-check.sh when something shall end: a part at its limit, all of it at a signal.
#include <gmock/gmock.h>
#include <signal.h>
#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/scripts/gpu_check.h"

namespace memwall {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::StartsWith;

using ScriptGpuCheckEnds = ScriptGpuCheck;

TEST_F(ScriptGpuCheckEnds, APartLeavesNoProcessBehind) {
  memwall_says("exit 0");
  tests_say("sleep 600 & echo $! >'" + (folder_ / "left") + "'; echo '[       OK ] CudaGpu.Works (1 ms)'");
  EXPECT_EQ(check("executes").status, 0);
  const int left = std::stoi(content_of(folder_ / "left"));
  EXPECT_TRUE(wait_until([&] { return ::kill(left, 0) != 0; }));
}

TEST_F(ScriptGpuCheckEnds, APartThatHangsIsStoppedAtItsLimit) {
  memwall_says("exit 0");
  tests_say("trap '' TERM; while :; do sleep 1; done");
  const Finished done = check("executes", {"--limit", "smoke=2", "--limit", "gpu-tests=2"});
  EXPECT_EQ(done.status, 1);
  EXPECT_THAT(archived_steps(), IsSupersetOf({"smoke: killed at its limit of 2 s",
                                              "gpu-tests: killed at its limit of 2 s", "measure: passed"}));
}

TEST_F(ScriptGpuCheckEnds, TheResultsAreThereAfterSigterm) {
  Process process(command("executes,pauses:100"));
  ASSERT_TRUE(wait_for_step("gpu-tests: passed"));
  // The result's file is begun once a signal is caught.
  ASSERT_TRUE(wait_until([&] {
    for (const auto& entry : fs::directory_iterator(folder_ / "out"))
      if (entry.path().filename().string().rfind("measure.json", 0) == 0) return true;
    return false;
  }));
  process.send(SIGTERM);
  const Finished done = process.wait();
  EXPECT_EQ(done.status, 128 + SIGTERM);
  EXPECT_THAT(archived_steps(), ElementsAre("facts: passed", "devices: passed", "smoke: passed",
                                            StartsWith("sanitizer: not run"), "gpu-tests: passed",
                                            "measure: stopped by SIGTERM"));
  EXPECT_THAT(from_archive("summary.md"), HasSubstr("| measure | stopped by SIGTERM |"));
  EXPECT_EQ(nlohmann::json::parse(from_archive("measure.json"))["incomplete"], true);
}

TEST_F(ScriptGpuCheckEnds, ASignalInAnEarlyPartLeavesOutTheOthers) {
  memwall_says("exit 0");
  tests_say("exec sleep 60");
  Process process(command("executes"));
  ASSERT_TRUE(wait_for_step("devices: passed"));
  process.send(SIGHUP);
  EXPECT_EQ(process.wait().status, 128 + SIGHUP);
  EXPECT_THAT(archived_steps(),
              IsSupersetOf({"smoke: stopped by SIGHUP", "gpu-tests: not run: stopped by SIGHUP",
                            "measure: not run: stopped by SIGHUP"}));
}

// At whatever moment: what was done until then is in the archive, whole.
TEST_F(ScriptGpuCheckEnds, TheResultsAreThereAfterSigkill) {
  // Its own words name the process that the script leaves behind.
  tests_say("echo $$ >'" + (folder_ / "left") +
            "'; case $1 in *-CudaGpuSmoke*) exec sleep 60 ;; esac\n"
            "echo '[       OK ] CudaGpu.Works (1 ms)'");
  for (const char* step :
       {"facts: passed", "devices: passed", "smoke: passed", "gpu-tests: began, and did not end"}) {
    Process process(command("executes"));
    ASSERT_TRUE(wait_for_step(step));
    process.send(SIGKILL);
    EXPECT_EQ(process.wait().status, 128 + SIGKILL);
    EXPECT_THAT(archived_steps(), testing::Contains(step));
    EXPECT_THAT(from_archive("summary.md"), HasSubstr("| facts | passed |"));
    ::usleep(200'000);
    std::ifstream left(folder_ / "left");
    if (pid_t id = 0; left >> id) ::kill(id, SIGKILL);
    fs::remove(folder_ / "left");
    fs::remove(folder_ / "out.tar.gz");
  }
}

}  // namespace
}  // namespace memwall
