#include "cli/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "report/table.h"

namespace memwall {
namespace {

// Whole minutes from two on, else steps of 5 s: it is a guess.
std::string time_left(double seconds) {
  if (seconds >= 120) return fmt::format("about {:.0f} min left", seconds / 60);
  return fmt::format("about {:.0f} s left", 5 * std::max(1.0, std::round(seconds / 5)));
}

}  // namespace

std::string progress_line(const std::string& what, const ProgressState& state, double seconds) {
  constexpr double kLeastShare = 0.05;
  std::string line;
  if (state.of > 0) {
    line = fmt::format("{} of {}", std::min(state.done + 1, state.of), state.of);
    if (state.share >= kLeastShare) line += ", " + time_left(seconds * (1 - state.share) / state.share);
    line += "  ";
  }
  line += what;
  const auto continues = [&] { return (static_cast<unsigned char>(line.back()) & 0xC0U) == 0x80U; };
  while (display_width(line) > 79) {  // one row, so that it can be wiped
    while (continues()) line.pop_back();
    line.pop_back();
  }
  return line;
}

Progress::Progress() : terminal_(::isatty(STDERR_FILENO) == 1) {}

Progress::~Progress() { clear(); }

void Progress::clear() {
  if (shown_) std::fputs("\r\x1b[K", stderr);
  shown_ = false;
}

void Progress::show(const std::string& what, const ProgressState& state) {
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  if (!terminal_ || seconds < 1) return;
  shown_ = true;
  std::fputs(("\r\x1b[K" + progress_line(what, state, seconds)).c_str(),
             stderr);  // may fail: it costs no result
  std::fflush(stderr);
}

}  // namespace memwall
