// A line of progress on standard error, where that is a terminal and the work takes over a second.
#pragma once

#include <chrono>
#include <string>

namespace memwall {

class Progress {
 public:
  Progress();
  ~Progress();  // wipes the line
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void clear();  // wipes the line before results are printed
  void show(const std::string& what, std::size_t done, std::size_t of);

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  bool terminal_;
  bool shown_ = false;
};

}  // namespace memwall
