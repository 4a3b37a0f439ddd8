// Ctrl-C while measuring: a flag, so that the run stops between two launches with what it has.
#pragma once

namespace memwall {

// From its construction to its end, SIGINT and SIGTERM set the flag instead of ending the process; a second
// signal ends it. One at a time.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;
};

// Whether one came since the guard was made; false without a guard. From any thread.
bool interrupted();

}  // namespace memwall
