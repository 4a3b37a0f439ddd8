#include "bench/statistics.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>
#include <vector>

namespace memwall {
namespace {

constexpr std::size_t min_samples_for_noise = 5;

std::vector<double> sorted_copy(std::span<const double> samples) {
  for (const double sample : samples) {
    if (!std::isfinite(sample)) throw std::invalid_argument("a sample is not a finite number");
  }
  std::vector<double> sorted(samples.begin(), samples.end());
  std::sort(sorted.begin(), sorted.end());
  return sorted;
}

// Hyndman and Fan, "Sample quantiles in statistical packages" (1996), type 7: the order statistic at
// 0-based position (n - 1) p, interpolated linearly.
double quantile_of_sorted(std::span<const double> sorted, double p) {
  const double position = static_cast<double>(sorted.size() - 1) * p;
  const auto below = static_cast<std::size_t>(position);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (position - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

// The 1-based ranks of the median's 95 % interval: l is the largest with P(B <= l - 1) <= 2.5 % for
// B ~ binomial(n, 1/2), and u = n + 1 - l by symmetry (Conover, Practical Nonparametric Statistics, 3.2).
// It starts from the middle, where the probabilities are largest: 2^-n underflows from n = 1075 on.
std::pair<std::size_t, std::size_t> median_interval_ranks(std::size_t n) {
  const std::size_t half = n / 2;
  double at_k = 1;  // P(B = k), first for binomial(2 half) at k = half
  for (std::size_t i = 1; i <= half; ++i) {
    at_k *= static_cast<double>(2 * i - 1) / static_cast<double>(2 * i);
  }
  double up_to_k = 0.5 + at_k / 2;  // P(B <= k)
  if (n % 2 == 1) {
    at_k *= static_cast<double>(n) / static_cast<double>(2 * (half + 1));
    up_to_k = 0.5;
  }
  for (std::size_t k = half;; --k) {
    if (up_to_k <= 0.025) return {k + 1, n - k};
    if (k == 0) return {1, n};
    up_to_k -= at_k;
    at_k *= static_cast<double>(k) / static_cast<double>(n - k + 1);
  }
}

Summary summarize_sorted(std::span<const double> sorted) {
  Summary summary;
  summary.n = sorted.size();
  summary.median = quantile_of_sorted(sorted, 0.5);
  summary.q1 = quantile_of_sorted(sorted, 0.25);
  summary.q3 = quantile_of_sorted(sorted, 0.75);
  if (summary.n >= min_samples_for_noise) {
    const auto [low, high] = median_interval_ranks(summary.n);
    summary.ci95 = Interval{sorted[low - 1], sorted[high - 1]};
  }
  return summary;
}

}  // namespace

Summary summarize(std::span<const double> samples) {
  if (samples.empty()) throw std::invalid_argument("no samples to summarize");
  return summarize_sorted(sorted_copy(samples));
}

Summary summarize_ratios(std::span<const double> a, std::span<const double> b) {
  if (a.size() != b.size()) throw std::invalid_argument("paired samples differ in number");
  std::vector<double> ratios(a.size());
  std::transform(a.begin(), a.end(), b.begin(), ratios.begin(), [](double x, double y) { return x / y; });
  return summarize(ratios);
}

std::optional<double> relative_noise(std::span<const double> samples) {
  return relative_noise_of_sorted(sorted_copy(samples));
}

std::optional<double> relative_noise_of_sorted(std::span<const double> sorted) {
  if (sorted.size() < min_samples_for_noise) return std::nullopt;
  const double median = quantile_of_sorted(sorted, 0.5);
  if (!(median > 0)) return std::nullopt;
  return (quantile_of_sorted(sorted, 0.75) - quantile_of_sorted(sorted, 0.25)) / median;
}

}  // namespace memwall
