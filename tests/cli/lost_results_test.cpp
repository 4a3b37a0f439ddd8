// A result is neither lost nor spoilt by a broken standard stream, a signal or a limit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <string>
#include <vector>

#include "report/json.h"
#include "tests/cli/process.h"
#include "tests/support.h"

namespace memwall {
namespace {

// Warns: the context is beyond what the model was made for.
const std::string kWarns = "estimate llama-3.2-1b --card h200 --context 999999";

Finished run_shell(const std::string& script) {
  const DataVariable data;
  return Process({"sh", "-c", script, MEMWALL_EXECUTABLE}).wait();
}

std::vector<std::string> measuring(const std::string& file) {
  return memwall_command({"measure", std::string(MEMWALL_TEST_DATA "/fixtures/mixed.yaml"), "--format",
                          "json", "--output", file});
}

TEST(LostResults, AClosedStandardErrorDoesNotLeaveItsNumberToTheFile) {
  const TemporaryFolder folder;
  const std::string file = folder / "o.json";
  EXPECT_EQ(run_shell("exec \"$0\" " + kWarns + " --format json -o '" + file + "' 2>&-").status, 0);
  EXPECT_EQ(Json::parse(content_of(file))["schema"], "memwall.estimate/1");
  // All three of them.
  EXPECT_EQ(run_shell("exec \"$0\" " + kWarns + " --format json -o '" + file + "' <&- >&- 2>&-").status, 0);
  EXPECT_EQ(Json::parse(content_of(file))["schema"], "memwall.estimate/1");
}

TEST(LostResults, AStandardErrorThatFailsCostsNothing) {
  for (const std::string to : {"2>/dev/full", "2>&-"}) {
    const Finished finished = run_shell("exec \"$0\" " + kWarns + " --format json " + to);
    EXPECT_EQ(finished.status, 0) << to;
    EXPECT_EQ(Json::parse(finished.out)["warnings"].size(), 1U) << to;
  }
}

TEST(LostResults, AStandardErrorThatNobodyReadsCostsNothing) {
  const TemporaryFolder folder;
  const std::string file = folder / "o.json";
  run_shell("(\"$0\" " + kWarns + " --format json -o '" + file + "'; echo $? >'" + (folder / "status") +
            "') 2>&1 | true");
  for (int i = 0; i < 1000 && content_of(folder / "status").empty(); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_EQ(content_of(folder / "status"), "0\n");
  EXPECT_EQ(Json::parse(content_of(file))["schema"], "memwall.estimate/1");
}

TEST(LostResults, AStandardOutputThatFailsIsAnError) {
  for (const std::string to : {">/dev/full", ">&-"}) {
    const Finished finished = run_shell("exec \"$0\" cards " + to);
    EXPECT_EQ(finished.status, 1) << to;
    EXPECT_EQ(lines_of(finished.err).size(), 1U) << finished.err;
    EXPECT_THAT(finished.err, testing::HasSubstr("standard output cannot be written")) << to;
  }
}

TEST(LostResults, APipeThatNobodyReadsEndsItQuietly) {
  const Finished finished = run_shell("{ \"$0\" models --format json; echo $? >&2; } | true");
  EXPECT_THAT(finished.err,
              testing::AnyOf("141\n", "0\n"));  // 0 where it had written all before the reader left
}

TEST(LostResults, ALimitOnTheSizeOfFilesIsAnErrorThatLeavesNothing) {
  const TemporaryFolder folder;
  const Finished finished =
      run_shell("ulimit -f 1; exec \"$0\" models --format json -o '" + (folder / "o.json") + "'");
  EXPECT_EQ(finished.status, 1);
  EXPECT_THAT(finished.err, testing::HasSubstr("o.json cannot be written: File too large"));
  EXPECT_EQ(folder.names(), std::vector<std::string>{});
}

TEST(LostResults, ASignalThatEndsItLeavesNoTemporaryFile) {
  // SIGQUIT ends at once; of the others the second one does.
  const TemporaryFolder folder;
  Process quits(measuring(folder / "run.json"));
  ASSERT_TRUE(quits.wait_until_it_catches(SIGQUIT));
  quits.send(SIGQUIT);
  EXPECT_EQ(quits.wait().status, 128 + SIGQUIT);
  EXPECT_EQ(folder.names(), std::vector<std::string>{});
}

TEST(LostResults, AHangupKeepsWhatWasMeasured) {
  const TemporaryFolder folder;
  Process process(measuring(folder / "run.json"));
  ASSERT_TRUE(process.wait_until_it_catches(SIGHUP));
  process.send(SIGHUP);
  EXPECT_EQ(process.wait().status, 130);
  EXPECT_EQ(folder.names(), std::vector<std::string>{"run.json"});
  EXPECT_EQ(Json::parse(content_of(folder / "run.json"))["incomplete"], true);
}

TEST(LostResults, MeasureRefusesAnOutputBeforeAnythingElse) {
  const Finished finished = run("measure no-such-model -o /no/such/folder/x.json");
  EXPECT_EQ(finished.status, 2);
  EXPECT_THAT(finished.err, testing::HasSubstr("/no/such/folder/x.json cannot be written"));
}

}  // namespace
}  // namespace memwall
