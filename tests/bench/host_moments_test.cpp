#include "bench/host_moments.h"

#include <gtest/gtest.h>

#include <filesystem>

namespace memwall {
namespace {

TEST(HostMoments, OnlyGrow) {
  HostMoments moments({0});
  const ProcessMoment first = moments.process();
  volatile double sum = 0;
  for (int i = 0; i < 3'000'000; ++i) sum = sum + i;
  const ProcessMoment second = moments.process();
  EXPECT_GT(second.wall_s, first.wall_s);
  EXPECT_GT(second.cpu_s, first.cpu_s);
  EXPECT_GE(second.waited_s, first.waited_s);
}

TEST(HostMoments, ReadTheMachineWhereThereIsAProc) {
  if (!std::filesystem::exists("/proc/stat")) GTEST_SKIP() << "there is no /proc/stat";
  const auto moment = HostMoments({0}).machine();
  ASSERT_TRUE(moment.has_value());
  EXPECT_GT(moment->machine.cpus, 0);
  EXPECT_GE(moment->machine.busy_s, moment->machine.used_s);
  EXPECT_GT(moment->process.wall_s, 0);
  EXPECT_FALSE(HostMoments({1'000'000}).machine().has_value());  // a CPU that there is not
}

}  // namespace
}  // namespace memwall
