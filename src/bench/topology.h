// What the machine is: which CPUs to run on, how large their caches are, its NUMA nodes, how much memory is
// free.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

struct hwloc_topology;  // hwloc.h

namespace memwall {

// Which CPUs to run on. By default one thread a physical core, on all cores that this process may use.
struct CpuChoice {
  int threads = 0;        // 0: one a physical core, or one a CPU of `cpus`
  std::vector<int> cpus;  // distinct; empty: all that this process may use
};

struct Topology {
  std::string cpu_name;               // "AMD EPYC 9354", or the architecture where it is unknown
  std::vector<int> cpus;              // to run on, one thread each, ascending
  int cores = 0;                      // distinct physical cores of `cpus`
  int numa_nodes = 1;                 // whose memory this process may use
  std::int64_t l1d_bytes = 0;         // of the first CPU's core; 0 where unknown
  std::int64_t l2_bytes = 0;          // of the first CPU's core; 0 where unknown
  std::int64_t last_level_bytes = 0;  // the sum over the distinct outermost caches of `cpus`
};

// Where pages come to lie: on the node of the thread that touches them first, or on all nodes in turn.
enum class NumaPolicy : std::uint8_t { local, interleave };

// A machine as hwloc describes it. Reading it takes some 10 ms, so only what opens a device makes one.
class Machine {
 public:
  // This machine. Where hwloc cannot read it, nothing is known of its cores and caches.
  Machine();
  // Takes over a loaded topology: a test's own machine.
  explicit Machine(hwloc_topology* loaded);
  ~Machine();
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  // The CPUs to run on among `allowed` (ascending), and what belongs to them. Of several hardware threads of
  // a core the first comes first, and the others only when there are more threads than cores. CPUs that
  // hwloc does not know (off line) are left out; where it knows none, each is its own core. Throws InputError
  // where a CPU or more threads are asked for than there are.
  Topology choose(const CpuChoice& choice, const std::vector<int>& allowed) const;

  // Makes the calling thread's future pages follow the policy; false where the system refuses. `local` leaves
  // the thread as it was started (numactl's doing, where there was one).
  bool place_memory(NumaPolicy policy) const;
  // Back to the system's default, after interleaving.
  void forget_placement() const;

 private:
  struct Free {
    void operator()(hwloc_topology* topology) const;
  };
  std::unique_ptr<hwloc_topology, Free> topology_;  // null: hwloc could not read this machine
};

// The CPUs the calling thread may run on, ascending: its affinity, which a container's cpuset narrows.
// Throws RunError where the system will not say.
std::vector<int> allowed_cpus();

// "0-3,8" as people and Linux write lists of CPUs. Distinct and not empty, in ascending order on return.
// Throws InputError; `what` names the list in the message ("--cpus").
std::vector<int> parse_cpu_list(const std::string& list, const std::string& what);

// The same list written shortly: "0-3,8". `cpus` ascending.
std::string cpu_list(const std::vector<int>& cpus);

// Bytes this process can still allocate: MemAvailable, and the cgroup's limit less its use where there is
// one (v1 and v2, this process's own group and those above it). 0 where the system does not say. `root`
// stands for / (proc/meminfo, proc/self/cgroup, proc/self/mountinfo and the mounts these name).
std::int64_t available_memory_bytes(const std::string& root = "/");

}  // namespace memwall
