// What other processes did to a measurement. A CPU is shared: a thread that waits for it, a neighbour that
// fills the memory bus, a host that runs another guest. Everything here is a pure function of moments that
// were read before and after, so that it can be tested on moments made by hand; host_moments.h reads them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace memwall {

// What this process had done until a moment, seconds.
struct ProcessMoment {
  double wall_s = 0;
  double cpu_s = 0;     // of all threads
  double waited_s = 0;  // threads that could have run, waiting for a CPU
};

// True where between the two moments the process lost more than `noise` of the time: threads waited for a
// CPU, or nothing of it ran at all (it was stopped). One thread at least runs all the time while it measures.
bool held_up(const ProcessMoment& before, const ProcessMoment& after);

// CPU times of the machine since it started, seconds.
struct MachineTimes {
  double busy_s = 0;   // of all CPUs: neither idle nor stolen
  double used_s = 0;   // likewise, of those that this process runs on
  double steal_s = 0;  // that a hypervisor gave to others, of those that this process runs on
  int cpus = 0;        // all
};

// Reads the text of Linux's /proc/stat (proc(5): user, nice, system, idle, iowait, irq, softirq, steal, all
// in ticks; guest times are within user's). Nothing where it is none, or names not all of the CPUs.
std::optional<MachineTimes> parse_machine_times(std::string_view stat, const std::vector<int>& used,
                                                double ticks_a_second);

struct MachineMoment {
  ProcessMoment process;
  MachineTimes machine;
};

// What came of it all, for one measurement.
struct Disturbance {
  std::int64_t discarded = 0;  // samples that were held up and taken again
  std::int64_t kept = 0;       // samples that were held up, too, and count: they did not end
  double others = 0;           // the share of the used CPUs' time that other processes took
  double elsewhere = 0;        // the share of all CPUs' time
  double steal = 0;            // the share of the used CPUs' time that the hypervisor gave away
};

// Sets the shares from two moments. Below half a second of wall time they stay 0: the kernel counts in ticks.
void note_load(Disturbance& disturbance, const MachineMoment& before, const MachineMoment& after,
               std::size_t used);

// Why a figure of so many samples is not one of a quiet machine, in words; empty: it is. A median bears a
// quarter of samples that were held up; a tenth of the CPUs for others, or for a hypervisor's other guests,
// makes a figure a tenth too small.
std::string disturbed_by(const Disturbance& disturbance, std::size_t samples);

}  // namespace memwall
