// What came of a session's units of work: each op, each probe, each whole step. A session that runs again
// over a ledger takes what is in it instead of measuring, so that another process can go on where one was
// lost, and so that a report can be made of what there is at any moment.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "bench/sampler.h"
#include "bench/step.h"

namespace memwall {

// The read probe as one process placed it.
struct PlacedProbe {
  std::string variant;
  double huge_page_share = 0;
};

struct Outcome {
  std::optional<Measurement> measurement;
  std::optional<WholeStep> whole;
  std::optional<PlacedProbe> probe;
  std::vector<double> read_samples;  // bytes/s, of the read probe meanwhile
  std::string failed;                // why there is no result; empty: there is, or the device has no kernel
  std::string shortage;              // of memory, in words: it ends the run
};

// The unit in which a variant of the read probe is tried.
std::string read_probe_unit(const std::string& variant);

class Ledger {
 public:
  const Outcome* find(const std::string& unit) const;
  void add(const std::string& unit, Outcome outcome);

  // The variants of a unit with which a device was lost, and why.
  const std::vector<VariantFigure>& lost(const std::string& unit) const;
  void add_lost(const std::string& unit, VariantFigure variant);
  // Of the reads that run beside ops, from all units: those that failed as the read probe's, or lost a
  // device.
  std::vector<VariantFigure> lost_reads() const;

  // "UNIT: WHY" of each that has no result, and of each variant that failed other than by a library's
  // refusal.
  std::vector<std::string> failures() const;
  std::vector<std::string> failed_variants() const;

 private:
  std::map<std::string, Outcome> outcomes_;
  std::vector<std::string> order_;  // of the units
  std::map<std::string, std::vector<VariantFigure>> lost_;
};

}  // namespace memwall
