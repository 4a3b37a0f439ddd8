#include "bench/supervise.h"

#include <fmt/format.h>

#include <chrono>
#include <limits>
#include <new>
#include <stdexcept>
#include <thread>
#include <utility>

#include "bench/device_lost.h"
#include "bench/interrupt.h"
#include "bench/record.h"
#include "input/error.h"

namespace memwall {
namespace {

using nlohmann::json;
using std::chrono::steady_clock;

constexpr double kGrace_s = 6;  // of an interrupt, in which a device opens or a unit ends

double since(steady_clock::time_point start) {
  return std::chrono::duration<double>(steady_clock::now() - start).count();
}

json refusal(bool input, const char* words) {
  return {{"says", "refused"}, {"input", input}, {"words", words}};
}

[[noreturn]] void throw_refusal(const json& message) {
  const auto words = message["words"].get<std::string>();
  if (message["input"].get<bool>()) throw InputError(words);
  throw RunError(words);
}

}  // namespace

Supervisor::Supervisor(SupervisedWork work, SupervisionLimits limits)
    : work_(std::move(work)), limits_(limits) {}

// In the child.
void Supervisor::serve(Channel& channel) const {
  try {
    std::vector<std::string> notices;
    const std::unique_ptr<Device> device = work_.open(notices);
    if (!device->info().gpu) {
      channel.send({{"says", "cpu"}, {"notices", notices}});
      return;
    }
    Session session(
        *device, work_.memory_bytes,
        [&](const std::string& unit, const ProgressState& state) {
          channel.send({{"says", "begins"},
                        {"unit", unit},
                        {"done", state.done},
                        {"of", state.of},
                        {"share", state.share}});
        },
        ledger_);
    session.observe({.tries =
                         [&](const std::string& variant) {
                           channel.send({{"says", "tries"}, {"variant", variant}});
                         },
                     .ends =
                         [&](const std::string& unit, const Outcome& outcome) {
                           channel.send({{"says", "ends"}, {"unit", unit}, {"outcome", record_of(outcome)}});
                         }});
    work_.check(session);
    channel.send({{"says", "opened"}, {"info", record_of(device->info())}, {"notices", notices}});
    json go;
    if (channel.receive(go, -1) != Channel::Heard::message) return;
    session.follow(Session::plan_of(device->info(), work_.run));
    work_.run(session);
    channel.send({{"says", "done"}});
  } catch (const InputError& error) {
    channel.send(refusal(true, error.what()));
  } catch (const std::overflow_error& error) {  // as main has it: sizes of the input
    channel.send(refusal(true, error.what()));
  } catch (const DeviceLost& error) {
    channel.send({{"says", "lost"}, {"words", error.what()}});
  } catch (const std::bad_alloc&) {
    channel.send(refusal(false, "the system has no more memory to give"));
  } catch (const std::exception& error) {
    channel.send(refusal(false, error.what()));
  }
}

Supervisor::Opened Supervisor::start() {
  child_ = std::make_unique<Child>([this](Channel& channel) { serve(channel); });
  json message;
  const auto started = steady_clock::now();
  std::optional<steady_clock::time_point> asked;
  for (;;) {
    switch (child_->channel().receive(message, 100)) {
      case Channel::Heard::closed:
        throw RunError(fmt::format("the process that opens the GPU failed: {}", child_->end()));
      case Channel::Heard::silence:
        // A device that opens in time leaves a result, if only one that is incomplete.
        if (interrupted() && !asked) asked = steady_clock::now();
        if (asked && since(*asked) > kGrace_s) throw RunError("interrupted while the GPU was opened");
        if (since(started) > limits_.silence_s)
          throw RunError(fmt::format("the GPU does not open: no answer within {:.0f} s", limits_.silence_s));
        continue;
      case Channel::Heard::message:
        break;
    }
    break;
  }
  const auto says = message["says"].get<std::string>();
  if (says == "refused") throw_refusal(message);
  if (says == "lost") throw RunError(message["words"].get<std::string>());
  if (!info_) notices_ = message["notices"].get<std::vector<std::string>>();
  if (says == "cpu") return Opened::cpu;
  if (!info_) info_ = device_info_of(message["info"]);
  return Opened::device;
}

std::optional<DeviceInfo> Supervisor::open() {
  if (start() == Opened::cpu) child_.reset();
  return info_;
}

void Supervisor::hear(const json& message, const ProgressCallback& progress,
                      const std::function<void()>& recorded) {
  const auto says = message["says"].get<std::string>();
  if (says == "begins") {
    units_.push_back(message["unit"].get<std::string>());
    variant_.clear();
    if (progress)
      progress(units_.back(), {.done = message["done"].get<std::size_t>(),
                               .of = message["of"].get<std::size_t>(),
                               .share = message["share"].get<double>()});
  } else if (says == "tries") {
    variant_ = message["variant"].get<std::string>();
  } else if (says == "ends") {
    ledger_.add(message["unit"].get<std::string>(), outcome_of(message["outcome"]));
    if (!units_.empty()) units_.pop_back();
    variant_.clear();
    if (recorded) recorded();
  } else if (says == "lost") {
    lost_ = message["words"].get<std::string>();
  } else if (says == "refused") {
    ended_ = message["words"].get<std::string>();
  } else if (says == "done") {
    done_ = true;
  }
}

// Writes down what the loss costs, and ends the run where going on would not help.
void Supervisor::lose(const std::string& why, bool hung, const std::function<void()>& recorded) {
  if (units_.empty()) {
    ended_ = why;
    return;
  }
  const std::string& unit = units_.back();
  const std::string words = "the GPU was lost: " + why;
  const auto lost_before = ledger_.lost(unit).size();
  if (!variant_.empty() && lost_before < static_cast<std::size_t>(limits_.variants_a_unit)) {
    ledger_.add_lost(unit, {variant_, std::numeric_limits<double>::infinity(), words});
  } else {
    Outcome outcome;
    outcome.failed = words;
    ledger_.add(unit, std::move(outcome));
  }
  if (recorded) recorded();
  if (hung && ++hangs_ >= limits_.hangs) ended_ = fmt::format("the GPU hung {} times", hangs_);
}

bool Supervisor::restart() {
  constexpr int kTries = 3;  // a driver takes a moment to free what a dead process held
  units_.clear();
  variant_.clear();
  lost_.clear();
  for (int i = 0; i < kTries && !interrupted(); ++i) {
    if (i > 0) std::this_thread::sleep_for(std::chrono::seconds(1));
    try {
      if (start() != Opened::device) throw RunError("there is no GPU any more");
      child_->channel().send({{"says", "go"}});
      return true;
    } catch (const std::runtime_error& error) {
      ended_ = fmt::format("the GPU does not come back: {}", error.what());
    }
  }
  return false;
}

void Supervisor::run(const ProgressCallback& progress, const std::function<void()>& recorded) {
  child_->channel().send({{"says", "go"}});
  auto heard = steady_clock::now();
  std::optional<steady_clock::time_point> asked;
  while (!done_) {
    json message;
    const Channel::Heard what = child_->channel().receive(message, 100);
    if (interrupted() && !asked) {
      asked = steady_clock::now();
      child_->ask_to_end();
    }
    if (asked && (since(*asked) > kGrace_s || what == Channel::Heard::closed)) break;
    if (what == Channel::Heard::message) {
      heard = steady_clock::now();
      hear(message, progress, recorded);
      if (!ended_.empty()) break;
      continue;
    }
    const bool hung = what == Channel::Heard::silence && since(heard) > limits_.silence_s;
    if (what == Channel::Heard::silence && !hung) continue;
    const std::string ended = child_->end(hung);
    lose(hung             ? fmt::format("no answer within {:.0f} s", limits_.silence_s)
         : !lost_.empty() ? lost_
                          : "the process that used it failed: " + ended,
         hung, recorded);
    if (!ended_.empty() || !restart()) break;
    heard = steady_clock::now();
  }
  child_->end(!done_);
}

}  // namespace memwall
