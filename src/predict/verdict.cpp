#include "predict/verdict.h"

#include <algorithm>
#include <limits>

namespace memwall {
namespace {

// Of so much at a rate; without end where there is no rate.
double seconds_at(double amount, double rate) {
  if (amount <= 0) return 0;
  return rate > 0 ? amount / rate : std::numeric_limits<double>::infinity();
}

}  // namespace

bool is_overhead_bound(const TimedLaunch& launch, const Roofs& roofs) {
  const double roof_s =
      std::max(seconds_at(launch.bytes, roofs.bytes_per_s), seconds_at(launch.flops, roofs.flops_per_s));
  return launch.seconds < kShortLaunch_s && launch.seconds > 2 * roof_s;
}

Bound bound_of(const TimedLaunch& launch, const Roofs& roofs) {
  if (is_overhead_bound(launch, roofs)) return Bound::overhead;
  return seconds_at(launch.bytes, roofs.bytes_per_s) >= seconds_at(launch.flops, roofs.flops_per_s)
             ? Bound::memory
             : Bound::compute;
}

}  // namespace memwall
