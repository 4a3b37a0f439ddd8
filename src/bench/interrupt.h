// Signals that ask the process to end: while measuring a flag, so that the run stops between two launches
// with what it has; otherwise its end, after a half-written file is removed.
#pragma once

#include <signal.h>

#include <string>

namespace memwall {

// From its construction to its end, the first of SIGHUP, SIGINT and SIGTERM sets the flag instead of ending
// the process; a second one ends it. A signal that the caller had ignored (nohup) stays ignored. One at a
// time.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;
};

// Whether one came since the guard was made; false without a guard. From any thread.
bool interrupted();

// From its construction to its end, SIGHUP, SIGINT, SIGQUIT and SIGTERM remove the file before they end the
// process. Of several only the innermost, which goes first.
class RemovedWhenEnded {
 public:
  explicit RemovedWhenEnded(std::string path);
  ~RemovedWhenEnded();
  RemovedWhenEnded(const RemovedWhenEnded&) = delete;
  RemovedWhenEnded& operator=(const RemovedWhenEnded&) = delete;

 private:
  std::string path_;
  const char* outer_;
};

// For a child process: the file that a signal would remove is its parent's, and stays.
void leave_files_to_parent();

// No such signal is delivered to this thread during its life: for steps that a handler must see as one.
class SignalsHeld {
 public:
  SignalsHeld();
  ~SignalsHeld();
  SignalsHeld(const SignalsHeld&) = delete;
  SignalsHeld& operator=(const SignalsHeld&) = delete;

 private:
  sigset_t before_{};
};

}  // namespace memwall
