// Timing launches, and telling the ways to run a task apart: which are the faster, and which do not work
// here.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "bench/device.h"

namespace memwall {

struct VariantFigure {
  std::string name;
  double seconds = 0;       // a launch, median of a few; infinite where it failed
  std::string failed = {};  // why it is left out; empty: it works
  bool refused = false;     // by a library that does not have it for this shape or device, as is usual

  bool works() const { return failed.empty(); }
};

// Seconds a launch, of so many in a row from `turn` on, which they move on.
double time_launches(Device& device, Operands& operands, std::size_t variant, std::int64_t& turn,
                     std::int64_t launches);

// Launches that make up one sample, from one launch's time: below 2 ms a sample is mostly clock.
std::int64_t launches_a_sample(double seconds_a_launch);

// Runs `work`; what the RunError that it threw says, empty where it threw none. A lack of memory and a lost
// device are not one way's fault, and pass.
std::string failure_of(const std::function<void()>& work);

// The median time of each variant under the protocol of the measurement itself; a variant fails alone. Those
// whose figure in `known` failed are not tried. `tries` is told of each before its first launch; may be
// empty. Fewer figures than variants after an interrupt.
std::vector<VariantFigure> time_variants(Device& device, Operands& operands,
                                         const std::vector<Variant>& variants, std::int64_t& turn,
                                         const std::vector<VariantFigure>& known = {},
                                         const std::function<void(const std::string&)>& tries = {});

// The place of the fastest that works; figures.size() where none does.
std::size_t fastest_of(const std::vector<VariantFigure>& figures);

}  // namespace memwall
