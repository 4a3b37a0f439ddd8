#include "bench/unstable.h"

#include <fmt/format.h>

#include <algorithm>

namespace memwall {
namespace {

constexpr double kWideTime = 0.05;      // either side of the median
constexpr double kWideShare = 1.0 / 3;  // of the share, in all
constexpr double kMostUnstable = 0.1;   // of a step's time
constexpr double kDrift = 1.25;         // fastest over slowest

bool unsettled(StopReason stop, const Summary& seconds) {
  if (stop == StopReason::quiet || stop == StopReason::noise_stable) return false;
  if (!seconds.ci95) return true;
  return seconds.ci95->high - seconds.ci95->low > 2 * kWideTime * seconds.median;
}

bool wide(const std::optional<Summary>& share) {
  return share && share->ci95 && share->ci95->high - share->ci95->low > kWideShare * share->median;
}

std::string others_or_share(const Disturbance& disturbance, std::size_t samples,
                            const std::optional<Summary>& share) {
  if (std::string others = disturbed_by(disturbance, samples); !others.empty()) return others;
  if (!wide(share)) return "";
  return fmt::format("its share of the read bandwidth lies anywhere between {:.0f} and {:.0f} %",
                     100 * share->ci95->low, 100 * share->ci95->high);
}

std::string because(const Disturbance& disturbance, const Summary& seconds, StopReason stop,
                    const std::optional<Summary>& share) {
  if (std::string why = others_or_share(disturbance, seconds.n, share); !why.empty()) return why;
  return unsettled(stop, seconds) ? "its samples had not settled when its time was up" : "";
}

}  // namespace

std::string unstable_because(const Measurement& m) {
  return because(m.disturbance, m.seconds, m.stop, m.of_read_bandwidth);
}

std::string unstable_probe_because(const Measurement& m) {
  return others_or_share(m.disturbance, m.seconds.n, m.of_read_bandwidth);
}

std::string unstable_because(const WholeStep& step) {
  return because(step.disturbance, step.seconds, step.stop, step.of_read_bandwidth);
}

std::string unstable_because(const MeasuredStep& step) {
  double unstable = 0;
  std::string first;
  for (const MeasuredOp& op : step.ops) {
    if (!op.measurement) continue;
    const std::string why = unstable_because(*op.measurement);
    if (why.empty()) continue;
    unstable += op.measurement->seconds.median * static_cast<double>(op.op.count());
    if (first.empty()) first = op.op.name + ": " + why;
  }
  return unstable > kMostUnstable * step.measured_seconds() ? first : "";
}

std::optional<Interval> memory_drift(const MeasuredStep& step) {
  std::optional<Interval> rates;
  for (const MeasuredOp& op : step.ops) {
    if (!op.measurement || op.measurement->read_rate <= 0) continue;
    const double rate = op.measurement->read_rate;
    if (!rates) rates = Interval{rate, rate};
    rates->low = std::min(rates->low, rate);
    rates->high = std::max(rates->high, rate);
  }
  return rates && rates->high > kDrift * rates->low ? rates : std::nullopt;
}

}  // namespace memwall
