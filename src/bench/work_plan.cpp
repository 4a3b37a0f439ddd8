#include "bench/work_plan.h"

#include <algorithm>

namespace memwall {

void WorkPlan::add(const std::string& unit, double seconds) {
  if (open_.emplace(unit, seconds).second) all_s_ += seconds;
}

void WorkPlan::end(const std::string& unit) {
  const auto found = open_.find(unit);
  if (found == open_.end()) return;
  ended_s_ += found->second;
  ++ended_;
  open_.erase(found);
}

ProgressState WorkPlan::state() const {
  return {.done = ended_,
          .of = ended_ + open_.size(),
          .share = all_s_ > 0 ? std::clamp(ended_s_ / all_s_, 0.0, 1.0) : 0};
}

}  // namespace memwall
