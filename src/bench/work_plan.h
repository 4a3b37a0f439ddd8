// The units of work that a session will have, known before the first: so that progress has a total that does
// not grow, and time left.
#pragma once

#include <cstddef>
#include <map>
#include <string>

namespace memwall {

// Of a session that is under way. Units outside the plan (a read probe placed anew, tries within a unit) are
// part of what they serve: they move nothing.
struct ProgressState {
  std::size_t done = 0;
  std::size_t of = 0;  // 0: there is no plan
  double share = 0;    // of the expected time, done: 0 to 1
};

class WorkPlan {
 public:
  // `seconds` is what it is expected to take; only its share of all counts. A unit counts once.
  void add(const std::string& unit, double seconds);
  // Does nothing where the plan has no such unit, or it was ended before.
  void end(const std::string& unit);

  bool empty() const { return open_.empty() && ended_ == 0; }
  ProgressState state() const;

 private:
  std::map<std::string, double> open_;
  std::size_t ended_ = 0;
  double ended_s_ = 0;
  double all_s_ = 0;
};

}  // namespace memwall
