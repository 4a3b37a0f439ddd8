// A measuring session on a device that can be lost: it runs in a child process, which tells its parent of
// every outcome. Where the child loses the device, crashes or hangs, the parent starts another, which goes on
// behind what was lost: a variant of an op, at most the op.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench/child.h"
#include "bench/measure.h"

namespace memwall {

// In the child, but for what `parent` says.
struct SupervisedWork {
  // The device; what there is to say of the choice is appended. Throws as open_device does.
  std::function<std::unique_ptr<Device>(std::vector<std::string>& notices)> open;
  std::int64_t memory_bytes = 0;
  std::function<void(Session&)> check;  // throws InputError for what cannot be measured
  std::function<void(Session&)> run;
};

struct SupervisionLimits {
  // Without a word from the child. A unit takes a few seconds, a whole step with its checks some twenty.
  double silence_s = 60;
  int hangs = 3;            // after which the run ends
  int variants_a_unit = 2;  // lost, after which the unit is left out
};

class Supervisor {
 public:
  explicit Supervisor(SupervisedWork work, SupervisionLimits limits = {});

  // Starts a child that opens the device and checks what is asked for. Its device; nothing where it chose the
  // CPU, on which nothing is run in a child. Throws what the child threw: InputError, or RunError, also where
  // it crashes or hangs.
  std::optional<DeviceInfo> open();
  // Runs the session to its end, an interrupt, or the device's. `recorded` is called after each outcome.
  void run(const ProgressCallback& progress, const std::function<void()>& recorded);

  const Ledger& ledger() const { return ledger_; }
  const std::vector<std::string>& notices() const { return notices_; }
  // Why the session ended before its end; empty where it did not, or an interrupt ended it.
  const std::string& ended() const { return ended_; }

 private:
  enum class Opened { device, cpu };
  Opened start();
  void serve(Channel& channel) const;
  void hear(const nlohmann::json& message, const ProgressCallback& progress,
            const std::function<void()>& recorded);
  void lose(const std::string& why, bool hung, const std::function<void()>& recorded);
  bool restart();

  SupervisedWork work_;
  SupervisionLimits limits_;
  Ledger ledger_;
  std::unique_ptr<Child> child_;
  std::optional<DeviceInfo> info_;
  std::vector<std::string> notices_;
  std::vector<std::string> units_;  // begun and not ended, the innermost last
  std::string variant_;             // tried last in it
  std::string lost_;                // what the child said of its device before it ended
  int hangs_ = 0;
  bool done_ = false;
  std::string ended_;
};

}  // namespace memwall
