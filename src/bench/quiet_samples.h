// Takes samples again that other processes held up, within a limit of time.
#pragma once

#include <algorithm>
#include <optional>

#include "bench/device.h"
#include "bench/disturbance.h"

namespace memwall {

class QuietSamples {
 public:
  // At most `budget_s` of samples are discarded, times the device's patience: others that did not end while
  // one task was measured are given half the time at the next, a tenth at the least.
  QuietSamples(Device& device, double budget_s)
      : device_(device), budget_s_(budget_s * device.patience), machine_(device.machine_moment()) {}

  void begin() { before_ = device_.process_moment(); }
  // Whether the sample since begin() counts; `cost_s` is what it took.
  bool keep(double cost_s) {
    const auto after = device_.process_moment();
    if (!before_ || !after || !held_up(*before_, *after)) return true;
    if (spent_s_ < budget_s_) {
      spent_s_ += cost_s;
      ++disturbance_.discarded;
      return false;
    }
    ++disturbance_.kept;
    return true;
  }
  // What came of all since the construction.
  Disturbance end() {
    const auto machine = device_.machine_moment();
    const bool in_vain = disturbance_.kept > 0;
    device_.patience = in_vain ? std::max(kLeastPatience, device_.patience / 2) : 1;
    if (machine_ && machine) note_load(disturbance_, *machine_, *machine, device_.info().cpus.size());
    return disturbance_;
  }

 private:
  static constexpr double kLeastPatience = 0.1;

  Device& device_;
  double budget_s_;
  double spent_s_ = 0;
  std::optional<ProcessMoment> before_;
  std::optional<MachineMoment> machine_;
  Disturbance disturbance_;
};

}  // namespace memwall
