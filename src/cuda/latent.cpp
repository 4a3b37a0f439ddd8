#include "cuda/operands.h"

namespace memwall::cuda {

std::vector<Variant> variants_of(const LatentWork&, const OpTask&, Context&) { return {}; }
Footprint footprint_of(const LatentWork&, const OpTask&, Context&) { return {}; }
std::unique_ptr<Operands> place(const LatentWork&, const OpTask&, Context&, std::int64_t, std::uint64_t) {
  return nullptr;
}

}  // namespace memwall::cuda
