#include "cli/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

#include "report/table.h"

namespace memwall {

Progress::Progress() : terminal_(::isatty(STDERR_FILENO) == 1) {}

Progress::~Progress() { clear(); }

void Progress::clear() {
  if (shown_) std::fputs("\r\x1b[K", stderr);
  shown_ = false;
}

void Progress::show(const std::string& what, std::size_t done, std::size_t of) {
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  if (!terminal_ || seconds < 1) return;
  shown_ = true;
  std::string line = fmt::format("{:3.0f} s  {}/{}  {}", seconds, done + 1, of, what);
  if (display_width(line) > 79) line = line.substr(0, 79);  // one row, so that it can be wiped
  std::fputs(("\r\x1b[K" + line).c_str(), stderr);          // may fail: progress costs no result
  std::fflush(stderr);
}

}  // namespace memwall
