// Free memory as /proc and the control groups tell it: hwloc knows only what is built in.
#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>
#include <string_view>

#include "bench/topology.h"

namespace memwall {
namespace {

namespace fs = std::filesystem;

// The whole first line of a file as an integer, or nothing.
std::optional<std::int64_t> read_integer(const fs::path& path) {
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line)) return std::nullopt;
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), value);
  if (error != std::errc() || end != line.data() + line.size()) return std::nullopt;
  return value;
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
