// Runs the memwall program as a person would, and catches what it prints.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "paths.h"
#include "tests/temporary_folder.h"

namespace memwall {

inline std::string content_of(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

struct Finished {
  int status = -1;  // the exit status, or 128 and the signal that ended it
  std::string out;
  std::string err;
};

// A program that runs: its input empty, its output and errors in files, so that neither can block it.
class Process {
 public:
  explicit Process(std::vector<std::string> command) {
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    constexpr int kCreate = O_WRONLY | O_CREAT | O_TRUNC;
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, (folder_ / "out").c_str(), kCreate, 0600);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, (folder_ / "err").c_str(), kCreate, 0600);
    std::vector<char*> arguments;
    for (std::string& word : command) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    const int error = ::posix_spawnp(&id_, arguments[0], &actions, nullptr, arguments.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    if (error != 0) throw std::runtime_error(std::string(arguments[0]) + ": " + std::strerror(error));
  }
  ~Process() {
    if (id_ <= 0) return;
    ::kill(id_, SIGKILL);
    ::waitpid(id_, nullptr, 0);
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  void send(int signal) const { ::kill(id_, signal); }

  // True once the program has a handler for the signal; false where it ends without one.
  bool wait_until_it_catches(int signal) const {
    for (int i = 0; i < 60'000; ++i) {
      std::ifstream in("/proc/" + std::to_string(id_) + "/status");
      for (std::string line; std::getline(in, line);) {
        if (line.rfind("State:\tZ", 0) == 0) return false;
        if (line.rfind("SigCgt:", 0) != 0) continue;
        if ((std::stoull(line.substr(7), nullptr, 16) >> (signal - 1) & 1U) != 0) return true;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return false;
  }

  Finished wait() {
    int status = 0;
    while (::waitpid(id_, &status, 0) < 0 && errno == EINTR) {
    }
    id_ = 0;
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), content_of(folder_ / "out"),
            content_of(folder_ / "err")};
  }

 private:
  TemporaryFolder folder_;
  pid_t id_ = 0;
};

// What measures runs on the CPU where no --device says otherwise, whatever else this machine has.
inline std::vector<std::string> memwall_command(std::vector<std::string> arguments) {
  ::setenv("MEMWALL_DATA", MEMWALL_SOURCE_DIR, 1);
  const bool measures =
      !arguments.empty() && (arguments.front() == "measure" || arguments.front() == "baseline");
  if (measures && std::find(arguments.begin(), arguments.end(), "--device") == arguments.end()) {
    arguments.emplace_back("--device");
    arguments.emplace_back("cpu");
  }
  arguments.insert(arguments.begin(), MEMWALL_EXECUTABLE);
  return arguments;
}

inline Finished run(std::vector<std::string> arguments) {
  return Process(memwall_command(std::move(arguments))).wait();
}

// "estimate MODEL --card CARD" split at blanks.
inline Finished run(const std::string& line) {
  std::istringstream words(line);
  return run(std::vector<std::string>{std::istream_iterator<std::string>(words), {}});
}

inline std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

// What every refusal looks like: status 2, one line that says why, nothing else.
inline void expect_refused(const Finished& finished, const std::string& what) {
  EXPECT_EQ(finished.status, 2) << what << "\n" << finished.err;
  EXPECT_EQ(finished.out, "") << what;
  EXPECT_EQ(lines_of(finished.err).size(), 1U) << what << "\n" << finished.err;
  EXPECT_EQ(finished.err.rfind("memwall: error: ", 0), 0U) << what << "\n" << finished.err;
  EXPECT_EQ(finished.err.empty() ? ' ' : finished.err.back(), '\n') << what;
}

}  // namespace memwall
