#include "bench/topology.h"

#include <sched.h>
#include <sys/utsname.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <climits>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <utility>

#include "input/error.h"

namespace memwall {
namespace {

namespace fs = std::filesystem;

constexpr int cpu_limit =
    1 << 16;  // no kernel numbers CPUs so high; keeps "0-2000000000" from filling memory

// The first line of a file, or nothing where it cannot be read.
std::optional<std::string> first_line(const fs::path& path) {
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line)) return std::nullopt;
  return line;
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blanks = " \t\r\n";
  const std::size_t first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

template <typename Integer>
std::optional<Integer> parse_integer(std::string_view text) {
  Integer value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<std::int64_t> read_integer(const fs::path& path) {
  const auto line = first_line(path);
  return line ? parse_integer<std::int64_t>(trimmed(*line)) : std::nullopt;
}

// "32K" as sysfs writes cache sizes; 0 where it is anything else.
std::int64_t parse_cache_size(std::string_view text) {
  std::int64_t unit = 1;
  if (text.ends_with('K')) unit = 1 << 10;
  if (text.ends_with('M')) unit = 1 << 20;
  if (unit != 1) text.remove_suffix(1);
  const std::int64_t count = parse_integer<std::int64_t>(text).value_or(0);
  if (count < 0 || count > std::numeric_limits<std::int64_t>::max() / unit) return 0;
  return count * unit;
}

// x86 calls it "model name", s390 and some Arm boards do not name it at all: then the architecture must do.
std::string read_cpu_name(const std::string& cpuinfo) {
  std::ifstream file(cpuinfo);
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos || trimmed(std::string_view(line).substr(0, colon)) != "model name")
      continue;
    std::string_view name = trimmed(std::string_view(line).substr(colon + 1));
    // AMD's " 32-Core Processor" is the count of the whole socket, which a container may not have.
    if (name.ends_with("-Core Processor")) name = name.substr(0, name.rfind(' ', name.rfind('-')));
    if (!name.empty()) return std::string(name);
  }
  utsname machine{};
  return uname(&machine) == 0 ? machine.machine : "unknown";
}

// One CPU of each set of hardware threads: the lowest that may be used.
std::vector<int> one_a_core(const fs::path& sysfs, const std::vector<int>& allowed) {
  std::vector<int> cpus;
  std::set<std::string> cores;
  for (const int cpu : allowed) {
    const fs::path topology = sysfs / ("cpu" + std::to_string(cpu)) / "topology";
    auto core = first_line(topology / "core_cpus_list");
    if (!core) core = first_line(topology / "thread_siblings_list");  // before Linux 5.3
    if (!core || cores.insert(*core).second) cpus.push_back(cpu);
  }
  return cpus;
}

struct Cache {
  int level = 0;
  std::int64_t bytes = 0;
  std::string shared_by;
};

// The data and unified caches of one CPU.
std::vector<Cache> read_caches(const fs::path& sysfs, int cpu) {
  std::vector<Cache> caches;
  const std::string name = "cpu" + std::to_string(cpu);
  for (int index = 0;; ++index) {
    const fs::path folder = sysfs / name / "cache" / ("index" + std::to_string(index));
    std::error_code ignored;
    if (!fs::exists(folder, ignored)) return caches;
    const auto level = read_integer(folder / "level");
    const auto type = first_line(folder / "type");
    const auto size = first_line(folder / "size");
    if (!level || !size || trimmed(type.value_or("")) == "Instruction") continue;
    // A cache that does not say who shares it counts as the CPU's own: operands sized by the sum are then
    // too large, never too small.
    caches.push_back({static_cast<int>(*level), parse_cache_size(trimmed(*size)),
                      first_line(folder / "shared_cpu_list").value_or(name)});
  }
}

void add_caches(const fs::path& sysfs, Topology& topology) {
  int last_level = 0;
  std::map<std::pair<int, std::string>, std::int64_t> bytes;  // by level and who shares it
  for (const int cpu : topology.cpus) {
    for (const Cache& cache : read_caches(sysfs, cpu)) {
      if (cpu == topology.cpus.front() && cache.level == 1) topology.l1d_bytes = cache.bytes;
      if (cpu == topology.cpus.front() && cache.level == 2) topology.l2_bytes = cache.bytes;
      last_level = std::max(last_level, cache.level);
      bytes[{cache.level, cache.shared_by}] = cache.bytes;
    }
  }
  for (const auto& [key, size] : bytes) {
    if (key.first == last_level) topology.last_level_bytes += size;
  }
}

// What a cgroup leaves this process: its limit less its use, page cache that can be dropped not counted.
std::optional<std::int64_t> group_headroom(const fs::path& group) {
  std::optional<std::int64_t> limit;
  // memory.high does not kill, but it throttles a process that passes it to a crawl.
  for (const char* name : {"memory.max", "memory.high", "memory.limit_in_bytes"}) {
    const auto value = read_integer(group / name);  // "max" is no integer and no limit
    if (value && (!limit || *value < *limit)) limit = value;
  }
  if (!limit) return std::nullopt;
  auto used = read_integer(group / "memory.current");
  if (!used) used = read_integer(group / "memory.usage_in_bytes");

  std::int64_t droppable = 0;
  std::ifstream stat(group / "memory.stat");
  std::string key;
  for (std::int64_t value = 0; stat >> key >> value;) {
    if (key == "inactive_file" && droppable == 0) droppable = value;
    if (key == "total_inactive_file") droppable = value;  // v1's figure with the groups below
  }
  return std::max<std::int64_t>(0, *limit - std::max<std::int64_t>(0, used.value_or(0) - droppable));
}

// Whether "memory" is among items separated by commas.
bool lists_memory(const std::string& items) {
  std::istringstream stream(items);
  for (std::string item; std::getline(stream, item, ',');) {
    if (item == "memory") return true;
  }
  return false;
}

// Where this process's memory group lies, and the mount it lies under.
struct MemoryGroup {
  fs::path mount;
  fs::path inside;  // relative to the mount
};

// A line of mountinfo (proc(5)): id parent device ROOT POINT options [tags...] - TYPE source SUPER-OPTIONS.
// Lines of /proc/self/cgroup: id:controllers:path, with no controllers for v2. In a container the mount
// may show only the part of the hierarchy under ROOT.
std::vector<MemoryGroup> memory_groups(const fs::path& root) {
  std::optional<std::string> v1_path;
  std::optional<std::string> v2_path;
  std::ifstream groups(root / "proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first == std::string::npos ? first : first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    if (controllers.empty()) v2_path = line.substr(second + 1);
    if (lists_memory(controllers)) v1_path = line.substr(second + 1);
  }

  std::vector<MemoryGroup> found;
  std::ifstream mounts(root / "proc/self/mountinfo");
  for (std::string line; std::getline(mounts, line);) {
    std::istringstream stream(line);
    const std::vector<std::string> fields{std::istream_iterator<std::string>(stream), {}};
    const auto dash = std::find(fields.begin(), fields.end(), "-");
    if (fields.size() < 6 || fields.end() - dash < 4) continue;
    const bool v1 = dash[1] == "cgroup" && lists_memory(dash[3]);
    const auto& path = v1 ? v1_path : v2_path;
    if ((!v1 && dash[1] != "cgroup2") || !path) continue;
    const fs::path inside = fs::path(*path).lexically_relative(fs::path(fields[3]));
    const bool outside = inside.empty() || *inside.begin() == "..";
    found.push_back({root / fs::path(fields[4]).relative_path(), outside ? fs::path() : inside});
  }
  return found;
}

}  // namespace

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

std::vector<int> parse_cpu_list(const std::string& list) {
  const std::string_view text = trimmed(list);
  std::vector<int> cpus;
  for (std::size_t start = 0; start < text.size() + 1 && !text.empty();) {
    const std::size_t end = std::min(text.find(',', start), text.size());
    const std::string_view item = text.substr(start, end - start);
    const std::size_t dash = item.find('-');
    const auto first = parse_integer<int>(item.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : parse_integer<int>(item.substr(dash + 1));
    if (!first || !last || *first < 0 || *last < *first || *last >= cpu_limit) {
      throw std::invalid_argument("not a list of CPUs such as \"0-3,8\": \"" + std::string(text) + "\"");
    }
    for (int cpu = *first; cpu <= *last; ++cpu) cpus.push_back(cpu);
    start = end + 1;
  }
  std::sort(cpus.begin(), cpus.end());
  cpus.erase(std::unique(cpus.begin(), cpus.end()), cpus.end());
  return cpus;
}

Topology read_topology(const std::string& sysfs, const std::string& cpuinfo) {
  return read_topology(sysfs, cpuinfo, allowed_cpus());
}

Topology read_topology(const std::string& sysfs, const std::string& cpuinfo, std::vector<int> allowed) {
  std::sort(allowed.begin(), allowed.end());
  // An affinity mask may name CPUs that are off line; a sandbox may show no list, or another machine's.
  std::vector<int> usable;
  if (const auto list = first_line(fs::path(sysfs) / "online")) {
    const std::vector<int> online = parse_cpu_list(*list);
    std::set_intersection(allowed.begin(), allowed.end(), online.begin(), online.end(),
                          std::back_inserter(usable));
  }
  if (usable.empty()) usable = std::move(allowed);

  Topology topology;
  topology.cpu_name = read_cpu_name(cpuinfo);
  topology.logical_cpus = static_cast<int>(usable.size());
  topology.cpus = one_a_core(sysfs, usable);
  add_caches(sysfs, topology);
  return topology;
}

std::int64_t available_memory_bytes(const std::string& root) {
  std::int64_t available = 0;
  std::ifstream meminfo(fs::path(root) / "proc/meminfo");
  for (std::string line; std::getline(meminfo, line);) {
    std::istringstream fields(line);
    std::string key;
    std::int64_t kib = 0;
    if (!(fields >> key >> kib)) continue;
    if (key == "MemFree:" && available == 0) available = kib * 1024;  // all there is before Linux 3.14
    if (key == "MemAvailable:") available = kib * 1024;
  }
  for (const MemoryGroup& group : memory_groups(root)) {
    // A group's limit binds those below it, so the tightest up to the mount counts.
    for (fs::path inside = group.inside;; inside = inside.parent_path()) {
      if (const auto headroom = group_headroom(group.mount / inside))
        available = std::min(available, *headroom);
      if (inside.empty()) break;
    }
  }
  return available;
}

}  // namespace memwall
