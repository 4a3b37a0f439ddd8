// scripts/gpu-check.sh on the CPU, with a memwall that is a stub: what it runs, records and leaves.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "paths.h"
#include "tests/cli/process.h"

namespace memwall {
namespace {

using ::testing::HasSubstr;

Finished check(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {"bash", MEMWALL_SOURCE_DIR "/scripts/gpu-check.sh"});
  return Process(std::move(arguments)).wait();
}

TEST(ScriptGpuCheck, RecordsEveryStepAndGoesOnBehindAFailure) {
  const TemporaryFolder folder;
  const std::string memwall = folder / "memwall";
  write_text(memwall,
             "#!/bin/sh\n"
             "if [ \"$1\" = baseline ]; then echo 'memwall: error: no luck' >&2; exit 1; fi\n"
             "if [ \"$1\" = devices ]; then exec '" MEMWALL_EXECUTABLE "' \"$@\"; fi\n");
  std::filesystem::permissions(memwall, std::filesystem::perms::owner_all);
  const Finished done = check({"--cpu", "--build", folder.path(), folder / "out"});
  EXPECT_EQ(done.status, 1);
  EXPECT_EQ(done.out, "");
  EXPECT_THAT(done.err, HasSubstr("memwall: error: no luck"));
  const std::vector<std::string> steps = lines_of(content_of(folder / "out/steps.tsv"));
  ASSERT_EQ(steps.size(), 5U) << done.err;
  EXPECT_THAT(steps[0], HasSubstr("devices\tpassed\t"));
  EXPECT_THAT(steps[1], HasSubstr("baseline\tfailed with status 1\t"));
  EXPECT_THAT(steps[4], HasSubstr("measure-q4_0\tpassed\t"));
  EXPECT_THAT(content_of(folder / "out/devices.json"), HasSubstr("memwall.devices/1"));
  EXPECT_THAT(content_of(folder / "out/summary.md"), HasSubstr("| baseline | failed with status 1 |"));
}

TEST(ScriptGpuCheck, RefusesWrongArguments) {
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{}, {"--cpu"}, {"--gpu", "out"}, {"--build"}, {"a", "b"}, {""}}) {
    const Finished done = check(arguments);
    EXPECT_EQ(done.status, 2);
    EXPECT_THAT(done.err, HasSubstr("usage: "));
  }
}

}  // namespace
}  // namespace memwall
