// What bound a kernel that was timed, beside what bounds it on paper.
#pragma once

#include "predict/predict.h"

namespace memwall {

// A launch as timed; bytes are those that memory would have to move.
struct TimedLaunch {
  double seconds = 0;
  double bytes = 0;
  double flops = 0;
};

struct Roofs {
  double bytes_per_s = 0;
  double flops_per_s = 0;
};

// The fixed costs of a launch are microseconds: a barrier of threads, a call, latencies, on a GPU the launch
// itself with its few us. What takes longer than this is not explained by them.
constexpr double kShortLaunch_s = 20e-6;

// True where neither roof explains half of the time, and the launch is short: the largest of the three terms,
// memory, arithmetic and the rest, is the rest.
//   seconds > 2 max(bytes / W, flops / P)  and  seconds < 20 us
// False where a roof is not known (0) that the launch has a use for.
bool is_overhead_bound(const TimedLaunch& launch, const Roofs& roofs);

// Overhead as above, else the roof that the launch needs more of.
Bound bound_of(const TimedLaunch& launch, const Roofs& roofs);

}  // namespace memwall
