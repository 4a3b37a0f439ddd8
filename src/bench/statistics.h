// Order statistics of timing samples. Everything here is a pure function, so that it can be tested on
// sequences made by hand.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

namespace memwall {

struct Interval {
  double low = 0;
  double high = 0;
};

struct Summary {
  std::size_t n = 0;
  double median = 0;
  double q1 = 0;
  double q3 = 0;
  std::optional<Interval> ci95;  // of the median, by order statistics; nothing under 5 samples
};

// Median and quartiles by linear interpolation between order statistics (Hyndman and Fan's type 7), in the
// samples' own unit. The interval is [x_(l), x_(u)] with the ranks at which the binomial(n, 1/2) leaves at
// most 2.5 % on either side; where n is too small for that (n < 6) it is [min, max]. Throws
// std::invalid_argument when empty or when a sample is not finite.
Summary summarize(std::span<const double> samples);

// Ratios a[i] / b[i] of paired samples, summarized. Throws std::invalid_argument on unequal lengths, and
// as summarize does (a zero in b makes a ratio that is not finite).
Summary summarize_ratios(std::span<const double> a, std::span<const double> b);

// Interquartile range over the median: how noisy the samples are. Nothing under 5 samples, nor where the
// median is not positive. Throws std::invalid_argument when a sample is not finite.
std::optional<double> relative_noise(std::span<const double> samples);

// The same of samples already in ascending order, without copying or sorting them.
std::optional<double> relative_noise_of_sorted(std::span<const double> sorted);

}  // namespace memwall
