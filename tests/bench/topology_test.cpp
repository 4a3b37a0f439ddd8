#include "bench/topology.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/utsname.h>

#include <filesystem>
#include <fstream>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

namespace memwall {
namespace {

namespace fs = std::filesystem;

// A folder of its own for each test, with files written by path.
class FakeSystem : public testing::Test {
 protected:
  FakeSystem() {
    std::string name = (fs::temp_directory_path() / "memwall-topology-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("cannot make " + name);
    root_ = name;
  }
  ~FakeSystem() override {
    std::error_code ignored;
    fs::remove_all(root_, ignored);
  }

  void write(const std::string& path, const std::string& text) const {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text << '\n';
  }
  void cache(int cpu, int index, int level, const std::string& type, const std::string& size,
             const std::string& shared) const {
    const std::string folder = "cpu" + std::to_string(cpu) + "/cache/index" + std::to_string(index) + "/";
    write(folder + "level", std::to_string(level));
    write(folder + "type", type);
    write(folder + "size", size);
    if (!shared.empty()) write(folder + "shared_cpu_list", shared);
  }
  void siblings(int cpu, const std::string& list) const {
    write("cpu" + std::to_string(cpu) + "/topology/core_cpus_list", list);
  }
  // CPU `cpu` of a machine whose cores have 48 KiB, 2 MiB and a share of a 32 MiB cache.
  void cpu(int cpu, const std::string& core, const std::string& socket) const {
    siblings(cpu, core);
    cache(cpu, 0, 1, "Data", "48K", core);
    cache(cpu, 1, 1, "Instruction", "32K", core);
    cache(cpu, 2, 2, "Unified", "2048K", core);
    cache(cpu, 3, 3, "Unified", "32768K", socket);
  }
  Topology read(const std::vector<int>& allowed) const {
    return read_topology(root_.string(), (root_ / "cpuinfo").string(), allowed);
  }

  fs::path root_;
};

using TopologyTest = FakeSystem;
using AvailableMemory = FakeSystem;

std::vector<int> first_cpus(int n) {
  std::vector<int> cpus(static_cast<std::size_t>(n));
  std::iota(cpus.begin(), cpus.end(), 0);
  return cpus;
}

constexpr std::int64_t kib = 1024;
constexpr std::int64_t mib = 1024 * kib;
constexpr std::int64_t gib = 1024 * mib;

TEST_F(TopologyTest, TwoSocketsWithHardwareThreads) {
  // Linux numbers the second threads after all the first ones: core of CPU 0 is "0,4".
  for (int i = 0; i < 8; ++i) {
    const int core = i % 4;
    cpu(i, std::to_string(core) + "," + std::to_string(core + 4), core < 2 ? "0-1,4-5" : "2-3,6-7");
  }
  write("online", "0-7");
  write("cpuinfo", "processor\t: 0\nmodel name\t: AMD EPYC 9354 32-Core Processor\n");
  const Topology all = read(first_cpus(8));
  EXPECT_EQ(all.cpu_name, "AMD EPYC 9354");
  EXPECT_EQ(all.cpus, (std::vector<int>{0, 1, 2, 3}));
  EXPECT_EQ(all.logical_cpus, 8);
  EXPECT_EQ(all.l1d_bytes, 48 * kib);
  EXPECT_EQ(all.l2_bytes, 2 * mib);
  EXPECT_EQ(all.last_level_bytes, 64 * mib);

  // A container with both threads of one core and the second thread of another, all on one socket.
  const Topology some = read({7, 2, 6});
  EXPECT_EQ(some.cpus, (std::vector<int>{2, 7}));
  EXPECT_EQ(some.logical_cpus, 3);
  EXPECT_EQ(some.last_level_bytes, 32 * mib);
}

TEST_F(TopologyTest, OldKernelsNameSiblingsOtherwise) {
  write("cpu0/topology/thread_siblings_list", "0-1");
  write("cpu1/topology/thread_siblings_list", "0-1");
  EXPECT_EQ(read({0, 1}).cpus, std::vector<int>{0});
}

TEST_F(TopologyTest, CpusOffLineAreLeftOut) {
  for (const int i : {0, 2, 3}) cpu(i, std::to_string(i), "0,2-3");
  write("cpu1/online", "0");  // an off-line CPU has neither topology nor caches
  write("online", "0,2-3");
  const Topology topology = read(first_cpus(4));
  EXPECT_EQ(topology.cpus, (std::vector<int>{0, 2, 3}));
  EXPECT_EQ(topology.logical_cpus, 3);
  EXPECT_EQ(topology.last_level_bytes, 32 * mib);
}

TEST_F(TopologyTest, MissingFilesLeaveZeros) {
  const Topology nothing = read({0, 1});
  EXPECT_EQ(nothing.cpus, (std::vector<int>{0, 1}));
  EXPECT_EQ(nothing.logical_cpus, 2);
  EXPECT_EQ(nothing.l1d_bytes, 0);
  EXPECT_EQ(nothing.l2_bytes, 0);
  EXPECT_EQ(nothing.last_level_bytes, 0);
}

TEST_F(TopologyTest, CachesThatSayLittle) {
  cache(0, 0, 1, "Data", "32K", "0");
  cache(0, 1, 2, "Unified", "unknown", "0");
  cache(0, 2, 3, "Unified", "8M", "");  // nobody said who shares it: each CPU's own
  cache(1, 0, 3, "Unified", "8M", "");
  write("cpu1/cache/index1/level", "4");  // no size: as if it were not there
  const Topology topology = read({0, 1});
  EXPECT_EQ(topology.l1d_bytes, 32 * kib);
  EXPECT_EQ(topology.l2_bytes, 0);
  EXPECT_EQ(topology.last_level_bytes, 16 * mib);
}

TEST_F(TopologyTest, WithoutAThirdLevelTheSecondIsTheLast) {
  for (const int i : {0, 1}) {
    siblings(i, std::to_string(i));
    cache(i, 0, 1, "Data", "64K", std::to_string(i));
    cache(i, 1, 2, "Unified", "1024K", std::to_string(i));
  }
  const Topology topology = read({0, 1});
  EXPECT_EQ(topology.l2_bytes, mib);
  EXPECT_EQ(topology.last_level_bytes, 2 * mib);
}

TEST_F(TopologyTest, ArmGivesNoNameButItsArchitecture) {
  write("cpuinfo", "processor\t: 0\nBogoMIPS\t: 50.00\nCPU implementer\t: 0x41\nCPU part\t: 0xd40\n");
  utsname machine{};
  ASSERT_EQ(uname(&machine), 0);
  EXPECT_EQ(read({0}).cpu_name, machine.machine);
}

TEST_F(TopologyTest, NamesAreTrimmed) {
  write("cpuinfo", "no colon here\nmodel name\t:\nmodel name\t:   Intel(R) Xeon(R) Platinum 8480+  \n");
  EXPECT_EQ(read({0}).cpu_name, "Intel(R) Xeon(R) Platinum 8480+");
}

TEST_F(TopologyTest, AnotherMachinesOnlineListIsIgnored) {
  write("online", "0-1");
  EXPECT_EQ(read({8, 9}).cpus, (std::vector<int>{8, 9}));
}

TEST(Topology, OfThisMachineIsWithinItsAffinity) {
  const Topology topology = read_topology();
  EXPECT_FALSE(topology.cpu_name.empty());
  EXPECT_FALSE(topology.cpus.empty());
  EXPECT_LE(topology.cpus.size(), static_cast<std::size_t>(topology.logical_cpus));
  EXPECT_LE(static_cast<std::size_t>(topology.logical_cpus), allowed_cpus().size());
}

TEST(ParseCpuList, Lists) {
  EXPECT_EQ(parse_cpu_list("0-3,8"), (std::vector<int>{0, 1, 2, 3, 8}));
  EXPECT_EQ(parse_cpu_list("5\n"), std::vector<int>{5});
  EXPECT_EQ(parse_cpu_list("4-4,2,2-3"), (std::vector<int>{2, 3, 4}));
  EXPECT_TRUE(parse_cpu_list("\n").empty()) << "as sysfs writes `offline` when all are on line";
}

TEST(ParseCpuList, RefusesAnythingElse) {
  for (const char* list : {"a", "1-", "-1", "3-1", "1,,2", "1,", ",", "1 2", "0-2000000000", "99999999999",
                           "0x1", "+1", "1-2-3"}) {
    EXPECT_THROW(parse_cpu_list(list), std::invalid_argument) << list;
  }
}

TEST_F(AvailableMemory, WithoutGroupsIsWhatTheKernelSays) {
  EXPECT_EQ(available_memory_bytes(root_.string()), 0);
  write("proc/meminfo", "MemTotal:  4194304 kB\nMemFree:  1048576 kB\n");
  EXPECT_EQ(available_memory_bytes(root_.string()), gib);
  write("proc/meminfo", "MemTotal:  4194304 kB\nMemFree:  1048576 kB\nMemAvailable:  2097152 kB\n");
  EXPECT_EQ(available_memory_bytes(root_.string()), 2 * gib);
}

TEST_F(AvailableMemory, VersionTwoTakesTheTightestLimitOnTheWayUp) {
  write("proc/meminfo", "MemAvailable:  8388608 kB");
  write("proc/self/cgroup", "0::/user/job");
  write("proc/self/mountinfo", "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw");
  write("sys/fs/cgroup/user/job/memory.max", "max");
  EXPECT_EQ(available_memory_bytes(root_.string()), 8 * gib);
  write("sys/fs/cgroup/user/job/memory.max", std::to_string(4 * gib));
  write("sys/fs/cgroup/user/job/memory.current", std::to_string(1 * gib));
  EXPECT_EQ(available_memory_bytes(root_.string()), 3 * gib);
  write("sys/fs/cgroup/user/memory.max", std::to_string(3 * gib));
  write("sys/fs/cgroup/user/memory.current", std::to_string(2 * gib));
  EXPECT_EQ(available_memory_bytes(root_.string()), 1 * gib);
  write("sys/fs/cgroup/user/memory.stat", "anon 5\ninactive_file " + std::to_string(gib / 2));
  EXPECT_EQ(available_memory_bytes(root_.string()), 3 * gib / 2) << "page cache can be dropped";
  write("sys/fs/cgroup/user/job/memory.high", std::to_string(gib / 2));
  EXPECT_EQ(available_memory_bytes(root_.string()), 0) << "use past memory.high leaves nothing";
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
  EXPECT_EQ(available_memory_bytes(root_.string()), 8 * gib);
  const std::string group = "sys/fs/cgroup/memory/jobs/1/";
  write(group + "memory.limit_in_bytes", std::to_string(2 * gib));
  write(group + "memory.usage_in_bytes", std::to_string(gib));
  write(group + "memory.stat", "inactive_file 0\ntotal_inactive_file " + std::to_string(gib / 4));
  EXPECT_EQ(available_memory_bytes(root_.string()), gib + gib / 4);
}

// Docker with v1: the process's path is the host's, the mount shows only that path's part of the tree.
TEST_F(AvailableMemory, AMountOfPartOfTheTree) {
  write("proc/meminfo", "MemAvailable:  8388608 kB");
  write("proc/self/cgroup", "4:memory:/docker/abc");
  write("proc/self/mountinfo", "35 31 0:32 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", std::to_string(gib));
  write("sys/fs/cgroup/memory/memory.usage_in_bytes", "0");
  EXPECT_EQ(available_memory_bytes(root_.string()), gib);
  // And one whose part does not hold the process's path: the mount's own figures must do.
  write("proc/self/cgroup", "4:memory:/elsewhere");
  EXPECT_EQ(available_memory_bytes(root_.string()), gib);
}

TEST(AvailableMemoryOfThisMachine, IsKnown) { EXPECT_GT(available_memory_bytes(), 0); }

}  // namespace
}  // namespace memwall
