// A line of progress on standard error, where that is a terminal and the work takes over a second.
#pragma once

#include <chrono>
#include <string>

#include "bench/work_plan.h"

namespace memwall {

// "12 of 40, about 50 s left  decode q_proj": the unit at work counts as begun. Without a plan the unit
// alone; time left once a twentieth of the expected time is done, from how long that took (`seconds`). At
// most 79 columns.
std::string progress_line(const std::string& what, const ProgressState& state, double seconds);

class Progress {
 public:
  Progress();
  ~Progress();  // wipes the line
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void clear();  // wipes the line before results are printed
  void show(const std::string& what, const ProgressState& state);

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  bool terminal_;
  bool shown_ = false;
};

}  // namespace memwall
