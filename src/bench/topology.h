// What the machine is: which CPUs to run on, how large its caches are, how much memory is free.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace memwall {

struct Topology {
  std::string cpu_name;               // "AMD EPYC 9354", or the architecture where it is unknown
  std::vector<int> cpus;              // one logical CPU a physical core, among those this process may use
  int logical_cpus = 0;               // all this process may use
  std::int64_t l1d_bytes = 0;         // of one core; 0 where unknown
  std::int64_t l2_bytes = 0;          // of one core; 0 where unknown
  std::int64_t last_level_bytes = 0;  // the sum over the distinct last-level caches of the CPUs in use
};

// From /proc/cpuinfo, sched_getaffinity and sysfs. `sysfs` is a parameter so that a test can lay out a
// machine of its own: it stands for /sys/devices/system/cpu. Files that are missing leave their figures at
// 0, or each logical CPU its own core. On a machine of unlike cores, the caches are the first one's.
// Throws RunError where the system will not say which CPUs may be used.
Topology read_topology(const std::string& sysfs = "/sys/devices/system/cpu",
                       const std::string& cpuinfo = "/proc/cpuinfo");

// The same with `allowed` in sched_getaffinity's place.
Topology read_topology(const std::string& sysfs, const std::string& cpuinfo, std::vector<int> allowed);

// The CPUs the calling thread may run on, ascending: its affinity, which a container's cpuset narrows.
// Throws RunError where the system will not say.
std::vector<int> allowed_cpus();

// "0-3,8" as sysfs writes lists of CPUs, ascending; an empty list is one too. Throws std::invalid_argument.
std::vector<int> parse_cpu_list(const std::string& list);

// Bytes this process can still allocate: MemAvailable, and the cgroup's limit less its use where there is
// one (v1 and v2, this process's own group and those above it). 0 where the system does not say. `root`
// stands for / (proc/meminfo, proc/self/cgroup, proc/self/mountinfo and the mounts these name).
std::int64_t available_memory_bytes(const std::string& root = "/");

}  // namespace memwall
