#define MEMWALL_WANT_BYTE_DOT  // every set that some unit is compiled for
#include "kernels/cpu/instruction_sets.h"

#include <cstdint>
#include <stdexcept>

#include "kernels/cpu/highway_targets.h"
//
#include "hwy/highway.h"
#include "hwy/targets.h"

namespace memwall::cpu {
namespace {

// All of them, whatever use_instruction_set chose before.
std::vector<std::int64_t> targets() {
  static const std::vector<std::int64_t> all = hwy::SupportedAndGeneratedTargets();
  return all;
}

}  // namespace

std::vector<std::string> instruction_sets() {
  std::vector<std::string> names;
  for (const std::int64_t target : targets()) names.emplace_back(hwy::TargetName(target));
  return names;
}

void use_instruction_set(const std::string& name) {
  if (name.empty()) return hwy::SetSupportedTargetsForTest(0);
  // That set and the lesser ones, as a machine has them: a unit that is not compiled for it takes the next.
  // Highway's better sets are the lower bits.
  for (const std::int64_t target : targets()) {
    if (name == hwy::TargetName(target)) return hwy::SetSupportedTargetsForTest(-target);
  }
  throw std::invalid_argument("this machine has no instruction set " + name);
}

std::string instruction_set() { return hwy::TargetName(hwy::SupportedAndGeneratedTargets().front()); }

}  // namespace memwall::cpu
