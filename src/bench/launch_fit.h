// What a launch costs beside what it moves.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace memwall {

struct LaunchSample {
  double bytes = 0;
  double seconds = 0;
};

// Hockney's model of a kernel that moves bytes, t = t0 + bytes / W (R. W. Hockney, "The communication
// challenge for MPP", Parallel Computing 20, 1994).
struct LaunchFit {
  double seconds_a_launch = 0;  // t0
  double bytes_per_s = 0;       // W, at infinite size

  double seconds(double bytes) const { return seconds_a_launch + bytes / bytes_per_s; }
  // Bytes at which a launch reaches half of W.
  double half_bytes() const { return seconds_a_launch * bytes_per_s; }
};

// Least squares of the relative errors, so that the small sizes, which tell t0, weigh as much as the large.
// Nothing where fewer than two different sizes are given or time does not grow with them; a t0 below zero is
// 0.
std::optional<LaunchFit> fit_launch(const std::vector<LaunchSample>& samples);

}  // namespace memwall
