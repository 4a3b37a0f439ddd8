// Which figures say too little to be read plainly, and why.
#pragma once

#include <optional>
#include <string>

#include "bench/measure.h"

namespace memwall {

// Why a figure is unstable, in words; empty: it is not. Other processes took its CPUs (disturbance.h); its
// share of the read bandwidth has a 95 % interval wider than a third of it; or sampling ended at a limit
// before the noise had settled, and the median is not known within 5 %.
std::string unstable_because(const Measurement& measurement);
std::string unstable_because(const WholeStep& step);
// Of a probe, whose time is short by design: only the first two.
std::string unstable_probe_because(const Measurement& measurement);
// The first of them among ops that make more than a tenth of the step's time together, with its op.
std::string unstable_because(const MeasuredStep& step);

// The slowest and the fastest read bandwidth beside the step's ops, medians, bytes/s, where the memory
// drifted between them by more than a quarter: the shares hold, the times are of a memory that was at either.
// Nothing where it did not.
std::optional<Interval> memory_drift(const MeasuredStep& step);

}  // namespace memwall
