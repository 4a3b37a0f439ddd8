#include "bench/launch_fit.h"

#include <algorithm>

namespace memwall {

// Minimises the sum of w (t - t0 - b x)^2 with w = 1 / t^2, x in bytes; the normal equations of two unknowns.
std::optional<LaunchFit> fit_launch(const std::vector<LaunchSample>& samples) {
  double weights = 0;
  double mean_bytes = 0;
  double mean_seconds = 0;
  for (const LaunchSample& s : samples) {
    if (s.seconds <= 0) return std::nullopt;
    const double w = 1 / (s.seconds * s.seconds);
    weights += w;
    mean_bytes += w * s.bytes;
    mean_seconds += w * s.seconds;
  }
  if (weights <= 0) return std::nullopt;
  mean_bytes /= weights;
  mean_seconds /= weights;
  double spread = 0;
  double together = 0;
  for (const LaunchSample& s : samples) {
    const double w = 1 / (s.seconds * s.seconds);
    spread += w * (s.bytes - mean_bytes) * (s.bytes - mean_bytes);
    together += w * (s.bytes - mean_bytes) * (s.seconds - mean_seconds);
  }
  if (spread <= 0 || together <= 0) return std::nullopt;
  const double seconds_a_byte = together / spread;
  return LaunchFit{std::max(0.0, mean_seconds - seconds_a_byte * mean_bytes), 1 / seconds_a_byte};
}

}  // namespace memwall
