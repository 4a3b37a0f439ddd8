// A measuring session, wherever it runs: on the CPU in this process; on a GPU in a child process, so that a
// lost device costs what was being measured and not the run.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "bench/measure.h"
#include "cli/options.h"

namespace memwall {

// Called with the session that measures, and again with one that repeats what is in its ledger: each depends
// on nothing else.
struct SessionPlan {
  std::function<void(const Session&)> check;        // throws InputError for what cannot be measured
  std::function<void(const DeviceInfo&)> accepted;  // nothing can be refused any more; may be empty
  std::function<void(Session&)> run;
  // From time to time, with what there is until now; may be empty.
  std::function<void(const Session&)> checkpoint;
};

struct FinishedSession {
  std::unique_ptr<Device> device;  // the CPU, which the session is on
  std::unique_ptr<Session> session;
  std::vector<std::string> warnings = {};  // what failed, and why the run ended early
  bool failed = false;                     // a unit has no result though there is a way to run it
};

// Throws as open_device and the plan's check do. Interrupts are the caller's (InterruptGuard).
FinishedSession run_session(const DeviceOptions& options, const SessionPlan& plan);

}  // namespace memwall
