#include "cli/run_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <optional>
#include <utility>

#include "bench/supervise.h"
#include "cli/notices.h"
#include "cli/progress.h"
#include "input/error.h"
#include "input/numbers.h"

namespace memwall {
namespace {

// The plan on what is in the ledger.
std::unique_ptr<Session> repeated(const DeviceInfo& info, std::int64_t memory_bytes, const Ledger& ledger,
                                  const SessionPlan& plan) {
  auto session = std::make_unique<Session>(info, memory_bytes, ledger);
  plan.run(*session);
  return session;
}

// At most one in two seconds: each writes the whole result.
class Checkpoints {
 public:
  Checkpoints(const SessionPlan& plan, DeviceInfo info, std::int64_t memory_bytes)
      : plan_(plan), info_(std::move(info)), memory_bytes_(memory_bytes) {}

  void pass(const Ledger& ledger) {
    constexpr auto kRest = std::chrono::seconds(2);
    const auto now = std::chrono::steady_clock::now();
    if (!plan_.checkpoint || now - last_ < kRest) return;
    // The file at the end is what counts: a full disk may have room by then.
    try {
      plan_.checkpoint(*repeated(info_, memory_bytes_, ledger, plan_));
    } catch (const RunError& error) {
      if (!std::exchange(warned_, true)) warn(fmt::format("what there is until now: {}", error.what()));
    }
    last_ = std::chrono::steady_clock::now();
  }

 private:
  const SessionPlan& plan_;
  DeviceInfo info_;
  std::int64_t memory_bytes_;
  bool warned_ = false;
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

// Few enough lines to be read; the result has all.
std::vector<std::string> told(const std::vector<std::string>& lines, const char* more) {
  constexpr std::size_t kMost = 8;
  std::vector<std::string> told(lines.begin(),
                                lines.begin() + static_cast<std::ptrdiff_t>(std::min(kMost, lines.size())));
  if (lines.size() > kMost) told.push_back(fmt::format("{} {}", lines.size() - kMost, more));
  return told;
}

FinishedSession finished(std::unique_ptr<Device> device, std::unique_ptr<Session> session) {
  FinishedSession done{.device = std::move(device), .session = std::move(session)};
  const std::vector<std::string> failures = done.session->ledger().failures();
  done.failed = !failures.empty();
  done.warnings = told(failures, "more units of work failed");
  for (const std::string& line :
       told(done.session->ledger().failed_variants(), "more ways to run an op failed and are left out"))
    done.warnings.push_back(line);
  return done;
}

FinishedSession run_here(const DeviceOptions& options, const SessionPlan& plan) {
  std::unique_ptr<Device> device = options.open();
  Progress progress;
  auto session = std::make_unique<Session>(
      *device, options.memory_bytes(),
      [&](const std::string& what, const ProgressState& state) { progress.show(what, state); });
  plan.check(*session);
  release_notices();
  if (plan.accepted) plan.accepted(device->info());
  Checkpoints checkpoints(plan, device->info(), options.memory_bytes());
  session->follow(Session::plan_of(device->info(), plan.run));
  session->observe({.tries = {}, .ends = [&](const std::string&, const Outcome&) {
                      checkpoints.pass(session->ledger());
                    }});
  plan.run(*session);
  session->observe({});
  return finished(std::move(device), std::move(session));
}

// MEMWALL_GPU_PATIENCE: seconds without a word from it after which a GPU is taken to hang.
SupervisionLimits limits() {
  SupervisionLimits limits;
  constexpr std::int64_t kMost = 3600;
  if (const char* seconds = std::getenv("MEMWALL_GPU_PATIENCE"); seconds != nullptr && *seconds != '\0')
    limits.silence_s = static_cast<double>(parse_integer(seconds, "MEMWALL_GPU_PATIENCE", {1, kMost}));
  return limits;
}

// Nothing where the device that the options mean is the CPU after all.
std::optional<FinishedSession> run_supervised(const DeviceOptions& options, const SessionPlan& plan) {
  Supervisor supervisor({.open =
                             [&](std::vector<std::string>& notices) {
                               const auto keep = [&](const std::string& line) { notices.push_back(line); };
                               return options.open(keep, keep);
                             },
                         .memory_bytes = options.memory_bytes(),
                         .check = plan.check,
                         .run = plan.run},
                        limits());
  const std::optional<DeviceInfo> info = supervisor.open();
  if (!info) return std::nullopt;  // which says why when it is opened here
  for (const std::string& line : supervisor.notices()) note(line);
  release_notices();
  if (plan.accepted) plan.accepted(*info);
  Progress progress;
  Checkpoints checkpoints(plan, *info, options.memory_bytes());
  supervisor.run([&](const std::string& what, const ProgressState& state) { progress.show(what, state); },
                 [&] { checkpoints.pass(supervisor.ledger()); });
  progress.clear();
  FinishedSession done =
      finished(nullptr, repeated(*info, options.memory_bytes(), supervisor.ledger(), plan));
  if (!supervisor.ended().empty()) {
    done.warnings.push_back("the run ended early: " + supervisor.ended());
    done.failed = true;
  }
  return done;
}

}  // namespace

FinishedSession run_session(const DeviceOptions& options, const SessionPlan& plan) {
  if (options.may_be_gpu()) {
    if (auto done = run_supervised(options, plan)) return std::move(*done);
  }
  return run_here(options, plan);
}

}  // namespace memwall
