#include "bench/topology.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hwloc.h>
#include <sys/utsname.h>

#include <cstdio>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "input/error.h"

namespace memwall {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t kib = 1024;
constexpr std::int64_t mib = 1024 * kib;

std::vector<int> first_cpus(int n) {
  std::vector<int> cpus(static_cast<std::size_t>(n));
  std::iota(cpus.begin(), cpus.end(), 0);
  return cpus;
}

hwloc_topology_t new_topology() {
  hwloc_topology_t topology = nullptr;
  if (hwloc_topology_init(&topology) != 0) throw std::runtime_error("no hwloc");
  return topology;
}

// A regular machine in hwloc's synthetic notation.
std::unique_ptr<Machine> synthetic(const std::string& description) {
  const hwloc_topology_t topology = new_topology();
  if (hwloc_topology_set_synthetic(topology, description.c_str()) != 0 ||
      hwloc_topology_load(topology) != 0) {
    hwloc_topology_destroy(topology);
    throw std::runtime_error(description);
  }
  return std::make_unique<Machine>(topology);
}

// An object of hwloc's XML with its CPUs: for machines that are not regular.
struct Part {
  std::string xml;
  std::uint64_t cpus = 0;
};

Part part(const std::string& type, const std::string& attributes, const std::vector<Part>& children,
          std::uint64_t own = 0, const std::string& inside = "") {
  static int id = 0;
  Part made;
  made.cpus = own;
  std::string content = inside;
  for (const Part& child : children) {
    made.cpus |= child.cpus;
    content += child.xml;
  }
  char set[32];
  std::snprintf(set, sizeof set, "0x%llx", static_cast<unsigned long long>(made.cpus));
  const std::string cpus = std::string("cpuset=\"") + set + "\" complete_cpuset=\"" + set + "\" ";
  made.xml = "<object type=\"" + type + "\" " + cpus +
             "nodeset=\"0x1\" complete_nodeset=\"0x1\" gp_index=\"" + std::to_string(++id) + "\" " +
             attributes + ">" + content + "</object>\n";
  return made;
}

Part unit(int cpu) {
  return part("PU", "os_index=\"" + std::to_string(cpu) + "\"", {}, std::uint64_t{1} << cpu);
}
Part cache(int level, std::int64_t bytes, const std::vector<Part>& children) {
  return part("L" + std::to_string(level) + "Cache",
              "cache_size=\"" + std::to_string(bytes) + "\" depth=\"" + std::to_string(level) +
                  "\" cache_linesize=\"64\" cache_associativity=\"8\" cache_type=\"" +
                  (level == 1 ? "1" : "0") + "\"",
              children);
}
Part core(const std::vector<int>& cpus) {
  std::vector<Part> units;
  for (const int cpu : cpus) units.push_back(unit(cpu));
  return part("Core", "os_index=\"" + std::to_string(cpus.front()) + "\"", units);
}
Part core_with_l1(std::int64_t l1, const std::vector<int>& cpus) { return cache(1, l1, {core(cpus)}); }

std::unique_ptr<Machine> from_xml(const std::vector<Part>& parts, const std::string& model) {
  const Part package =
      part("Package", "os_index=\"0\"", parts, 0, "<info name=\"CPUModel\" value=\"" + model + "\"/>");
  const Part node = part("NUMANode", "os_index=\"0\" local_memory=\"1073741824\"", {}, package.cpus);
  const std::string text =
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n"
      "<topology version=\"2.0\">\n" +
      part("Machine", "os_index=\"0\" allowed_nodeset=\"0x1\"", {node, package}).xml + "</topology>\n";
  const hwloc_topology_t topology = new_topology();
  if (hwloc_topology_set_xmlbuffer(topology, text.c_str(), static_cast<int>(text.size() + 1)) != 0 ||
      hwloc_topology_load(topology) != 0) {
    hwloc_topology_destroy(topology);
    throw std::runtime_error(text);
  }
  return std::make_unique<Machine>(topology);
}

std::string refusal(const Machine& machine, const CpuChoice& choice, const std::vector<int>& allowed) {
  try {
    machine.choose(choice, allowed);
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

// Two sockets of two cores of two hardware threads; Linux numbers the second threads after all the first.
std::unique_ptr<Machine> two_sockets() {
  return synthetic(
      "pack:2 [numa(memory=1073741824)] l3:1(size=33554432) l2:2(size=2097152) l1d:1(size=49152) core:1 "
      "pu:2(indexes=0,4,1,5,2,6,3,7)");
}

TEST(Topology, TwoSocketsWithHardwareThreads) {
  const auto machine = two_sockets();
  const Topology all = machine->choose({}, first_cpus(8));
  EXPECT_EQ(all.cpus, (std::vector<int>{0, 1, 2, 3}));
  EXPECT_EQ(all.cores, 4);
  EXPECT_EQ(all.numa_nodes, 2);
  EXPECT_EQ(all.l1d_bytes, 48 * kib);
  EXPECT_EQ(all.l2_bytes, 2 * mib);
  EXPECT_EQ(all.last_level_bytes, 64 * mib);

  // A container with both threads of one core and the second thread of another, all on one socket.
  const Topology some = machine->choose({}, {2, 6, 7});
  EXPECT_EQ(some.cpus, (std::vector<int>{2, 7}));
  EXPECT_EQ(some.cores, 2);
  EXPECT_EQ(some.last_level_bytes, 32 * mib);
}

TEST(Topology, ThreadsFillCoresBeforeTheirSecondHardwareThreads) {
  const auto machine = two_sockets();
  const auto cpus = [&](int threads) {
    return machine->choose({.threads = threads, .cpus = {}}, first_cpus(8)).cpus;
  };
  EXPECT_EQ(cpus(1), std::vector<int>{0});
  EXPECT_EQ(cpus(3), (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(cpus(5), (std::vector<int>{0, 1, 2, 3, 4}));
  EXPECT_EQ(cpus(8), first_cpus(8));
  EXPECT_EQ(machine->choose({.threads = 8, .cpus = {}}, first_cpus(8)).cores, 4);
  EXPECT_EQ(machine->choose({.threads = 2, .cpus = {}}, first_cpus(8)).last_level_bytes, 32 * mib)
      << "the caches are those of the CPUs in use";
}

TEST(Topology, AListOfCpusIsTakenAsItIs) {
  const auto machine = two_sockets();
  const Topology siblings = machine->choose({.cpus = {0, 4}}, first_cpus(8));
  EXPECT_EQ(siblings.cpus, (std::vector<int>{0, 4}));
  EXPECT_EQ(siblings.cores, 1);
  // Fewer threads than CPUs listed: one a core first.
  EXPECT_EQ(machine->choose({.threads = 2, .cpus = {0, 3, 4}}, first_cpus(8)).cpus, (std::vector<int>{0, 3}));
}

TEST(Topology, RefusesWhatIsNotThere) {
  const auto machine = two_sockets();
  EXPECT_EQ(refusal(*machine, {.threads = 9, .cpus = {}}, first_cpus(8)),
            "--threads: 9 is more than the 8 CPUs this process may use (4 physical cores)");
  EXPECT_EQ(refusal(*machine, {.threads = 2, .cpus = {}}, {3}),
            "--threads: 2 is more than the 1 CPU this process may use (1 physical core)");
  EXPECT_EQ(refusal(*machine, {.threads = 3, .cpus = {1, 2}}, first_cpus(8)),
            "--threads: 3 is more than the 2 CPUs of --cpus");
  EXPECT_EQ(refusal(*machine, {.cpus = {1, 5}}, {0, 1, 2, 7}),
            "--cpus: CPU 5 is not among those this process may use, 0-2,7");
}

TEST(Topology, CpusOffLineAreLeftOut) {
  // An affinity mask may name CPUs that are off line: hwloc does not hold those.
  const auto machine =
      from_xml({cache(3, 32 * mib, {core_with_l1(48 * kib, {0}), core_with_l1(48 * kib, {2})})}, "a machine");
  const Topology topology = machine->choose({}, first_cpus(4));
  EXPECT_EQ(topology.cpus, (std::vector<int>{0, 2}));
  EXPECT_EQ(topology.last_level_bytes, 32 * mib);
  EXPECT_THAT(refusal(*machine, {.cpus = {1}}, first_cpus(4)), HasSubstr("0,2"));
}

TEST(Topology, HybridCoresWithUnlikeCaches) {
  // A performance core of two hardware threads; two efficient cores that share an L2; one of low power
  // outside the L3.
  const auto machine =
      from_xml({cache(3, 24 * mib,
                      {cache(2, 2 * mib, {core_with_l1(48 * kib, {0, 1})}),
                       cache(2, 4 * mib, {core_with_l1(32 * kib, {2}), core_with_l1(32 * kib, {3})})}),
                cache(2, 1 * mib, {core_with_l1(16 * kib, {4})})},
               "a hybrid");
  const Topology all = machine->choose({}, first_cpus(5));
  EXPECT_EQ(all.cpu_name, "a hybrid");
  EXPECT_EQ(all.cpus, (std::vector<int>{0, 2, 3, 4}));
  EXPECT_EQ(all.l1d_bytes, 48 * kib) << "the first CPU's";
  EXPECT_EQ(all.l2_bytes, 2 * mib);
  EXPECT_EQ(all.last_level_bytes, 25 * mib) << "each CPU's outermost cache, once";
  const Topology efficient = machine->choose({.cpus = {2, 3}}, first_cpus(5));
  EXPECT_EQ(efficient.l1d_bytes, 32 * kib);
  EXPECT_EQ(efficient.last_level_bytes, 24 * mib);
  EXPECT_EQ(machine->choose({.cpus = {4}}, first_cpus(5)).last_level_bytes, mib);
}

TEST(Topology, WithoutAThirdLevelTheSecondIsTheLast) {
  const Topology topology =
      synthetic("pack:1 l2:2(size=1048576) l1d:1(size=65536) core:1 pu:1")->choose({}, {0, 1});
  EXPECT_EQ(topology.l2_bytes, mib);
  EXPECT_EQ(topology.last_level_bytes, 2 * mib);
  EXPECT_EQ(topology.numa_nodes, 1);
}

TEST(Topology, WithoutCoresAndCachesEachCpuIsItsOwn) {
  const Topology topology = synthetic("pu:3")->choose({}, first_cpus(3));
  EXPECT_EQ(topology.cpus, first_cpus(3));
  EXPECT_EQ(topology.cores, 3);
  EXPECT_EQ(topology.last_level_bytes, 0);
}

TEST(Topology, AnotherMachinesDescriptionIsIgnored) {
  const Topology topology = synthetic("core:2 pu:2")->choose({}, {8, 9});
  EXPECT_EQ(topology.cpus, (std::vector<int>{8, 9}));
  EXPECT_EQ(topology.cores, 2);
}

TEST(Topology, WithoutHwlocTheLibraryOfCStandsIn) {
  const Machine machine(nullptr);
  const Topology topology = machine.choose({}, {0, 1});
  EXPECT_EQ(topology.cpus, (std::vector<int>{0, 1}));
  EXPECT_EQ(topology.numa_nodes, 1);
  EXPECT_GE(topology.last_level_bytes, topology.l2_bytes);
  EXPECT_TRUE(machine.place_memory(NumaPolicy::local));
  EXPECT_FALSE(machine.place_memory(NumaPolicy::interleave));
}

TEST(Topology, NamesAreTrimmed) {
  const auto name = [](const std::string& model) {
    return from_xml({core({0})}, model)->choose({}, {0}).cpu_name;
  };
  EXPECT_EQ(name("AMD EPYC 9354 32-Core Processor"), "AMD EPYC 9354");
  EXPECT_EQ(name("  Intel(R) Xeon(R) Platinum 8480+  "), "Intel(R) Xeon(R) Platinum 8480+");
  utsname machine{};
  ASSERT_EQ(uname(&machine), 0);
  EXPECT_EQ(name(""), machine.machine);
}

TEST(Topology, OfThisMachineIsWithinItsAffinity) {
  const Topology topology = Machine().choose({}, allowed_cpus());
  EXPECT_FALSE(topology.cpu_name.empty());
  EXPECT_FALSE(topology.cpus.empty());
  EXPECT_EQ(topology.cpus.size(), static_cast<std::size_t>(topology.cores));
  EXPECT_LE(topology.cpus.size(), allowed_cpus().size());
  EXPECT_GE(topology.numa_nodes, 1);
}

// The policy of the calling thread as the system has it.
hwloc_membind_policy_t policy_in_force() {
  const hwloc_topology_t topology = new_topology();
  hwloc_topology_load(topology);
  const hwloc_bitmap_t nodes = hwloc_bitmap_alloc();
  hwloc_membind_policy_t policy = HWLOC_MEMBIND_MIXED;
  hwloc_get_membind(topology, nodes, &policy,
                    static_cast<hwloc_membind_flags_t>(HWLOC_MEMBIND_THREAD | HWLOC_MEMBIND_BYNODESET));
  hwloc_bitmap_free(nodes);
  hwloc_topology_destroy(topology);
  return policy;
}

TEST(Topology, InterleavesAndForgets) {
  const Machine machine;
  const hwloc_membind_policy_t before = policy_in_force();
  EXPECT_TRUE(machine.place_memory(NumaPolicy::local));
  EXPECT_EQ(policy_in_force(), before);
  if (!machine.place_memory(NumaPolicy::interleave)) GTEST_SKIP() << "this system binds no memory";
  EXPECT_EQ(policy_in_force(), HWLOC_MEMBIND_INTERLEAVE);
  machine.forget_placement();
  EXPECT_NE(policy_in_force(), HWLOC_MEMBIND_INTERLEAVE);
}

TEST(ParseCpuList, Lists) {
  EXPECT_EQ(parse_cpu_list("0-3,8", "--cpus"), (std::vector<int>{0, 1, 2, 3, 8}));
  EXPECT_EQ(parse_cpu_list("5", "--cpus"), std::vector<int>{5});
  EXPECT_EQ(parse_cpu_list("4-4,0", "--cpus"), (std::vector<int>{0, 4}));
}

TEST(ParseCpuList, RefusesAnythingElse) {
  for (const char* list : {"",   "a",     "1-", "-1",  "3-1",          "1,,2",        "1,",
                           ",",  "1 2",   " 1", "1\n", "0-2000000000", "99999999999", "0x1",
                           "+1", "1-2-3", "01", "1,1", "0-3,2",        "65536"}) {
    EXPECT_THROW(parse_cpu_list(list, "--cpus"), InputError) << list;
  }
}

TEST(CpuList, WritesRunsShortly) {
  EXPECT_EQ(cpu_list({0, 1, 2, 3, 8}), "0-3,8");
  EXPECT_EQ(cpu_list({0, 1}), "0-1");
  EXPECT_EQ(cpu_list({7}), "7");
  EXPECT_EQ(cpu_list({0, 2, 4}), "0,2,4");
  EXPECT_EQ(cpu_list({}), "");
}

}  // namespace
}  // namespace memwall
