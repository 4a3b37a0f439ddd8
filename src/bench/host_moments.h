// Reads what disturbance.h judges, from the clocks and from Linux's /proc.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bench/disturbance.h"

namespace memwall {

class HostMoments {
 public:
  // `cpus`: those that this process runs on.
  explicit HostMoments(std::vector<int> cpus) : cpus_(std::move(cpus)) {}
  ~HostMoments();
  HostMoments(const HostMoments&) = delete;
  HostMoments& operator=(const HostMoments&) = delete;

  // A microsecond a thread. Without schedstat in /proc nothing has waited.
  ProcessMoment process();
  // Some tens of microseconds. Nothing where /proc/stat cannot be read.
  std::optional<MachineMoment> machine();
  std::size_t used() const { return cpus_.size(); }

 private:
  void find_threads();

  std::vector<int> cpus_;
  std::vector<int> schedstats_;  // open files, one a thread
  bool looked_ = false;
};

}  // namespace memwall
