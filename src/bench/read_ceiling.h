// The device's read bandwidth, sampled beside every kernel: on a shared machine it drifts by tens of per
// cent, so a figure means something only as a share of its neighbour in time.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "bench/timing.h"

namespace memwall {

class ReadCeiling {
 public:
  // Runs the first launches of a variant, named; false where that failed and the probe does without it.
  using Trial = std::function<bool(const std::string& variant, const std::function<void()>& run)>;

  // Places the probe's buffer, as large as keeps it cold, and picks the best of the device's variants that
  // pass their trial. Throws RunError where none does.
  explicit ReadCeiling(Device& device);
  ReadCeiling(Device& device, const Trial& trial);

  // bytes/s, and remembered: of as many slices in a row as make a sample (timing.h), as ops are sampled.
  double sample();
  void forget_last() { samples_.pop_back(); }        // a sample that others held up
  void write_back();                                 // reads until no dirty line of another task is left
  double median() const;                             // bytes/s over all samples so far
  double fastest() const;                            // the best of them
  double huge_share() const { return huge_share_; }  // of the probe's buffer on huge pages
  const std::string& variant() const { return variant_name_; }
  const std::vector<double>& samples() const { return samples_; }

  std::int64_t sample_bytes() const { return slices_ * device_.info().read_slice_bytes; }
  // What the buffer takes on that device.
  static std::int64_t bytes(const DeviceInfo& info);

 private:
  Device& device_;
  std::unique_ptr<Operands> operands_;
  std::size_t variant_ = 0;
  std::string variant_name_;
  std::int64_t slices_ = 1;  // a sample
  std::int64_t turn_ = 0;
  double huge_share_ = 0;
  std::vector<double> samples_;
};

}  // namespace memwall
