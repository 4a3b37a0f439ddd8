#include "bench/host_moments.h"

#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>

namespace memwall {
namespace {

double process_cpu_seconds() {
  timespec now{};
  if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now) != 0) return 0;
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

double wall_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// The second of a schedstat's three numbers: nanoseconds that the thread waited on a run queue (Linux,
// Documentation/scheduler/sched-stats.rst).
double waited_seconds(int file) {
  char text[96];
  const ssize_t read = ::pread(file, text, sizeof text - 1, 0);
  if (read <= 0) return 0;
  text[read] = '\0';
  unsigned long long ran = 0;
  unsigned long long waited = 0;
  std::istringstream numbers(text);
  return numbers >> ran >> waited ? static_cast<double>(waited) / 1e9 : 0;
}

}  // namespace

HostMoments::~HostMoments() {
  for (const int file : schedstats_) ::close(file);
}

// The pool's threads live as long as the device; those that end meanwhile read as nothing.
void HostMoments::find_threads() {
  looked_ = true;
  std::error_code failed;
  for (std::filesystem::directory_iterator task("/proc/self/task", failed);
       !failed && task != std::filesystem::directory_iterator(); task.increment(failed)) {
    const int file = ::open((task->path() / "schedstat").c_str(), O_RDONLY | O_CLOEXEC);
    if (file >= 0) schedstats_.push_back(file);
  }
}

ProcessMoment HostMoments::process() {
  if (!looked_) find_threads();
  ProcessMoment moment;
  for (const int file : schedstats_) moment.waited_s += waited_seconds(file);
  moment.cpu_s = process_cpu_seconds();
  moment.wall_s = wall_seconds();
  return moment;
}

std::optional<MachineMoment> HostMoments::machine() {
  std::ifstream file("/proc/stat");
  std::ostringstream text;
  if (!file || !(text << file.rdbuf())) return std::nullopt;
  const auto times = parse_machine_times(text.str(), cpus_, static_cast<double>(sysconf(_SC_CLK_TCK)));
  if (!times) return std::nullopt;
  return MachineMoment{process(), *times};
}

}  // namespace memwall
