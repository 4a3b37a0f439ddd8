// When to stop sampling.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

namespace memwall {

struct StoppingRule {
  std::size_t min_samples = 10;
  double min_time_s = 0.5;  // of sampled time
  double max_time_s = 3.0;  // the time limit, whatever the noise
  std::size_t max_samples = 10000;
  double quiet_noise = 0.005;   // relative noise that counts as quiet
  double stable_window = 0.05;  // noise whose last values lie within this share of their mean is stable
};

enum class StopReason { quiet, noise_stable, time_limit, sample_limit, interrupted };
std::string_view stop_reason_name(StopReason reason);  // "quiet", "noise stable", "time limit", ...

// Fed one sample at a time. After min_samples and min_time_s it stops when the relative noise is below
// quiet_noise, or when the noise itself has settled (its last ten values lie within stable_window of
// their mean: after nvbench's stdrel criterion), or at max_time_s, or at max_samples. The time limit holds
// before min_samples too, but nothing stops it before `floor_samples`. `interrupted` is the caller's to give.
//
// The noise is exact after every sample (the samples are kept sorted by insertion). A value of it joins the
// last ten every max(1, n/32) samples, so that the ten always span at least a quarter of all samples: ten
// neighbouring values would look settled in any long run, a steadily drifting one included.
class StoppingCriterion {
 public:
  explicit StoppingCriterion(StoppingRule rule, std::size_t floor_samples = 3);
  // `cost_s`: what taking the sample took in all (paired probes included); it counts toward the times.
  // Throws std::invalid_argument where `sample` is not finite, or `cost_s` not finite or negative.
  void add(double sample, double cost_s);
  std::optional<StopReason> finished() const;
  const std::vector<double>& samples() const { return samples_; }  // in the order they came

 private:
  bool noise_is_stable() const;

  StoppingRule rule_;
  std::size_t floor_samples_;
  std::vector<double> samples_;
  std::vector<double> sorted_;
  std::vector<double> noise_;
  std::size_t next_noise_at_ = 0;
  double spent_s_ = 0;
};

}  // namespace memwall
