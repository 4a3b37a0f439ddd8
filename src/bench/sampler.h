// Measuring one task: cold copies, the right variant, paired ceiling samples, a stopping rule.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/device.h"
#include "bench/read_ceiling.h"
#include "bench/statistics.h"
#include "bench/stopping.h"
#include "bench/timing.h"

namespace memwall {

struct Measurement {
  std::string variant;
  std::vector<VariantFigure> variants;  // all that there are
  Summary seconds;                      // a launch
  double fastest = 0;                   // the fastest sample, seconds a launch
  double bytes = 0;                     // compulsory bytes a launch, the mean over the turns measured
  double flops = 0;
  double padding = 0;  // bytes a launch reads because a layout is filled up, which `bytes` leaves out
  double touched = 0;  // distinct experts a launch, the mean over the seed's draws; 0 where there are none
  std::vector<std::int64_t> first_drawn;     // the experts of the seed's first draw, ascending
  std::optional<Summary> of_read_bandwidth;  // paired shares; for cold tasks only
  double read_rate = 0;                      // bytes/s: the read bandwidth beside it; 0 where not sampled
  // Shares of a read of as many bytes, for ops too small to reach the read bandwidth beside a costly launch.
  std::optional<Summary> of_same_size_read;
  std::optional<Summary> alone_seconds;  // a launch that the host starts by itself, where that differs
  std::optional<double> clock_MHz;       // the median over the samples
  std::int64_t slowed_samples = 0;       // taken while something slowed the device
  std::vector<std::string> slowed_by;    // what
  Disturbance disturbance;               // by other processes; all zero where nobody tells
  StopReason stop = StopReason::time_limit;
  std::int64_t copies = 0;
  std::optional<double> huge_page_share;  // of what must be cold; nothing for ops on activations
  std::int64_t launches_per_sample = 0;
  Check check;
};

// Of all random draws (weights, inputs, the routing of experts) where none is asked for: runs that are asked
// for the same draw the same.
inline constexpr std::uint64_t kDefaultSeed = 1;

struct SamplerSettings {
  StoppingRule rule;
  std::size_t floor_samples = 3;
  bool pair_with_ceiling = true;
  std::uint64_t seed = kDefaultSeed;
  bool hot = false;  // one copy, launched again and again: cache-resident on purpose
  // Variants that an earlier process lost the device with: they are not tried again.
  std::vector<VariantFigure> lost = {};
  // Told of each variant before its first launch; may be empty.
  std::function<void(const std::string& variant)> tries = {};
};

// Bytes that no cache keeps until they come round again: info.cold_caches times the last-level cache, and 64
// MiB at least (a read slice, where that is less).
std::int64_t least_cold_bytes(const DeviceInfo& info);

// How many copies keep the task cold: at least least_cold_bytes in all.
std::int64_t cold_copies(const Footprint& footprint, const DeviceInfo& info);

// Before a variant's name in SamplerSettings::lost and tries: of the read that runs beside an op.
inline constexpr std::string_view kReadBeside = "read beside, ";

// Below this, a task's launch cost shows beside its bytes: it is also held against a read of its own size
// where launches are costly.
inline constexpr std::int64_t kLargeBytes = std::int64_t{256} << 20;

// The read that a cold task of `bytes` a launch is held against; nothing where it is large, or launches cost
// nothing.
std::optional<StreamTask> same_size_read(const DeviceInfo& info, double bytes);

// Bytes the task takes when placed so.
std::int64_t placed_bytes(const Footprint& footprint, std::int64_t copies);

// Measures the task with the fastest variant that runs and whose result is right, or nothing where the device
// has no variant for it or an interrupt came before three samples. Throws RunError where no variant is both.
// `ceiling` may be null.
std::optional<Measurement> measure_task(Device& device, const Task& task, ReadCeiling* ceiling,
                                        const SamplerSettings& settings);

}  // namespace memwall
