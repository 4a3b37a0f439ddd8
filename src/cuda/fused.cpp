// Fused tasks, by what they are made of.
#include <stdexcept>

#include "cuda/fused_linear.h"
#include "cuda/operands.h"

namespace memwall::cuda {

std::vector<Variant> variants_of(const FusedTask& task, Context& context) {
  if (is_fused_linear(task)) return fused_linear_variants(task, context);
  return {};
}

Footprint footprint_of(const FusedTask& task, Context& context) {
  if (is_fused_linear(task)) return fused_linear_footprint(task, context);
  return {};
}

std::unique_ptr<Operands> place(const FusedTask& task, Context& context, std::int64_t copies,
                                std::uint64_t seed) {
  if (is_fused_linear(task)) return place_fused_linear(task, context, copies, seed);
  throw std::logic_error("a fused task without a kernel");
}

}  // namespace memwall::cuda
