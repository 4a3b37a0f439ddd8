#include "bench/topology.h"

#include <fmt/format.h>
#include <hwloc.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <functional>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include "input/error.h"
#include "input/numbers.h"

namespace memwall {
namespace {

constexpr int cpu_limit = 1 << 16;  // no kernel numbers CPUs so high

constexpr auto kOfThread = static_cast<hwloc_membind_flags_t>(HWLOC_MEMBIND_THREAD | HWLOC_MEMBIND_BYNODESET);

hwloc_topology* load_this_machine() {
  // On some virtual machines it prints screens about what their firmware got wrong.
  setenv("HWLOC_HIDE_ERRORS", "2", 0);
  hwloc_topology_t topology = nullptr;
  if (hwloc_topology_init(&topology) != 0) return nullptr;
  if (hwloc_topology_load(topology) == 0) return topology;
  hwloc_topology_destroy(topology);
  return nullptr;
}

std::string cpu_name(hwloc_topology_t topology) {
  const hwloc_obj_t package =
      topology == nullptr ? nullptr : hwloc_get_obj_by_type(topology, HWLOC_OBJ_PACKAGE, 0);
  const char* model = package == nullptr ? nullptr : hwloc_obj_get_info_by_name(package, "CPUModel");
  if (model == nullptr && topology != nullptr) {
    model = hwloc_obj_get_info_by_name(hwloc_get_root_obj(topology), "CPUModel");
  }
  std::string_view name = model == nullptr ? "" : model;
  // AMD's " 32-Core Processor" is the count of the whole socket, which a container may not have.
  if (name.ends_with("-Core Processor")) name = name.substr(0, name.rfind(' ', name.rfind('-')));
  constexpr std::string_view blanks = " \t";
  const std::size_t first = name.find_first_not_of(blanks);
  if (first != std::string_view::npos) {
    return std::string(name.substr(first, name.find_last_not_of(blanks) - first + 1));
  }
  utsname machine{};
  return uname(&machine) == 0 ? machine.machine : "unknown";
}

// A logical CPU and the core it is a hardware thread of.
struct Cpu {
  int number = 0;
  hwloc_obj_t unit = nullptr;  // null where hwloc does not know it
  // Cores that hwloc does not know are told apart by their CPU's number.
  std::pair<hwloc_obj_t, int> core;
};

Cpu find_cpu(hwloc_topology_t topology, int number) {
  const hwloc_obj_t unit =
      topology == nullptr ? nullptr : hwloc_get_pu_obj_by_os_index(topology, static_cast<unsigned>(number));
  const hwloc_obj_t core =
      unit == nullptr ? nullptr : hwloc_get_ancestor_obj_by_type(topology, HWLOC_OBJ_CORE, unit);
  return {number, unit, {core, core == nullptr ? number : 0}};
}

// One CPU of each core, then their other hardware threads.
std::vector<Cpu> cores_first(const std::vector<Cpu>& cpus) {
  std::vector<Cpu> ordered;
  std::vector<Cpu> rest;
  std::set<std::pair<hwloc_obj_t, int>> cores;
  for (const Cpu& cpu : cpus) (cores.insert(cpu.core).second ? ordered : rest).push_back(cpu);
  ordered.insert(ordered.end(), rest.begin(), rest.end());
  return ordered;
}

int count_cores(const std::vector<Cpu>& cpus) {
  std::set<std::pair<hwloc_obj_t, int>> cores;
  for (const Cpu& cpu : cpus) cores.insert(cpu.core);
  return static_cast<int>(cores.size());
}

std::int64_t cache_bytes(hwloc_obj_t cache) { return static_cast<std::int64_t>(cache->attr->cache.size); }

void add_caches(const std::vector<Cpu>& cpus, Topology& topology) {
  std::set<hwloc_obj_t> outermost;
  for (const Cpu& cpu : cpus) {
    hwloc_obj_t last = nullptr;
    for (hwloc_obj_t object = cpu.unit; object != nullptr; object = object->parent) {
      if (hwloc_obj_type_is_dcache(object->type) == 0) continue;
      last = object;
      const bool first_cpu = &cpu == &cpus.front();
      if (first_cpu && object->type == HWLOC_OBJ_L1CACHE) topology.l1d_bytes = cache_bytes(object);
      if (first_cpu && object->type == HWLOC_OBJ_L2CACHE) topology.l2_bytes = cache_bytes(object);
    }
    if (last != nullptr && outermost.insert(last).second) topology.last_level_bytes += cache_bytes(last);
  }
}

// Where hwloc sees no caches of this machine (a sandbox without sysfs), the C library may: from the processor
// itself on x86. One cache of each kind then stands for all.
void add_caches_of_libc(Topology& topology) {
  const auto size = [](int name) { return std::max<std::int64_t>(0, sysconf(name)); };
  topology.l1d_bytes = size(_SC_LEVEL1_DCACHE_SIZE);
  topology.l2_bytes = size(_SC_LEVEL2_CACHE_SIZE);
  topology.last_level_bytes = std::max(size(_SC_LEVEL3_CACHE_SIZE), topology.l2_bytes * topology.cores);
}

}  // namespace

void Machine::Free::operator()(hwloc_topology* topology) const { hwloc_topology_destroy(topology); }

Machine::Machine() : topology_(load_this_machine()) {}
Machine::Machine(hwloc_topology* loaded) : topology_(loaded) {}
Machine::~Machine() = default;

Topology Machine::choose(const CpuChoice& choice, const std::vector<int>& allowed) const {
  std::vector<Cpu> usable;
  for (const int cpu : allowed) usable.push_back(find_cpu(topology_.get(), cpu));
  // A mask may name CPUs that are off line; a sandbox may show none of them, or another machine's.
  const auto known = [](const Cpu& cpu) { return cpu.unit != nullptr; };
  if (std::any_of(usable.begin(), usable.end(), known)) std::erase_if(usable, std::not_fn(known));
  std::vector<int> numbers;
  for (const Cpu& cpu : usable) numbers.push_back(cpu.number);

  std::vector<Cpu> wanted = usable;
  if (!choice.cpus.empty()) {
    wanted.clear();
    for (const int cpu : choice.cpus) {
      const auto at = std::find(numbers.begin(), numbers.end(), cpu);
      if (at == numbers.end()) {
        throw InputError(fmt::format("--cpus: CPU {} is not among those this process may use, {}", cpu,
                                     cpu_list(numbers)));
      }
      wanted.push_back(usable[static_cast<std::size_t>(at - numbers.begin())]);
    }
  }
  const int cores = count_cores(wanted);
  const int most = static_cast<int>(wanted.size());
  if (choice.threads > most) {
    throw InputError(choice.cpus.empty()
                         ? fmt::format("--threads: {} is more than the {} CPU{} this process may use ({} "
                                       "physical core{})",
                                       choice.threads, most, most == 1 ? "" : "s", cores,
                                       cores == 1 ? "" : "s")
                         : fmt::format("--threads: {} is more than the {} CPU{} of --cpus", choice.threads,
                                       most, most == 1 ? "" : "s"));
  }
  const int threads = choice.threads > 0 ? choice.threads : choice.cpus.empty() ? cores : most;
  wanted = cores_first(wanted);
  wanted.resize(static_cast<std::size_t>(threads));

  Topology topology;
  topology.cpu_name = cpu_name(topology_.get());
  for (const Cpu& cpu : wanted) topology.cpus.push_back(cpu.number);
  std::sort(topology.cpus.begin(), topology.cpus.end());
  topology.cores = count_cores(wanted);
  if (topology_) {
    const int nodes = hwloc_bitmap_weight(hwloc_topology_get_allowed_nodeset(topology_.get()));
    topology.numa_nodes = std::max(1, nodes);
  }
  add_caches(wanted, topology);
  const bool here = !topology_ || hwloc_topology_is_thissystem(topology_.get()) != 0;
  if (here && topology.last_level_bytes == 0) add_caches_of_libc(topology);
  return topology;
}

bool Machine::place_memory(NumaPolicy policy) const {
  if (policy == NumaPolicy::local) return true;
  return topology_ && hwloc_set_membind(topology_.get(), hwloc_topology_get_allowed_nodeset(topology_.get()),
                                        HWLOC_MEMBIND_INTERLEAVE, kOfThread) == 0;
}

void Machine::forget_placement() const {
  if (!topology_) return;
  hwloc_set_membind(topology_.get(), hwloc_topology_get_allowed_nodeset(topology_.get()),
                    HWLOC_MEMBIND_DEFAULT, kOfThread);
}

std::vector<int> allowed_cpus() {
  // The kernel refuses a mask shorter than its own, whose length no call tells.
  for (std::size_t words = 16;; words *= 2) {
    std::vector<unsigned long> mask(words);
    const std::size_t bytes = words * sizeof(unsigned long);
    if (sched_getaffinity(0, bytes, reinterpret_cast<cpu_set_t*>(mask.data())) != 0) {
      if (errno == EINVAL && words < cpu_limit) continue;
      throw RunError("cannot tell which CPUs this process may use: " +
                     std::generic_category().message(errno));
    }
    constexpr std::size_t word_bits = sizeof(unsigned long) * CHAR_BIT;
    std::vector<int> cpus;
    for (std::size_t cpu = 0; cpu < words * word_bits; ++cpu) {
      if ((mask[cpu / word_bits] >> (cpu % word_bits)) & 1UL) cpus.push_back(static_cast<int>(cpu));
    }
    return cpus;
  }
}

std::vector<int> parse_cpu_list(const std::string& list, const std::string& what) {
  constexpr Range numbers{0, cpu_limit - 1};
  std::vector<int> cpus;
  for (std::size_t start = 0; start <= list.size();) {
    const std::size_t end = std::min(list.find(',', start), list.size());
    const std::string item = list.substr(start, end - start);
    const std::size_t dash = item.find('-');
    const auto number = [&](const std::string& text) {
      if (!text.empty() && text.find_first_not_of("0123456789") == std::string::npos)
        return static_cast<int>(parse_integer(text, what, numbers));
      throw InputError(fmt::format("{}: '{}' is no list of CPUs such as 0-3,8", what, list));
    };
    const int first = number(item.substr(0, dash));
    const int last = dash == std::string::npos ? first : number(item.substr(dash + 1));
    if (last < first) throw InputError(fmt::format("{}: {} runs backwards", what, item));
    for (int cpu = first; cpu <= last; ++cpu) cpus.push_back(cpu);
    start = end + 1;
  }
  std::sort(cpus.begin(), cpus.end());
  const auto twice = std::adjacent_find(cpus.begin(), cpus.end());
  if (twice != cpus.end()) throw InputError(fmt::format("{}: CPU {} is named twice", what, *twice));
  return cpus;
}

std::string cpu_list(const std::vector<int>& cpus) {
  std::string text;
  for (std::size_t i = 0; i < cpus.size();) {
    std::size_t last = i;
    while (last + 1 < cpus.size() && cpus[last + 1] == cpus[last] + 1) ++last;
    if (!text.empty()) text += ',';
    text += last == i ? fmt::format("{}", cpus[i]) : fmt::format("{}-{}", cpus[i], cpus[last]);
    i = last + 1;
  }
  return text;
}

}  // namespace memwall
