#include "bench/stopping.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <stdexcept>

#include "bench/statistics.h"

namespace memwall {
namespace {

constexpr std::size_t window = 10;
constexpr std::size_t noise_spacing = 32;  // a value of the noise every n/32 samples

}  // namespace

std::string_view stop_reason_name(StopReason reason) {
  switch (reason) {
    case StopReason::quiet:
      return "quiet";
    case StopReason::noise_stable:
      return "noise stable";
    case StopReason::time_limit:
      return "time limit";
    case StopReason::sample_limit:
      return "sample limit";
    case StopReason::interrupted:
      return "interrupted";
  }
  throw std::invalid_argument("unknown stop reason");
}

StoppingCriterion::StoppingCriterion(StoppingRule rule, std::size_t floor_samples)
    : rule_(rule), floor_samples_(floor_samples) {}

void StoppingCriterion::add(double sample, double cost_s) {
  if (!std::isfinite(sample)) throw std::invalid_argument("a sample is not a finite number");
  if (!std::isfinite(cost_s) || cost_s < 0) {
    throw std::invalid_argument("a sample's cost is not a finite number of seconds, or negative");
  }
  samples_.push_back(sample);
  spent_s_ += cost_s;
  // At most 80 KB move for 10,000 samples: a microsecond or two, where a sort would take hundreds.
  sorted_.insert(std::upper_bound(sorted_.begin(), sorted_.end(), sample), sample);

  const std::size_t n = samples_.size();
  if (n < next_noise_at_) return;
  if (const auto noise = relative_noise_of_sorted(sorted_)) {
    noise_.push_back(*noise);
    next_noise_at_ = n + std::max<std::size_t>(1, n / noise_spacing);
  }
}

bool StoppingCriterion::noise_is_stable() const {
  if (noise_.size() < window) return false;
  const auto last = std::span(noise_).last(window);
  const double mean = std::accumulate(last.begin(), last.end(), 0.0) / static_cast<double>(window);
  return std::all_of(last.begin(), last.end(),
                     [&](double noise) { return std::abs(noise - mean) <= rule_.stable_window * mean; });
}

std::optional<StopReason> StoppingCriterion::finished() const {
  const std::size_t n = samples_.size();
  if (n < floor_samples_) return std::nullopt;
  // The noise comes first: a run that is quiet when its time ends is worth more than "time limit" says.
  if (n >= rule_.min_samples && spent_s_ >= rule_.min_time_s) {
    const auto noise = relative_noise_of_sorted(sorted_);
    if (noise && *noise < rule_.quiet_noise) return StopReason::quiet;
    if (noise_is_stable()) return StopReason::noise_stable;
  }
  if (spent_s_ >= rule_.max_time_s) return StopReason::time_limit;
  if (n >= rule_.max_samples) return StopReason::sample_limit;
  return std::nullopt;
}

}  // namespace memwall
