#include "cli/notices.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <vector>

#include "input/printable.h"

namespace memwall {
namespace {

// Standard error is one for the program, so what waits for it is, too.
struct Waiting {
  bool released = false;
  std::vector<std::string> lines;
};
Waiting waiting;

void say(const char* kind, const std::string& message) {
  const std::string line = fmt::format("memwall: {}: {}\n", kind, printable(message));
  if (waiting.released) {
    std::fputs(line.c_str(), stderr);
  } else if (std::find(waiting.lines.begin(), waiting.lines.end(), line) == waiting.lines.end()) {
    waiting.lines.push_back(line);
  }
}

}  // namespace

void note(const std::string& message) { say("note", message); }

void warn(const std::string& message) { say("warning", message); }

void release_notices() {
  waiting.released = true;
  for (const std::string& line : waiting.lines) std::fputs(line.c_str(), stderr);
  waiting.lines.clear();
}

}  // namespace memwall
