#include "bench/ledger.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace memwall {
namespace {

const std::string kProbeUnit = "read probe, ";

// What failed, by why.
class Reasons {
 public:
  void add(const std::string& what, const std::string& why) {
    const auto known =
        std::find_if(found_.begin(), found_.end(), [&](const Reason& r) { return r.why == why; });
    if (known != found_.end()) {
      ++known->others;
    } else {
      found_.push_back({what, why, 0});
    }
  }
  std::vector<std::string> lines() const {
    std::vector<std::string> lines;
    for (const Reason& r : found_) {
      lines.push_back(r.others == 0 ? fmt::format("{}: {}", r.first, r.why)
                                    : fmt::format("{}, and {} more: {}", r.first, r.others, r.why));
    }
    return lines;
  }

 private:
  struct Reason {
    std::string first;
    std::string why;
    int others = 0;
  };
  std::vector<Reason> found_;
};

}  // namespace

std::string read_probe_unit(const std::string& variant) { return kProbeUnit + variant; }

const Outcome* Ledger::find(const std::string& unit) const {
  const auto found = outcomes_.find(unit);
  return found != outcomes_.end() ? &found->second : nullptr;
}

void Ledger::add(const std::string& unit, Outcome outcome) {
  if (outcomes_.insert_or_assign(unit, std::move(outcome)).second) order_.push_back(unit);
}

const std::vector<VariantFigure>& Ledger::lost(const std::string& unit) const {
  static const std::vector<VariantFigure> none;
  const auto found = lost_.find(unit);
  return found != lost_.end() ? found->second : none;
}

void Ledger::add_lost(const std::string& unit, VariantFigure variant) {
  lost_[unit].push_back(std::move(variant));
}

std::vector<VariantFigure> Ledger::lost_reads() const {
  std::vector<VariantFigure> lost;
  for (const auto& [unit, outcome] : outcomes_) {
    if (!outcome.failed.empty() && unit.starts_with(kProbeUnit))
      lost.push_back({std::string(kReadBeside) + unit.substr(kProbeUnit.size()), 0, outcome.failed});
  }
  for (const auto& [unit, variants] : lost_) {
    for (const VariantFigure& variant : variants)
      if (variant.name.starts_with(kReadBeside)) lost.push_back(variant);
  }
  return lost;
}

std::vector<std::string> Ledger::failures() const {
  Reasons reasons;
  for (const std::string& unit : order_) {
    const Outcome& outcome = outcomes_.at(unit);
    if (!outcome.failed.empty()) reasons.add(unit, outcome.failed);
  }
  return reasons.lines();
}

std::vector<std::string> Ledger::failed_variants() const {
  Reasons reasons;
  for (const std::string& unit : order_) {
    const Outcome& outcome = outcomes_.at(unit);
    if (!outcome.measurement) continue;
    for (const VariantFigure& v : outcome.measurement->variants) {
      if (!v.works() && !v.refused) reasons.add(fmt::format("{}, {}", unit, v.name), v.failed);
    }
  }
  return reasons.lines();
}

}  // namespace memwall
