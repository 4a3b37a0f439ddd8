#include "bench/disturbance.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>

namespace memwall {
namespace {

constexpr double kMostLost = 0.03;    // of a sample, to waiting
constexpr double kLeastRun = 0.9;     // of a sample, that one thread runs
constexpr double kMostOthers = 0.1;   // of the CPUs
constexpr double kMostSteal = 0.1;    // likewise
constexpr double kLeastWindow = 0.5;  // seconds

// The fields of a line, apart by blanks.
std::vector<std::string_view> fields_of(std::string_view line) {
  std::vector<std::string_view> fields;
  while (!line.empty()) {
    const std::size_t first = line.find_first_not_of(' ');
    if (first == std::string_view::npos) break;
    const std::size_t last = std::min(line.find(' ', first), line.size());
    fields.push_back(line.substr(first, last - first));
    line.remove_prefix(last);
  }
  return fields;
}

std::optional<double> number(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return static_cast<double>(value);
}

struct CpuTicks {
  double busy = 0;
  double steal = 0;
};

// "cpu7 user nice system idle iowait irq softirq steal ...".
std::optional<CpuTicks> ticks_of(const std::vector<std::string_view>& fields) {
  constexpr std::size_t kSteal = 8;
  if (fields.size() <= kSteal) return std::nullopt;
  CpuTicks ticks;
  for (std::size_t i = 1; i <= kSteal; ++i) {
    const auto value = number(fields[i]);
    if (!value) return std::nullopt;
    const bool idle = i == 4 || i == 5;
    if (i == kSteal) {
      ticks.steal = *value;
    } else if (!idle) {
      ticks.busy += *value;
    }
  }
  return ticks;
}

}  // namespace

bool held_up(const ProcessMoment& before, const ProcessMoment& after) {
  const double wall = after.wall_s - before.wall_s;
  return after.waited_s - before.waited_s > kMostLost * wall || after.cpu_s - before.cpu_s < kLeastRun * wall;
}

std::optional<MachineTimes> parse_machine_times(std::string_view stat, const std::vector<int>& used,
                                                double ticks_a_second) {
  MachineTimes times;
  std::set<int> found;
  while (!stat.empty()) {
    const std::size_t end = std::min(stat.find('\n'), stat.size());
    const std::vector<std::string_view> fields = fields_of(stat.substr(0, end));
    stat.remove_prefix(std::min(end + 1, stat.size()));
    if (fields.empty() || !fields.front().starts_with("cpu") || fields.front() == "cpu") continue;
    const auto index = number(fields.front().substr(3));
    const auto ticks = ticks_of(fields);
    if (!index || !ticks) return std::nullopt;
    ++times.cpus;
    times.busy_s += ticks->busy / ticks_a_second;
    if (std::find(used.begin(), used.end(), static_cast<int>(*index)) == used.end()) continue;
    found.insert(static_cast<int>(*index));
    times.used_s += ticks->busy / ticks_a_second;
    times.steal_s += ticks->steal / ticks_a_second;
  }
  if (times.cpus == 0 || found.size() < used.size()) return std::nullopt;
  return times;
}

void note_load(Disturbance& disturbance, const MachineMoment& before, const MachineMoment& after,
               std::size_t used) {
  const double wall = after.process.wall_s - before.process.wall_s;
  if (wall < kLeastWindow || used == 0 || after.machine.cpus == 0) return;
  const double own = after.process.cpu_s - before.process.cpu_s;
  const double on_used = wall * static_cast<double>(used);
  const auto share = [](double seconds, double of) { return std::clamp(seconds / of, 0.0, 1.0); };
  disturbance.others = share(after.machine.used_s - before.machine.used_s - own, on_used);
  disturbance.elsewhere = share(after.machine.busy_s - before.machine.busy_s - own,
                                wall * static_cast<double>(after.machine.cpus));
  disturbance.steal = share(after.machine.steal_s - before.machine.steal_s, on_used);
}

std::string disturbed_by(const Disturbance& disturbance, std::size_t samples) {
  if (static_cast<double>(disturbance.kept) > static_cast<double>(samples) / 4) {
    return fmt::format("threads waited for a CPU during {} of {} samples, and again when {} more were taken",
                       disturbance.kept, samples, disturbance.discarded);
  }
  if (disturbance.others > kMostOthers)
    return fmt::format("other processes took {:.0f} % of its CPUs", 100 * disturbance.others);
  if (disturbance.elsewhere > kMostOthers)
    return fmt::format("other processes took {:.0f} % of the machine", 100 * disturbance.elsewhere);
  if (disturbance.steal > kMostSteal)
    return fmt::format("the hypervisor gave {:.0f} % of its CPUs to others", 100 * disturbance.steal);
  return "";
}

}  // namespace memwall
