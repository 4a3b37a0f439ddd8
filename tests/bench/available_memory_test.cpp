// Free memory from /proc and control groups that each test lays out.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "bench/topology.h"
#include "tests/temporary_folder.h"

namespace memwall {
namespace {

namespace fs = std::filesystem;

// A file system of its own for each test, with files written by path.
class AvailableMemory : public testing::Test {
 protected:
  void write(const std::string& path, const std::string& text) const {
    const fs::path file = root_ / path;
    fs::create_directories(file.parent_path());
    std::ofstream(file) << text << '\n';
  }
  std::int64_t available() const { return available_memory_bytes(root_ / ""); }

 private:
  TemporaryFolder root_;
};

constexpr std::int64_t gib = std::int64_t{1} << 30;

TEST_F(AvailableMemory, WithoutGroupsIsWhatTheKernelSays) {
  EXPECT_EQ(available(), 0);
  write("proc/meminfo", "MemTotal:  4194304 kB\nMemFree:  1048576 kB\n");
  EXPECT_EQ(available(), gib);
  write("proc/meminfo", "MemTotal:  4194304 kB\nMemFree:  1048576 kB\nMemAvailable:  2097152 kB\n");
  EXPECT_EQ(available(), 2 * gib);
}

TEST_F(AvailableMemory, VersionTwoTakesTheTightestLimitOnTheWayUp) {
  write("proc/meminfo", "MemAvailable:  8388608 kB");
  write("proc/self/cgroup", "0::/user/job");
  write("proc/self/mountinfo", "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw");
  write("sys/fs/cgroup/user/job/memory.max", "max");
  EXPECT_EQ(available(), 8 * gib);
  write("sys/fs/cgroup/user/job/memory.max", std::to_string(4 * gib));
  write("sys/fs/cgroup/user/job/memory.current", std::to_string(1 * gib));
  EXPECT_EQ(available(), 3 * gib);
  write("sys/fs/cgroup/user/memory.max", std::to_string(3 * gib));
  write("sys/fs/cgroup/user/memory.current", std::to_string(2 * gib));
  EXPECT_EQ(available(), 1 * gib);
  write("sys/fs/cgroup/user/memory.stat", "anon 5\ninactive_file " + std::to_string(gib / 2));
  EXPECT_EQ(available(), 3 * gib / 2) << "page cache can be dropped";
  write("sys/fs/cgroup/user/job/memory.high", std::to_string(gib / 2));
  EXPECT_EQ(available(), 0) << "use past memory.high leaves nothing";
}

TEST_F(AvailableMemory, VersionOneBesideAnEmptyVersionTwo) {
  write("proc/meminfo", "MemAvailable:  8388608 kB");
  write("proc/self/cgroup", "5:cpu,memory:/jobs/1\n2:cpuset:/\n0::/");
  write("proc/self/mountinfo",
        "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,cpu,memory\n"
        "36 31 0:33 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"
        "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\nshort line - x");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712");  // no limit
  write("sys/fs/cgroup/memory/memory.usage_in_bytes", std::to_string(2 * gib));
  EXPECT_EQ(available(), 8 * gib);
  const std::string group = "sys/fs/cgroup/memory/jobs/1/";
  write(group + "memory.limit_in_bytes", std::to_string(2 * gib));
  write(group + "memory.usage_in_bytes", std::to_string(gib));
  write(group + "memory.stat", "inactive_file 0\ntotal_inactive_file " + std::to_string(gib / 4));
  EXPECT_EQ(available(), gib + gib / 4);
}

// Docker with v1: the process's path is the host's, the mount shows only that path's part of the tree.
TEST_F(AvailableMemory, AMountOfPartOfTheTree) {
  write("proc/meminfo", "MemAvailable:  8388608 kB");
  write("proc/self/cgroup", "4:memory:/docker/abc");
  write("proc/self/mountinfo", "35 31 0:32 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", std::to_string(gib));
  write("sys/fs/cgroup/memory/memory.usage_in_bytes", "0");
  EXPECT_EQ(available(), gib);
  // And one whose part does not hold the process's path: the mount's own figures must do.
  write("proc/self/cgroup", "4:memory:/elsewhere");
  EXPECT_EQ(available(), gib);
}

TEST(AvailableMemoryOfThisMachine, IsKnown) { EXPECT_GT(available_memory_bytes(), 0); }

}  // namespace
}  // namespace memwall
